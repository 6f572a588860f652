//! Launch, attach, probe: from parameters to a session request.

use std::path::{Path, PathBuf};

use super::launch_config::{self, ConfigOverrides, ConfiguredLaunch, StartedSessions};
use super::named_test_request;
use crate::api::debug::breakpoints::BreakpointReport;
use crate::api::debug::results::{EvaluatedValue, LaunchReport, ProbeReport, ProbeValue as Valued, StopReport};
use crate::api::debug::values::{FileLine, Seconds};
use crate::api::debug::{DEFAULT_STOP_TIMEOUT, DebugAttachParams, DebugLaunchParams, DebugProbeParams};
use crate::config::EditorInputs;
use crate::debug::breakpoints::BreakpointConditions;
use crate::debug::program::{Address, DebugTarget, DebugTargetKind};
use crate::debug::{ManagedSession, SessionRegistry, SessionRequest};
use crate::error::{Error, Result};
use crate::supervisor::context::SupervisorContext;
use crate::supervisor::convert::debug as convert;
use crate::supervisor::operation_call::{OperationCall, OperationHandler};
use crate::supervisor::window_follow;

impl OperationHandler for DebugLaunchParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<LaunchReport> {
        let sessions = &context.sessions;
        let (params, plan) = plan_launch(context, self, call).await?;
        let mut breakpoints = Vec::new();
        for at in params.breakpoints.iter().flatten() {
            let spot = FileLine::parse(at, None)?;
            let set =
                sessions.set_line_breakpoint(Path::new(&spot.file), spot.line, BreakpointConditions::default()).await?;
            breakpoints.push(set.spec.id);
        }
        let StartedSessions { hosted, notes } = match plan {
            RequestedLaunch::One(request) => {
                let generation = context.window.watch().borrow().generation;
                let hosted = sessions.start_session(*request).await?;
                if hosted.request.follows.is_some() {
                    context.followers.record_attached(&hosted.id, generation);
                }
                StartedSessions { hosted, notes: Vec::new() }
            }
            RequestedLaunch::Configured(configured) => configured.start_sessions(context, call).await?,
        };
        if params.config.is_some() || params.test.is_some() {
            context.launch_memory.remember(sessions, &hosted.id, params.clone());
        }
        let mut launched = launch_report(sessions, hosted, params.wait, params.budget, &breakpoints).await?;
        launched.stopped.notes.extend(notes);
        Ok(launched)
    }
}

/// What to start.
enum RequestedLaunch {
    One(Box<SessionRequest>),
    Configured(ConfiguredLaunch),
}

/// Finds out what to launch, and stops the session that is to be restarted; starts nothing. Returns the effective
/// parameters too: those of a restart are the parameters of the first launch.
async fn plan_launch(
    supervisor: &SupervisorContext,
    it: DebugLaunchParams,
    call: &OperationCall<'_>,
) -> Result<(DebugLaunchParams, RequestedLaunch)> {
    let sessions = &supervisor.sessions;
    let plan = match (&it.program, &it.config, &it.test, &it.restart) {
        (Some(program), None, None, None) => RequestedLaunch::One(Box::new(program_request(sessions, &it, program)?)),
        (program, Some(name), None, None) => {
            let file = program.as_ref().map(|program| existing_path(sessions.workspace(), program)).transpose()?;
            let besides = ConfigOverrides {
                given: EditorInputs { file, pid: None },
                args: it.args.clone(),
                cwd: it.cwd.clone(),
                env: it.env.iter().map(|it| (it.name.clone(), it.value.clone())).collect(),
                stop_on_entry: it.stop_on_entry,
                adapter: it.adapter.clone(),
            };
            RequestedLaunch::Configured(launch_config::prepare_config(sessions, name, &besides)?)
        }
        (_, None, Some(name), None) => {
            RequestedLaunch::One(Box::new(named_test_request::prepare_named_test(supervisor, &it, name, call).await?))
        }
        (None, None, None, Some(id)) => return plan_restart(supervisor, &it, id, call).await,
        _ => {
            let error = Error::usage("nothing to debug was named");
            let hint = "name one of: `program`, `config`, `test`, `restart`; `program` may stand beside `config` (as `${file}`) \
                        and `test` (the file in which it stands)";
            return Err(error.hint(hint));
        }
    };
    Ok((it, plan))
}

