//! The window before, started again after the one that was to replace it could not be launched.
//!
//! Does not decide whether a launch has failed.

use std::sync::Arc;

use tether_base::error::{Error, Result};
use tether_base::sync::lock;
use tracing::warn;

use super::context::WindowContext;
use super::launch_id::new_random_id;
use super::live_window::LiveWindow;
use super::pending_launch::PendingLaunch;
use super::recorded_launch::{PreparedLaunch, ReplaceError, launch_new_window, record_launch, tracker_of};
use crate::config::{WindowConfig, trust::WorkspaceCommands};
use crate::tasks::background_tasks::WINDOW_USER;

/// What the old window runs, to launch that again; `None` where nothing else than `new` would be launched, or it is not
/// known. Called before the old window is closed, whose files are removed then. Without `old`, the window that ran before a
/// launch which an earlier supervisor had begun.
pub async fn former_launch(
    context: &WindowContext,
    old: Option<&LiveWindow>,
    new: &WindowConfig,
) -> Option<PreparedLaunch> {
    let config = match old.and_then(|old| old.launched_from.clone()) {
        // It was trusted when it was launched.
        Some(config) => config.as_ref().clone(),
        None => running_config(context)?,
    };
    let is_same = config.window == new.window
        && config.configuration == new.configuration
        && config.consent_lines() == new.consent_lines();
    if is_same {
        return None;
    }
    let tracker = tracker_of(context, &config).ok()?;
    let stored = match old {
        Some(old) => context.load_baseline(&old.session.launch_id, &tracker).await.unwrap_or_default(),
        None => None,
    };
    let baseline = match stored {
        Some(stored) => Arc::new(stored),
        // It is not known what it was built from: everything counts as changed since.
        None => Arc::new(tracker.take_snapshot().await.ok()?.as_of(0)),
    };
    let background_tasks = match old {
        Some(old) => old.background_tasks(),
        None => context.queue.background.recovered_tasks(WINDOW_USER),
    };
    Some(PreparedLaunch { config, tracker, baseline, background_tasks })
}

/// The configuration of a window that an earlier supervisor has launched, as the files have it now.
fn running_config(context: &WindowContext) -> Option<WindowConfig> {
    let running = context.active_config().running?;
    let config = WindowConfig::resolve(&context.paths.workspace, Some(&running)).ok()?;
    config.check_window().ok()?;
    WorkspaceCommands::of_window(&config).require_consent().ok()?;
    Some(config.with_environment_values())
}

/// Launches the former window again after `failure`; the error of the replacement says what came of it.
/// `failed` is the launch id of that replacement, whose output is kept.
pub async fn launch_again(
    context: &WindowContext,
    former: PreparedLaunch,
    (failed, failure): (&str, Error),
) -> ReplaceError {
    let name = former.config.configuration.as_ref().map(|name| format!(" from {name:?}")).unwrap_or_default();
    context.report_progress("starting the window before again");
    lock(&context.secrets).clone_from(&former.config.window.secrets);
    let launched = async {
        let launch_id = new_random_id()?;
        record_launch(context, &PendingLaunch::first(launch_id.clone())?, &former.baseline).await?;
        launch_new_window(context, None, former, [&launch_id, failed]).await
    };
    let launched: Result<LiveWindow> = launched.await;
    match launched {
        Ok(mut window) => {
            window.notes.push(format!(
                "it was started again{name}, since the window that was to replace it could not be launched: {}",
                failure.doing
            ));
            let hint = format!("the window before was started again{name}: `tether status` shows it");
            ReplaceError { error: failure.hint(hint), window: Some(Arc::new(window)) }
        }
        Err(error) => {
            warn!("{error}");
            let causes = error.causes().iter().map(|cause| format!(": {cause}")).collect::<String>();
            let hint = format!(
                "the window before could not be started again{name}: {}{causes}; `tether start` starts it",
                error.doing
            );
            failure.hint(hint).into()
        }
    }
}
