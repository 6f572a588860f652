//! Wanted breakpoints: what a user asked for. They belong to the workspace, and are applied to every target that can
//! take them.
//!
//! | file | owns |
//! |---|---|
//! | `wanted` | what can be wanted: lines, functions, exceptions, data |
//! | `anchor` | following a line's code when its file changes |
//! | `book` | all that are wanted; `.devtools/breakpoints.json` |
//! | `applied` | what the targets of one session made of them |
//!
//! Must not know how they are sent.

pub(super) mod anchor;
mod applied;
mod book;
mod wanted;

pub use applied::{Applied, Standing, Standings};
pub use book::Book;
pub use wanted::{Access, Conditions, Exceptions, Wanted, What, Whereabouts};
