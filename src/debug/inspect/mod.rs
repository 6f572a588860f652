//! Inspecting a stopped program: threads, stack, variables, expressions, sources, and the summary of a stop.
//!
//! | file | owns |
//! |---|---|
//! | `scoped_id` | adapter ids that carry their target |
//! | `frame` | stack frames |
//! | `frame_folding` | which frames are the user's; those of a runtime in one line |
//! | `threads`, `stack`, `variables`, `evaluate`, `source` | the requests, and their responses |
//! | `ranged_list` | long lists of Python, part by part |
//! | `unreached` | which breakpoints have not stopped a session, and why |
//! | `exception_parts` | the exceptions in one exception |
//! | `failed_conditions`, `panic_message` | what the output says of conditions and of Rust panics |
//! | `stop_cache` | responses that stay valid until the program runs |
//! | `value_limits` | how much of a large value is shown |
//! | `stop_summary` | why the program stopped and where, within a budget |

mod evaluate;
mod exception_parts;
mod failed_conditions;
mod frame;
mod frame_folding;
mod panic_message;
mod ranged_list;
mod scoped_id;
mod source;
mod stack;
pub(super) mod stop_cache;
mod stop_summary;
mod threads;
mod unreached;
mod value_limits;
mod variables;

pub(in crate::debug) use evaluate::evaluate_in_targets;
pub use evaluate::{evaluate, set_variable, unread_value_note};
pub use exception_parts::exception_parts;
pub use failed_conditions::{FailedCondition, failed_conditions};
pub use frame::{StackFrameInfo, ThreadStack};
pub use frame_folding::SummaryFrame;
pub use scoped_id::ScopedId;
pub use source::{changed_source, find_named_source, frame_source, lines_around, source_text};
pub use stack::{list_scopes, read_stack, resolve_frame};
pub use stop_summary::{StopCause, StopSummary, ThrownException, exception_info, stop_cause, summarize_stop};
pub use threads::{ThreadInfo, ThreadList, list_threads, pause_thread, read_threads};
pub use unreached::{UnreachedBreakpoint, older_code_note, unreached_breakpoints};
pub use value_limits::MAX_VALUE_CHARS;
pub use variables::{
    DapVariable, VariableGroup, VariableParent, is_local, list_variables, variables_by_name, variables_page,
};
