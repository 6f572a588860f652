//! Sends the commands of a handle to the actor, and waits for their results.
//!
//! A command may join an operation that runs already. Whether its result is one to the command: [`Window::run_command`],
//! [`Window::run_restart`].

use std::sync::Arc;
use std::time::Instant;

use tether_base::error::{Error, ErrorData, ErrorKind, Result};
use tokio::sync::oneshot;

use super::caller::{
    ActorMessage, Caller, CommandOrigin, HeldSelection, OperationOutcome, OperationTimes, WindowCommand,
};
use super::config_selection::ConfigSelection;
use super::state::WindowInput;
use super::unattended_build::{self, CallerGuard};
use super::window_handle::Window;

impl Window {
    /// Restarts the window. An operation that runs already may be waited for, but its launch, or the failure of its build,
    /// is no result of this request.
    pub(super) async fn run_restart(
        &self,
        build: bool,
        (origin, selection): (CommandOrigin, Option<&Arc<ConfigSelection>>),
        caller: &dyn Caller,
    ) -> Result<OperationOutcome> {
        let requested = Instant::now();
        let is_later = |at: Option<Instant>| at.is_some_and(|at| at >= requested);
        loop {
            let input = WindowInput::Restart { build };
            let (result, OperationTimes { started, launch_started }) =
                self.send_command(input, (origin, selection), caller).await;
            let is_result = match &result {
                Ok(_) => is_later(launch_started) && (is_later(started) || !self.compare_files().await?.stale),
                // Stopped meanwhile, or the supervisor exits.
                Err(error) => is_later(started) || error.kind == ErrorKind::Cancelled,
            };
            if is_result {
                return result;
            }
        }
    }

    /// As [`Window::send_command`], for a command to which an operation that runs already is a result.
    pub(super) async fn run_command(
        &self,
        input: WindowInput,
        (origin, selection): (CommandOrigin, Option<&Arc<ConfigSelection>>),
        caller: &dyn Caller,
    ) -> Result<OperationOutcome> {
        self.send_command(input, (origin, selection), caller).await.0
    }

    /// Sends a command to the actor and waits for its result; reports the progress of the running operation meanwhile.
    async fn send_command(
        &self,
        input: WindowInput,
        (origin, selection): (CommandOrigin, Option<&Arc<ConfigSelection>>),
        caller: &dyn Caller,
    ) -> (Result<OperationOutcome>, OperationTimes) {
        if input != WindowInput::Stop {
            unattended_build::end_obsolete_build(self).await;
        }
        let mut guard = CallerGuard { inbox: &self.actor, caller, is_answered: false };
        let selection = selection.cloned().map(|selection| selection as Arc<dyn HeldSelection>);
        let (reply, mut result) = oneshot::channel();
        let closed = || (Err(Error::new(ErrorKind::Cancelled, "the supervisor is ending")), OperationTimes::default());
        if self.actor.send(ActorMessage::Command(WindowCommand { input, origin, selection, reply })).await.is_err() {
            return closed();
        }
        let (mut watch, mut reported) = (self.watch(), None);
        loop {
            let progress = watch.borrow_and_update().progress.clone();
            if let Some(progress) = progress.filter(|progress| reported.as_ref() != Some(progress)) {
                caller.report_progress(&progress);
                reported = Some(progress);
            }
            tokio::select! {
                result = &mut result => {
                    guard.is_answered = true;
                    let Ok((result, times)) = result else { return closed() };
                    return (result.map_err(|error| ErrorData::from(&*error).into()), times);
                }
                _ = watch.changed() => {}
            }
        }
    }
}
