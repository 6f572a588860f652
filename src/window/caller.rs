//! The caller of a window operation, which receives progress and may cancel; its messages to the actor, and their result.
//!
//! Does not depend on the operation itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tether_base::error::{Error, Result};
use tokio::sync::oneshot;

use super::refresh::rung_report::WindowRefresh;
use super::state::WindowInput;

/// The caller of an operation, for as long as the operation runs.
pub trait Caller: Send + Sync {
    /// Receives a short line about the current step.
    fn report_progress(&self, progress: &str);
    /// Whether its user has given up the operation, with Ctrl-C. A front end that only cancels its request, or disconnects, has
    /// not: it may ask again.
    fn is_interrupted(&self) -> bool;
}

/// How long the steps of a finished operation took, and what a user should know about it.
#[derive(Clone, Debug, Default)]
pub struct OperationOutcome {
    /// Zero without a build.
    pub build: Duration,
    /// Zero without a launch.
    pub launch: Duration,
    pub notes: Vec<String>,
    /// How the window was replaced or refreshed; `None` if it was not.
    pub refreshed: Option<WindowRefresh>,
    /// Why the window was not replaced after an automatic build; the build is kept.
    pub held: Option<String>,
}

/// When an operation began, and when its launch did.
#[derive(Clone, Copy, Debug, Default)]
pub struct OperationTimes {
    pub started: Option<Instant>,
    /// `None` without a launch.
    pub launch_started: Option<Instant>,
}

/// The result of an operation, shared by all callers that wait for it.
pub type CommandResult = Result<OperationOutcome, Arc<Error>>;

/// Where the result of a command is sent.
pub type CommandReply = oneshot::Sender<(CommandResult, OperationTimes)>;

/// Why a command is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOrigin {
    /// To bring a stale window up to date: not if something prevents its replacement by then.
    Automatic,
    Requested,
    /// Requested, with a new build even if a finished one is kept.
    RequestedBuild,
}

/// A selected configuration: held while the operation that it is for runs, also without a caller.
pub trait HeldSelection: Send + Sync {}

/// A start, restart or stop, and the caller that waits for its result.
pub struct WindowCommand {
    pub input: WindowInput,
    pub origin: CommandOrigin,
    /// The configuration that it launches from, if it selects one.
    pub selection: Option<Arc<dyn HeldSelection>>,
    pub reply: CommandReply,
}

/// What a handle sends to the actor.
pub enum ActorMessage {
    Command(WindowCommand),
    /// A caller waits no longer: the receiver of its command's reply is dropped. With `interrupted` its user gives up what it
    /// has begun.
    CallerLeft {
        interrupted: bool,
    },
    /// The running build is not of the files of now: it is ended if no caller waits for it.
    EndObsoleteBuild,
    /// The supervisor exits: a build is aborted, a running launch or close is finished. The sender is dropped after that.
    Finish(oneshot::Sender<()>),
}
