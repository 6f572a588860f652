//! Starts a configuration of launch.json: its tasks, its sessions, and the tasks after them.
//!
//! Nothing runs before everything is checked that can be checked, and the user has trusted it. Of a compound,
//! either all sessions start, or none.

use std::sync::Arc;

use tracing::warn;

use crate::config::trust::WorkspaceCommands;
use crate::config::{BuildPlan, DebugConfiguration, DebugPlan, EditorInputs, StepCompletion};
use crate::debug::program::DebugTarget;
use crate::debug::{ManagedSession, SessionRegistry, SessionRequest};
use crate::error::{Error, Result};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::operation_call::OperationCall;
use crate::task_runner;
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
}

/// A configuration that was checked and can be started.
pub struct ConfiguredLaunch {
    debugging: DebugPlan,
    /// Of the configurations, in their order.
    requests: Vec<SessionRequest>,
}

/// Sessions that were started.
pub struct StartedSessions {
    /// The first.
    pub hosted: ManagedSession,
    pub notes: Vec<String>,
}

/// Errors: there is no such configuration, something is wrong in it, no adapter debugs its type, it is not trusted.
pub fn prepare_config(sessions: &SessionRegistry, name: &str, besides: &ConfigOverrides) -> Result<ConfiguredLaunch> {
    let written = DebugPlan::resolve(sessions.workspace(), name)?;
    let debugging = written.with_editor_inputs(&besides.given)?;
    if debugging.configurations.len() > 1 && besides.has_launch_fields() {
        let error = Error::usage(format!("cannot change how {name:?} is run"));
        return Err(error.because("it is a compound of several").hint("change its parts in .vscode/launch.json"));
    }
    let requests: Vec<SessionRequest> =
        debugging.configurations.iter().map(|it| debuggee_request(sessions, it, besides)).collect();
    for (debuggee, request) in debugging.configurations.iter().zip(&requests) {
        sessions.check_adapter(request).map_err(|error| debuggee_error(debuggee, error))?;
    }
    WorkspaceCommands::of_debug_plan(&written).require_consent()?;
    Ok(ConfiguredLaunch { debugging, requests })
}

fn debuggee_error(debuggee: &DebugConfiguration, error: Error) -> Error {
    Error::new(error.kind, format!("cannot debug {}", debuggee.subject)).because(error)
}

fn debuggee_request(
    sessions: &SessionRegistry,
    debuggee: &DebugConfiguration,
    besides: &ConfigOverrides,
) -> SessionRequest {
    let mut fields = debuggee.fields.clone();
    let mut set = |key: &str, value: Option<serde_json::Value>| value.map(|value| fields.insert(key.to_owned(), value));
    set("args", besides.args.clone().map(Into::into));
    set("cwd", besides.cwd.clone().map(Into::into));
    set("stopOnEntry", besides.stop_on_entry.map(Into::into));
    if !besides.env.is_empty() {
        let mut env = fields.get("env").and_then(serde_json::Value::as_object).cloned().unwrap_or_default();
        env.extend(besides.env.iter().map(|(name, value)| (name.clone(), value.clone().into())));
        fields.insert("env".to_owned(), env.into());
    }
    SessionRequest {
        name: debuggee.name.clone(),
        debug_target: DebugTarget { cwd: sessions.workspace().to_owned(), fields, ..DebugTarget::default() },
        adapter: besides.adapter.clone(),
        launch_type: Some(debuggee.kind.clone()),
        language: None,
        follows: None,
    }
}

impl ConfigOverrides {
    fn has_launch_fields(&self) -> bool {
        let ConfigOverrides { args, cwd, env, stop_on_entry, adapter, .. } = self;
        args.is_some() || cwd.is_some() || !env.is_empty() || stop_on_entry.is_some() || adapter.is_some()
    }
}

