//! Debug sessions: what they are doing, why they stopped, who waits for it.
//!
//! | file | owns |
//! |---|---|
//! | `stop` | why a program stopped: the adapters' words into ours |
//! | `state` | where a target is: a pure table |
//! | `target` | one connection to an adapter: its start, its events, its end |
//! | `session` | the tree of targets, and the waiting for any of them |
//!
//! Must not know windows, the wire API, nor how an adapter is found and started.

mod session;
pub mod state;
pub mod stop;
mod target;

pub use session::{Dial, Session, Snapshot, State, Waited};
pub use stop::{Stop, StopKind};
pub use target::{Plan, Resume};
