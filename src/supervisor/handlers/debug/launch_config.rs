//! Starts a configuration of launch.json: its tasks, its programs, and the tasks after them.
//!
//! Nothing runs before everything is checked that can be checked, and the user has trusted it. Of a compound,
//! either all programs start, or none.

use std::sync::Arc;

use futures_util::FutureExt;
use tether_base::error::{Error, Result};
use tracing::warn;

use super::attach::configured_path_maps;
use super::launch::SessionPlace;
use super::started_programs::{StartedPrograms, StartedSession};
use crate::config::trust::WorkspaceCommands;
use crate::config::{BuildPlan, DebugConfiguration, DebugPlan, EditorInputs};
use crate::debug::program::{DebugTarget, PATH_MAP_FIELDS, PathMap};
use crate::debug::{SessionRegistry, SessionRequest};
use crate::supervisor::background_users;
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::hosted_sessions::HostedSession;
use crate::tasks::task_runner::{BackgroundUser, BuildRun, RunCaller};
use crate::window::Caller;

/// What the caller adds to a configuration, and what overrides its fields.
#[derive(Default)]
pub struct ConfigOverrides {
    pub given: EditorInputs,
    pub args: Option<Vec<String>>,
    pub cwd: Option<String>,
    pub env: Vec<(String, Option<String>)>,
    pub stop_on_entry: Option<bool>,
    pub adapter: Option<String>,
    /// Instead of those of the configuration and of devtools.toml.
    pub paths: Option<Vec<PathMap>>,
}

/// A configuration that was checked and can be started.
pub struct ConfiguredLaunch {
    debugging: DebugPlan,
    /// Of the configurations, in their order.
    requests: Vec<SessionRequest>,
    /// What is to be said of the keys of each.
    notes: Vec<Vec<String>>,
}

/// Errors: there is no such configuration, something is wrong in it, no adapter debugs its type, it is not trusted.
pub fn prepare_config(sessions: &SessionRegistry, name: &str, overrides: &ConfigOverrides) -> Result<ConfiguredLaunch> {
    let written = DebugPlan::resolve(sessions.workspace(), name)?;
    let debugging = written.with_editor_inputs(&overrides.given)?;
    if debugging.configurations.len() > 1 && overrides.has_launch_fields() {
        let error = Error::usage(format!("cannot change how {name:?} is run"));
        return Err(error.because("it is a compound of several").hint("change its parts in .vscode/launch.json"));
    }
    let requests = debugging.configurations.iter().map(|it| debuggee_request(sessions, it, overrides));
    let requests = requests.collect::<Result<Vec<_>>>()?;
    let notes = debugging.configurations.iter().zip(&requests).map(|(debuggee, request)| {
        let checked = sessions.check_adapter(request).and_then(|adapter| debuggee.attribute_notes(adapter));
        checked.map_err(|error| debuggee_error(debuggee, error))
    });
    let notes = notes.collect::<Result<_>>()?;
    WorkspaceCommands::of_debug_plan(&written).require_consent()?;
    Ok(ConfiguredLaunch { debugging, requests, notes })
}

fn debuggee_error(debuggee: &DebugConfiguration, error: Error) -> Error {
    let error = Error::new(error.kind, format!("cannot debug {}", debuggee.subject)).because(error);
    debuggee.secrets.mask_error(error)
}

fn debuggee_request(
    sessions: &SessionRegistry,
    debuggee: &DebugConfiguration,
    overrides: &ConfigOverrides,
) -> Result<SessionRequest> {
    let mut fields = debuggee.fields.clone();
    let mut set = |key: &str, value: Option<serde_json::Value>| value.map(|value| fields.insert(key.to_owned(), value));
    set("args", overrides.args.clone().map(Into::into));
    set("cwd", overrides.cwd.clone().map(Into::into));
    set("stopOnEntry", overrides.stop_on_entry.map(Into::into));
    if !overrides.env.is_empty() {
        let mut env = fields.get("env").and_then(serde_json::Value::as_object).cloned().unwrap_or_default();
        env.extend(overrides.env.iter().map(|(name, value)| (name.clone(), value.clone().into())));
        fields.insert("env".to_owned(), env.into());
    }
    let mut debug_target = DebugTarget {
        cwd: sessions.workspace().to_owned(),
        fields,
        secrets: debuggee.secrets.clone(),
        ..DebugTarget::default()
    };
    let has_own_maps = PATH_MAP_FIELDS.iter().any(|name| debug_target.fields.contains_key(*name));
    debug_target.paths = match &overrides.paths {
        Some(paths) => {
            debug_target.fields.retain(|name, _| !PATH_MAP_FIELDS.contains(&name.as_str()));
            paths.clone()
        }
        None if debug_target.is_listener() && !has_own_maps => configured_path_maps(sessions.workspace())?,
        None => Vec::new(),
    };
    Ok(SessionRequest {
        name: debuggee.name.clone(),
        debug_target,
        adapter: overrides.adapter.clone(),
        launch_type: Some(debuggee.kind.clone()),
        ..SessionRequest::default()
    })
}

