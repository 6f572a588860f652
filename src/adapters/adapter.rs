//! One row of the adapter table: plain data, and two functions that start nothing.

use tether_backend::hit_condition::HitCondition;
use tether_base::error::Result;

use super::child_processes::DebuggedChildren;
use super::debug_target::DebugTarget;
use super::discovery::{AdapterSearch, FoundAdapter};
use super::launch_plan::LaunchPlan;
use super::path_maps::PathMapUse;

/// One row of the table.
pub struct Adapter {
    /// The name in `tether adapters`, and in requests.
    pub name: &'static str,
    /// `adapterID` of the `initialize` request.
    pub id: &'static str,
    /// The languages that a request may name, in lower case; the first is shown to users.
    pub languages: &'static [&'static str],
    /// File extensions of the programs and sources that it debugs, without the dot.
    pub extensions: &'static [&'static str],
    /// The `type`s of launch.json that it debugs.
    pub types: &'static [&'static str],
    /// The `type`s that it only attaches to.
    pub attach_types: &'static [&'static str],
    /// The names of the runtimes whose programs it debugs, without a version; none: compiled programs.
    pub runtimes: &'static [&'static str],
    /// Which children of a target it debugs.
    pub children: fn(&DebugTarget) -> DebuggedChildren,
    /// Where it differs from the protocol.
    pub quirks: Quirks,
    /// A sentence with the command that installs it, in backquotes.
    pub install: &'static str,
    /// Finds its installation. The error names every path that was tried, and the command that installs it.
    pub find: fn(&AdapterSearch) -> Result<FoundAdapter>,
    /// Plans how it is started for a target. Errors: it cannot debug that target.
    pub plan: fn(&FoundAdapter, &DebugTarget) -> Result<LaunchPlan>,
}

impl Adapter {
    /// How it is started for a target, with what is to be said of that. Errors: as of `plan`.
    pub fn plan_start(&self, found: &FoundAdapter, target: &DebugTarget) -> Result<LaunchPlan> {
        if target.core_file().is_some() && !self.quirks.opens_core_dumps {
            let error = target.unsupported_error(self.name, "it opens no core dumps");
            return Err(error.hint("gdb, lldb-dap, codelldb and dlv do, of C, C++, Rust and Go programs"));
        }
        let mut plan = (self.plan)(found, target)?;
        let paths = self.quirks.path_maps.note(self.name, &target.paths, &target.cwd);
        let notes: Vec<String> = plan.note.take().into_iter().chain(paths).collect();
        plan.note = (!notes.is_empty()).then(|| notes.join("; "));
        Ok(plan)
    }
}

/// Where an adapter differs from the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Its first event is a stop without a cause, which has to be continued from (rdbg).
    pub sends_initial_pause: bool,
    /// Its connection ends when the program exits, without a `terminated` event (rdbg).
    pub close_means_terminated: bool,
    /// `setBreakpoints` only adds: a line breakpoint cannot be removed (rdbg 1.4).
    pub breakpoints_accumulate: bool,
    /// It may lack the script that kills its debuggees, and then waits for their exit without end (js-debug from npm).
    pub may_leave_debuggee: bool,
    /// It binds breakpoints as it reads the scripts of a program that runs already, long after its responses (js-debug).
    pub binds_late: bool,
    /// It says that a breakpoint is bound before it is known whether the file is loaded (debugpy, rdbg).
    pub binds_unloaded: bool,
    /// The name of each child target ends in its process: `app.js [123]` (js-debug).
    pub names_processes: bool,
    /// It does not report that a condition has raised `NameError`, unless that is requested (debugpy).
    pub hides_name_errors: bool,
    /// Its `disconnect` does not wait for the program's last output. This command of its console prints a marker after
    /// that output (gdb).
    pub drain_command: Option<&'static str>,
    /// It ends a program that it has launched unless this command of its console detaches from it first (gdb).
    pub detach_command: Option<&'static str>,
    /// A boolean of the configuration with which the adapter is started beside the program, instead of a program that
    /// serves one debugger by itself (debugpy): an editor expects the adapter.
    pub beside_program_field: Option<&'static str>,
    /// Evaluated in each program that is detached from, without a frame: it lets the program start children that are not
    /// debugged, and run at its own speed (debugpy).
    pub release_expression: Option<&'static str>,
    /// It keeps its breakpoints after a `disconnect`, and may end the program at the next one, unless this has been evaluated in
    /// a frame of the program (rdbg 1.4).
    pub detach_hook: Option<DetachHook>,
    /// A `disconnect` that terminates ends the children of the program, too: not sent to a program that has ended by itself,
    /// which its children may outlive (debugpy).
    pub ends_children: bool,
    /// It ends a program that it has launched, whatever `disconnect` requests (Delve).
    pub ends_launched_program: bool,
    /// A resume is of one thread: the others that have stopped by themselves stay stopped (java).
    pub resumes_one_thread: bool,
    /// The statement at which its program has stopped may go on with what the one before has assigned to a variable, whatever that
    /// is set to (V8, Delve).
    pub keeps_read_values: bool,
    /// It finds the line of a breakpoint by the anchor that is sent with it, in each version of a file that is loaded (node).
    pub finds_lines_by_anchor: bool,
    /// The filter with which it stops where a test fails, though the runner catches that: where an exception leaves the user's code
    /// (debugpy), or an assertion fails (node, java).
    pub test_failure_filter: Option<&'static str>,
    /// Evaluated in the frame of an exception: the exceptions in that one, as lines of text in hexadecimal digits (debugpy).
    pub exception_parts: Option<&'static str>,
    /// The line with which its runtime begins to print the exception of a task whose result nobody has asked for; a traceback
    /// follows (Python's asyncio).
    pub lost_exception_report: Option<&'static str>,
    /// How its output reports conditions of breakpoints that cannot be evaluated.
    pub condition_reports: &'static [ConditionReport],
    /// How its output begins to report that the source map of a script could not be read: the URL of the script and the cause
    /// follow (js-debug).
    pub map_report: Option<&'static str>,
    /// It reports the signal that has ended a program as its exit code (lldb-dap, CodeLLDB), or as 0 (gdb).
    pub signals_as_codes: bool,
    /// How it says on its console with which code a program has exited, which it does not report as an event (Delve): the words
    /// before the number.
    pub exit_words: Option<&'static str>,
    /// A log point with a condition logs at each pass (gdb), or stops (js-debug).
    pub logs_always: bool,
    /// Which hit conditions it counts as we do.
    pub hit_counting: HitCounting,
    /// How the text of a stop begins at a breakpoint whose condition cannot be evaluated; the reason follows. It calls such a
    /// stop an exception (Delve).
    pub condition_stop: Option<&'static str>,
    /// It takes a breakpoint with a column, says that it is verified, and stops at the first code of the line.
    pub ignores_columns: bool,
    /// The name of a file that its compiler makes, and that no step of a user's ends in: it is stepped out of (Delve: the wrappers
    /// of calls of C).
    pub generated_source: Option<&'static str>,
    /// It finds a source file only by the path that the program was built with, and not over a link.
    pub compares_path_texts: bool,
    /// It opens core dumps.
    pub opens_core_dumps: bool,
    /// Whether it finds the sources of a program that has them elsewhere.
    pub path_maps: PathMapUse,
}

