//! Continues, steps and pauses.
//!
//! A resume is of one thread: the others that have stopped by themselves stay stopped. A pause suspends all threads once
//! more, which the next resume undoes for all of them. A thread that runs the call of an evaluation is resumed when that has
//! ended.

use std::time::Duration;

use futures_util::future::join_all;
use tether_backend::Answer;
use tether_jdwp::commands::objects::EnableCollection;
use tether_jdwp::commands::threads::PopFrames;
use tether_jdwp::values::ObjectId;
use tether_jdwp::{ClearEventRequest, EventKind, EventModifier, SetEventRequest, StepDepth, SuspendPolicy};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::breakpoints::JDK_PATTERNS;
use super::session::{FrameSpot, JavaSession, SessionTables};
use super::signatures::is_jdk_class;
use super::thread_control::{self, SentCommands};
use super::thread_suspends::SuspendCommand;
use super::{frames, stops};

/// How long a pause waits for the virtual machine before it is answered.
const PAUSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Resumes a thread that has stopped; after a pause, all threads. Returns whether all threads run now.
pub(crate) async fn continue_thread(session: &JavaSession, thread_id: i64) -> Answer<bool> {
    let threads = session.with_tables(|tables| {
        let named = tables.threads.find(thread_id).filter(|thread| tables.suspends.halt(*thread).is_some());
        let is_suspended = tables.suspends.is_any_suspended();
        let threads = match named {
            Some(thread) if !tables.suspends.is_all_suspended() => vec![thread],
            _ => tables.suspends.stopped().collect(),
        };
        is_suspended.then_some(threads)
    });
    let threads = threads.ok_or("notStopped")?;
    // Requests reach the virtual machine in order: the steps end before the threads run.
    let (_, all_run) = tokio::join!(
        biased;
        join_all(threads.iter().map(|thread| stops::clear_step(session, *thread))),
        resume_threads(session, &threads)
    );
    Ok(all_run)
}

/// Resumes threads that have stopped, and all threads after a pause. What is known of the stops is forgotten before they
/// run. Returns whether all threads run now; what cannot be resumed is reported after that.
async fn resume_threads(session: &JavaSession, threads: &[ObjectId]) -> bool {
    let resume = |tables: &mut SessionTables| {
        let mut commands: Vec<SuspendCommand> = Vec::new();
        for thread in threads {
            commands.extend(tables.suspends.resume(*thread));
        }
        commands.extend(tables.suspends.resume_all());
        ((tables.forget_frames(), !tables.suspends.is_any_suspended()), commands)
    };
    let ((released, all_run), sent) = thread_control::change_suspends(session, resume);
    // An error means that the object is gone.
    let release = |object| async move { session.vm.request(&EnableCollection { object }).await };
    tokio::join!(join_all(released.into_iter().map(release)), thread_control::confirm_resumes(session, sent));
    all_run
}

/// Resumes a thread whose event is no stop. What the virtual machine refuses is reported.
pub(crate) async fn resume_decided(session: &JavaSession, thread: ObjectId) {
    let ((), sent) = thread_control::change_suspends(session, |tables| ((), tables.suspends.resume(thread)));
    let _ = thread_control::take_replies(session, sent).await;
}

/// Starts the program, which is suspended since its start.
pub(crate) async fn resume_start(session: &JavaSession) {
    let start = |tables: &mut SessionTables| {
        tables.vm_start = None;
        tables.known_frames.forget();
        ((), tables.suspends.resume_all())
    };
    let ((), sent) = thread_control::change_suspends(session, start);
    thread_control::confirm_resumes(session, sent).await;
}

/// Steps a stopped thread by a line.
pub(crate) async fn step_line(session: &JavaSession, thread_id: i64, depth: StepDepth) -> Answer<()> {
    let thread = session.thread(thread_id)?;
    session.with_tables(|tables| tables.smart_steps.remove(&thread));
    step_thread(session, thread_id, depth).await
}