impl ConfigOverrides {
    fn has_launch_fields(&self) -> bool {
        let ConfigOverrides { args, cwd, env, stop_on_entry, adapter, paths, given: _ } = self;
        args.is_some()
            || cwd.is_some()
            || !env.is_empty()
            || stop_on_entry.is_some()
            || adapter.is_some()
            || paths.is_some()
    }
}

impl ConfiguredLaunch {
    /// Of its programs.
    pub fn requests_mut(&mut self) -> &mut [SessionRequest] {
        &mut self.requests
    }

    /// The request of a configuration that is no compound, the tasks before it, and the task after it. Errors: it is a
    /// compound.
    pub fn into_single(mut self) -> Result<(SessionRequest, Vec<BuildPlan>, BuildPlan)> {
        match (self.debugging.configurations.pop(), self.requests.pop()) {
            (Some(only), Some(request)) if self.requests.is_empty() => {
                // An editor that speaks to the adapter itself has no place for them.
                self.notes.iter().flatten().for_each(|note| warn!("{note}"));
                Ok((request, vec![self.debugging.before, only.before], only.after))
            }
            _ => {
                let error = Error::usage(format!("cannot debug {:?} over one connection", self.debugging.name));
                Err(error.because("it is a compound of several").hint("name one of its configurations"))
            }
        }
    }

    /// Runs the tasks, and starts the programs one after the other, so that a client finds its server: as one session, in a host.
    pub async fn start_programs(
        self,
        supervisor: &SupervisorContext,
        caller: &dyn Caller,
        place: SessionPlace,
    ) -> Result<StartedSession> {
        let DebugPlan { before, configurations, .. } = self.debugging;
        let mut programs = StartedPrograms::of(supervisor, place, configurations.len());
        let mut notes = Vec::new();
        let shared = run_tasks(supervisor, &before, caller).await?;
        notes.extend(task_notes(&shared));
        for ((debuggee, request), of_keys) in configurations.iter().zip(self.requests).zip(self.notes) {
            let begun = async {
                let ran = run_tasks(supervisor, &debuggee.before, caller).await?;
                caller.report_progress(&format!("launching {}", debuggee.name));
                Ok((programs.start(request).await?, ran))
            };
            let ((session, program), ran) = match begun.await {
                Ok(begun) => begun,
                Err(error) => {
                    programs.stop_all().await;
                    return Err(debuggee_error(debuggee, error));
                }
            };
            notes.extend(task_notes(&ran).into_iter().chain(of_keys));
            let tasks = ran.background.into_iter().chain(shared.background.iter().cloned()).collect();
            background_users::keep_until_end(supervisor, &session, program, tasks);
            run_post_debug_task(supervisor, &session, program, debuggee.after.clone());
        }
        programs.finish(notes).await
    }
}

/// Runs the tasks before a session, for whose background tasks it has no id yet.
async fn run_tasks(supervisor: &SupervisorContext, plan: &BuildPlan, caller: &dyn Caller) -> Result<BuildRun> {
    let user = BackgroundUser { name: "a session that starts", needs_new_cycle: false, keeps_watchers: true };
    run_tasks_for(supervisor, plan, user, caller).await
}

/// Runs tasks that a caller waits for.
pub(in crate::supervisor) async fn run_tasks_for(
    supervisor: &SupervisorContext,
    plan: &BuildPlan,
    user: BackgroundUser<'static>,
    caller: &dyn Caller,
) -> Result<BuildRun> {
    if plan.is_empty() {
        return Ok(BuildRun::default());
    }
    let window = &supervisor.window;
    let run_caller = RunCaller {
        progress: &|doing| caller.report_progress(doing),
        is_interrupted: &|| caller.is_interrupted(),
        changed_since: &|since_ms| window.has_changed_since(since_ms).boxed(),
    };
    supervisor.task_queue().await.run_attended(plan, user, run_caller).await
}

/// What a user should know of them.
pub(in crate::supervisor) fn task_notes(ran: &BuildRun) -> Vec<String> {
    let left = ran.left.iter().map(|who| format!("a task left a process running: {who}"));
    let background =
        ran.background.iter().map(|it| format!("the background task {:?} runs until the session ends", it.label));
    left.chain(background).chain(ran.notes.iter().cloned()).collect()
}

/// Runs `postDebugTask` when its program has ended; no caller waits, so an error is logged.
fn run_post_debug_task(supervisor: &SupervisorContext, session: &Arc<HostedSession>, program: usize, plan: BuildPlan) {
    if plan.is_empty() {
        return;
    }
    let queue = Arc::clone(&supervisor.queue);
    supervisor.hosted.run_after_end(session, program, async move {
        if let Err(error) = queue.run_plan(&plan, None, &|_| {}).await {
            warn!("postDebugTask: {error}");
        }
    });
}
