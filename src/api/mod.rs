//! The wire API, declared once: each operation's name, parameters, result and words.
//!
//! The JSON-RPC method `window/status`, the MCP tool `window_status` and the command line `tether status` all come
//! from one row of [`OPERATIONS`]. Types and docs only; must not know how anything is done.

pub mod debug;
pub mod page;
pub mod protocol;
pub mod window;

use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use self::debug::{breakpoints, control, inspect};

/// The parameters of one operation. Their doc comments are the words of every front end.
pub trait OperationParams: Serialize + DeserializeOwned + JsonSchema + clap::Args {
    /// The JSON-RPC method: `<group>/<verb>`.
    const METHOD: &'static str;
    type Result: Serialize + DeserializeOwned + JsonSchema;

    /// Makes absolute what was said relative to `folder`: on the wire, a relative path is one of the workspace.
    fn resolve_paths(&mut self, _folder: &Path) {}
}

/// Says which method takes these parameters, and what it answers; for those with paths, what makes them absolute.
macro_rules! params {
    ($params:ty, $method:literal, $answer:ty $(, $resolve:expr)?) => {
        impl OperationParams for $params {
            const METHOD: &'static str = $method;
            type Result = $answer;
            $(fn resolve_paths(&mut self, folder: &std::path::Path) {
                $resolve(self, folder);
            })?
        }
    };
}
use params;

/// Which part of the API an operation belongs to; `tether mcp --tools` offers one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OperationGroup {
    Window,
    Debug,
}

/// What a call may change, in the terms of MCP's tool annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationEffect {
    /// Changes nothing: may be asked again at will.
    ReadOnly,
    /// Changes something; asked twice, it is as if asked once.
    Idempotent,
    /// Changes something each time.
    Additive,
    /// May end what the user has open.
    Destructive,
}

/// One row of the API.
pub struct Operation {
    pub method: &'static str,
    pub group: OperationGroup,
    pub effect: OperationEffect,
    /// The words of the command line, below `tether`.
    pub words: &'static [&'static str],
    /// The MCP tool, when it is not called as the method.
    tool: Option<&'static str>,
    pub params_schema: fn(&mut SchemaGenerator) -> Schema,
    pub result_schema: fn(&mut SchemaGenerator) -> Schema,
    /// Adds the parameters to a command of clap.
    pub augment: fn(clap::Command) -> clap::Command,
    /// Reads the parameters out of what clap has parsed; relative paths in it were said in this folder.
    pub from_matches: fn(&clap::ArgMatches, &Path) -> Result<Value, clap::Error>,
}

impl Operation {
    const fn new<P: OperationParams>(
        words: &'static [&'static str],
        group: OperationGroup,
        effect: OperationEffect,
    ) -> Self {
        Operation {
            method: P::METHOD,
            group,
            effect,
            words,
            tool: None,
            params_schema: |generator| generator.root_schema_for::<P>(),
            result_schema: |generator| generator.root_schema_for::<P::Result>(),
            augment: P::augment_args,
            from_matches: |matches, folder| {
                let mut params = P::from_arg_matches(matches)?;
                params.resolve_paths(folder);
                serde_json::to_value(params)
                    .map_err(|error| clap::Error::raw(clap::error::ErrorKind::InvalidValue, error.to_string()))
            },
        }
    }

    /// Names the MCP tool otherwise than the method.
    const fn with_tool_name(mut self, tool: &'static str) -> Self {
        self.tool = Some(tool);
        self
    }

    /// The name of the MCP tool.
    pub fn tool_name(&self) -> String {
        self.tool.map_or_else(|| self.method.replace('/', "_"), str::to_owned)
    }

    /// The last word of the command line.
    pub fn last_word(&self) -> &'static str {
        self.words.last().copied().unwrap_or_default()
    }

    /// The names of the parameters.
    pub fn parameter_names(&self) -> Vec<String> {
        let schema = (self.params_schema)(&mut SchemaGenerator::default());
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.map(|it| it.keys().cloned().collect()).unwrap_or_default()
    }

    /// What the operation does: the parameters' doc comment, which clap keeps without its full stop.
    pub fn summary(&self) -> String {
        let command = (self.augment)(clap::Command::new(self.last_word()));
        command.get_about().map(|about| format!("{about}.")).unwrap_or_default()
    }
}