/// As [`step_line`], as a part of another step, too.
pub(crate) async fn step_thread(session: &JavaSession, thread_id: i64, depth: StepDepth) -> Answer<()> {
    let thread = session.thread(thread_id)?;
    if !session.with_tables(|tables| tables.is_suspended(thread) && !tables.suspends.is_calling(thread)) {
        return Err("notStopped".into());
    }
    let halt = session.with_tables(|tables| tables.suspends.halt_number(thread));
    let request = request_step(session, thread, depth).await?;
    let own = session.with_tables(|tables| {
        // It may have been resumed meanwhile.
        (tables.suspends.halt_number(thread) == halt).then(|| {
            tables.steps.insert(thread, request);
            tables.suspends.halt(thread).map(|_| thread)
        })
    });
    let Some(own) = own else {
        let _ = session.vm.request(&ClearEventRequest { kind: EventKind::SingleStep, request }).await;
        return Err("notStopped".into());
    };
    resume_threads(session, own.as_slice()).await;
    Ok(())
}

/// Goes on with a step of a thread that an event has suspended and whose stop is not reported.
pub(crate) async fn continue_step(session: &JavaSession, thread: ObjectId, depth: StepDepth) -> Answer<()> {
    let request = request_step(session, thread, depth).await?;
    session.with_tables(|tables| tables.steps.insert(thread, request));
    resume_decided(session, thread).await;
    Ok(())
}

async fn request_step(session: &JavaSession, thread: ObjectId, depth: StepDepth) -> Answer<i32> {
    let ((), frame) =
        tokio::join!(stops::clear_step(session, thread), frames::read_frame(session, FrameSpot { thread, depth: 0 }));
    let frame = frame?;
    let mut modifiers = vec![EventModifier::Step { thread, by_lines: true, depth }];
    // From the user's code, a step passes over that of the JDK.
    if !is_jdk_class(&frame.class.signature) {
        modifiers.extend(JDK_PATTERNS.map(|it| EventModifier::ClassExclude(it.to_owned())));
    }
    modifiers.push(EventModifier::Count(1));
    let (kind, policy) = (EventKind::SingleStep, SuspendPolicy::EventThread);
    Ok(session.vm.request(&SetEventRequest { kind, policy, modifiers }).await?)
}

/// Suspends all threads, and reports that on one of them.
pub(crate) async fn pause(session: &JavaSession, thread_id: i64) -> Answer<()> {
    let pause = |tables: &mut SessionTables| {
        if tables.suspends.is_all_suspended() {
            return (None, Vec::new());
        }
        let commands = tables.suspends.suspend_all();
        (tables.suspends.halt_of_all(), commands)
    };
    let (halt, sent) = thread_control::change_suspends(session, pause);
    if halt.is_none() {
        return Ok(());
    }
    let own = session.own.upgrade().ok_or("the session has ended")?;
    let (report, confirmed) = oneshot::channel();
    session.run_beside(async move {
        let paused = report_pause(&own, sent, halt, thread_id).await;
        // The request may have been answered.
        let _ = report.send(paused);
    });
    match timeout(PAUSE_TIMEOUT, confirmed).await {
        Ok(Ok(paused)) => paused,
        Ok(Err(_)) => Err("the session has ended".into()),
        Err(_) => Err("the virtual machine does not answer yet: its stop is reported when it does".into()),
    }
}

async fn report_pause(session: &JavaSession, sent: SentCommands, halt: Option<u64>, thread_id: i64) -> Answer<()> {
    thread_control::take_replies(session, sent).await?;
    let thread = match session.thread(thread_id) {
        Ok(thread) => Some(thread),
        Err(_) => frames::main_thread(session).await.ok(),
    };
    // It may have been resumed before the virtual machine has answered.
    if session.with_tables(|tables| tables.suspends.halt_of_all() == halt) {
        stops::report_all_stopped(session, thread, "pause").await;
    }
    Ok(())
}

/// Discards a frame and those that it has called: its caller is before the call again.
pub(crate) async fn restart_frame(session: &JavaSession, frame_id: i64) -> Answer<()> {
    let spot = session.frame_spot(frame_id)?;
    if !session.vm.capabilities.pop_frames {
        return Err("this virtual machine cannot discard frames".into());
    }
    let frame = frames::read_frame(session, spot).await?;
    let popped = session.vm.request(&PopFrames { thread: spot.thread, frame: frame.id }).await;
    session.with_tables(|tables| tables.known_frames.forget());
    if let Err(error) = popped {
        return Err(frames::explain_refusal(session, spot, error).await);
    }
    // The thread is before the call: a step into it is the beginning of the frame.
    let thread_id = session.with_tables(|tables| tables.thread_id(spot.thread));
    step_thread(session, thread_id, StepDepth::Into).await
}
