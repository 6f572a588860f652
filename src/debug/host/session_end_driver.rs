//! Drives a session from its start to its end: performs the steps that `session_end` decides on, and keeps what they find out.
//!
//! Does not depend on the registry.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, FusedFuture, FutureExt};
use tether_base::clock::now_ms;
use tether_base::error::ErrorContext;
use tether_base::sync::lock;
use tether_process::{OutputPipes, ProcessExit};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::warn;

use super::process_survey::ProcessSurvey;
use super::reconnect::Reconnection;
use super::session_end::{EndEvent, EndFacts, EndStep, StopMode, next_step};
use crate::adapters::AdapterHost;
use crate::debug::session::snapshot::SessionSnapshot;

/// How a session ends.
#[derive(Default)]
pub(super) struct SessionEnding {
    /// The newest stop request.
    pub stop: Mutex<Option<StopMode>>,
    /// The program has started, with its breakpoints.
    pub has_started: AtomicBool,
    /// What becomes of it once its connection has ended.
    pub reconnection: watch::Sender<Reconnection>,
    /// When the last of it was gone, in epoch ms.
    pub ended_at: watch::Sender<Option<u64>>,
    /// Why the adapter exited by itself.
    pub exit_reason: OnceLock<String>,
    /// The exit code of a program that ended by itself.
    pub exit_code: OnceLock<i64>,
    /// The signal that ended a program.
    pub exit_signal: OnceLock<i32>,
    /// Where the output of a program that is detached from goes, or why that is not known.
    pub released_output: Mutex<Option<std::io::Result<OutputPipes>>>,
    /// What is to be known of a program that was detached from.
    pub release_note: OnceLock<String>,
}

impl SessionEnding {
    /// Leaves readers for the output of a program that was detached from; what has read it before has exited.
    fn keep_released_output(&self) {
        let copied = lock(&self.released_output).take();
        let kept = copied.map(|copied| copied.doing(|| "cannot take over its output".to_owned())?.leave_readers());
        if let Some(Err(error)) = kept {
            let note =
                "the program continues, but the reader of its output has ended: the program may end when it prints";
            let _ = self.release_note.set(format!("{note} ({})", error.causes().join(": ")));
        }
    }
}

/// Performs the steps of a session's end, from its start on. Output is copied meanwhile.
pub(super) async fn drive_to_end(mut run: SessionRun, output: impl Future<Output = ()> + Send, is_program: bool) {
    let has_process = run.host.as_ref().is_some_and(|host| host.pid().is_some());
    let can_know_exit = run.host.as_ref().is_some_and(AdapterHost::can_know_exit);
    let output = output.fuse();
    tokio::pin!(output);
    let mut step = EndStep::AwaitEnd;
    while step != EndStep::Done {
        let event = match step {
            EndStep::DrainOutput(limit) => {
                if !output.is_terminated() {
                    let _ = timeout(limit, &mut output).await;
                }
                EndEvent::Completed
            }
            step => {
                let performed = run.perform(step);
                tokio::pin!(performed);
                loop {
                    tokio::select! {
                        event = &mut performed => break event,
                        () = &mut output, if !output.is_terminated() => {}
                    }
                }
            }
        };
        let run_state = run.snapshots.borrow().program_state(run.program);
        let stop = *lock(&run.ending.stop);
        step = next_step(step, event, &EndFacts { run_state, stop, is_program, can_know_exit, has_process });
        if step != EndStep::AwaitDriver {
            // Closes the connections of a session that is not waited for.
            run.session = None;
        }
    }
    run.ending.ended_at.send_replace(Some(now_ms()));
}

/// What the steps of a session's end work on.
pub(super) struct SessionRun {
    /// Drives the program; dropping it closes all its connections.
    pub session: Option<BoxFuture<'static, ()>>,
    /// The program's index in the session.
    pub program: usize,
    pub snapshots: watch::Receiver<SessionSnapshot>,
    /// None once the process has been ended or released.
    pub host: Option<AdapterHost>,
    pub ending: Arc<SessionEnding>,
    /// Which processes of it are not debugged.
    pub survey: Arc<ProcessSurvey>,
}

impl SessionRun {
    /// How the process exited, if there is one and it exits in time.
    async fn wait_for_exit(&mut self, limit: Duration) -> Option<ProcessExit> {
        timeout(limit, self.host.as_ref()?.exited()).await.ok()
    }

    /// Records how the program exits, where that can be known, and it exits in time.
    async fn read_exit(&mut self, limit: Duration) {
        let Some(host) = &self.host else { return };
        match host.program_exit(limit).await {
            Some(ProcessExit::Code(code)) => drop(self.ending.exit_code.set(i64::from(code))),
            Some(ProcessExit::Signal(signal)) => drop(self.ending.exit_signal.set(signal)),
            Some(ProcessExit::Unknown) | None => {}
        }
    }

    /// Performs a step, and returns what ended it.
    async fn perform(&mut self, step: EndStep) -> EndEvent {
        match step {
            EndStep::AwaitEnd => {
                let event = self.await_session(step).await;
                // Before what is left of them is ended.
                self.survey.run().await;
                return event;
            }
            EndStep::AwaitDriver => return self.await_session(step).await,
            EndStep::AwaitExit(limit) => drop(self.wait_for_exit(limit).await),
            EndStep::ReadExitReason => {
                if let Some(host) = &self.host
                    && let Some(reason) = host.exit_summary().await
                {
                    let _ = self.ending.exit_reason.set(reason);
                }
            }
            EndStep::ReadExitCode(limit) => self.read_exit(limit).await,
            EndStep::ReleaseProgram => {
                if let Some(host) = self.host.take() {
                    host.detach().await;
                }
                self.ending.keep_released_output();
            }
            EndStep::EndAdapter => {
                if let Some(host) = self.host.take()
                    && let Err(error) = host.stop().await
                {
                    warn!("{error}");
                }
            }
            EndStep::DrainOutput(_) | EndStep::Done => {}
        }
        EndEvent::Completed
    }

    async fn await_session(&mut self, step: EndStep) -> EndEvent {
        let program = self.program;
        let Some(session) = &mut self.session else { return EndEvent::DriverEnded };
        tokio::select! {
            () = session => EndEvent::DriverEnded,
            Ok(_) = self.snapshots.wait_for(|it| it.is_program_ended(program)), if step == EndStep::AwaitEnd => {
                EndEvent::TargetsEnded
            }
        }
    }
}