/// Every operation, in the order in which they are listed.
pub const OPERATIONS: &[Operation] = &[
    Operation::new::<window::WindowStatusParams>(&["status"], OperationGroup::Window, OperationEffect::ReadOnly),
    Operation::new::<window::WindowStartParams>(&["start"], OperationGroup::Window, OperationEffect::Idempotent),
    Operation::new::<window::WindowStopParams>(&["stop"], OperationGroup::Window, OperationEffect::Destructive),
    Operation::new::<window::WindowRestartParams>(&["restart"], OperationGroup::Window, OperationEffect::Destructive),
    Operation::new::<window::WindowChangesParams>(&["changes"], OperationGroup::Window, OperationEffect::ReadOnly),
    Operation::new::<window::PageEvaluateParams>(&["evaluate"], OperationGroup::Window, OperationEffect::Additive),
    Operation::new::<window::PageScreenshotParams>(&["screenshot"], OperationGroup::Window, OperationEffect::ReadOnly),
    Operation::new::<page::PageSnapshotParams>(&["snapshot"], OperationGroup::Window, OperationEffect::ReadOnly),
    Operation::new::<page::PageInputParams>(&["input"], OperationGroup::Window, OperationEffect::Additive),
    Operation::new::<page::PageConsoleParams>(&["console"], OperationGroup::Window, OperationEffect::ReadOnly),
    Operation::new::<page::PageNetworkParams>(&["network"], OperationGroup::Window, OperationEffect::ReadOnly),
    Operation::new::<debug::DebugLaunchParams>(&["debug", "launch"], OperationGroup::Debug, OperationEffect::Additive),
    Operation::new::<debug::DebugAttachParams>(&["debug", "attach"], OperationGroup::Debug, OperationEffect::Additive),
    Operation::new::<debug::DebugStatusParams>(&["debug", "status"], OperationGroup::Debug, OperationEffect::ReadOnly),
    Operation::new::<debug::WaitForStopParams>(&["debug", "wait"], OperationGroup::Debug, OperationEffect::ReadOnly)
        .with_tool_name("wait_for_stop"),
    Operation::new::<breakpoints::BreakpointSetParams>(
        &["break", "set"],
        OperationGroup::Debug,
        OperationEffect::Idempotent,
    ),
    Operation::new::<breakpoints::BreakpointListParams>(
        &["break", "list"],
        OperationGroup::Debug,
        OperationEffect::ReadOnly,
    ),
    Operation::new::<breakpoints::BreakpointRemoveParams>(
        &["break", "remove"],
        OperationGroup::Debug,
        OperationEffect::Idempotent,
    ),
    Operation::new::<breakpoints::BreakpointExceptionsParams>(
        &["break", "exceptions"],
        OperationGroup::Debug,
        OperationEffect::Idempotent,
    ),
    Operation::new::<breakpoints::WatchpointSetParams>(
        &["break", "watch"],
        OperationGroup::Debug,
        OperationEffect::Idempotent,
    ),
    Operation::new::<control::DebugContinueParams>(
        &["debug", "continue"],
        OperationGroup::Debug,
        OperationEffect::Additive,
    ),
    Operation::new::<control::DebugPauseParams>(
        &["debug", "pause"],
        OperationGroup::Debug,
        OperationEffect::Idempotent,
    ),
    Operation::new::<control::DebugStepParams>(&["debug", "step"], OperationGroup::Debug, OperationEffect::Additive),
    Operation::new::<control::DebugRunToParams>(&["debug", "run-to"], OperationGroup::Debug, OperationEffect::Additive),
    Operation::new::<inspect::DebugStackParams>(&["debug", "stack"], OperationGroup::Debug, OperationEffect::ReadOnly),
    Operation::new::<inspect::DebugVariablesParams>(
        &["debug", "variables"],
        OperationGroup::Debug,
        OperationEffect::ReadOnly,
    ),
    Operation::new::<inspect::DebugEvaluateParams>(
        &["debug", "evaluate"],
        OperationGroup::Debug,
        OperationEffect::Additive,
    ),
    Operation::new::<inspect::DebugSetVariableParams>(
        &["debug", "set"],
        OperationGroup::Debug,
        OperationEffect::Additive,
    ),
    Operation::new::<inspect::DebugSourceParams>(
        &["debug", "source"],
        OperationGroup::Debug,
        OperationEffect::ReadOnly,
    ),
    Operation::new::<inspect::DebugOutputParams>(
        &["debug", "output"],
        OperationGroup::Debug,
        OperationEffect::ReadOnly,
    ),
    Operation::new::<inspect::DebugEventsParams>(
        &["debug", "events"],
        OperationGroup::Debug,
        OperationEffect::ReadOnly,
    ),
    Operation::new::<debug::DebugProbeParams>(&["probe"], OperationGroup::Debug, OperationEffect::Additive),
    Operation::new::<debug::DebugStopParams>(&["debug", "stop"], OperationGroup::Debug, OperationEffect::Destructive),
];

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
