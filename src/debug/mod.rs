//! Debug sessions: what they are doing, why they stopped, who waits for it, what can be seen there.
//!
//! | file | owns |
//! |---|---|
//! | `stop` | why a program stopped: the adapters' words into ours |
//! | `judge` | whether a stop is one: which breakpoint was hit, and whether anybody wanted it |
//! | `state` | where a target is: a pure table |
//! | `published` | what is published of a session |
//! | `target` | one connection to an adapter: its start, its events, its end |
//! | `seat` | what the targets of a session share, and the place of each in it |
//! | `configure` | telling a target which breakpoints are wanted |
//! | `house` | who owns the tasks of a session |
//! | `session` | a handle: the waiting, the going on, the end |
//! | `hosted`, `sessions` | a session with its adapter, from begin to end; all of them, and what is wanted in all |
//! | `begin` | how one of them begins |
//! | `ledger`, `recover` | what the next supervisor has to know of them; what it does about that |
//! | `inspect`, `look` | looking into a stopped program; what a stop answers at once |
//! | `drain` | what a program printed last, out of an adapter that would forget it |
//! | `terminal` | running a program for an adapter |
//! | `breakpoints` | what a user wants to stop at: kept, followed, applied |
//! | `record` | output and monitor events |
//!
//! Must not know windows, nor the wire API; adapters only by their table.

mod begin;
pub mod breakpoints;
mod configure;
mod drain;
mod hosted;
mod house;
pub mod inspect;
mod judge;
pub mod ledger;
pub mod look;
mod pages;
mod published;
pub mod record;
mod recover;
mod seat;
mod session;
mod sessions;
mod shown;
pub mod source_file;
pub mod state;
pub mod stop;
mod target;
mod terminal;

/// What is to be debugged, in the words of the adapters' table.
pub mod program {
    pub use crate::adapters::{Address, DebugTarget, DebugTargetKind};
}

pub use hosted::{Hosted, Request};
pub use published::{Seen, Snapshot, State, Waited};
pub use session::{Changed, Session};
pub use sessions::{Excepting, Probing, Reported, Sessions};
pub use state::Phase;
pub use stop::{Stop, StopKind};
pub use target::{Plan, Resume};
