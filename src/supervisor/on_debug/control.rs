//! Going on, stepping, pausing, waiting, ending.

use std::path::Path;
use std::time::Duration;

use super::words;
use crate::api::debug::control::{Continue, Pause, RunTo, Step, StepKind};
use crate::api::debug::results::{DebugStatus, Ended, SessionStatus, Stopped, Target, Thread};
use crate::api::debug::values::{Seconds, Spot};
use crate::api::debug::{STEP_WAIT, Status, Stop, WAIT, WaitForStop};
use crate::debug::inspect::Ref;
use crate::debug::{Hosted, Resume, Sessions, State};
use crate::error::Result;
use crate::ring::Query;
use crate::supervisor::server::Supervisor;

pub async fn wait_for_stop(sessions: &Sessions, it: WaitForStop) -> Result<Stopped> {
    let hosted = sessions.choose(it.session_id.as_deref())?;
    let timeout = it.timeout.unwrap_or(WAIT);
    waited(sessions, &hosted, Some(timeout), it.budget).await
}

pub async fn go_on(sessions: &Sessions, it: Continue) -> Result<Stopped> {
    let hosted = sessions.choose(it.session_id.as_deref())?;
    hosted.session.resume(Resume::Continue, thread(it.thread_id)).await?;
    waited(sessions, &hosted, it.wait, it.budget).await
}

pub async fn pause(sessions: &Sessions, it: Pause) -> Result<Stopped> {
    let hosted = sessions.choose(it.session_id.as_deref())?;
    hosted.session.pause(it.thread_id.map(Ref::of)).await?;
    waited(sessions, &hosted, Some(it.wait.unwrap_or(STEP_WAIT)), it.budget).await
}

pub async fn step(sessions: &Sessions, it: Step) -> Result<Stopped> {
    let hosted = sessions.choose(it.session_id.as_deref())?;
    let how = match it.kind {
        StepKind::Over => Resume::Over,
        StepKind::Into => Resume::Into,
        StepKind::Out => Resume::Out,
    };
    hosted.session.resume(how, thread(it.thread_id)).await?;
    waited(sessions, &hosted, Some(it.wait.unwrap_or(STEP_WAIT)), it.budget).await
}

pub async fn run_to(sessions: &Sessions, it: RunTo) -> Result<Stopped> {
    let hosted = sessions.choose(it.session_id.as_deref())?;
    let spot = Spot::of(&it.file, it.line)?;
    sessions.run_to(&hosted, Path::new(&spot.file), spot.line).await?;
    waited(sessions, &hosted, Some(it.wait.unwrap_or(WAIT)), it.budget).await
}

fn thread(id: Option<i64>) -> Option<(usize, i64)> {
    id.map(Ref::of).map(|it| (it.target, it.id))
}

/// Waits for a stop if that is wished, and tells where the session is then.
pub async fn waited(
    sessions: &Sessions,
    hosted: &Hosted,
    wait: Option<Seconds>,
    budget: Option<u32>,
) -> Result<Stopped> {
    let since = hosted.session.record().output_cursor();
    let mut waited = hosted.session.wait_for_stop(wait.map_or(Duration::ZERO, Seconds::duration)).await;
    if matches!(waited.state, State::Starting | State::Running) {
        let vain = waited.message.filter(|_| wait.is_some());
        waited.message = match important(hosted, since) {
            Some(said) => {
                let vain = vain.map_or_else(String::new, |vain| vain + "; ");
                Some(format!("{vain}{} says: {said}", hosted.adapter.name))
            }
            None => vain,
        };
    }
    Ok(words::stopped(hosted, waited, budget, sessions.workspace()).await)
}

