//! A session that runs: the client's requests, the backend's events, the program's output, its end.

use std::pin::pin;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tether_dap::types::{ExitedEvent, OutputEvent, TerminatedEvent};
use tether_dap::{DapInbox, DapIncoming, DapServer, ErrorResponse, IncomingRequest};
use tether_process::ProcessExit;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::ServeContext;
use crate::backend::DapBackend;
use crate::debuggee_process::DebuggeeProcess;
use crate::output_reader::OutputPiece;

/// What requests are answered then.
const PROGRAM_HAS_ENDED: &str = "the program has ended";
/// How long a program may take to exit when its connection has ended, before the client is told that it runs on.
const EXIT_DELAY: Duration = Duration::from_secs(1);
/// How long the last output is read, if it does not end.
const LAST_OUTPUT_LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct RunningSession<'a, B> {
    pub backend: B,
    /// The process of a launched program.
    pub program: Option<DebuggeeProcess>,
    pub output: mpsc::Receiver<OutputPiece>,
    pub has_exited: bool,
    pub dap: DapServer,
    pub inbox: &'a mut DapInbox,
    pub context: &'a ServeContext,
}

/// How a session goes on after a message.
enum NextMove {
    Continue,
    /// The program has ended, or the connection to it.
    End,
    /// The client leaves, by that request, or without one.
    Leave(Option<IncomingRequest>),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DisconnectRequest {
    terminate_debuggee: Option<bool>,
}

impl<B: DapBackend> RunningSession<'_, B> {
    pub(crate) async fn run(mut self, waiting: Vec<IncomingRequest>) {
        for request in waiting {
            self.backend.begin_request(request).await;
        }
        loop {
            match self.next_message().await {
                NextMove::Continue => {}
                NextMove::End => return self.report_end().await,
                NextMove::Leave(request) => return self.leave(request).await,
            }
        }
    }

    async fn next_message(&mut self) -> NextMove {
        if self.backend.has_ended(self.program.is_some() && !self.has_exited) {
            return NextMove::End;
        }
        tokio::select! {
            biased; // what the program did comes before what is requested of it
            () = self.backend.advance() => {}
            incoming = self.inbox.next() => match incoming {
                Some(DapIncoming::Request(request)) if is_leaving(&request) => return NextMove::Leave(Some(request)),
                Some(DapIncoming::Request(request)) => self.backend.begin_request(request).await,
                Some(_) => {}
                None => return NextMove::Leave(None),
            },
            Some(piece) = self.output.recv() => self.send_output(piece).await,
            () = wait_for_exit(&self.program), if !self.has_exited => self.has_exited = true,
        }
        NextMove::Continue
    }

    /// Fails when the client has gone, which ends the session.
    async fn send_output(&mut self, piece: OutputPiece) {
        if let Some(event) = self.backend.shown_output(output_event(piece)) {
            let _ = self.dap.send_event(&event).await;
        }
    }

    async fn print_important(&mut self, text: String) {
        let _ = self.dap.send_event(&OutputEvent::new("important", text)).await;
    }

    /// Nothing is left to debug, mostly since the program has ended: reports how, then waits for the client to leave. Sending
    /// fails when the client has gone.
    async fn report_end(mut self) {
        let end = self.backend.close().await;
        let mut answer = end.reason;
        let (mut leaving, mut connection_lost) = (None, None);
        if self.program.is_some() {
            let exit = match self.wait_for_last_exit(&answer).await {
                Ok(exit) => exit,
                Err(left) => return self.leave(left).await,
            };
            PROGRAM_HAS_ENDED.clone_into(&mut answer);
            leaving = self.send_last_output(&answer).await;
            self.context.exit.send_replace(Some(exit));
            // A signal has no code; the context has it.
            if let ProcessExit::Code(code) = exit {
                let exit_code = i64::from(code);
                let _ = self.dap.send_event(&ExitedEvent { exit_code, ..ExitedEvent::default() }).await;
            }
        } else if end.is_by_program {
            PROGRAM_HAS_ENDED.clone_into(&mut answer);
        } else {
            self.print_important(format!("{answer}\n")).await;
            connection_lost = Some(answer.clone());
        }
        let _ = self.dap.send_event(&TerminatedEvent { connection_lost }).await;
        while leaving.is_none() {
            match next_request(self.inbox).await {
                Some(request) if is_leaving(&request) => leaving = Some(request),
                Some(request) => request.respond_error(ErrorResponse::new(answer.clone())),
                None => return,
            }
        }
        leaving.into_iter().for_each(|request| request.respond(&json!({})));
    }

