//! What an adapter is made of: how it starts, what it does with events and requests, how it lets a program go.
//!
//! A new adapter implements [`DapBackend`], and mostly [`DapRequests`](crate::DapRequests) for its session; then
//! [`serve_backend`](crate::serve_backend) serves it. Nothing else has to change: `tests/third_backend.rs` is a small one.

use std::future::Future;
use std::time::Duration;

use tether_base::error::{Error, Result};
use tether_dap::types::{DapCapabilities, Fields, OutputEvent};
use tether_dap::{DapServer, IncomingRequest};
use tether_process::Process;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::debuggee_process::DebuggeeProcess;
use crate::output_reader::OutputPiece;

/// How long a program may take to exit once its connection has ended.
const EXIT_AFTER_CLOSE: Duration = Duration::from_secs(1);

/// A debug adapter for one kind of program, while it debugs one.
///
/// The server calls it from one loop, so nothing here may wait for the program: not [`begin_request`](Self::begin_request),
/// and [`advance`](Self::advance) only for the next event. What takes longer runs in tasks of the backend.
pub trait DapBackend: Sized + Send {
    /// What it debugs, for errors: "a Node program".
    const PROGRAM: &'static str;

    /// What it can do.
    fn capabilities() -> DapCapabilities;

    /// Starts a program from the arguments of `launch`. It must wait for `configurationDone` before code of the user runs.
    /// Dropping the future ends what it has started.
    ///
    /// Errors: the arguments are wrong, or it cannot be started or debugged.
    fn launch(
        dap: &DapServer,
        fields: &Fields,
        launch_id: &str,
    ) -> impl Future<Output = Result<StartedBackend<Self>>> + Send;

    /// Connects to a running program from the arguments of `attach`. Errors as for `launch`.
    fn attach(
        dap: &DapServer,
        fields: &Fields,
        launch_id: &str,
    ) -> impl Future<Output = Result<StartedBackend<Self>>> + Send;

    /// Waits for the next event of its own, and begins to handle it. It is dropped when something else comes first, and called
    /// again: it must lose nothing by that.
    fn advance(&mut self) -> impl Future<Output = ()> + Send;

    /// Begins a request, which is answered in a task when it takes time. Those before `configurationDone` come here, too;
    /// `initialize`, `launch`, `attach`, `disconnect` and `terminate` do not.
    fn begin_request(&mut self, request: IncomingRequest) -> impl Future<Output = ()> + Send;

    /// Whether nothing is left to debug. `is_running`: the process of a launched program has not exited.
    fn has_ended(&self, is_running: bool) -> bool;

    /// Once it has ended: why.
    fn close(&mut self) -> impl Future<Output = BackendEnd> + Send;

    /// Whether a thread of the program is stopped. Such a program is killed rather than asked to exit.
    fn is_stopped(&self) -> bool;

    /// Lets the program run on as if it had never been debugged. `is_launched`: it was launched, not attached to.
    fn release(&mut self, is_launched: bool) -> impl Future<Output = ()> + Send;

    /// Ends a program that was attached to.
    fn terminate(&mut self) -> impl Future<Output = ()> + Send;

    /// The error of a `launch` or an `attach` whose arguments are wrong.
    fn usage_error(command: &str, cause: String) -> Error {
        let doing = if command == "launch" { "launch" } else { "attach to" };
        Error::usage(format!("cannot {doing} {}", Self::PROGRAM)).because(cause)
    }

    /// A piece of the program's output as the client sees it; `None` hides it.
    fn shown_output(&self, output: OutputEvent) -> Option<OutputEvent> {
        Some(output)
    }
}

/// A backend that debugs a program.
pub struct StartedBackend<B> {
    /// The backend itself.
    pub backend: B,
    /// The program, when it was launched.
    pub program: Option<LaunchedProgram>,
    /// Arguments that it does not know. The client is told of each.
    pub unknown: Vec<String>,
}

/// A program that was launched.
pub struct LaunchedProgram {
    /// Its name, for the client.
    pub name: String,
    /// Its process.
    pub debuggee: DebuggeeProcess,
    /// What it prints.
    pub output: mpsc::Receiver<OutputPiece>,
}

/// Why nothing is left to debug.
#[derive(Clone, Debug)]
pub struct BackendEnd {
    /// What requests are answered from then on.
    pub reason: String,
    /// The program is known to have ended. Otherwise the connection was lost, and the program may run on.
    pub is_by_program: bool,
}

/// Whether a program has exited whose connection has ended: it may exit a moment after that. `None` is one whose process is not
/// known, such as behind a proxy or on another machine.
pub async fn exits_after_close(process: Option<&Process>) -> bool {
    match process {
        Some(process) => timeout(EXIT_AFTER_CLOSE, process.wait_for_exit()).await.is_ok(),
        None => false,
    }
}
