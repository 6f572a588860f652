//! Launching, attaching, probing: from what was asked for to what is to be debugged.

use std::path::{Path, PathBuf};

use super::configured::{self, Begun, Besides, Configured};
use super::{named_test, words};
use crate::api::debug::breakpoints::Breakpoint;
use crate::api::debug::results::{Launched, Probe as Valued, Probed, Stopped, Value};
use crate::api::debug::values::{Seconds, Spot};
use crate::api::debug::{Attach, Launch, Probe, WAIT};
use crate::config::Given;
use crate::debug::breakpoints::Conditions;
use crate::debug::program::{Address, DebugTarget, DebugTargetKind};
use crate::debug::{Hosted, Request, Sessions};
use crate::error::{Error, Result};
use crate::supervisor::dispatch::Call;
use crate::supervisor::server::Supervisor;
use crate::supervisor::tie;

pub async fn launch(supervisor: &Supervisor, it: Launch, call: &Call<'_>) -> Result<Launched> {
    let sessions = &supervisor.sessions;
    let (it, plan) = planned(supervisor, it, call).await?;
    let mut breakpoints = Vec::new();
    for at in it.breakpoints.iter().flatten() {
        let spot = Spot::of(at, None)?;
        let set = sessions.set_line(Path::new(&spot.file), spot.line, Conditions::default()).await?;
        breakpoints.push(set.wanted.id);
    }
    let Begun { hosted, notes } = match plan {
        Plan::One(request) => {
            let generation = supervisor.window.watch().borrow().generation;
            let hosted = sessions.start(*request).await?;
            if hosted.request.tie.is_some() {
                supervisor.ties.keep(&hosted.id, generation);
            }
            Begun { hosted, notes: Vec::new() }
        }
        Plan::Configured(configured) => configured.begin(supervisor, call).await?,
    };
    if it.config.is_some() || it.test.is_some() {
        supervisor.desk.keep(sessions, &hosted.id, it.clone());
    }
    let mut launched = launched(sessions, hosted, it.wait, it.budget, &breakpoints).await?;
    launched.stopped.notes.extend(notes);
    Ok(launched)
}

/// What is to be begun.
enum Plan {
    One(Box<Request>),
    Configured(Configured),
}

/// Finds out what is to be launched; nothing has begun yet, and a session that is launched again has ended. Answers with
/// what was really asked for, too.
async fn planned(supervisor: &Supervisor, it: Launch, call: &Call<'_>) -> Result<(Launch, Plan)> {
    let sessions = &supervisor.sessions;
    let plan = match (&it.program, &it.config, &it.test, &it.restart) {
        (Some(program), None, None, None) => Plan::One(Box::new(of_program(sessions, &it, program)?)),
        (program, Some(name), None, None) => {
            let file = program.as_ref().map(|program| absolute(sessions.workspace(), program)).transpose()?;
            let besides = Besides {
                given: Given { file, pid: None },
                args: it.args.clone(),
                cwd: it.cwd.clone(),
                env: it.env.iter().map(|it| (it.name.clone(), it.value.clone())).collect(),
                stop_on_entry: it.stop_on_entry,
                adapter: it.adapter.clone(),
            };
            Plan::Configured(configured::prepare(sessions, name, &besides)?)
        }
        (_, None, Some(name), None) => Plan::One(Box::new(named_test::prepare(supervisor, &it, name, call).await?)),
        (None, None, None, Some(id)) => return again(supervisor, &it, id, call).await,
        _ => {
            let error = Error::usage("it is not said what is to be debugged");
            let hint = "name one of: `program`, `config`, `test`, `restart`; `program` may stand beside `config` (as `${file}`) \
                        and `test` (the file in which it stands)";
            return Err(error.hint(hint));
        }
    };
    Ok((it, plan))
}

/// Ends a session, and finds out anew what it was.
async fn again(supervisor: &Supervisor, it: &Launch, id: &str, call: &Call<'_>) -> Result<(Launch, Plan)> {
    let before = supervisor.sessions.choose(Some(id))?;
    let Launch { breakpoints, wait, budget, .. } = it.clone();
    let Some(launch) = supervisor.desk.launch(id) else {
        supervisor.ties.cut(id);
        before.stop(before.is_attached()).await;
        let request = tie::renewed(&supervisor.window, Request::clone(&before.request)).await?;
        return Ok((it.clone(), Plan::One(Box::new(request))));
    };
    let launch = Launch { breakpoints, wait, budget, ..launch };
    // One that cannot be launched again is not ended for it.
    let (launch, plan) = Box::pin(planned(supervisor, launch, call)).await?;
    before.stop(before.is_attached()).await;
    Ok((launch, plan))
}

fn of_program(sessions: &Sessions, it: &Launch, program: &str) -> Result<Request> {
    let workspace = sessions.workspace();
    let path = absolute(workspace, program)?;
    Ok(Request {
        name: words::shown(workspace, &path.to_string_lossy()),
        wanted: DebugTarget {
            kind: DebugTargetKind::Program(path),
            args: it.args.clone().unwrap_or_default(),
            cwd: it.cwd.as_ref().map_or_else(|| workspace.to_owned(), |cwd| workspace.join(cwd)),
            env: it.env.iter().map(|it| (it.name.clone(), it.value.clone())).collect(),
            stop_on_entry: it.stop_on_entry.unwrap_or_default(),
            ..DebugTarget::default()
        },
        adapter: it.adapter.clone(),
        language: it.language.clone(),
        kind: None,
        tie: None,
    })
}

