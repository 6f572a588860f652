//! What is known of one operation: its parameters' trait, its group, its effect, and the row that front ends read.

use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// The parameters of one operation. Their doc comments are its help text in every front end.
///
/// Implemented for each row of the operation table.
pub trait OperationParams: Serialize + DeserializeOwned + JsonSchema + clap::Args {
    /// The JSON-RPC method: `<group>/<verb>`.
    const METHOD: &'static str;
    /// The result of the operation.
    type Result: Serialize + DeserializeOwned + JsonSchema;

    /// Makes paths absolute that are relative to `folder`: on the wire, a relative path is relative to the workspace.
    fn resolve_paths(&mut self, _folder: &Path) {}
}

/// Which part of the API an operation belongs to; `tether mcp --tools` offers one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OperationGroup {
    Window,
    Debug,
    /// Offered with each part.
    #[value(skip)]
    Both,
}

impl OperationGroup {
    /// Whether an operation of this group is offered where `part` is; `None`: all are.
    pub fn is_offered_with(self, part: Option<OperationGroup>) -> bool {
        self == OperationGroup::Both || part.is_none_or(|part| part == self)
    }
}

/// What a call may change, in the terms of MCP's tool annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationEffect {
    /// Changes nothing: may be repeated at will.
    ReadOnly,
    /// Only adds; a second call with the same parameters changes nothing more.
    Idempotent,
    /// Changes something with each call.
    Additive,
    /// May replace or remove something of the user's (a stale window is built and refreshed, breakpoints are gone); a
    /// second call with the same parameters changes nothing more.
    Replacing,
    /// May end what the user has open.
    Destructive,
    /// Runs code, or does input, that the caller chooses: it may do anything, and reach anything.
    RunsCode,
}

impl OperationEffect {
    /// Whether a call whose result was lost may be sent again.
    pub fn is_repeatable(self) -> bool {
        match self {
            OperationEffect::ReadOnly | OperationEffect::Idempotent | OperationEffect::Replacing => true,
            OperationEffect::Additive | OperationEffect::Destructive | OperationEffect::RunsCode => false,
        }
    }
}

/// One row of the operation table, as front ends read it.
pub struct Operation {
    /// The JSON-RPC method.
    pub method: &'static str,
    /// The part of the API.
    pub group: OperationGroup,
    /// What a call may change.
    pub effect: OperationEffect,
    /// The words of the command line, after `tether`.
    pub words: &'static [&'static str],
    /// The MCP tool, when it is not named after the method.
    tool: Option<&'static str>,
    /// The JSON schema of the parameters.
    pub params_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The JSON schema of the result.
    pub result_schema: fn(&mut SchemaGenerator) -> Schema,
    /// Adds the parameters to a clap command.
    pub augment: fn(clap::Command) -> clap::Command,
    /// Reads the parameters from clap's matches; relative paths in them are relative to this folder.
    pub from_matches: fn(&clap::ArgMatches, &Path) -> Result<Value, clap::Error>,
}

impl Operation {
    pub(super) const fn new<P: OperationParams>(
        group: OperationGroup,
        effect: OperationEffect,
        words: &'static [&'static str],
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
                let params = serde_json::to_value(params)
                    .map_err(|error| clap::Error::raw(clap::error::ErrorKind::InvalidValue, error.to_string()))?;
                // Parameters that are not given are left out.
                let given = params.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
                Ok(given.map(|(name, value)| (name.clone(), value.clone())).collect())
            },
        }
    }

    pub(super) const fn with_tool_name(mut self, tool: &'static str) -> Self {
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

    /// What the operation does: the doc comment of the parameters, which clap keeps without its full stop.
    pub fn summary(&self) -> String {
        let command = (self.augment)(clap::Command::new(self.last_word()));
        command.get_about().map(|about| format!("{about}.")).unwrap_or_default()
    }
}
