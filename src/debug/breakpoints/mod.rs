//! Breakpoints of a workspace, and sending them to every target that can take them.
//!
//! | file | owns |
//! |---|---|
//! | `spec` | what a user can set: lines, functions, exceptions, data |
//! | `list` | all breakpoints at one moment, and how each change alters them |
//! | `changes` | what running programs have to be told of a change |
//! | `given_name` | the path by which a user has named a file |
//! | `editor_breakpoints` | those of joined editors, which go when their editor does |
//! | `store` | all breakpoints; `breakpoints.json` in the state folder |
//! | `merge` | breakpoints of several owners in one place, as one for the adapter |
//! | `sync` | the requests that send them to a target |
//! | `function_sync` | the ones of these for functions and panics |
//! | `named_sync` | the ones for lines by the user's own name of a file |
//! | `data_sync` | the ones for data, and which data is found by its name alone |
//! | `binding_request` | one request, and recording its response |
//! | `binding` | the adapters' responses in one session |

mod binding;
mod binding_request;
mod changes;
pub(super) mod data_sync;
mod editor_breakpoints;
pub(super) mod function_sync;
mod given_name;
pub(super) mod hit_count;
mod list;
mod merge;
mod named_sync;
mod requested;
mod spec;
mod store;
pub(super) mod sync;

pub use binding::{BindingStatus, BindingTable, NOT_REPORTED};
pub use changes::BreakpointChanges;
pub use editor_breakpoints::{EditorLine, ReplacedLines};
pub use list::StoredBreakpoints;
pub use requested::{RequestedBreakpoint, RequestedLine, RequestedPlace};
pub use spec::{
    BreakpointConditions, BreakpointFile, BreakpointKind, BreakpointOwner, BreakpointSpec, EditorExceptions,
    ExceptionSpec, LinePosition,
};
pub use store::BreakpointStore;