/// What an adapter wants its user to know, such as that a condition cannot be evaluated: the first line of the newest.
fn important(hosted: &Hosted, since: u64) -> Option<String> {
    let query = Query { since: Some(since), limit: usize::MAX, filter: None };
    let mut said = hosted.session.record().output(&query).entries;
    said.retain(|it| it.category == "important");
    said.last()?.text.lines().find(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

pub async fn stop(supervisor: &Supervisor, it: Stop) -> Result<Ended> {
    let hosted = supervisor.sessions.choose(it.session_id.as_deref())?;
    // Stopped by its user, it follows the window no more.
    supervisor.ties.cut(&hosted.id);
    let detach = it.detach.unwrap_or_else(|| hosted.is_attached());
    let state = supervisor.sessions.stop(&hosted, detach).await;
    Ok(Ended {
        session_id: hosted.id.clone(),
        state: words::state(state),
        exit_code: hosted.exit_code(),
        message: hosted.problem(),
    })
}

pub async fn status(sessions: &Sessions, it: Status) -> Result<DebugStatus> {
    let all = sessions.all();
    let living = all.iter().filter(|hosted| !hosted.is_ended()).count();
    if it.session_id.is_some() || living == 1 {
        let hosted = sessions.choose(it.session_id.as_deref())?;
        return Ok(DebugStatus { session: Some(of_session(sessions, &hosted).await), sessions: None });
    }
    let (ended, living): (Vec<Hosted>, Vec<Hosted>) = all.into_iter().partition(Hosted::is_ended);
    let mut told = Vec::new();
    for hosted in living.iter().chain(&ended) {
        told.push(of_session(sessions, hosted).await);
    }
    Ok(DebugStatus { session: None, sessions: Some(told) })
}

async fn of_session(sessions: &Sessions, hosted: &Hosted) -> SessionStatus {
    let workspace = sessions.workspace();
    let snapshot = hosted.session.snapshot();
    let mut reasons = Vec::new();
    for (target, stop) in snapshot.stops() {
        reasons.push(hosted.session.reason(target, stop).await);
    }
    let threads = hosted.session.threads().await;
    let thread = |it: &crate::debug::inspect::SeenThread| Thread {
        thread_id: it.id.outer(),
        name: it.name.clone(),
        stop_reason: reasons
            .iter()
            .find(|reason| reason.thread == Some(it.id))
            .map(|reason| words::reason(reason, workspace)),
    };
    let thrown = reasons.first().filter(|reason| reason.kind == crate::debug::StopKind::Exception);
    SessionStatus {
        stop_reason: reasons.first().map(|reason| words::reason(reason, workspace)),
        suspended_threads: threads.iter().filter(|it| it.stopped).map(thread).collect(),
        running_threads: threads.iter().filter(|it| !it.stopped).map(thread).collect(),
        exception: thrown.map(words::exception),
        stale: hosted.is_stale(),
        ..known(hosted)
    }
}

/// As far as it is known without asking the adapter anything: for notifications.
pub fn known(hosted: &Hosted) -> SessionStatus {
    let snapshot = hosted.session.snapshot();
    let target = |target: &crate::debug::Seen| Target {
        name: target.name.clone(),
        state: words::state(target.state.phase.state()),
    };
    SessionStatus {
        session_id: hosted.id.clone(),
        name: hosted.request.name.clone(),
        adapter: hosted.adapter.name.to_owned(),
        connected: !hosted.is_ended(),
        state: words::state(snapshot.state()),
        stop_reason: snapshot.stops().first().map(|(target, stop)| words::stop(*target, stop)),
        targets: snapshot.targets.iter().map(target).collect(),
        pid: hosted.pid,
        started_at: hosted.started_at,
        ended_at: hosted.ended_at(),
        exit_code: hosted.exit_code(),
        message: hosted.problem().or_else(|| noticed(hosted)),
        ..SessionStatus::default()
    }
}

/// What the next answer of another operation is going to say, too.
fn noticed(hosted: &Hosted) -> Option<String> {
    Some(hosted.session.record().notices().join("; ")).filter(|text| !text.is_empty())
}
