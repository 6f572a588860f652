//! Launching, attaching, probing: from what was asked for to what is to be debugged.

use std::path::{Path, PathBuf};

use super::configured::{self, ConfigOverrides, ConfiguredLaunch, StartedSessions};
use super::{named_test, words};
use crate::api::debug::breakpoints::BreakpointReport;
use crate::api::debug::results::{EvaluatedValue, LaunchReport, ProbeReport, ProbeValue as Valued, StopReport};
use crate::api::debug::values::{FileLine, Seconds};
use crate::api::debug::{DEFAULT_STOP_TIMEOUT, DebugAttachParams, DebugLaunchParams, DebugProbeParams};
use crate::config::EditorInputs;
use crate::debug::breakpoints::BreakpointConditions;
use crate::debug::program::{Address, DebugTarget, DebugTargetKind};
use crate::debug::{ManagedSession, SessionRegistry, SessionRequest};
use crate::error::{Error, Result};
use crate::supervisor::dispatch::OperationCall;
use crate::supervisor::server::SupervisorContext;
use crate::supervisor::window_follow;

pub async fn launch(
    supervisor: &SupervisorContext,
    it: DebugLaunchParams,
    call: &OperationCall<'_>,
) -> Result<LaunchReport> {
    let sessions = &supervisor.sessions;
    let (it, plan) = plan_launch(supervisor, it, call).await?;
    let mut breakpoints = Vec::new();
    for at in it.breakpoints.iter().flatten() {
        let spot = FileLine::parse(at, None)?;
        let set =
            sessions.set_line_breakpoint(Path::new(&spot.file), spot.line, BreakpointConditions::default()).await?;
        breakpoints.push(set.spec.id);
    }
    let StartedSessions { hosted, notes } = match plan {
        LaunchPlan::One(request) => {
            let generation = supervisor.window.watch().borrow().generation;
            let hosted = sessions.start_session(*request).await?;
            if hosted.request.follows.is_some() {
                supervisor.followers.record_attached(&hosted.id, generation);
            }
            StartedSessions { hosted, notes: Vec::new() }
        }
        LaunchPlan::Configured(configured) => configured.start_sessions(supervisor, call).await?,
    };
    if it.config.is_some() || it.test.is_some() {
        supervisor.launch_memory.remember(sessions, &hosted.id, it.clone());
    }
    let mut launched = launch_report(sessions, hosted, it.wait, it.budget, &breakpoints).await?;
    launched.stopped.notes.extend(notes);
    Ok(launched)
}

/// What is to be begun.
enum LaunchPlan {
    One(Box<SessionRequest>),
    Configured(ConfiguredLaunch),
}

/// Finds out what is to be launched; nothing has begun yet, and a session that is launched again has ended. Answers with
/// what was really asked for, too.
async fn plan_launch(
    supervisor: &SupervisorContext,
    it: DebugLaunchParams,
    call: &OperationCall<'_>,
) -> Result<(DebugLaunchParams, LaunchPlan)> {
    let sessions = &supervisor.sessions;
    let plan = match (&it.program, &it.config, &it.test, &it.restart) {
        (Some(program), None, None, None) => LaunchPlan::One(Box::new(program_request(sessions, &it, program)?)),
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
            LaunchPlan::Configured(configured::prepare_config(sessions, name, &besides)?)
        }
        (_, None, Some(name), None) => {
            LaunchPlan::One(Box::new(named_test::prepare_named_test(supervisor, &it, name, call).await?))
        }
        (None, None, None, Some(id)) => return plan_restart(supervisor, &it, id, call).await,
        _ => {
            let error = Error::usage("it is not said what is to be debugged");
            let hint = "name one of: `program`, `config`, `test`, `restart`; `program` may stand beside `config` (as `${file}`) \
                        and `test` (the file in which it stands)";
            return Err(error.hint(hint));
        }
    };
    Ok((it, plan))
}

/// StepCompletion a session, and finds out anew what it was.
async fn plan_restart(
    supervisor: &SupervisorContext,
    it: &DebugLaunchParams,
    id: &str,
    call: &OperationCall<'_>,
) -> Result<(DebugLaunchParams, LaunchPlan)> {
    let before = supervisor.sessions.find_session(Some(id))?;
    let DebugLaunchParams { breakpoints, wait, budget, .. } = it.clone();
    let Some(launch) = supervisor.launch_memory.launch_params(id) else {
        supervisor.followers.remove(id);
        before.stop(before.is_attached()).await;
        let request = window_follow::renew_request(&supervisor.window, SessionRequest::clone(&before.request)).await?;
        return Ok((it.clone(), LaunchPlan::One(Box::new(request))));
    };
    let launch = DebugLaunchParams { breakpoints, wait, budget, ..launch };
    // One that cannot be launched again is not ended for it.
    let (launch, plan) = Box::pin(plan_launch(supervisor, launch, call)).await?;
    before.stop(before.is_attached()).await;
    Ok((launch, plan))
}

