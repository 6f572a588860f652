//! The operations on the window, one function each: build, replace, stop, clean up after an exit.
//!
//! They run beside the actor, which receives their results. What they launch and close: `recorded_launch`.

use std::sync::Arc;
use std::time::Instant;

use tether_base::error::{Error, ErrorKind, Result};
use tether_base::sync::{lock, run_blocking};
use tether_changes::FileSnapshot;
use tracing::warn;

use super::build::{Build, CompletedBuild};
use super::cleanup;
use super::context::WindowContext;
use super::former_window::{former_launch, launch_again};
use super::launch::{check_launch, describe_missing_mains};
use super::launch_id::new_random_id;
use super::live_window::{LiveWindow, WindowPage};
use super::pending_launch::{PendingLaunch, remove_pending_launch};
use super::recorded_launch::{
    PreparedLaunch, ReplaceError, close_window, launch_new_window, launch_plan, log_warnings, record_launch,
    save_session_files, tracker_of,
};
use super::refresh::contributed_files::ContributedFiles;
use super::refresh::ladder::{ChangeScope, ScopeFacts, classify_change};
use super::refresh::refresh_window;
use super::refresh::rung_report::WindowRefresh;
use super::repeated_builds::RepeatedBuilds;
use super::session_file::WindowSession;
use crate::config::{RefreshSetting, WindowConfig, trust::WorkspaceCommands};
use crate::tasks::background_tasks::WINDOW_USER;
use crate::vocabulary::RefreshRung;

/// Runs the build, if the user trusts the workspace's commands. Begins anew when the commands change meanwhile. A build
/// that was kept is returned as it is if no command and no tracked file has changed since it began.
pub async fn build_window(
    context: &WindowContext,
    rounds: &mut RepeatedBuilds,
    mut kept: Option<CompletedBuild>,
) -> Result<CompletedBuild> {
    loop {
        let config = read_trusted_config(context)?;
        let tracker = tracker_of(context, &config)?;
        if let Some(kept) = kept.take()
            && kept.config.consent_lines() == config.consent_lines()
            && tracker.take_snapshot().await?.changed_paths(&kept.baseline).is_empty()
        {
            return Ok(kept);
        }
        let on_round = |sources| *lock(&context.build_sources) = Some(Arc::new(sources));
        let build = Build { config: &config, tracker: &tracker, queue: &context.queue, on_round: &on_round };
        let is_current = || read_trusted_config(context).map(|now| now.consent_lines() == config.consent_lines());
        let progress = |text: &str| context.report_progress(text);
        if let Some(completed) = build.run(rounds, is_current, &progress).await? {
            return Ok(completed);
        }
    }
}

/// Reads what to build and launch; an error without a window in it, or if the user does not trust its commands.
fn read_trusted_config(context: &WindowContext) -> Result<WindowConfig> {
    let config = context.read_config()?;
    config.check_window()?;
    WorkspaceCommands::of_window(&config).require_consent()?;
    // After the check: the user's own environment is not part of what they trust.
    let config = config.with_environment_values();
    lock(&context.secrets).clone_from(&config.window.secrets);
    Ok(config)
}

/// Brings the old window up to date in place, if it `may_refresh` and a rung of the ladder is proven to; else closes it, if
/// there is one, and launches a new one. Everything that can be checked is checked before the old window is closed.
pub async fn replace_window(
    context: &WindowContext,
    old: Option<Arc<LiveWindow>>,
    build: Option<CompletedBuild>,
    may_refresh: bool,
) -> Result<LiveWindow, ReplaceError> {
    let ready = match prepare_launch(context, old.as_deref(), build).await {
        Ok(ready) => ready,
        Err(error) => return Err(ReplaceError { error, window: old }),
    };
    let (began, mut refresh_notes) = (Instant::now(), Vec::new());
    if let Some(window) = old.as_deref().filter(|_| may_refresh) {
        match refresh_in_place(context, window, &ready).await {
            Ok(window) => return Ok(window),
            Err(notes) => refresh_notes = notes,
        }
        if !window.process.is_alive() {
            let error = Error::new(ErrorKind::NotFound, "the window ended while it was refreshed");
            return Err(ReplaceError { error: error.hint("`tether start` starts it again"), window: old });
        }
    }
    let replaces = old.is_some();
    let recorded = async {
        check_before_closing(context, old.as_deref(), &ready).await?;
        let launch_id = new_random_id()?;
        // From here on, the next supervisor finishes what this one cannot.
        record_launch(context, &PendingLaunch::first(launch_id.clone())?, &ready.baseline).await?;
        Ok(launch_id)
    };
    match recorded.await {
        Ok(launch_id) => {
            let mut window = close_and_launch(context, old, ready, launch_id).await?;
            window.refresh_notes = refresh_notes;
            window.refreshed = replaces.then(|| WindowRefresh { by: RefreshRung::Relaunch, took: began.elapsed() });
            Ok(window)
        }
        Err(error) => Err(ReplaceError { error, window: old }),
    }
}

