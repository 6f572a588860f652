//! Reads the attributes of a launch configuration as texts, lists and paths, with their variables expanded.
//!
//! Errors name the configuration, the attribute and its line. Does not depend on the meaning of an attribute.

use std::path::PathBuf;

use tether_base::error::{Error, Result};

use crate::config::jsonc::{JsonNode, JsonValue};
use crate::config::source_file::Origin;
use crate::config::vscode::launch_json::LaunchEntry;
use crate::config::vscode::variables::{VariableContext, VariableSite};

/// The attributes of one launch configuration.
pub struct LaunchAttributes<'a> {
    /// The configuration.
    pub entry: &'a LaunchEntry,
    /// The values of variables in its attributes.
    pub variables: VariableContext<'a>,
    /// How errors about variables name the configuration: "the configuration "Run Extension"".
    subject: String,
}

impl<'a> LaunchAttributes<'a> {
    /// The attributes of a configuration, expanded with `variables`.
    pub fn new(entry: &'a LaunchEntry, variables: VariableContext<'a>) -> LaunchAttributes<'a> {
        LaunchAttributes { entry, variables, subject: format!("the configuration {:?}", entry.name) }
    }

    /// The same attributes, with `${env:…}` expanded, too.
    pub fn resolving_environment(&self) -> LaunchAttributes<'a> {
        LaunchAttributes::new(self.entry, self.variables.resolving_environment())
    }

    /// All attributes, as the members of one object.
    pub fn root(&self) -> &'a JsonNode {
        &self.entry.node
    }

    /// The attribute as written; `None` where it is missing or null.
    pub fn get(&self, name: &str) -> Option<&'a JsonNode> {
        self.root().get(name).filter(|node| node.value != JsonValue::Null)
    }

    /// An attribute that is a text.
    pub fn text(&self, name: &str) -> Result<Option<(String, &'a JsonNode)>> {
        let Some(node) = self.get(name) else { return Ok(None) };
        let text = node.text().ok_or_else(|| self.wrong(format!("`{name}` (line {}) is not a text", node.line)))?;
        Ok(Some((self.expand(text, node, name)?, node)))
    }

    /// An attribute that is a path; relative ones are relative to the workspace.
    pub fn path(&self, name: &str) -> Result<Option<(PathBuf, &'a JsonNode)>> {
        self.text(name)?.map(|(text, node)| Ok((self.resolve_path(&text)?, node))).transpose()
    }

    /// An attribute that is a list of texts; empty where it is missing.
    pub fn texts(&self, name: &str) -> Result<Vec<(String, &'a JsonNode)>> {
        let Some(node) = self.get(name) else { return Ok(Vec::new()) };
        let JsonValue::Array(items) = &node.value else {
            return Err(self.wrong(format!("`{name}` (line {}) is not a list of texts", node.line)));
        };
        let text = |item: &'a JsonNode| {
            let text = item.text();
            let text = text
                .ok_or_else(|| self.wrong(format!("`{name}` (line {}) has an item that is not a text", item.line)))?;
            Ok((self.expand(text, item, name)?, item))
        };
        items.iter().map(text).collect()
    }

    /// The absolute path of a text: a path, relative to the workspace, or a `file:` URI. Errors: another URI.
    pub fn resolve_path(&self, text: &str) -> Result<PathBuf> {
        if !text.contains("://") {
            return Ok(self.variables.workspace.join(text));
        }
        let url = url::Url::parse(text).ok().filter(|url| url.scheme() == "file");
        let path = url.and_then(|url| url.to_file_path().ok());
        path.ok_or_else(|| self.unsupported(text, "it is on another machine"))
    }

    /// A text with its variables expanded. `key` names it in errors.
    pub fn expand(&self, text: &str, node: &JsonNode, key: &str) -> Result<String> {
        let (subject, document) = (&self.subject, &self.entry.file);
        self.variables.expand(text, &VariableSite { subject, document, line: node.line, key, shell: false })
    }

    /// The file and line of an attribute.
    pub fn origin(&self, node: &JsonNode) -> Origin {
        Origin::new(self.variables.workspace, &self.entry.file, Some(node.line))
    }

    /// The error for a configuration that cannot be launched; `what` is the reason.
    pub fn wrong(&self, what: impl Into<String>) -> Error {
        self.entry.wrong(what)
    }

    /// The error for an attribute or argument that cannot be honoured.
    pub fn unsupported(&self, attribute: &str, why: &str) -> Error {
        self.wrong(format!("`{attribute}` is not supported: {why}"))
    }
}
