//! The breakpoints that a launch sets: undone when the launch fails, or its caller is cancelled.

use std::sync::{Arc, Mutex};

use futures_util::future::FutureExt;
use tether_base::error::Result;
use tether_base::sync::lock;
use tracing::warn;

use super::registry::SessionRegistry;
use crate::debug::breakpoints::{BreakpointKind, LinePosition, RequestedBreakpoint, StoredBreakpoints};

/// The breakpoints of one launch. Undone when this is dropped, without waiting for that.
pub struct LaunchBreakpoints {
    sessions: SessionRegistry,
    /// All breakpoints as they were.
    before: Arc<StoredBreakpoints>,
    /// Of those that it has set.
    ids: Arc<Mutex<Vec<u32>>>,
    is_kept: bool,
}

impl LaunchBreakpoints {
    /// Of a launch that has set none yet.
    pub fn begin(sessions: &SessionRegistry) -> LaunchBreakpoints {
        let (sessions, before) = (sessions.clone(), sessions.current_breakpoints());
        LaunchBreakpoints { sessions, before, ids: Arc::default(), is_kept: false }
    }

    /// Sets them, all or none. Errors: no such line, the file cannot be written.
    pub async fn set(&mut self, requested: Vec<RequestedBreakpoint>) -> Result<()> {
        if !requested.is_empty() {
            self.sessions.set_breakpoints(requested, Arc::clone(&self.ids)).await?;
        }
        Ok(())
    }

    /// Keeps them, and returns their ids.
    pub fn keep(mut self) -> Vec<u32> {
        self.is_kept = true;
        std::mem::take(&mut lock(&self.ids))
    }

    /// Undoes them, and waits for that.
    pub async fn undo(mut self) {
        restore_breakpoints(&self.sessions, &self.before, &self.ids).await;
        self.is_kept = true;
    }
}

impl Drop for LaunchBreakpoints {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let (sessions, before, ids) = (self.sessions.clone(), Arc::clone(&self.before), Arc::clone(&self.ids));
        let undo = async move { restore_breakpoints(&sessions, &before, &ids).await };
        // The receiver exists as long as the supervisor.
        let _ = self.sessions.0.tasks.send(undo.boxed());
    }
}

/// Removes the breakpoints that were not there before, and gives the others their conditions back.
async fn restore_breakpoints(sessions: &SessionRegistry, before: &StoredBreakpoints, ids: &Mutex<Vec<u32>>) {
    // A change whose caller was cancelled goes on: it has ended when the next one begins.
    sessions.0.breakpoints.reload().await;
    let ids = std::mem::take(&mut *lock(ids));
    if ids.is_empty() {
        return;
    }
    let own: Vec<u32> = ids.iter().copied().filter(|id| before.get(*id).is_none()).collect();
    if let Err(error) = sessions.remove_breakpoints(move |spec| own.contains(&spec.id)).await {
        warn!("{error}");
    }
    for spec in ids.iter().filter_map(|id| before.get(*id)) {
        let restored = match &spec.kind {
            BreakpointKind::Line { file, named, line, column, .. } => {
                let at = LinePosition { line: *line, column: *column };
                sessions.set_line_breakpoint(named.as_ref().unwrap_or(file), at, spec.conditions.clone()).await
            }
            kind => sessions.set_function_breakpoint(kind.clone(), spec.conditions.clone()).await,
        };
        if let Err(error) = restored {
            warn!("{error}");
        }
    }
}
