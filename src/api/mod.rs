//! The wire API, declared once: each operation's name, parameters, result and words.
//!
//! The JSON-RPC method `window/status`, the MCP tool `window_status` and the command line `tether status` all come
//! from one row of [`OPERATIONS`]. Types and docs only; must not know how anything is done.

pub mod debug;
pub mod editor;
pub mod page;
pub mod window;

use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use self::debug::{breakpoints, control, inspect};

/// The parameters of one operation. Their doc comments are the words of every front end.
pub trait Params: Serialize + DeserializeOwned + JsonSchema + clap::Args {
    /// The JSON-RPC method: `<group>/<verb>`.
    const METHOD: &'static str;
    type Answer: Serialize + DeserializeOwned + JsonSchema;

    /// Makes absolute what was said relative to `folder`: on the wire, a relative path is one of the workspace.
    fn resolve(&mut self, _folder: &Path) {}
}

/// Says which method takes these parameters, and what it answers; for those with paths, what makes them absolute.
macro_rules! params {
    ($params:ty, $method:literal, $answer:ty $(, $resolve:expr)?) => {
        impl Params for $params {
            const METHOD: &'static str = $method;
            type Answer = $answer;
            $(fn resolve(&mut self, folder: &std::path::Path) {
                $resolve(self, folder);
            })?
        }
    };
}
use params;

/// Which part of the API an operation belongs to; `tether mcp --tools` offers one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Group {
    Window,
    Debug,
}

/// What a call may change, in the terms of MCP's tool annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing: may be asked again at will.
    Reads,
    /// Changes something; asked twice, it is as if asked once.
    Settles,
    /// Changes something each time.
    Acts,
    /// May end what the user has open.
    Destroys,
}

/// One row of the API.
pub struct Operation {
    pub method: &'static str,
    pub group: Group,
    pub effect: Effect,
    /// The words of the command line, below `tether`.
    pub words: &'static [&'static str],
    /// The MCP tool, when it is not called as the method.
    tool: Option<&'static str>,
    pub params_schema: fn(&mut SchemaGenerator) -> Schema,
    pub answer_schema: fn(&mut SchemaGenerator) -> Schema,
    /// Adds the parameters to a command of clap.
    pub augment: fn(clap::Command) -> clap::Command,
    /// Reads the parameters out of what clap has parsed; relative paths in it were said in this folder.
    pub from_matches: fn(&clap::ArgMatches, &Path) -> Result<Value, clap::Error>,
}

impl Operation {
    const fn new<P: Params>(words: &'static [&'static str], group: Group, effect: Effect) -> Self {
        Operation {
            method: P::METHOD,
            group,
            effect,
            words,
            tool: None,
            params_schema: |generator| generator.root_schema_for::<P>(),
            answer_schema: |generator| generator.root_schema_for::<P::Answer>(),
            augment: P::augment_args,
            from_matches: |matches, folder| {
                let mut params = P::from_arg_matches(matches)?;
                params.resolve(folder);
                serde_json::to_value(params)
                    .map_err(|error| clap::Error::raw(clap::error::ErrorKind::InvalidValue, error.to_string()))
            },
        }
    }

    /// Names the MCP tool otherwise than the method.
    const fn called(mut self, tool: &'static str) -> Self {
        self.tool = Some(tool);
        self
    }

    /// The name of the MCP tool.
    pub fn tool(&self) -> String {
        self.tool.map_or_else(|| self.method.replace('/', "_"), str::to_owned)
    }

    /// The last word of the command line.
    pub fn verb(&self) -> &'static str {
        self.words.last().copied().unwrap_or_default()
    }

    /// The names of the parameters.
    pub fn parameters(&self) -> Vec<String> {
        let schema = (self.params_schema)(&mut SchemaGenerator::default());
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.map(|it| it.keys().cloned().collect()).unwrap_or_default()
    }

    /// What the operation does: the parameters' doc comment, which clap keeps without its full stop.
    pub fn summary(&self) -> String {
        let command = (self.augment)(clap::Command::new(self.verb()));
        command.get_about().map(|about| format!("{about}.")).unwrap_or_default()
    }
}