/// Which hit conditions of breakpoints an adapter counts as we do: `3` is the third hit only, and a hit is one at which the
/// condition holds, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HitCounting {
    /// All.
    #[default]
    All,
    /// Those of breakpoints without a condition.
    WithoutCondition,
    /// A number, by which it means that hit and all later ones.
    FromOnly,
    /// None.
    None,
}

impl HitCounting {
    /// The adapter's text for a hit condition. `None`: it counts otherwise, or not at all.
    pub fn text(self, hits: HitCondition, has_condition: bool) -> Option<String> {
        match (self, hits) {
            (HitCounting::All, _) => Some(hits.to_string()),
            (HitCounting::WithoutCondition, _) => (!has_condition).then(|| hits.to_string()),
            (HitCounting::FromOnly, HitCondition::Greater(number)) => Some(number.saturating_add(1).to_string()),
            (HitCounting::FromOnly | HitCounting::None, _) => None,
        }
    }
}

/// How an adapter's output begins to report that a condition of a breakpoint could not be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionReport {
    /// The words that the report begins with.
    pub words: &'static str,
    /// Whether the report has the text of the condition.
    pub names_condition: bool,
    /// Whether it is reported once, when the breakpoint is set.
    pub is_lasting: bool,
    /// Whether the program runs on. If not, it is stopped.
    pub runs_on: bool,
}

impl ConditionReport {
    /// One that names no condition, each time it fails, with the program stopped there.
    pub(super) const fn unnamed(words: &'static str) -> ConditionReport {
        ConditionReport { words, names_condition: false, is_lasting: false, runs_on: false }
    }

    /// As [`ConditionReport::unnamed`], with the text of the condition.
    pub(super) const fn named(words: &'static str) -> ConditionReport {
        ConditionReport { names_condition: true, ..ConditionReport::unnamed(words) }
    }
}

/// What is evaluated in a program so that it runs on when its debugger leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetachHook {
    /// The expression. It may be evaluated again.
    pub expression: &'static str,
    /// The value that it has, as the adapter shows it, when it has succeeded.
    pub value: &'static str,
}

impl Quirks {
    /// An adapter that follows the protocol.
    pub(super) const NONE: Quirks = Quirks {
        sends_initial_pause: false,
        close_means_terminated: false,
        breakpoints_accumulate: false,
        may_leave_debuggee: false,
        binds_late: false,
        binds_unloaded: false,
        names_processes: false,
        hides_name_errors: false,
        drain_command: None,
        detach_command: None,
        beside_program_field: None,
        release_expression: None,
        test_failure_filter: None,
        exception_parts: None,
        lost_exception_report: None,
        detach_hook: None,
        ends_children: false,
        ends_launched_program: false,
        resumes_one_thread: false,
        keeps_read_values: false,
        finds_lines_by_anchor: false,
        condition_reports: &[],
        condition_stop: None,
        exit_words: None,
        ignores_columns: false,
        compares_path_texts: false,
        opens_core_dumps: false,
        path_maps: PathMapUse::All,
        generated_source: None,
        map_report: None,
        signals_as_codes: false,
        logs_always: false,
        hit_counting: HitCounting::All,
    };
}