impl ConfiguredLaunch {
    /// Runs the tasks, and starts the sessions one after the other, so that a client finds its server.
    pub async fn start_sessions(
        self,
        supervisor: &SupervisorContext,
        call: &OperationCall<'_>,
    ) -> Result<StartedSessions> {
        let sessions = &supervisor.sessions;
        let DebugPlan { before, configurations, stop_all, .. } = self.debugging;
        let (mut together, mut notes) = (StartedSoFar { sessions, begun: Vec::new() }, Vec::new());
        notes.extend(run_tasks(supervisor, &before, call).await?);
        for (debuggee, request) in configurations.iter().zip(self.requests) {
            let begun = async {
                let notes = run_tasks(supervisor, &debuggee.before, call).await?;
                call.report_progress(&format!("launching {}", debuggee.name));
                Ok((sessions.start_session(request).await?, notes))
            };
            match begun.await {
                Ok((hosted, more)) => {
                    notes.extend(more.into_iter().chain(debuggee.notes.clone()));
                    run_post_debug_task(supervisor, &hosted, debuggee.after.clone());
                    together.begun.push(hosted);
                }
                Err(error) => {
                    together.stop_all().await;
                    return Err(debuggee_error(debuggee, error));
                }
            }
        }
        let mut begun = std::mem::take(&mut together.begun);
        if stop_all {
            begun.iter().for_each(|one| stop_with(sessions, one, &begun));
        }
        notes.extend(begun.iter().skip(1).map(|it| format!("{} started with it: {}", it.id, it.request.name)));
        Ok(StartedSessions { hosted: begun.swap_remove(0), notes })
    }
}

/// The sessions started so far; stopped on drop.
struct StartedSoFar<'a> {
    sessions: &'a SessionRegistry,
    begun: Vec<ManagedSession>,
}

impl StartedSoFar<'_> {
    async fn stop_all(&mut self) {
        for hosted in std::mem::take(&mut self.begun) {
            hosted.stop(hosted.is_attached()).await;
        }
    }
}

impl Drop for StartedSoFar<'_> {
    fn drop(&mut self) {
        self.begun.iter().for_each(|hosted| self.sessions.undo_start(hosted));
    }
}

/// Runs tasks, one caller at a time; returns notes for the result.
async fn run_tasks(supervisor: &SupervisorContext, plan: &BuildPlan, call: &OperationCall<'_>) -> Result<Vec<String>> {
    if plan.is_empty() {
        return Ok(Vec::new());
    }
    let _turn = supervisor.launch_memory.task_lock.lock().await;
    let mark = supervisor.build_launch_id().await;
    let ran = task_runner::run_plan(plan, &mark, &|doing| call.report_progress(doing)).await?;
    let left = ran.left.into_iter().map(|who| format!("a task left a process running: {who}"));
    let watchers = plan.steps.iter().filter(|step| matches!(step.completion, StepCompletion::AfterCycle(_)));
    let ended = watchers.map(|step| format!("the background task {:?} was ended after its first cycle", step.label));
    Ok(left.chain(ended).collect())
}

/// Runs `postDebugTask` when the session has ended; no caller waits, so an error becomes an event of the session.
fn run_post_debug_task(supervisor: &SupervisorContext, hosted: &ManagedSession, plan: BuildPlan) {
    if plan.is_empty() {
        return;
    }
    let (mark, record) = (supervisor.paths.build_launch_id(), Arc::clone(hosted.session.event_log()));
    supervisor.sessions.run_after_end(hosted, async move {
        if let Err(error) = task_runner::run_plan(&plan, &mark, &|_| {}).await {
            warn!("postDebugTask: {error}");
            record.push_event("postDebugTask", error.to_string());
        }
    });
}

/// `stopAll`: when one ends, the others are stopped.
fn stop_with(sessions: &SessionRegistry, one: &ManagedSession, all: &[ManagedSession]) {
    let others: Vec<ManagedSession> = all.iter().filter(|it| it.id != one.id).cloned().collect();
    sessions.run_after_end(one, async move {
        for other in others {
            other.stop(other.is_attached()).await;
        }
    });
}