/// Every operation, in the order in which they are listed.
pub const OPERATIONS: &[Operation] = &[
    Operation::new::<window::Status>(&["status"], Group::Window, Effect::Reads),
    Operation::new::<window::Start>(&["start"], Group::Window, Effect::Settles),
    Operation::new::<window::Stop>(&["stop"], Group::Window, Effect::Destroys),
    Operation::new::<window::Restart>(&["restart"], Group::Window, Effect::Destroys),
    Operation::new::<window::Changes>(&["changes"], Group::Window, Effect::Reads),
    Operation::new::<window::Evaluate>(&["evaluate"], Group::Window, Effect::Acts),
    Operation::new::<window::Screenshot>(&["screenshot"], Group::Window, Effect::Reads),
    Operation::new::<page::Snapshot>(&["snapshot"], Group::Window, Effect::Reads),
    Operation::new::<page::Input>(&["input"], Group::Window, Effect::Acts),
    Operation::new::<page::Console>(&["console"], Group::Window, Effect::Reads),
    Operation::new::<page::Network>(&["network"], Group::Window, Effect::Reads),
    Operation::new::<debug::Launch>(&["debug", "launch"], Group::Debug, Effect::Acts),
    Operation::new::<debug::Attach>(&["debug", "attach"], Group::Debug, Effect::Acts),
    Operation::new::<debug::Status>(&["debug", "status"], Group::Debug, Effect::Reads),
    Operation::new::<debug::WaitForStop>(&["debug", "wait"], Group::Debug, Effect::Reads).called("wait_for_stop"),
    Operation::new::<breakpoints::Set>(&["break", "set"], Group::Debug, Effect::Settles),
    Operation::new::<breakpoints::List>(&["break", "list"], Group::Debug, Effect::Reads),
    Operation::new::<breakpoints::Remove>(&["break", "remove"], Group::Debug, Effect::Settles),
    Operation::new::<breakpoints::Exceptions>(&["break", "exceptions"], Group::Debug, Effect::Settles),
    Operation::new::<breakpoints::Watch>(&["break", "watch"], Group::Debug, Effect::Settles),
    Operation::new::<control::Continue>(&["debug", "continue"], Group::Debug, Effect::Acts),
    Operation::new::<control::Pause>(&["debug", "pause"], Group::Debug, Effect::Settles),
    Operation::new::<control::Step>(&["debug", "step"], Group::Debug, Effect::Acts),
    Operation::new::<control::RunTo>(&["debug", "run-to"], Group::Debug, Effect::Acts),
    Operation::new::<inspect::Stack>(&["debug", "stack"], Group::Debug, Effect::Reads),
    Operation::new::<inspect::Variables>(&["debug", "variables"], Group::Debug, Effect::Reads),
    Operation::new::<inspect::Evaluate>(&["debug", "evaluate"], Group::Debug, Effect::Acts),
    Operation::new::<inspect::SetVariable>(&["debug", "set"], Group::Debug, Effect::Acts),
    Operation::new::<inspect::Source>(&["debug", "source"], Group::Debug, Effect::Reads),
    Operation::new::<inspect::Output>(&["debug", "output"], Group::Debug, Effect::Reads),
    Operation::new::<inspect::Events>(&["debug", "events"], Group::Debug, Effect::Reads),
    Operation::new::<debug::Probe>(&["probe"], Group::Debug, Effect::Acts),
    Operation::new::<debug::Stop>(&["debug", "stop"], Group::Debug, Effect::Destroys),
];

/// The row of a JSON-RPC method.
pub fn operation(method: &str) -> Option<&'static Operation> {
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
        let tools: HashSet<_> = OPERATIONS.iter().map(Operation::tool).collect();
        assert_eq!(tools.len(), OPERATIONS.len());
        let lines: HashSet<_> = OPERATIONS.iter().map(|o| o.words).collect();
        assert_eq!(lines.len(), OPERATIONS.len());
        for operation in OPERATIONS {
            let summary = operation.summary();
            assert!(summary.len() > 20 && summary.ends_with('.'), "{}: {summary:?}", operation.method);
            (operation.augment)(clap::Command::new(operation.verb())).debug_assert();
        }
    }
}