fn program_request(sessions: &SessionRegistry, it: &DebugLaunchParams, program: &str) -> Result<SessionRequest> {
    let workspace = sessions.workspace();
    let path = existing_path(workspace, program)?;
    Ok(SessionRequest {
        name: words::display_path(workspace, &path.to_string_lossy()),
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
    let all = sessions.list_breakpoints();
    let asked: Vec<BreakpointReport> = all
        .iter()
        .filter(|it| breakpoints.contains(&it.spec.id))
        .map(|it| words::breakpoint_report(it, sessions.workspace()))
        .collect();
    Ok(LaunchReport { stopped, adapter: hosted.adapter.name.to_owned(), pid: hosted.pid, breakpoints: asked })
}

pub async fn attach(
    supervisor: &SupervisorContext,
    it: DebugAttachParams,
    call: &OperationCall<'_>,
) -> Result<LaunchReport> {
    let sessions = &supervisor.sessions;
    let host = it.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned());
    let (name, what) = match (it.port, it.pid, &it.url, it.window, &it.config) {
        (Some(port), None, None, None, None) => {
            (format!("{host}:{port}"), DebugTargetKind::Listener(Address { host, port }))
        }
        (Some(port), None, Some(url), None, None) => (url.clone(), DebugTargetKind::Page { url: url.clone(), port }),
        (None, Some(pid), None, None, None) => (format!("process {pid}"), DebugTargetKind::Pid(pid)),
        (None, None, None, Some(part), None) => {
            let (request, generation) =
                window_follow::window_part_request(&supervisor.window, part, sessions.workspace()).await?;
            let hosted = sessions.start_session(SessionRequest { adapter: it.adapter.clone(), ..request }).await?;
            supervisor.followers.record_attached(&hosted.id, generation);
            return launch_report(sessions, hosted, it.wait, it.budget, &[]).await;
        }
        (None, pid, None, None, Some(name)) => {
            // By the name of a configuration it is the same as a launch: `request` in it says which of the two.
            let given = EditorInputs { file: None, pid };
            let besides = ConfigOverrides { given, adapter: it.adapter.clone(), ..ConfigOverrides::default() };
            let StartedSessions { hosted, notes } =
                configured::prepare_config(sessions, name, &besides)?.start_sessions(supervisor, call).await?;
            let mut launched = launch_report(sessions, hosted, it.wait, it.budget, &[]).await?;
            launched.stopped.notes.extend(notes);
            return Ok(launched);
        }
        _ => {
            let error = Error::usage("it is not said what is to be attached to");
            return Err(error.hint("name one of: `port` (and `url`, for a page), `pid`, `window`, `config` (and `pid`, for a process that it picks)"));
        }
    };
    let language =
        it.language.clone().or_else(|| matches!(what, DebugTargetKind::Page { .. }).then(|| "javascript".to_owned()));
    let request = SessionRequest {
        name,
        debug_target: DebugTarget { kind: what, cwd: sessions.workspace().to_owned(), ..DebugTarget::default() },
        adapter: it.adapter.clone(),
        language,
        ..SessionRequest::default()
    };
    let hosted = sessions.start_session(request).await?;
    launch_report(sessions, hosted, it.wait, it.budget, &[]).await
}

pub async fn probe(supervisor: &SupervisorContext, it: DebugProbeParams) -> Result<ProbeReport> {
    let sessions = &supervisor.sessions;
    let workspace = sessions.workspace();
    let spot = FileLine::parse(&it.at, None)?;
    let program = existing_path(workspace, it.program.as_deref().unwrap_or(&spot.file))?;
    let cwd = it.cwd.as_ref().map_or_else(|| workspace.to_owned(), |cwd| workspace.join(cwd));
    let request = SessionRequest {
        name: words::display_path(workspace, &program.to_string_lossy()),
        debug_target: DebugTarget {
            kind: DebugTargetKind::Program(program),
            args: it.args.unwrap_or_default(),
            cwd,
            ..DebugTarget::default()
        },
        ..SessionRequest::default()
    };
    let probing = sessions.start_probe(request, Path::new(&spot.file), spot.line).await?;
    let waited = probing.hosted.session.wait_for_stop(it.timeout.unwrap_or(DEFAULT_STOP_TIMEOUT).duration()).await;
    let stopped = words::stop_report(&probing.hosted, waited, it.budget, workspace).await;
    let mut values = Vec::new();
    for expression in it.expressions.unwrap_or_default() {
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

async fn evaluate_at_stop(hosted: &ManagedSession, expression: String, stopped: bool) -> Valued {
    if !stopped {
        return Valued { expression, error: Some("the line was not reached".to_owned()), ..Valued::default() };
    }
    match hosted.session.evaluate(&expression, None, "watch").await {
        Ok((_, answer)) => {
            let value =
                EvaluatedValue { result: words::clip_value(answer.result), of: answer.kind, variables_reference: None };
            Valued { expression, value: Some(value), error: None }
        }
        Err(error) => Valued { expression, value: None, error: Some(error.causes().join(": ")) },
    }
}
