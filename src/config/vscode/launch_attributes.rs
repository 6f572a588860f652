//! Reads the attributes of a launch configuration as texts, lists and paths, with their variables expanded.
//!
//! Errors name the configuration, the attribute and its line. Does not depend on the meaning of an attribute.

use std::path::{Path, PathBuf};

use crate::config::jsonc::{JsonNode, JsonValue};
use crate::config::source_file::Origin;
use crate::config::vscode::launch_json::WindowConfiguration;
use crate::config::vscode::variables::{VariableContext, VariableSite};
use crate::error::{Error, Result};

/// The attributes that are read, and those that only a debugger uses.
const KNOWN_ATTRIBUTES: &[&str] = &[
    "name",
    "type",
    "request",
    "linux",
    "osx",
    "windows",
    "preLaunchTask",
    "outFiles",
    "env",
    "envFile",
    "args",
    "cwd",
    "url",
    "file",
    "program",
    "runtimeExecutable",
    "runtimeArgs",
    "userDataDir",
    "presentation",
    "order",
    "internalConsoleOptions",
    "console",
    "outputCapture",
    "skipFiles",
    "smartStep",
    "sourceMaps",
    "webRoot",
    "sourceMapPathOverrides",
    "resolveSourceMapLocations",
    "sourceMapRenames",
    "pauseForSourceMap",
    "autoAttachChildProcesses",
    "stopOnEntry",
    "trace",
    "timeout",
    "timeouts",
    "showAsyncStacks",
    "pathMapping",
    "customDescriptionGenerator",
    "customPropertiesGenerator",
    "enableContentValidation",
    "debugServer",
    "port",
    "suppressMultipleSessionWarning",
    "rendererDebugOptions",
    "debugWebviews",
    "perScriptSourcemaps",
    "address",
    "disableNetworkCache",
    "attachSimplePort",
    "continueOnAttach",
    "nodeVersionHint",
    "restart",
    "protocol",
    "cascadeTerminateToConfigurations",
    "killBehavior",
    "includeDefaultArgs",
    "includeLaunchArgs",
    "cleanUp",
    "inspectUri",
    "browserLaunchLocation",
    "localRoot",
    "remoteRoot",
    "enableDWARF",
    "experimentalNetworking",
    "targetSelection",
    "debugWebWorkerHost",
    "hideInDebugger",
    "vmwareFusion",
    "profileStartup",
    "breakOnLoad",
    "urlFilter",
];

/// The attributes of one launch configuration.
pub struct LaunchAttributes<'a> {
    configuration: &'a WindowConfiguration,
    variables: &'a VariableContext<'a>,
    /// How errors about variables name the configuration: "the configuration "Run Extension"".
    subject: String,
}

impl<'a> LaunchAttributes<'a> {
    /// The attributes of `configuration`, expanded with `variables`.
    pub fn new(configuration: &'a WindowConfiguration, variables: &'a VariableContext<'a>) -> LaunchAttributes<'a> {
        LaunchAttributes { configuration, variables, subject: format!("the configuration {:?}", configuration.name) }
    }

    /// All attributes, as the members of one object.
    pub fn root(&self) -> &'a JsonNode {
        &self.configuration.node
    }

