//! The messages that window handles send to the actor, and the results that they wait for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::state::WindowInput;
use crate::error::{Error, Result};

/// How long the steps of a finished operation took, and what a user should know about it.
#[derive(Clone, Debug, Default)]
pub struct OperationOutcome {
    /// Zero without a build.
    pub build: Duration,
    /// Zero without a launch.
    pub launch: Duration,
    pub notes: Vec<String>,
}

/// The result of an operation, shared by all callers that wait for it.
pub type CommandResult = Result<OperationOutcome, Arc<Error>>;

/// A start, restart or stop, and the caller that waits for its result.
pub struct WindowCommand {
    pub input: WindowInput,
    pub reply: oneshot::Sender<CommandResult>,
}

/// What a handle sends to the actor.
pub enum ActorMessage {
    Command(WindowCommand),
    /// A caller has cancelled its command: the receiver of that command's reply is dropped.
    CallerCancelled,
}
