//! Carries out what [`ThreadSuspends`](super::thread_suspends::ThreadSuspends) decides: its commands are queued under the lock
//! under which they were decided, and their replies count whenever they come. Calls of methods; turns of evaluations.

use std::sync::Arc;
use std::time::Duration;

use tether_backend::Answer;
use tether_backend::request_failure::RequestFailure;
use tether_jdwp::commands::threads::{ResumeThread, SuspendThread};
use tether_jdwp::commands::virtual_machine::{ResumeAll, SuspendAll};
use tether_jdwp::values::ObjectId;
use tether_jdwp::{JdwpCommand, JdwpError, JdwpErrorCode, SentCommand};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, oneshot};
use tokio::time::timeout;

use super::session::{JavaSession, SessionTables};
use super::thread_suspends::{CallRefusal, StaysSuspended, SuspendCommand};
use super::{stop_conditions, stops};

/// How long a call may run.
const CALL_TIMEOUT: Duration = Duration::from_secs(8);
/// How long an evaluation waits for those before it in its thread.
const TURN_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a stop waits for the requests that are being answered.
pub(crate) const ORDER_TIMEOUT: Duration = Duration::from_millis(1500);
/// How long a resume is waited for.
const RESUME_TIMEOUT: Duration = Duration::from_secs(1);

/// Why nothing can be evaluated in a thread that has not given back a call.
const CALL_RUNS: &str = "the thread still runs the call of an earlier evaluation: let it run with `continue`, and evaluate \
                         at its next stop";
const NOT_AT_EVENT: &str =
    "a method can be called only in a thread that has stopped at a breakpoint, a step or an exception";

/// Commands that were queued, with their replies.
pub(crate) struct SentCommands(Vec<(SuspendCommand, Result<SentCommand<()>, JdwpError>)>);

