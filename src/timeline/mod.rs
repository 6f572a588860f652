//! The timeline of a workspace: what has happened in it, and when. The supervisor and the hosts of its sessions write it into
//! one file of the state folder, so that it outlives all of them.
//!
//! | file | owns |
//! |---|---|
//! | `event_file` | the file: appending, bounds, reading |
//! | `recorder` | the handle that records, and tells of new events |
//!
//! Does not depend on who records what.

mod event_file;
mod recorder;

pub use event_file::{TimelineExtract, TimelineQuery};
pub use recorder::{Timeline, event_now};
