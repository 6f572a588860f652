//! What the requests of one joined editor share.

use std::sync::{Arc, Mutex};

use super::breakpoint_view::BreakpointView;
use super::editor_ids::EditorIds;
use super::source_names::EditorPaths;
use crate::debug::breakpoints::BreakpointOwner;
use crate::debug::host::registry::SessionRegistry;

/// One editor, as its requests see it; clones are the same editor.
#[derive(Clone)]
pub struct EditorContext {
    /// All sessions of the workspace: its breakpoints are sent to each.
    pub sessions: SessionRegistry,
    /// The editor as the owner of its breakpoints.
    pub owner: BreakpointOwner,
    /// The ids that it knows.
    pub ids: Arc<Mutex<EditorIds>>,
    /// The breakpoints that it knows.
    pub view: Arc<Mutex<BreakpointView>>,
    /// The paths by which it names files.
    pub paths: Arc<Mutex<EditorPaths>>,
}
