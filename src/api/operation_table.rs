//! The one table of operations: parameters, method, result, group, effect and command line of each.
//!
//! [`OPERATIONS`] and the [`OperationParams`] of each row are made from it here. The supervisor's dispatch and the front
//! ends' rendering are made from it with [`for_each_operation`]: a row whose parameters have no handler, or whose result
//! has no renderer, does not compile.

use std::path::Path;

use super::debug::breakpoints::*;
use super::debug::control::*;
use super::debug::inspect::*;
use super::debug::results::*;
use super::debug::*;
use super::operation::{Operation, OperationEffect, OperationGroup, OperationParams};
use super::page::*;
use super::page_input::*;
use super::window::*;

/// Calls the macro `$callback` with all rows, in the order in which operations are listed:
/// `Params { "method" -> Result, Group Effect, ["command", "line"] }`. Optional at the end of a row: `, tool = "name"`,
/// the MCP tool when it is not named after the method; `; method_of_params` to make the paths in the parameters absolute.
#[rustfmt::skip]
macro_rules! for_each_operation {
    ($callback:ident) => {
        $callback! {
            WindowStatusParams { "window/status" -> WindowStatus, Window ReadOnly, ["status"] }
            WindowStartParams { "window/start" -> WindowStatus, Window Idempotent, ["start"] }
            WindowStopParams { "window/stop" -> WindowStatus, Window Destructive, ["stop"] }
            WindowRestartParams { "window/restart" -> WindowStatus, Window Destructive, ["restart"] }
            WindowChangesParams { "window/changes" -> WindowChanges, Window ReadOnly, ["changes"] }
            PageEvaluateParams { "window/evaluate" -> PageEvaluateResult, Window Additive, ["evaluate"] }
            PageScreenshotParams { "window/screenshot" -> PageImage, Window ReadOnly, ["screenshot"] }
            PageSnapshotParams { "window/snapshot" -> PageSnapshotResult, Window ReadOnly, ["snapshot"] }
            PageInputParams { "window/input" -> PageInputResult, Window Additive, ["input"] }
            PageConsoleParams { "window/console" -> ConsoleEntries, Window ReadOnly, ["console"] }
            PageNetworkParams { "window/network" -> NetworkEntries, Window ReadOnly, ["network"] }
            DebugLaunchParams { "debug/launch" -> LaunchReport, Debug Additive, ["debug", "launch"]; make_paths_absolute }
            DebugAttachParams { "debug/attach" -> LaunchReport, Debug Additive, ["debug", "attach"] }
            DebugStatusParams { "debug/status" -> DebugStatus, Debug ReadOnly, ["debug", "status"] }
            WaitForStopParams {
                "debug/wait_for_stop" -> StopReport, Debug ReadOnly, ["debug", "wait"], tool = "wait_for_stop"
            }
            BreakpointSetParams {
                "breakpoint/set" -> BreakpointReport, Debug Idempotent, ["break", "set"]; make_paths_absolute
            }
            BreakpointListParams { "breakpoint/list" -> BreakpointListReport, Debug ReadOnly, ["break", "list"] }
            BreakpointRemoveParams {
                "breakpoint/remove" -> BreakpointListReport, Debug Idempotent, ["break", "remove"]; make_paths_absolute
            }
            BreakpointExceptionsParams {
                "breakpoint/exceptions" -> ExceptionBreakpointsReport, Debug Idempotent, ["break", "exceptions"]
            }
            WatchpointSetParams { "watchpoint/set" -> BreakpointReport, Debug Idempotent, ["break", "watch"] }
            DebugContinueParams { "debug/continue" -> StopReport, Debug Additive, ["debug", "continue"] }
            DebugPauseParams { "debug/pause" -> StopReport, Debug Idempotent, ["debug", "pause"] }
            DebugStepParams { "debug/step" -> StopReport, Debug Additive, ["debug", "step"] }
            DebugRunToParams { "debug/run_to" -> StopReport, Debug Additive, ["debug", "run-to"]; make_paths_absolute }
            DebugStackParams { "debug/stack" -> FrameList, Debug ReadOnly, ["debug", "stack"] }
            DebugVariablesParams { "debug/variables" -> VariableList, Debug ReadOnly, ["debug", "variables"] }
            DebugEvaluateParams { "debug/evaluate" -> EvaluatedValue, Debug Additive, ["debug", "evaluate"] }
            DebugSetVariableParams { "debug/set_variable" -> EvaluatedValue, Debug Additive, ["debug", "set"] }
            DebugSourceParams { "debug/source" -> SourceExcerpt, Debug ReadOnly, ["debug", "source"]; make_paths_absolute }
            DebugOutputParams { "debug/output" -> OutputEntries, Debug ReadOnly, ["debug", "output"] }
            DebugEventsParams { "debug/events" -> EventEntries, Debug ReadOnly, ["debug", "events"] }
            DebugProbeParams { "debug/probe" -> ProbeReport, Debug Additive, ["probe"]; make_paths_absolute }
            DebugStopParams { "debug/stop" -> SessionEndReport, Debug Destructive, ["debug", "stop"] }
        }
    };
}
pub(crate) use for_each_operation;

macro_rules! define_operations {
    ($($params:ty {
        $method:literal -> $result:ty, $group:ident $effect:ident, [$($word:literal),+]
        $(, tool = $tool:literal)? $(; $make_paths_absolute:ident)?
    })*) => {
        $(impl OperationParams for $params {
            const METHOD: &'static str = $method;
            type Result = $result;
            $(fn resolve_paths(&mut self, folder: &Path) {
                self.$make_paths_absolute(folder);
            })?
        })*

        /// Every operation, in the order in which they are listed.
        pub const OPERATIONS: &[Operation] = &[
            $(Operation::new::<$params>(OperationGroup::$group, OperationEffect::$effect, &[$($word),+])
                $(.with_tool_name($tool))?),*
        ];
    };
}
for_each_operation!(define_operations);

/// The row of a JSON-RPC method.
pub fn find_operation(method: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.method == method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_row_has_a_name_of_its_own_and_words() {
        let names: HashSet<_> = OPERATIONS.iter().map(|o| o.method).collect();
        assert_eq!(names.len(), OPERATIONS.len());
        let tools: HashSet<_> = OPERATIONS.iter().map(Operation::tool_name).collect();
        assert_eq!(tools.len(), OPERATIONS.len());
        let lines: HashSet<_> = OPERATIONS.iter().map(|o| o.words).collect();
        assert_eq!(lines.len(), OPERATIONS.len());
        for operation in OPERATIONS {
            let summary = operation.summary();
            assert!(summary.len() > 20 && summary.ends_with('.'), "{}: {summary:?}", operation.method);
            (operation.augment)(clap::Command::new(operation.last_word())).debug_assert();
        }
    }
}
