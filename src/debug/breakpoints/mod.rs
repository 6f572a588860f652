//! Breakpoints of a workspace, and sending them to every target that can take them.
//!
//! | file | owns |
//! |---|---|
//! | `spec` | what a user can set: lines, functions, exceptions, data |
//! | `anchor` | finding a line's code again when its file has changed |
//! | `list` | all breakpoints at one moment, and how each change alters them |
//! | `store` | all breakpoints; `breakpoints.json` in the state folder |
//! | `sync` | the requests that send them to a target |
//! | `binding` | the adapters' responses in one session |

mod anchor;
mod binding;
mod list;
mod spec;
mod store;
pub(super) mod sync;

pub use anchor::AnchorStatus;
pub use binding::{BindingStatus, BindingTable};
pub use list::StoredBreakpoints;
pub use spec::{BreakpointConditions, BreakpointKind, BreakpointSpec, DataAccess, ExceptionSpec, LinePosition};
pub use store::BreakpointStore;