/// A turn in a thread.
pub(crate) enum ThreadTurn {
    /// Its frames are read.
    Reading(#[expect(dead_code, reason = "held until it is dropped")] OwnedRwLockReadGuard<()>),
    /// An evaluation runs in it.
    Evaluation(#[expect(dead_code, reason = "held until it is dropped")] OwnedRwLockWriteGuard<()>),
}

/// Changes the suspensions; the commands that follow are queued before anyone else can change them.
pub(crate) fn change_suspends<T>(
    session: &JavaSession,
    change: impl FnOnce(&mut SessionTables) -> (T, Vec<SuspendCommand>),
) -> (T, SentCommands) {
    session.with_tables(|tables| {
        let (result, commands) = change(tables);
        (result, queue_commands(session, &commands))
    })
}

fn queue_commands(session: &JavaSession, commands: &[SuspendCommand]) -> SentCommands {
    let client = &session.vm.client;
    let queue = |command: &SuspendCommand| match *command {
        SuspendCommand::SuspendThread(thread) => client.send(&SuspendThread { thread }),
        SuspendCommand::ResumeThread(thread) => client.send(&ResumeThread { thread }),
        SuspendCommand::SuspendAll => client.send(&SuspendAll {}),
        SuspendCommand::ResumeAll => client.send(&ResumeAll {}),
    };
    SentCommands(commands.iter().map(|command| (*command, queue(command))).collect())
}

/// Waits until the virtual machine has resumed what was queued; not longer than a moment, since it will. What it refuses,
/// also later, stays suspended, and is reported as a stop: for the client, everything else runs.
pub(crate) async fn confirm_resumes(session: &JavaSession, sent: SentCommands) {
    let Some(own) = session.own.upgrade().filter(|_| !sent.0.is_empty()) else { return };
    let (report, confirmed) = oneshot::channel();
    session.run_beside(async move {
        // Its requester may have given up.
        let _ = report.send(take_replies(&own, sent).await);
    });
    // The session may end meanwhile.
    let _ = timeout(RESUME_TIMEOUT, confirmed).await;
}

/// Takes the replies beside, for one who does not wait for them.
pub(crate) fn watch_commands(session: &JavaSession, sent: SentCommands) {
    if let Some(own) = session.own.upgrade() {
        session.run_beside(async move { drop(take_replies(&own, sent).await) });
    }
}

/// As [`confirm_resumes`], without a limit.
pub(crate) async fn take_replies(session: &JavaSession, sent: SentCommands) -> Answer<()> {
    let mut confirmed = Ok(());
    for (command, sent) in sent.0 {
        let reply = match sent {
            Ok(sent) => sent.reply().await,
            Err(error) => Err(error),
        };
        let Err(error) = reply else { continue };
        if let (SuspendCommand::ResumeThread(thread) | SuspendCommand::SuspendThread(thread), true) =
            (command, has_ended(&error))
        {
            session.with_tables(|tables| tables.suspends.forget_thread(thread));
            continue;
        }
        if !error.is_closed() {
            let stays = session.with_tables(|tables| tables.suspends.undo(command));
            report_suspended(session, stays, &error).await;
        }
        confirmed = confirmed.and(Err(RequestFailure::from(error)));
    }
    confirmed
}

async fn report_suspended(session: &JavaSession, stays: Option<StaysSuspended>, error: &JdwpError) {
    match stays {
        Some(StaysSuspended::Thread(thread)) => {
            stops::report_unresumed(session, thread, &format!("it could not be resumed: {error}")).await;
        }
        Some(StaysSuspended::All) => {
            stop_conditions::print(session, "important", &format!("the program could not be resumed: {error}\n")).await;
            // The response to what has led here comes first.
            let _order = timeout(ORDER_TIMEOUT, session.order.lock()).await;
            stops::report_all_stopped(session, None, "pause").await;
        }
        None => {}
    }
}

/// Runs code of the program in a thread, by an evaluation that began at that halt. The events of the thread stop nothing
/// meanwhile. The thread is suspended again when the call has ended, also after the time limit.
pub(crate) async fn run_call<C: JdwpCommand>(
    session: &JavaSession,
    thread: ObjectId,
    halt: Option<u64>,
    command: &C,
) -> Answer<C::Reply> {
    let own = session.own.upgrade().ok_or("the session has ended")?;
    let (sent, lowering) = {
        let mut tables = tether_base::sync::lock(&session.tables);
        let lowering = tables.suspends.begin_call(thread, halt).map_err(refused_call)?;
        // The ids of its frames change.
        tables.known_frames.forget();
        let lowering = queue_commands(session, &lowering);
        (session.vm.client.send(command), lowering)
    };
    // What is refused shows in the call: it does not run.
    watch_commands(session, lowering);
    let (report, mut ended) = oneshot::channel();
    session.run_beside(async move {
        let reply = match sent {
            Ok(sent) => sent.reply().await,
            Err(error) => Err(error),
        };
        let ((), following) = change_suspends(&own, |tables| {
            tables.known_frames.forget();
            ((), tables.suspends.end_call(thread))
        });
        // Its evaluation may have given up.
        let _ = report.send(reply);
        // What is refused is reported.
        let _ = take_replies(&own, following).await;
    });
    let reply = match timeout(CALL_TIMEOUT, &mut ended).await {
        Ok(reply) => reply.map_err(|_| RequestFailure::from("the session has ended"))?,
        Err(_) => {
            let others_run = session.with_tables(|tables| {
                tables.suspends.mark_call_late(thread);
                !tables.suspends.is_all_suspended()
            });
            let within = humantime::format_duration(CALL_TIMEOUT);
            let lock = if others_run { "" } else { ", and may wait for a lock that a paused thread holds" };
            let text = format!(
                "the call has not returned within {within}: its thread still runs it{lock}. `continue` lets the thread \
                 run when it has returned"
            );
            return Err(text.into());
        }
    };
    let not_at_event = [JdwpErrorCode::INVALID_THREAD, JdwpErrorCode::THREAD_NOT_SUSPENDED];
    reply.map_err(|error| match not_at_event.iter().any(|code| error.has_code(*code)) {
        true => NOT_AT_EVENT.into(),
        false => error.into(),
    })
}

/// Waits for the turn of an evaluation in a thread, or of what reads its frames. Errors: a call has not ended there.
pub(crate) async fn take_turn(session: &JavaSession, thread: ObjectId, is_evaluation: bool) -> Answer<ThreadTurn> {
    let turns = session.with_tables(|tables| Arc::<RwLock<()>>::clone(tables.turns.entry(thread).or_default()));
    let turn = async {
        match is_evaluation {
            true => ThreadTurn::Evaluation(turns.write_owned().await),
            false => ThreadTurn::Reading(turns.read_owned().await),
        }
    };
    let waited = timeout(TURN_TIMEOUT, turn).await;
    if session.with_tables(|tables| tables.suspends.is_running_call(thread)) {
        return Err(CALL_RUNS.into());
    }
    waited.map_err(|_| {
        let within = humantime::format_duration(TURN_TIMEOUT);
        RequestFailure(format!("earlier evaluations in this thread have not ended within {within}"))
    })
}

fn refused_call(refusal: CallRefusal) -> RequestFailure {
    match refusal {
        CallRefusal::NotAtEvent => NOT_AT_EVENT.into(),
        CallRefusal::HasRun => "the thread has run since the evaluation began: its frame is gone".into(),
        CallRefusal::CallRuns => CALL_RUNS.into(),
    }
}

/// Whether a thread is refused because it has ended.
fn has_ended(error: &JdwpError) -> bool {
    error.has_code(JdwpErrorCode::INVALID_THREAD) || error.has_code(JdwpErrorCode::INVALID_OBJECT)
}
