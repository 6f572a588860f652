//! The caller of a window operation, which receives progress and may cancel; its messages to the actor, and their result.
//!
//! Does not depend on the operation itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::refresh::rung_report::WindowRefresh;
use super::state::WindowInput;
use crate::error::{Error, Result};

/// The caller of an operation, for as long as the operation runs.
pub trait Caller: Send + Sync {
    /// Receives a short line about the current step.
    fn report_progress(&self, progress: &str);
    /// Whether the caller cancelled the operation. A front end that only disconnects has not: its end changes nothing.
    fn is_cancelled(&self) -> bool;
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

/// A start, restart or stop, and the caller that waits for its result.
pub struct WindowCommand {
    pub input: WindowInput,
    pub origin: CommandOrigin,
    pub reply: CommandReply,
}

/// What a handle sends to the actor.
pub enum ActorMessage {
    Command(WindowCommand),
    /// A caller has cancelled its command: the receiver of that command's reply is dropped.
    CallerCancelled,
    /// The supervisor exits: a build is aborted, a running launch or close is finished. The sender is dropped after that.
    Finish(oneshot::Sender<()>),
}
