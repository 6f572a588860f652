//! A started session: the client's requests, the program's output, its end.
//!
//! ```text
//! client ─▶ loop ─▶ each request beside, in order where the order counts ─▶ response
//! virtual machine ─▶ task of the events ─▶ decisions beside ─▶ stops
//! ```
//! The loop waits for nothing but messages, so the client can pause, list threads and leave at any time. When only the
//! connection to the virtual machine has ended, requests are answered with the reason.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::java_program::JavaProgram;
use super::session::JavaSession;
use crate::adapters::ServeContext;
use crate::adapters::conversation::{NextMove, output_event, requested_termination};
use crate::adapters::output_reader::OutputPiece;
use crate::dap::types::{ExitedEvent, TerminatedEvent};
use crate::dap::{DapInbox, DapIncoming, ErrorResponse, IncomingRequest};
use crate::jdwp::commands::virtual_machine::{Dispose, Exit};
use crate::jdwp::{CLOSED_BY_VM, JdwpEvents};
use crate::process::ProcessExit;

/// What requests are answered then.
const PROGRAM_HAS_ENDED: &str = "the program has ended";
/// How many requests may be unanswered.
const MAX_RUNNING: usize = 4096;
/// How long the virtual machine may take to let the program go; then the end of the connection does.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a program may take to exit when its virtual machine has closed the connection.
const EXIT_DELAY: Duration = Duration::from_secs(1);
/// How long the last output is read, if it does not end.
const LAST_OUTPUT_LIMIT: Duration = Duration::from_secs(10);

/// A session that runs.
pub struct RunningSession {
    pub session: Arc<JavaSession>,
    pub program: Option<JavaProgram>,
    pub output: mpsc::Receiver<OutputPiece>,
    /// Drives the connection to the virtual machine; requests; decisions at stops.
    pub tasks: JoinSet<()>,
    /// What is to run beside.
    pub beside: mpsc::UnboundedReceiver<BoxFuture<'static, ()>>,
}

impl RunningSession {
    /// Carries the session on to its end. `waiting`: the requests that have come before its start.
    pub async fn run(
        mut self,
        events: JdwpEvents,
        inbox: &mut DapInbox,
        context: &ServeContext,
        waiting: Vec<IncomingRequest>,
    ) {
        let (end, mut events_end) = oneshot::channel();
        let session = Arc::clone(&self.session);
        self.tasks.spawn(async move {
            handle_all_events(&session, events).await;
            // Fails when the session has ended.
            let _ = end.send(());
        });
        for request in waiting {
            self.begin_request(request).await;
        }
        loop {
            match self.next_message(inbox, &mut events_end).await {
                NextMove::GoOn => {}
                NextMove::Ended => return self.report_end(inbox, context).await,
                NextMove::Disconnect(request) => return self.disconnect(request).await,
                NextMove::ClientGone => return self.leave(None).await,
            }
        }
    }

    async fn next_message(&mut self, inbox: &mut DapInbox, events_end: &mut oneshot::Receiver<()>) -> NextMove {
        tokio::select! {
            _ = events_end => return NextMove::Ended,
            incoming = inbox.next() => match incoming {
                Some(DapIncoming::Request(request)) if is_leaving(&request) => return NextMove::Disconnect(request),
                Some(DapIncoming::Request(request)) => self.begin_request(request).await,
                Some(_) => {}
                None => return NextMove::ClientGone,
            },
            Some(task) = self.beside.recv() => drop(self.tasks.spawn(task)),
            Some(piece) = self.output.recv() => send_output(&self.session, piece).await,
            Some(_) = self.tasks.join_next() => {}
        }
        NextMove::GoOn
    }

    /// Answers a request beside. It is polled once here: requests take their places in the order in which they come.
    async fn begin_request(&mut self, request: IncomingRequest) {
        if self.tasks.len() >= MAX_RUNNING {
            return request.respond_error(ErrorResponse::new("too many requests are not answered yet"));
        }
        let session = Arc::clone(&self.session);
        let mut answer = Box::pin(async move { session.answer_request(request).await });
        if poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await.is_pending() {
            self.tasks.spawn(answer);
        }
    }

    /// The connection to the virtual machine has ended, mostly since the program has: reports how, then waits for the client
    /// to leave.
    async fn report_end(mut self, inbox: &mut DapInbox, context: &ServeContext) {
        let reason = self.session.vm.client.wait_closed().await;
        // What waits for something that runs beside ends, too.
        drop(self.beside);
        self.session.with_tables(|tables| tables.suspends.forget_all());
        let lost = format!("the connection to the virtual machine has ended: {reason}");
        let dap = self.session.dap.clone();
        let mut end = SessionEnd { session: &self.session, inbox, lost };
        if let Some(program) = self.program.take() {
            let exit = match end.wait_for_exit(&program, &mut self.output).await {
                Ok(exit) => exit,
                Err(left) => {
                    let terminate = left.as_ref().and_then(requested_termination);
                    match terminate {
                        Some(false) => program.detach(),
                        Some(true) | None => program.debuggee.stop(false).await,
                    }
                    left.into_iter().for_each(|request| request.respond(&json!({})));
                    return;
                }
            };
            context.exit.send_replace(Some(exit));
            end.send_last_output(&program, &mut self.output).await;
            let exit_code = match exit {
                ProcessExit::Code(code) => i64::from(code),
                ProcessExit::Signal(signal) => i64::from(signal).saturating_add(128),
                _ => -1,
            };
            // Each of these fails when the client has gone.
            let _ = dap.send_event(&ExitedEvent { exit_code, ..ExitedEvent::default() }).await;
            PROGRAM_HAS_ENDED.clone_into(&mut end.lost);
        } else if reason == CLOSED_BY_VM {
            PROGRAM_HAS_ENDED.clone_into(&mut end.lost);
        } else {
            end.session.print("important", &format!("{}\n", end.lost)).await;
        }
        let _ = dap.send_event(&TerminatedEvent {}).await;
        while let Some(request) = end.next_request().await {
            if is_leaving(&request) {
                return request.respond(&json!({}));
            }
            request.respond_error(ErrorResponse::new(end.lost.clone()));
        }
    }

