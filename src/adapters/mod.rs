//! Debug adapters: which there are, what each debugs, and how it is found, started and connected to.
//!
//! | file | owns |
//! |---|---|
//! | `debug_target` | what a user wants to debug, independent of any adapter |
//! | `adapter` | the form of a row of the adapter table |
//! | `core_file` | which program wrote a core dump, and which signal ended it |
//! | `rows` | the table: one row for each adapter |
//! | `select` | which rows debug a target |
//! | `discovery` | where adapters are installed: settings, PATH, editors' folders, our installs |
//! | `listener_owner` | whose process listens on a port that is attached to |
//! | `path_maps` | folders that a program has elsewhere than this machine |
//! | `launch_plan` | how an adapter is started: the process, the connections, the first request |
//! | `host` | carries a launch plan out, and owns the started process |
//! | `connect` | connections to a started adapter |
//! | `child_processes` | which processes run what an adapter debugs, and which children an adapter debugs |
//! | `child_listener` | connections of the program's own children |
//! | `process_reports` | processes report what of them is not debugged |
//! | `scratch_folder` | the private folder of a session |
//! | `serve_task` | the task of an adapter in this process |
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
mod built_sources;
mod child_listener;
mod child_processes;
mod connect;
mod core_file;
mod debug_target;
mod discovery;
mod exit_reason;
mod exit_report;
mod host;
mod launch_plan;
mod listener_owner;
mod path_maps;
mod process_reports;
mod rows;
mod scratch_folder;
mod select;
mod serve_task;

pub use adapter::{Adapter, ConditionReport, DetachHook, HitCounting, Quirks};
pub use built_sources::{compiled_elsewhere, find_source_maps};
pub use child_listener::{ChildIdentity, ChildListener, ChildPlan, OpenedChild};
pub use child_processes::{DebuggedChildren, ProcessRuntime};
pub use connect::Connector;
pub use core_file::CoreFile;
pub use debug_target::{Address, DebugTarget, DebugTargetKind};
pub use discovery::{AdapterLookup, AdapterSearch, FoundAdapter, INSTALLED};
pub use exit_report::ExitReporter;
pub use host::{AdapterHost, PRINTED_NOTHING, start_adapter};
pub use launch_plan::{ConnectMethod, LaunchPlan, ProcessPlan};
pub use listener_owner::{find_attached_process, verify_target_listener};
pub use path_maps::{PATH_MAP_FIELDS, PathMap, PathMapUse};
pub use process_reports::{ProcessReport, ProcessReporter, ProcessReports, UndebuggedChild};
pub use rows::{ADAPTERS, waiting_command};
pub use scratch_folder::remove_scratch_folders;
pub use select::{AdapterQuery, locate_adapter, select_adapters};
pub use tether_node::wait_for_late_workers;