fn absolute(workspace: &Path, file: &str) -> Result<PathBuf> {
    let path = workspace.join(file);
    path.canonicalize().map_err(|cause| {
        let error = Error::usage(format!("cannot debug {}", path.display())).because(cause);
        error.hint("name a file that is there, relative to the workspace")
    })
}

async fn launched(
    sessions: &Sessions,
    hosted: Hosted,
    wait: Option<Seconds>,
    budget: Option<u32>,
    breakpoints: &[u32],
) -> Result<Launched> {
    let stopped: Stopped = super::control::waited(sessions, &hosted, wait, budget).await?;
    let all = sessions.breakpoints();
    let asked: Vec<Breakpoint> = all
        .iter()
        .filter(|it| breakpoints.contains(&it.wanted.id))
        .map(|it| words::breakpoint(it, sessions.workspace()))
        .collect();
    Ok(Launched { stopped, adapter: hosted.adapter.name.to_owned(), pid: hosted.pid, breakpoints: asked })
}

pub async fn attach(supervisor: &Supervisor, it: Attach, call: &Call<'_>) -> Result<Launched> {
    let sessions = &supervisor.sessions;
    let host = it.host.clone().unwrap_or_else(|| "127.0.0.1".to_owned());
    let (name, what) = match (it.port, it.pid, &it.url, it.window, &it.config) {
        (Some(port), None, None, None, None) => {
            (format!("{host}:{port}"), DebugTargetKind::Listener(Address { host, port }))
        }
        (Some(port), None, Some(url), None, None) => (url.clone(), DebugTargetKind::Page { url: url.clone(), port }),
        (None, Some(pid), None, None, None) => (format!("process {pid}"), DebugTargetKind::Pid(pid)),
        (None, None, None, Some(part), None) => {
            let (request, generation) = tie::request(&supervisor.window, part, sessions.workspace()).await?;
            let hosted = sessions.start(Request { adapter: it.adapter.clone(), ..request }).await?;
            supervisor.ties.keep(&hosted.id, generation);
            return launched(sessions, hosted, it.wait, it.budget, &[]).await;
        }
        (None, pid, None, None, Some(name)) => {
            // By the name of a configuration it is the same as a launch: `request` in it says which of the two.
            let given = Given { file: None, pid };
            let besides = Besides { given, adapter: it.adapter.clone(), ..Besides::default() };
            let Begun { hosted, notes } =
                configured::prepare(sessions, name, &besides)?.begin(supervisor, call).await?;
            let mut launched = launched(sessions, hosted, it.wait, it.budget, &[]).await?;
            launched.stopped.notes.extend(notes);
            return Ok(launched);
        }
        _ => {
            let error = Error::usage("it is not said what is to be attached to");
            return Err(error.hint(
                "name one of: `port` (and `url`, for a page), `pid`, `window`, `config` (and `pid`, for a process that it picks)",
            ));
        }
    };
    let language =
        it.language.clone().or_else(|| matches!(what, DebugTargetKind::Page { .. }).then(|| "javascript".to_owned()));
    let request = Request {
        name,
        wanted: DebugTarget { kind: what, cwd: sessions.workspace().to_owned(), ..DebugTarget::default() },
        adapter: it.adapter.clone(),
        language,
        ..Request::default()
    };
    let hosted = sessions.start(request).await?;
    launched(sessions, hosted, it.wait, it.budget, &[]).await
}

pub async fn probe(supervisor: &Supervisor, it: Probe) -> Result<Probed> {
    let sessions = &supervisor.sessions;
    let workspace = sessions.workspace();
    let spot = Spot::of(&it.at, None)?;
    let program = absolute(workspace, it.program.as_deref().unwrap_or(&spot.file))?;
    let cwd = it.cwd.as_ref().map_or_else(|| workspace.to_owned(), |cwd| workspace.join(cwd));
    let request = Request {
        name: words::shown(workspace, &program.to_string_lossy()),
        wanted: DebugTarget {
            kind: DebugTargetKind::Program(program),
            args: it.args.unwrap_or_default(),
            cwd,
            ..DebugTarget::default()
        },
        ..Request::default()
    };
    let probing = sessions.start_at(request, Path::new(&spot.file), spot.line).await?;
    let waited = probing.hosted.session.wait_for_stop(it.timeout.unwrap_or(WAIT).duration()).await;
    let stopped = words::stopped(&probing.hosted, waited, it.budget, workspace).await;
    let mut values = Vec::new();
    for expression in it.expressions.unwrap_or_default() {
        values.push(valued(&probing.hosted, expression, stopped.stopped).await);
    }
    probing.end().await;
    Ok(Probed {
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

async fn valued(hosted: &Hosted, expression: String, stopped: bool) -> Valued {
    if !stopped {
        return Valued { expression, error: Some("the line was not reached".to_owned()), ..Valued::default() };
    }
    match hosted.session.evaluate(&expression, None, "watch").await {
        Ok((_, answer)) => {
            let value = Value { result: words::clipped(answer.result), of: answer.kind, variables_reference: None };
            Valued { expression, value: Some(value), error: None }
        }
        Err(error) => Valued { expression, value: None, error: Some(error.causes().join(": ")) },
    }
}
