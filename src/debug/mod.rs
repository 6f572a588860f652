//! Debug sessions: start, inspect, resume and end debuggees through DAP adapters, and keep their breakpoints.
//!
//! | folder | owns |
//! |---|---|
//! | `host` | all sessions of a workspace: registry, start, end, recovery after a supervisor's exit |
//! | `session` | one session: its targets, their state, stops and output |
//! | `inspect` | reading and changing a stopped program |
//! | `breakpoints` | the workspace's breakpoints, and sending them to targets |
//! | `join` | editors that join a session: a DAP server for each |
//! | `file_names`, `workspace_links` | the user's own names for files |
//!
//! Does not depend on windows or the wire API; uses adapters only through their table.

// What is read here comes from outside.
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

pub mod breakpoints;
mod file_names;
pub mod host;
pub mod inspect;
pub mod join;
pub mod session;
pub mod source_file;
mod workspace_links;

/// What is to be debugged, as the adapters' table defines it.
pub mod program {
    pub use crate::adapters::{Address, CoreFile, DebugTarget, DebugTargetKind, PATH_MAP_FIELDS, PathMap};
}

pub use file_names::{FileNames, ShownFile, ShownPlace, display_path};
pub use host::breakpoint_operations::{BreakpointStatus, ExceptionSupport};
pub use host::code_swap::{CodeSwap, swap_code};
pub use host::ended_sessions::expired_sessions;
pub use host::launch_breakpoints::LaunchBreakpoints;
pub use host::managed_session::{ManagedSession, ProgramEnd};
pub use host::recover::{HostReunion, ResolveRequest, SessionHosts};
pub use host::registry::{SessionEntry, SessionRegistry, choose_session};
pub use host::remote_sessions::{RemoteSessions, ReportedBinding, SessionBindings};
pub use host::session_request::SessionRequest;
pub use host::start::EndOnDrop;
pub use host::store::{HostRecord, HostedEntry, StoredSession};
pub use session::debug_session::DebugSession;
pub use session::resume::{LastResume, Resume};
pub use session::snapshot::{JoinedEditor, SessionSnapshot, TargetSnapshot, WaitOutcome};
pub use session::stop::ThreadStop;
pub use session::target::TargetPlan;
pub use session::target_state::TargetPhase;
pub use session::task::SessionProgram;
