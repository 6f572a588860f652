//! The table of adapters: which there are, what each debugs, how it is found, started and asked.
//!
//! | file | owns |
//! |---|---|
//! | `wanted` | what a user wants to be debugged, in words that no adapter has |
//! | `choose` | which row debugs that |
//! | `places` | where adapters lie: settings, PATH, editors' folders, our installs |
//! | `begin` | how a conversation begins: the process, the connections, the first request |
//! | `run` | carrying that out; `dial` the connections, `said` its output, `last` the reason of its end |
//! | `debugpy`, `js_debug`, `rdbg`, `delve`, `lldb_dap`, `codelldb`, `gdb`, `netcoredbg` | a row each |
//! | `python`, `native` | which Python runs a program; what the adapters for C, C++ and Rust have in common |
//!
//! A row is plain data and two functions that start nothing. Must not know sessions.

mod codelldb;
mod connect;
mod debug_target;
mod debugpy;
mod delve;
mod discovery;
mod exit_reason;
mod gdb;
mod host;
mod js_debug;
mod launch_plan;
mod lldb_dap;
mod native;
mod netcoredbg;
mod output_reader;
mod python;
mod rdbg;
mod select;

pub use connect::Connector;
pub use debug_target::{Address, DebugTarget, DebugTargetKind};
pub use discovery::{AdapterLookup, AdapterSearch};
pub use host::{AdapterHost, start_adapter};
pub use launch_plan::{ConnectMethod, LaunchPlan, ProcessPlan};
pub use output_reader::OutputPiece;
pub use select::{AdapterQuery, locate_adapter, select_adapters};

use std::path::PathBuf;

use crate::error::Result;

/// One row of the table.
pub struct Adapter {
    /// As `tether adapters` lists it, and as a caller names it.
    pub name: &'static str,
    /// What `initialize` calls it.
    pub id: &'static str,
    /// The languages that a caller may name, lower case; the first is its name for readers.
    pub languages: &'static [&'static str],
    /// Extensions of the programs and sources that it debugs, without the dot.
    pub extensions: &'static [&'static str],
    /// The `type`s of launch.json that it serves.
    pub types: &'static [&'static str],
    pub quirks: Quirks,
    /// A command that installs it, in backquotes, with words around it.
    pub install: &'static str,
    /// Where it lies. The error names every place that was looked at, and the command that installs it.
    pub find: fn(&AdapterSearch) -> Result<FoundAdapter>,
    /// How a conversation with it begins.
    pub plan: fn(&FoundAdapter, &DebugTarget) -> Result<LaunchPlan>,
}

/// Every adapter; of those for the same language the first that is found is taken.
pub const ADAPTERS: &[Adapter] = &[
    debugpy::ADAPTER,
    js_debug::ADAPTER,
    rdbg::ADAPTER,
    delve::ADAPTER,
    lldb_dap::ADAPTER,
    codelldb::ADAPTER,
    gdb::ADAPTER,
    netcoredbg::ADAPTER,
];

/// An adapter that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAdapter {
    /// What is started, or loaded by an interpreter.
    pub path: PathBuf,
    /// The interpreter, where it needs one.
    pub interpreter: Option<PathBuf>,
    /// In a few words: `PATH`, `the workspace's .venv`, `tether adapters install`, `mason`, …
    pub place: String,
    /// Where Rust's own formatters lie, for those that need them to show a `String` as one.
    pub formatters: Option<PathBuf>,
}

impl FoundAdapter {
    fn new(path: PathBuf, place: &str) -> FoundAdapter {
        FoundAdapter { path, interpreter: None, place: place.to_owned(), formatters: None }
    }
}

/// Where an adapter differs from the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// A first stop that nobody asked for comes before everything else, and is gone on from (rdbg).
    pub sends_initial_pause: bool,
    /// Its connection ends when the program does, without `terminated` (rdbg).
    pub close_means_terminated: bool,
    /// A line breakpoint that was set stays: `setBreakpoints` only adds (rdbg 1.4).
    pub breakpoints_accumulate: bool,
    /// It may be without the script that kills its programs, and then awaits their end for ever (js-debug from npm).
    pub may_leave_debuggee: bool,
    /// Its goodbye does not wait for what the program printed last. This command of its console prints words of ours
    /// behind that (gdb).
    pub drain_command: Option<&'static str>,
}

impl Quirks {
    const NONE: Quirks = Quirks {
        sends_initial_pause: false,
        close_means_terminated: false,
        breakpoints_accumulate: false,
        may_leave_debuggee: false,
        drain_command: None,
    };
}

#[cfg(test)]
mod tests;