/// Stops a session, and plans its launch anew.
async fn plan_restart(
    supervisor: &SupervisorContext,
    it: &DebugLaunchParams,
    id: &str,
    call: &OperationCall<'_>,
) -> Result<(DebugLaunchParams, RequestedLaunch)> {
    let before = supervisor.sessions.find_session(Some(id))?;
    let DebugLaunchParams { breakpoints, wait, budget, .. } = it.clone();
    let Some(launch) = supervisor.launch_memory.launch_params(id) else {
        supervisor.followers.remove(id);
        before.stop(before.is_attached()).await;
        let request = window_follow::renew_request(&supervisor.window, SessionRequest::clone(&before.request)).await?;
        return Ok((it.clone(), RequestedLaunch::One(Box::new(request))));
    };
    let launch = DebugLaunchParams { breakpoints, wait, budget, ..launch };
    // Planned before the stop: a session that cannot be restarted keeps running.
    let (launch, plan) = Box::pin(plan_launch(supervisor, launch, call)).await?;
    before.stop(before.is_attached()).await;
    Ok((launch, plan))
}

fn program_request(sessions: &SessionRegistry, it: &DebugLaunchParams, program: &str) -> Result<SessionRequest> {
    let workspace = sessions.workspace();
    let path = existing_path(workspace, program)?;
    Ok(SessionRequest {
        name: convert::display_path(workspace, &path.to_string_lossy()),
        debug_target: DebugTarget {
            kind: DebugTargetKind::Program(path),
            args: it.args.clone().unwrap_or_default(),
            cwd: it.cwd.as_ref().map_or_else(|| workspace.to_owned(), |cwd| workspace.join(cwd)),
            env: it.env.iter().map(|it| (it.name.clone(), it.value.clone())).collect(),
            stop_on_entry: it.stop_on_entry.unwrap_or_default(),
            ..DebugTarget::default()
        },
        adapter: it.adapter.clone(),
        language: it.language.clone(),
        launch_type: None,
        follows: None,
    })
}

fn existing_path(workspace: &Path, file: &str) -> Result<PathBuf> {
    let path = workspace.join(file);
    path.canonicalize().map_err(|cause| {
        let error = Error::usage(format!("cannot debug {}", path.display())).because(cause);
        error.hint("name a file that is there, relative to the workspace")
    })
}

async fn launch_report(
    sessions: &SessionRegistry,
    hosted: ManagedSession,
    wait: Option<Seconds>,
    budget: Option<u32>,
    breakpoints: &[u32],
) -> Result<LaunchReport> {
    let stopped: StopReport = super::control::wait_and_report(sessions, &hosted, wait, budget).await?;
    let all = sessions.list_breakpoints().await;
    let asked: Vec<BreakpointReport> = all
        .iter()
        .filter(|it| breakpoints.contains(&it.spec.id))
        .map(|it| convert::breakpoint_report(it, sessions.workspace()))
        .collect();
    Ok(LaunchReport { stopped, adapter: hosted.adapter.name.to_owned(), pid: hosted.pid, breakpoints: asked })
}

