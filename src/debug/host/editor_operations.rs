//! The breakpoint operations of joined editors: each changes what belongs to its editor, and sends that to every session.
//!
//! Does not depend on how an editor requests them.

use std::path::Path;

use tether_base::error::Result;
use tether_dap::types::ExceptionFilterOptions;

use super::registry::SessionRegistry;
use crate::debug::breakpoints::sync::ChangedBreakpoints;
use crate::debug::breakpoints::{
    BreakpointConditions, BreakpointOwner, BreakpointSpec, EditorLine, ReplacedLines, StoredBreakpoints,
};

impl SessionRegistry {
    /// Replaces an editor's breakpoints in a file; nothing is sent. Errors: no such file, it is no source file.
    pub(in crate::debug) async fn replace_editor_lines(
        &self,
        owner: &BreakpointOwner,
        file: &Path,
        lines: Vec<EditorLine>,
    ) -> Result<ReplacedLines> {
        self.0.breakpoints.replace_editor_lines(owner.clone(), &self.0.workspace.join(file), lines).await
    }

    /// Sends the breakpoints of a file to every session. `removed` are those that are gone.
    pub(in crate::debug) async fn send_editor_lines(&self, file: &Path, removed: &[u32]) {
        self.forget_bindings(removed);
        self.send_to_sessions(ChangedBreakpoints::File(file)).await;
    }

    /// Replaces an editor's function breakpoints; nothing is sent.
    pub(in crate::debug) async fn replace_editor_functions(
        &self,
        owner: &BreakpointOwner,
        functions: Vec<(String, BreakpointConditions)>,
    ) -> Result<(Vec<Result<BreakpointSpec>>, Vec<u32>)> {
        let owner = owner.clone();
        self.0.breakpoints.change(move |list| Ok(list.replace_editor_functions(&owner, functions))).await
    }

    /// Sends the function breakpoints to every session. `removed` are those that are gone.
    pub(in crate::debug) async fn send_editor_functions(&self, removed: &[u32]) {
        self.forget_bindings(removed);
        self.send_to_sessions(ChangedBreakpoints::Functions(!removed.is_empty())).await;
    }

    /// Replaces the exceptions on which an editor wants to stop, and sends them to every session.
    pub(in crate::debug) async fn replace_editor_exceptions(
        &self,
        owner: &BreakpointOwner,
        filters: Vec<ExceptionFilterOptions>,
    ) -> Result<()> {
        let owner = owner.clone();
        let replace = move |list: &mut StoredBreakpoints| {
            list.replace_editor_exceptions(&owner, filters);
            Ok(())
        };
        self.0.breakpoints.change(replace).await?;
        self.send_to_sessions(ChangedBreakpoints::Exceptions).await;
        Ok(())
    }

    /// Removes everything of an editor, and sends that to every session.
    pub(in crate::debug) async fn remove_editor(&self, owner: &BreakpointOwner) {
        let had_exceptions = self.current_breakpoints().editor_exceptions.iter().any(|it| it.owner == *owner);
        let owner = owner.clone();
        match self.0.breakpoints.change(move |list| Ok(list.remove_editor(&owner))).await {
            Ok(removed) => self.send_removals(&removed).await,
            Err(error) => tracing::warn!("{error}"),
        }
        if had_exceptions {
            self.send_to_sessions(ChangedBreakpoints::Exceptions).await;
        }
    }

    fn forget_bindings(&self, removed: &[u32]) {
        for managed in self.active_sessions() {
            managed.session.shared.with_state(|state| removed.iter().for_each(|id| state.remove_breakpoint(*id)));
        }
    }
}
