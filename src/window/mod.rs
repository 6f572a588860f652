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

pub mod identity;
pub mod launch;
pub mod page;
pub mod session_file;
pub mod stop;

mod actor;
mod asker;
mod build;
mod crashes;
mod handle;
mod launches;
mod news;
mod shared;
mod state;
mod up;
mod work;

// The words of its changes, which are part of what it says.
pub use crate::changes::{ChangeReport, FileChange, FileChangeKind, PathExplanation};
pub use asker::{Asker, Doing, Progress};
pub use build::LastBuild;
pub use handle::{Changes, Look, OnPage, Rebuild, Relaunched, Window, value_of};
pub use news::News;
pub use page::ExpressionResult;
pub use shared::{Home, Outcome, Published};
pub use state::Phase;
pub use up::{Ended, Up};