impl OperationHandler for DebugAttachParams {
    async fn handle(self, context: &SupervisorContext, call: &OperationCall<'_>) -> Result<LaunchReport> {
        let sessions = &context.sessions;
        let host = self.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned());
        let (name, what) = match (self.port, self.pid, &self.url, self.window, &self.config) {
            (Some(port), None, None, None, None) => {
                (format!("{host}:{port}"), DebugTargetKind::Listener(Address { host, port }))
            }
            (Some(port), None, Some(url), None, None) => {
                (url.clone(), DebugTargetKind::Page { url: url.clone(), port })
            }
            (None, Some(pid), None, None, None) => (format!("process {pid}"), DebugTargetKind::Pid(pid)),
            (None, None, None, Some(part), None) => {
                let (request, generation) =
                    window_follow::window_part_request(&context.window, part, sessions.workspace()).await?;
                let hosted =
                    sessions.start_session(SessionRequest { adapter: self.adapter.clone(), ..request }).await?;
                context.followers.record_attached(&hosted.id, generation);
                return launch_report(sessions, hosted, self.wait, self.budget, &[]).await;
            }
            (None, pid, None, None, Some(name)) => {
                // With a configuration this is the same as a launch: its `request` says which of the two.
                let given = EditorInputs { file: None, pid };
                let besides = ConfigOverrides { given, adapter: self.adapter.clone(), ..ConfigOverrides::default() };
                let StartedSessions { hosted, notes } =
                    launch_config::prepare_config(sessions, name, &besides)?.start_sessions(context, call).await?;
                let mut launched = launch_report(sessions, hosted, self.wait, self.budget, &[]).await?;
                launched.stopped.notes.extend(notes);
                return Ok(launched);
            }
            _ => {
                let error = Error::usage("nothing to attach to was named");
                return Err(error.hint("name one of: `port` (and `url`, for a page), `pid`, `window`, `config` (and `pid`, for a process that it picks)"));
            }
        };
        let language = self
            .language
            .clone()
            .or_else(|| matches!(what, DebugTargetKind::Page { .. }).then(|| "javascript".to_owned()));
        let request = SessionRequest {
            name,
            debug_target: DebugTarget { kind: what, cwd: sessions.workspace().to_owned(), ..DebugTarget::default() },
            adapter: self.adapter.clone(),
            language,
            ..SessionRequest::default()
        };
        let hosted = sessions.start_session(request).await?;
        launch_report(sessions, hosted, self.wait, self.budget, &[]).await
    }
}

impl OperationHandler for DebugProbeParams {
    async fn handle(self, context: &SupervisorContext, _: &OperationCall<'_>) -> Result<ProbeReport> {
        let sessions = &context.sessions;
        let workspace = sessions.workspace();
        let spot = FileLine::parse(&self.at, None)?;
        let program = existing_path(workspace, self.program.as_deref().unwrap_or(&spot.file))?;
        let cwd = self.cwd.as_ref().map_or_else(|| workspace.to_owned(), |cwd| workspace.join(cwd));
        let request = SessionRequest {
            name: convert::display_path(workspace, &program.to_string_lossy()),
            debug_target: DebugTarget {
                kind: DebugTargetKind::Program(program),
                args: self.args.unwrap_or_default(),
                cwd,
                ..DebugTarget::default()
            },
            ..SessionRequest::default()
        };
        let probing = sessions.start_probe(request, Path::new(&spot.file), spot.line).await?;
        let waited =
            probing.hosted.session.wait_for_stop(self.timeout.unwrap_or(DEFAULT_STOP_TIMEOUT).duration()).await;
        let stopped = convert::stop_report(&probing.hosted, waited, self.budget, workspace).await;
        let mut values = Vec::new();
        for expression in self.expressions.unwrap_or_default() {
            values.push(evaluate_at_stop(&probing.hosted, expression, stopped.stopped).await);
        }
        probing.end().await;
        Ok(ProbeReport {
            stopped: stopped.stopped,
            state: stopped.state,
            stop_reason: stopped.stop_reason,
            waited_ms: stopped.waited_ms,
            exit_code: stopped.exit_code,
            message: stopped.message,
            snapshot: stopped.snapshot.unwrap_or_default(),
            values,
            notes: stopped.notes,
        })
    }
}

async fn evaluate_at_stop(hosted: &ManagedSession, expression: String, stopped: bool) -> Valued {
    if !stopped {
        return Valued { expression, error: Some("the line was not reached".to_owned()), ..Valued::default() };
    }
    match hosted.session.evaluate(&expression, None, "watch").await {
        Ok((_, answer)) => {
            let value = EvaluatedValue {
                result: convert::clip_value(answer.result),
                of: answer.kind,
                variables_reference: None,
            };
            Valued { expression, value: Some(value), error: None }
        }
        Err(error) => Valued { expression, value: None, error: Some(error.causes().join(": ")) },
    }
}