/// Refreshes a running window by the ladder, and records it as a new generation. `Err`: why no rung was enough; empty if
/// none can take up the change.
async fn refresh_in_place(
    context: &WindowContext,
    old: &LiveWindow,
    ready: &PreparedLaunch,
) -> Result<LiveWindow, Vec<String>> {
    let Some(kind) = ready.config.window.kind else { return Err(Vec::new()) };
    let (scope, contributed) = change_scope(context, old, ready).await;
    context.arm_host_hold(old);
    let refreshed = refresh_window(old, kind, scope, &|text| context.report_progress(text)).await?;
    let mut notes = save_refresh(context, &refreshed.session, &ready.baseline).await;
    notes.extend(describe_missing_mains(&refreshed.session.extensions));
    notes.extend(ready.config.notes.iter().cloned());
    context.set_baseline(&ready.tracker, Arc::clone(&ready.baseline)).await;
    context.history.record_launch();
    let endpoint = old.page().await.ok().map(|page| page.endpoint().clone());
    let (process, output, history) = (old.process.clone(), old.output().to_owned(), Arc::clone(&context.history));
    let mut window = LiveWindow::connect(refreshed.session, process, WindowPage::At(endpoint), output, history).await;
    window.notes = notes;
    window.keep_background_tasks(ready.background_tasks.clone());
    window.launched_from = Some(Arc::new(ready.config.clone()));
    window.contributed = contributed;
    window.refresh_notes = refreshed.notes;
    window.refreshed = Some(refreshed.refresh);
    Ok(window)
}

/// What has to take up what changed since the old window's build; and the files that the workbench reads of its extensions.
async fn change_scope(
    context: &WindowContext,
    old: &LiveWindow,
    ready: &PreparedLaunch,
) -> (ChangeScope, Option<ContributedFiles>) {
    let from = old.launched_from.as_ref();
    let built_from = context.load_baseline(&old.session.launch_id, &ready.tracker).await.unwrap_or_default();
    let facts = ScopeFacts {
        has_other_configuration: context.active_config().running != ready.config.configuration,
        has_other_settings: from.is_some_and(|from| from.window != ready.config.window),
        always_relaunches: ready.config.window.refresh == RefreshSetting::Relaunch,
        by_files: None,
        has_other_contributions: false,
    };
    let (root, workspace) = (ready.tracker.root().to_owned(), context.paths.workspace.clone());
    let (extensions, known) = (old.session.extensions.clone(), old.contributed.clone());
    let (baseline, since_ms) = (Arc::clone(&ready.baseline), old.session.debug_window_started_at);
    run_blocking(move || {
        let contributed = ContributedFiles::read(&extensions);
        let changed = built_from.map(|built_from| baseline.changed_paths(&built_from));
        let by_files = changed.map(|changed| classify_change(&changed, &root, &workspace, &extensions));
        let has_other_contributions =
            known.map_or_else(|| contributed.is_any_newer(since_ms), |known| known != contributed);
        let scope = ScopeFacts { by_files, has_other_contributions, ..facts }.scope();
        (scope, Some(contributed))
    })
    .await
}

/// Everything that can be known of a launch before the old window is closed.
async fn check_before_closing(context: &WindowContext, old: Option<&LiveWindow>, ready: &PreparedLaunch) -> Result<()> {
    let (plan, _) = launch_plan(context, ready, String::new()).await;
    let old = old.map(|old| old.process.clone());
    let secrets = plan.settings.secrets.clone();
    let checked = run_blocking(move || check_launch(&plan, old.as_ref())).await;
    checked.map_err(|error| secrets.mask_error(error))
}

/// Closes the old window, if there is one, and launches the new one; where that fails, the one before again. The launch is
/// then pending no longer, whatever came of it.
async fn close_and_launch(
    context: &WindowContext,
    old: Option<Arc<LiveWindow>>,
    ready: PreparedLaunch,
    launch_id: String,
) -> Result<LiveWindow, ReplaceError> {
    let former = former_launch(context, old.as_deref(), &ready.config).await;
    let old_process = old.as_ref().map(|old| old.process.clone());
    let replaced = match (launch_new_window(context, old, ready, [&launch_id; 2]).await, former) {
        // Never beside an old window that cannot be ended.
        (Err(failure), Some(former)) if old_process.is_none_or(|old| !old.is_alive()) => {
            Err(launch_again(context, former, (&launch_id, failure)).await)
        }
        (replaced, _) => replaced.map_err(ReplaceError::from),
    };
    remove_pending_launch(&context.paths.state);
    replaced
}

