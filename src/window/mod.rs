//! The window: the long-lived program under the tether.
//!
//! | file | owns |
//! |---|---|
//! | `handle` | what the supervisor asks of the window; the rule "look for changes first" |
//! | `asker`, `news` | who waits for an operation; what is worth another look |
//! | `actor` | the one task that owns it; `state` decides for it, `work` does the long things |
//! | `shared` | what these share: what is known of the window, who tracks its files |
//! | `launches` | how many there have been: the number of each |
//! | `crashes` | a window that ends by itself again and again |
//! | `build` | building until the files hold still, and finding out what it was built from |
//! | `up` | a window that lives: its facts, its process, the connection to it |
//! | `launch` | starting one of each kind, and learning its ports |
//! | `session_file` | `.devtools/session.json`, which a window outlives its supervisor by |
//! | `identity` | the proof that a session file tells of our own window |
//! | `page` | looking into it over CDP |
//! | `stop` | closing it, and leaving nothing behind |
//!
//! Must not know sessions, front ends or the wire API.

pub mod cleanup;
pub mod identity;
pub mod launch;
pub mod page;
pub mod session_file;

mod actor;
mod build;
mod caller;
mod change_feed;
mod context;
mod crash_loop;
mod generation;
mod handle;
mod live_window;
mod operations;
mod state;

// The words of its changes, which are part of what it says.
pub use crate::changes::{ChangeReport, FileChange, FileChangeKind, PathExplanation};
pub use build::BuildSummary;
pub use caller::{Caller, InFlightGuard, Progress};
pub use change_feed::ChangeFeed;
pub use context::{OperationOutcome, PublishedState, WindowPaths};
pub use handle::{FileChanges, PageResult, RebuildPolicy, RelaunchReport, Window, WindowInspection, split_evaluated};
pub use live_window::{LiveWindow, WindowExit};
pub use page::ExpressionResult;
pub use state::WindowPhase;
