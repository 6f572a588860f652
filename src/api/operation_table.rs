//! The one table of operations: parameters, method, result, group, effect and command line of each.
//!
//! [`OPERATIONS`] and the [`OperationParams`] of each row are made from it here. The supervisor's dispatch and the front
//! ends' rendering are made from it with `for_each_operation`: a row whose parameters have no handler, or whose result
//! has no renderer, does not compile.

use std::path::Path;

use super::debug::breakpoints::*;
use super::debug::control::*;
use super::debug::inspect::*;
use super::debug::results::*;
use super::debug::values::make_absolute;
use super::debug::*;
use super::extension_tests::*;
use super::operation::{Operation, OperationEffect, OperationGroup, OperationParams};
use super::page::*;
use super::page_control::*;
use super::page_input::*;
use super::page_network::*;
use super::timeline::*;
use super::window::*;
use super::window_bridge::*;

/// Calls the macro `$callback` with all rows, in the order in which operations are listed:
/// `Params { "method" -> Result, Group Effect, ["command", "line"] }`. Optional at the end of a row: `, tool = "name"`,
/// the MCP tool when it is not named after the method; `; |params, folder| …` to make the paths in the parameters absolute.
#[rustfmt::skip]
macro_rules! for_each_operation {
    ($callback:ident) => {
        $callback! {
            WindowStatusParams { "window/status" -> WindowStatus, Window ReadOnly, ["status"] }
            WindowStartParams { "window/start" -> WindowStatus, Window Replacing, ["start"] }
            WindowStopParams { "window/stop" -> WindowStatus, Window Destructive, ["stop"] }
            WindowRestartParams { "window/restart" -> WindowStatus, Window Destructive, ["restart"] }
            WindowChangesParams { "window/changes" -> WindowChanges, Window ReadOnly, ["changes"] }
            PageEvaluateParams { "window/evaluate" -> PageEvaluateResult, Window RunsCode, ["evaluate"] }
            PageScreenshotParams { "window/screenshot" -> PageImage, Window Replacing, ["screenshot"] }
            PageSnapshotParams { "window/snapshot" -> PageSnapshotResult, Window Replacing, ["snapshot"] }
            PageInputParams { "window/input" -> PageInputResult, Window RunsCode, ["input"] }
            PageConsoleParams { "window/console" -> ConsoleEntries, Window ReadOnly, ["console"] }
            PageNetworkParams { "window/network" -> NetworkEntries, Window ReadOnly, ["network"] }
            PageControlParams { "window/page" -> PageTabs, Window RunsCode, ["page"] }
            PageEmulateParams { "window/emulate" -> EmulationReport, Window Replacing, ["emulate"] }
            PageStorageParams { "window/storage" -> StorageReport, Window Destructive, ["storage"] }
            PageProfileParams { "window/profile" -> ProfileReport, Window Additive, ["profile"] }
            PageRouteParams { "window/route" -> RequestRules, Window Replacing, ["route"] }
            WindowCommandParams { "window/command" -> WindowCommandResult, Window RunsCode, ["command"] }
            WindowOutputParams { "window/output" -> WindowOutputResult, Window ReadOnly, ["output"] }
            DebugLaunchParams {
                "debug/launch" -> LaunchReport, Debug RunsCode, ["debug", "launch"];
                |params, folder| params.make_paths_absolute(folder)
            }
            DebugAttachParams {
                "debug/attach" -> LaunchReport, Debug RunsCode, ["debug", "attach"];
                |params, folder| params.make_paths_absolute(folder)
            }
            DebugStatusParams { "debug/status" -> DebugStatus, Debug ReadOnly, ["debug", "status"] }
            WaitForStopParams {
                "debug/wait_for_stop" -> StopReport, Debug ReadOnly, ["debug", "wait"], tool = "wait_for_stop";
                |params, _folder| params.timeout = params.timeout.or(params.timeout_option)
            }
            BreakpointSetParams {
                "breakpoint/set" -> BreakpointReport, Debug Replacing, ["break", "set"];
                |params, folder| make_absolute(&mut params.file, folder)
            }
            BreakpointListParams { "breakpoint/list" -> BreakpointListReport, Debug ReadOnly, ["break", "list"] }
            BreakpointRemoveParams {
                "breakpoint/remove" -> BreakpointListReport, Debug Replacing, ["break", "remove"];
                |params, folder| make_absolute(&mut params.file, folder)
            }
            BreakpointExportParams {
                "breakpoint/export" -> BreakpointListReport, Debug Additive, ["break", "export"];
                |params, folder| make_absolute([&mut params.file], folder)
            }
            BreakpointImportParams {
                "breakpoint/import" -> BreakpointListReport, Debug Idempotent, ["break", "import"];
                |params, folder| make_absolute([&mut params.file], folder)
            }
            BreakpointExceptionsParams {
                "breakpoint/exceptions" -> ExceptionBreakpointsReport, Debug Replacing, ["break", "exceptions"]
            }
            WatchpointSetParams { "watchpoint/set" -> BreakpointReport, Debug Replacing, ["break", "watch"] }
            DebugContinueParams { "debug/continue" -> StopReport, Debug Additive, ["debug", "continue"] }
            DebugPauseParams { "debug/pause" -> StopReport, Debug Idempotent, ["debug", "pause"] }
            DebugStepParams { "debug/step" -> StopReport, Debug Additive, ["debug", "step"] }
            DebugRunToParams {
                "debug/run_to" -> StopReport, Debug Additive, ["debug", "run-to"];
                |params, folder| make_absolute([&mut params.file], folder)
            }
            DebugStackParams { "debug/stack" -> FrameList, Debug ReadOnly, ["debug", "stack"] }
            DebugVariablesParams { "debug/variables" -> VariableList, Debug ReadOnly, ["debug", "variables"] }
            DebugEvaluateParams { "debug/evaluate" -> EvaluatedValue, Debug RunsCode, ["debug", "evaluate"] }
            DebugSetVariableParams { "debug/set_variable" -> EvaluatedValue, Debug RunsCode, ["debug", "set"] }
            DebugSourceParams {
                "debug/source" -> SourceExcerpt, Debug ReadOnly, ["debug", "source"];
                |params, folder| make_absolute(&mut params.file, folder)
            }
            DebugOutputParams { "debug/output" -> OutputEntries, Debug ReadOnly, ["debug", "output"] }
            DebugEventsParams { "debug/events" -> EventEntries, Debug ReadOnly, ["debug", "events"] }
            DebugProbeParams {
                "debug/probe" -> ProbeReport, Debug RunsCode, ["probe"];
                |params, folder| params.make_paths_absolute(folder)
            }
            TestRunParams { "test/run" -> TestReport, Both RunsCode, ["test"] }
            TimelineReadParams { "timeline/read" -> TimelineEvents, Both ReadOnly, ["timeline"] }
            WaitForAnyParams {
                "timeline/wait_for_any" -> AwaitedEvents, Both ReadOnly, ["wait"], tool = "wait_for_any"
            }
            DebugStopParams { "debug/stop" -> SessionEndReport, Debug Destructive, ["debug", "stop"] }
        }
    };
}
pub(crate) use for_each_operation;

macro_rules! define_operations {
    ($($params:ty {
        $method:literal -> $result:ty, $group:ident $effect:ident, [$($word:literal),+]
        $(, tool = $tool:literal)? $(; |$it:ident, $folder:ident| $make_absolute:expr)?
    })*) => {
        $(impl OperationParams for $params {
            const METHOD: &'static str = $method;
            type Result = $result;
            $(fn resolve_paths(&mut self, $folder: &Path) {
                let $it = self;
                $make_absolute;
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