    async fn disconnect(self, request: IncomingRequest) {
        self.leave(requested_termination(&request)).await;
        request.respond(&json!({}));
    }

    /// Ends a launched program, lets one that was attached to run on; or as `terminate` says.
    async fn leave(mut self, terminate: Option<bool>) {
        let client = &self.session.vm.client;
        let is_stopped = self.session.with_tables(|tables| tables.suspends.is_any_suspended());
        // An error means that the virtual machine has ended, or does not answer: the end of the connection lets go, too.
        match (self.program.take(), terminate) {
            (Some(program), Some(true) | None) => program.debuggee.stop(is_stopped).await,
            (Some(program), Some(false)) => {
                let _ = client.request_within(&Dispose {}, LEAVE_TIMEOUT).await;
                program.detach();
            }
            (None, Some(true)) => drop(client.request_within(&Exit { exit_code: 1 }, LEAVE_TIMEOUT).await),
            (None, Some(false) | None) => drop(client.request_within(&Dispose {}, LEAVE_TIMEOUT).await),
        }
    }
}

/// A session whose connection to the virtual machine has ended.
struct SessionEnd<'a> {
    session: &'a JavaSession,
    inbox: &'a mut DapInbox,
    /// What requests are answered.
    lost: String,
}

impl SessionEnd<'_> {
    /// Waits until the program exits. Errors: the client has left before, by that request or without one.
    async fn wait_for_exit(
        &mut self,
        program: &JavaProgram,
        output: &mut mpsc::Receiver<OutputPiece>,
    ) -> Result<ProcessExit, Option<IncomingRequest>> {
        let mut delay = pin!(sleep(EXIT_DELAY));
        let mut is_told = false;
        loop {
            tokio::select! {
                exit = program.debuggee.process.wait_for_exit() => return Ok(exit),
                Some(piece) = output.recv() => send_output(self.session, piece).await,
                () = &mut delay, if !is_told => {
                    is_told = true;
                    let text = format!("{}; the program continues without a debugger\n", self.lost);
                    self.session.print("important", &text).await;
                }
                request = self.next_request() => match request {
                    Some(request) if !is_leaving(&request) => {
                        request.respond_error(ErrorResponse::new(self.lost.clone()));
                    }
                    left => return Err(left),
                },
            }
        }
    }

    /// The rest of the output: until its streams have ended, or nothing comes any more.
    async fn send_last_output(&self, program: &JavaProgram, output: &mut mpsc::Receiver<OutputPiece>) {
        let mut limit = pin!(sleep(LAST_OUTPUT_LIMIT));
        loop {
            tokio::select! {
                biased; // what has been read is sent
                Some(piece) = output.recv() => send_output(self.session, piece).await,
                () = program.debuggee.wait_for_last_output() => break,
                () = &mut limit => break,
            }
        }
        while let Ok(piece) = output.try_recv() {
            send_output(self.session, piece).await;
        }
    }

    async fn next_request(&mut self) -> Option<IncomingRequest> {
        loop {
            if let DapIncoming::Request(request) = self.inbox.next().await? {
                return Some(request);
            }
        }
    }
}

/// Handles the events of the virtual machine in order, until the connection has ended.
async fn handle_all_events(session: &Arc<JavaSession>, mut events: JdwpEvents) {
    while let Some(composite) = events.next().await {
        match composite {
            Ok(composite) => {
                if let Some((thread, reached)) = session.handle_events(composite).await {
                    let settling = Arc::clone(session);
                    session.run_beside(async move { settling.settle_thread(thread, reached).await });
                }
            }
            Err(error) => {
                // What it has suspended is not known: with the connection, the virtual machine lets all threads go.
                session.print("important", &format!("{error}: the connection is closed\n")).await;
                session.vm.client.close();
            }
        }
    }
}

/// Whether a request ends the session.
fn is_leaving(request: &IncomingRequest) -> bool {
    matches!(request.command.as_str(), "disconnect" | "terminate")
}

async fn send_output(session: &JavaSession, piece: OutputPiece) {
    // Fails when the client has gone, which ends the session.
    let _ = session.dap.send_event(&output_event(piece)).await;
}

#[cfg(test)]
mod tests;
