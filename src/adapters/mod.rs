//! Debug adapters: which there are, what each debugs, and how it is found, started and connected to.
//!
//! | file | owns |
//! |---|---|
//! | `debug_target` | what a user wants to debug, independent of any adapter |
//! | `adapter` | the form of a row of the adapter table |
//! | `rows` | the table: one row for each adapter |
//! | `select` | which rows debug a target |
//! | `discovery` | where adapters are installed: settings, PATH, editors' folders, our installs |
//! | `listener_owner` | whose process listens on a port that is attached to |
//! | `launch_plan` | how an adapter is started: the process, the connections, the first request |
//! | `host` | carries a launch plan out, and owns the started process |
//! | `connect` | connections to a started adapter |
//! | `child_listener` | connections of the program's own children |
//! | `undebugged_children` | children that run without a debugger report themselves |
//! | `scratch_folder` | the private folder of a session |
//! | `serve_task` | the task of an adapter in this process |
//! | `output_reader` | what the started process prints |
//! | `java`, `node` | our own adapters for Java and Node, which run in this process |
//! | `conversation`, `launch_fields`, `debuggee_process` | what these have in common: conversations, arguments, processes |
//! | `hit_condition`, `log_message`, `request_failure` | 〃: conditions on counts, log messages, failures |
//! | `completion_text` | 〃: the text that is completed |
//! | `exit_reason` | an adapter's pipes: the end of the stream carries the exit reason |
//! | `exit_report` | how a program has exited, by the report of its adapter |
//!
//! Does not depend on sessions.

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

mod adapter;
mod child_listener;
mod completion_text;
mod connect;
mod conversation;
mod debug_target;
mod debuggee_process;
mod discovery;
mod exit_reason;
mod exit_report;
mod hit_condition;
mod host;
mod java;
mod launch_fields;
mod launch_plan;
mod listener_owner;
mod log_message;
mod node;
mod output_reader;
mod request_failure;
mod rows;
mod scratch_folder;
mod select;
mod serve_task;
mod undebugged_children;

pub use adapter::{Adapter, DetachHook, Quirks};
pub use child_listener::{ChildIdentity, ChildListener, ChildPlan, OpenedChild};
pub use connect::{Connector, accept_own_user};
pub use debug_target::{Address, DebugTarget, DebugTargetKind};
pub use discovery::{AdapterLookup, AdapterSearch, FoundAdapter, INSTALLED};
pub use exit_report::ExitReporter;
pub use host::{AdapterHost, start_adapter};
pub use java::{CONDITION_FAILURE as JAVA_CONDITION_FAILURE, serve_java};
pub use launch_plan::{ConnectMethod, LaunchPlan, ProcessPlan};
pub use listener_owner::verify_target_listener;
pub use node::serve_node;
pub use output_reader::OutputPiece;
pub use rows::ADAPTERS;
pub use scratch_folder::remove_scratch_folders;
pub use select::{AdapterQuery, locate_adapter, select_adapters};
pub use serve_task::{ServeAdapter, ServeContext};
pub use undebugged_children::{ChildReporter, UndebuggedChild, UndebuggedChildren};
