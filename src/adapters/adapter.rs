//! One row of the adapter table: plain data, and two functions that start nothing.

use super::debug_target::DebugTarget;
use super::discovery::{AdapterSearch, FoundAdapter};
use super::launch_plan::LaunchPlan;
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
    pub(super) const NONE: Quirks = Quirks {
        sends_initial_pause: false,
        close_means_terminated: false,
        breakpoints_accumulate: false,
        may_leave_debuggee: false,
        drain_command: None,
    };
}