/// Finishes a launch or a replacement in the middle of which the supervisor before has exited. `old` is the old window, if it still
/// runs. Errors: as of a launch, and that it was begun too often.
pub async fn resume_launch(
    context: &WindowContext,
    old: Option<Arc<LiveWindow>>,
    pending: PendingLaunch,
) -> Result<LiveWindow, ReplaceError> {
    let prepared = async {
        let config = read_trusted_config(context)?;
        let tracker = tracker_of(context, &config)?;
        let stored = context.load_baseline(&pending.launch_id, &tracker).await;
        let baseline = match stored.unwrap_or_default() {
            Some(stored) => Arc::new(stored),
            // It is not known what was built: everything counts as changed since.
            None => Arc::new(tracker.take_snapshot().await?.as_of(0)),
        };
        let given_up = || Error::other("the launch is not begun again").because("it was interrupted twice");
        let next = pending.next(new_random_id()?).ok_or_else(given_up)?;
        record_launch(context, &next, &baseline).await?;
        let background_tasks = context.queue.background.recovered_tasks(WINDOW_USER);
        Ok::<_, Error>((PreparedLaunch { config, tracker, baseline, background_tasks }, next.launch_id))
    };
    match prepared.await {
        Ok((ready, launch_id)) => close_and_launch(context, old, ready, launch_id).await,
        Err(error) => Err(ReplaceError { error, window: old }),
    }
}

/// Without a build, a replacement runs the build of the old window.
async fn prepare_launch(
    context: &WindowContext,
    old: Option<&LiveWindow>,
    build: Option<CompletedBuild>,
) -> Result<PreparedLaunch> {
    if let Some(CompletedBuild { config, baseline, background_tasks, .. }) = build {
        let tracker = tracker_of(context, &config)?;
        return Ok(PreparedLaunch { config: *config, tracker, baseline, background_tasks });
    }
    let config = read_trusted_config(context)?;
    let tracker = tracker_of(context, &config)?;
    let stored = match old.filter(|_| !config.build.is_empty()) {
        Some(old) => context.load_baseline(&old.session.launch_id, &tracker).await.unwrap_or_default(),
        None => None,
    };
    let baseline = match stored {
        Some(stored) => Arc::new(stored),
        None => tracker.take_snapshot().await?,
    };
    let background_tasks = old.map(LiveWindow::background_tasks).unwrap_or_default();
    Ok(PreparedLaunch { config, tracker, baseline, background_tasks })
}

/// Writes what a new supervisor needs to find a refreshed window again, as [`record_launch`] did before its launch. Errors
/// are returned as notes: the window runs all the same.
async fn save_refresh(context: &WindowContext, session: &WindowSession, baseline: &Arc<FileSnapshot>) -> Vec<String> {
    let saved = context.save_baseline(&session.launch_id, baseline).await;
    let mut notes: Vec<String> = saved.err().map(|error| error.to_string()).into_iter().collect();
    notes.extend(save_session_files(context, session));
    log_warnings(notes)
}

/// As [`close_window`]; its background tasks have ended, too, and with `has_aborted` what an aborted build has left. Errors:
/// also a process that cannot be ended, with its PID.
pub async fn stop_window(context: &WindowContext, window: Option<Arc<LiveWindow>>, has_aborted: bool) -> Result<()> {
    let closed = close_window(context, window).await;
    context.report_progress("stopping its background tasks");
    let ended = if has_aborted { context.queue.end_leftovers().await } else { Ok(()) };
    wait_for_stopped_tasks(context).await?;
    closed.and(ended)
}

/// Waits until what windows have used is stopped, also those that have exited. Errors: a process of it runs on.
pub async fn wait_for_stopped_tasks(context: &WindowContext) -> Result<()> {
    context.exit_cleanups.wait().await;
    context.queue.background.wait_until_stopped().await;
    context.queue.background.check_stopped()
}

/// Kills the remaining processes of a window that has exited, removes its scratch folder, and lets its background tasks end.
pub async fn clean_up_after_exit(context: &WindowContext, window: &LiveWindow) {
    window.release_background_tasks();
    if let Err(error) = cleanup::clean_up_launch(&window.session.launch_id, &context.paths.state).await {
        warn!("{error}");
    }
}