    /// Waits until a launched program exits, whose connection has ended. Errors: the client has left before, by that request or
    /// without one.
    async fn wait_for_last_exit(&mut self, answer: &str) -> Result<ProcessExit, Option<IncomingRequest>> {
        let mut delay = pin!(sleep(EXIT_DELAY));
        let mut is_told = false;
        loop {
            tokio::select! {
                biased; // it has exited already, mostly
                exit = program_exit(&self.program) => return Ok(exit),
                Some(piece) = self.output.recv() => self.send_output(piece).await,
                () = &mut delay, if !is_told => {
                    is_told = true;
                    self.print_important(format!("{answer}; the program continues without a debugger\n")).await;
                }
                request = next_request(self.inbox) => match request {
                    Some(request) if !is_leaving(&request) => {
                        request.respond_error(ErrorResponse::new(answer.to_owned()));
                    }
                    left => return Err(left),
                },
            }
        }
    }

    /// Sends what is left of the output, until its streams have ended. A daemon of the program may keep them open: then until
    /// nothing is printed for a moment, or for [`LAST_OUTPUT_LIMIT`]. Returns the request by which the client leaves meanwhile.
    async fn send_last_output(&mut self, answer: &str) -> Option<IncomingRequest> {
        let mut limit = pin!(sleep(LAST_OUTPUT_LIMIT));
        loop {
            tokio::select! {
                biased; // what has been read is sent
                () = &mut limit => return None,
                request = next_request(self.inbox) => match request {
                    Some(request) if !is_leaving(&request) => {
                        request.respond_error(ErrorResponse::new(answer.to_owned()));
                    }
                    left => return left,
                },
                Some(piece) = self.output.recv() => self.send_output(piece).await,
                () = wait_for_last_output(&self.program) => break,
            }
        }
        while let Ok(piece) = self.output.try_recv() {
            self.send_output(piece).await;
        }
        None
    }

    /// Ends a launched program, lets one that was attached to run on; or as the request says.
    async fn leave(mut self, request: Option<IncomingRequest>) {
        let terminate = request.as_ref().and_then(requested_termination);
        match (self.program.take(), terminate) {
            (Some(program), Some(true) | None) => program.stop(self.backend.is_stopped()).await,
            (Some(program), Some(false)) => {
                self.backend.release(true).await;
                program.detach();
            }
            (None, Some(true)) => self.backend.terminate().await,
            (None, Some(false) | None) => self.backend.release(false).await,
        }
        request.into_iter().for_each(|request| request.respond(&json!({})));
    }
}

/// Whether a request ends the session.
fn is_leaving(request: &IncomingRequest) -> bool {
    matches!(request.command.as_str(), "disconnect" | "terminate")
}

/// Whether a request that ends the session ends the program, too. `None`: it does not say.
fn requested_termination(request: &IncomingRequest) -> Option<bool> {
    let arguments: DisconnectRequest = request.read_arguments().unwrap_or_default();
    if request.command == "terminate" { Some(true) } else { arguments.terminate_debuggee }
}

fn output_event(piece: OutputPiece) -> OutputEvent {
    let (category, output) = match piece {
        OutputPiece::Stdout(text) => ("stdout", text),
        OutputPiece::Stderr(text) => ("stderr", text),
        OutputPiece::Dropped(count) => ("important", format!("{count} pieces of output were dropped\n")),
    };
    OutputEvent::new(category, output)
}

async fn next_request(inbox: &mut DapInbox) -> Option<IncomingRequest> {
    loop {
        if let DapIncoming::Request(request) = inbox.next().await? {
            return Some(request);
        }
    }
}

async fn wait_for_exit(program: &Option<DebuggeeProcess>) {
    program_exit(program).await;
}

/// How a launched program exits; never returns for another.
async fn program_exit(program: &Option<DebuggeeProcess>) -> ProcessExit {
    match program {
        Some(program) => program.process.wait_for_exit().await,
        None => std::future::pending().await,
    }
}

async fn wait_for_last_output(program: &Option<DebuggeeProcess>) {
    if let Some(program) = program {
        program.wait_for_last_output().await;
    }
}