    /// The attribute as written; `None` where it is missing or null.
    pub fn get(&self, name: &str) -> Option<&'a JsonNode> {
        self.root().get(name).filter(|node| node.value != JsonValue::Null)
    }

    /// The attributes that tether does not honour, with their names.
    pub fn unknown(&self) -> impl Iterator<Item = &'a (String, JsonNode)> {
        let is_known = |name: &str| KNOWN_ATTRIBUTES.contains(&name) || name.starts_with('_') || name.starts_with('$');
        self.root().members().iter().filter(move |(name, _)| !is_known(name))
    }

    /// An attribute that is a text. `${env:…}` stays in it, and is expanded at launch.
    pub fn text(&self, name: &str) -> Result<Option<(String, &'a JsonNode)>> {
        self.text_with(name, self.variables)
    }

    /// An attribute that is a text, with `${env:…}` expanded now.
    pub fn resolved_text(&self, name: &str) -> Result<Option<(String, &'a JsonNode)>> {
        self.text_with(name, &self.variables.resolving_environment())
    }

    /// An attribute that is a path; relative ones are relative to the workspace.
    pub fn path(&self, name: &str) -> Result<Option<(PathBuf, &'a JsonNode)>> {
        self.resolved_text(name)?.map(|(text, node)| Ok((self.resolve_path(&text)?, node))).transpose()
    }

    /// An attribute that is a list of texts; empty where it is missing. `${env:…}` stays in them.
    pub fn texts(&self, name: &str) -> Result<Vec<(String, &'a JsonNode)>> {
        self.texts_with(name, self.variables)
    }

    /// An attribute that is a list of texts, with `${env:…}` expanded now.
    pub fn resolved_texts(&self, name: &str) -> Result<Vec<(String, &'a JsonNode)>> {
        self.texts_with(name, &self.variables.resolving_environment())
    }

    /// The absolute path of a text: a path, relative to the workspace, or a `file:` URI. Errors: another URI.
    pub fn resolve_path(&self, text: &str) -> Result<PathBuf> {
        if !text.contains("://") {
            return Ok(self.variables.workspace().join(text));
        }
        let url = url::Url::parse(text).ok().filter(|url| url.scheme() == "file");
        let path = url.and_then(|url| url.to_file_path().ok());
        path.ok_or_else(|| self.unsupported(text, "it is on another machine"))
    }

    /// A text with its variables expanded; `${env:…}` stays in it. `key` names it in errors.
    pub fn expand(&self, text: &str, node: &JsonNode, key: &str) -> Result<String> {
        self.expand_with(text, node, key, self.variables)
    }

    /// The file and line of an attribute.
    pub fn origin(&self, node: &JsonNode) -> Origin {
        Origin::new(self.variables.workspace(), &self.configuration.file, Some(node.line))
    }

    /// The error for a configuration that cannot be launched; `what` is the reason.
    pub fn wrong(&self, what: impl Into<String>) -> Error {
        self.configuration.wrong(what)
    }

    /// The error for an attribute or argument that cannot be honoured.
    pub fn unsupported(&self, attribute: &str, why: &str) -> Error {
        self.wrong(format!("`{attribute}` is not supported: {why}"))
    }

    fn text_with(&self, name: &str, variables: &VariableContext<'_>) -> Result<Option<(String, &'a JsonNode)>> {
        let Some(node) = self.get(name) else { return Ok(None) };
        let text = node.text().ok_or_else(|| self.wrong(format!("`{name}` (line {}) is no text", node.line)))?;
        Ok(Some((self.expand_with(text, node, name, variables)?, node)))
    }

    fn texts_with(&self, name: &str, variables: &VariableContext<'_>) -> Result<Vec<(String, &'a JsonNode)>> {
        let Some(node) = self.get(name) else { return Ok(Vec::new()) };
        let JsonValue::Array(items) = &node.value else {
            return Err(self.wrong(format!("`{name}` (line {}) is no list of texts", node.line)));
        };
        let text = |item: &'a JsonNode| {
            let text = item.text();
            let text = text.ok_or_else(|| self.wrong(format!("`{name}` (line {}) has what is no text", item.line)))?;
            Ok((self.expand_with(text, item, name, variables)?, item))
        };
        items.iter().map(text).collect()
    }

    fn expand_with(&self, text: &str, node: &JsonNode, key: &str, variables: &VariableContext<'_>) -> Result<String> {
        let document: &Path = &self.configuration.file;
        let subject = &self.subject;
        variables.expand(text, &VariableSite { subject, document, line: node.line, key, shell: false })
    }
}
