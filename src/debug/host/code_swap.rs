//! Swaps changed code into the running program of a session, where its adapter can.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::managed_session::ManagedSession;
use super::registry::SessionRegistry;
use crate::clock::now_ms;
use crate::dap::types::RedefineClassesArguments;
use crate::debug::breakpoints::sync::ChangedBreakpoints;
use crate::debug::session::snapshot::RunState;
use crate::error::{Error, Result};

/// The capability of an adapter that has the request `redefineClasses`.
const REDEFINE_CLASSES: &str = "supportsRedefineClasses";
/// It may compile first.
const SWAP_TIMEOUT: Duration = Duration::from_secs(120);

/// What became of changed code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeSwap {
    /// The names of the classes whose code is new.
    Swapped(Vec<String>),
    /// Nothing that runs has changed.
    Unchanged,
    /// The program cannot take the change; why.
    Refused(String),
}

impl SessionRegistry {
    /// Swaps the changed code of a session's program into it. Errors: the changed code does not compile.
    pub async fn swap_code(&self, managed: &ManagedSession) -> Result<CodeSwap> {
        if matches!(managed.run_state(), RunState::Terminated | RunState::Disconnected) {
            return Ok(CodeSwap::Refused("it has ended".to_owned()));
        }
        let began = now_ms();
        let targets = managed.session.shared.targets();
        let able = targets.iter().find(|target| target.capabilities().can(REDEFINE_CLASSES));
        let Some(client) = able.and_then(|target| target.client()) else {
            return Ok(CodeSwap::Refused(format!("the adapter {} cannot", managed.adapter.name)));
        };
        let failed = |cause: String| {
            let error = Error::other(format!("cannot swap the changed code into {}", managed.id)).because(cause);
            error.hint(format!(
                "the program runs on as it was; `tether debug launch --restart {}` launches it anew",
                managed.id
            ))
        };
        let swapped = client.request(&RedefineClassesArguments {}, SWAP_TIMEOUT).await;
        let swapped = swapped.map_err(|cause| failed(cause.to_string()))?;
        if let Some(reason) = swapped.error_message {
            return Ok(CodeSwap::Refused(reason));
        }
        managed.code_swapped_at.store(began, Ordering::Release);
        if swapped.changed_classes.is_empty() {
            return Ok(CodeSwap::Unchanged);
        }
        // Breakpoints move with their code.
        self.0.breakpoints.follow_source_changes().await;
        for file in self.0.breakpoints.current().files() {
            managed.session.send_breakpoints(ChangedBreakpoints::File(&file)).await;
        }
        Ok(CodeSwap::Swapped(swapped.changed_classes))
    }
}
