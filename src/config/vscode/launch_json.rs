//! `.vscode/launch.json`: reads its configurations and compounds, and selects one by name or by default.
//!
//! Does not interpret a configuration's attributes beyond its type and request: `launch_window` and `debug_plan` do.

use std::path::{Path, PathBuf};

use crate::config::jsonc::{JsonDocument, JsonNode};
use crate::config::vscode::tasks_json::platform_node;
use crate::error::{Error, ErrorKind, Result};

const FILE: &str = ".vscode/launch.json";

/// The launch.json of a workspace.
pub struct LaunchFile(JsonDocument);

/// The debugger types (`type`) whose configurations describe a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowDebugger {
    /// `extensionHost`
    ExtensionHost,
    /// `chrome`, `msedge`
    Browser,
    /// `node`
    Node,
}

/// A configuration that can be launched as a window.
#[derive(Clone, Debug)]
pub struct WindowConfiguration {
    /// Its `name`.
    pub name: String,
    /// Its attributes, with the section for this platform merged in.
    pub node: JsonNode,
    /// Its `type`.
    pub debugger: WindowDebugger,
    /// The path of launch.json.
    pub file: PathBuf,
}

/// A configuration of any type, for a debug adapter.
#[derive(Clone, Debug)]
pub struct LaunchEntry {
    /// Its `name`.
    pub name: String,
    /// Its attributes, with the section for this platform merged in.
    pub node: JsonNode,
    /// The path of launch.json.
    pub file: PathBuf,
}

/// The configurations that a name selects: one, or those of a compound.
#[derive(Clone, Debug)]
pub struct NamedEntries {
    /// In the order of the compound.
    pub entries: Vec<LaunchEntry>,
    /// The compound, where the name is that of a compound.
    pub compound: Option<LaunchEntry>,
}

impl LaunchEntry {
    /// How messages name it: "the configuration "Run Server" of /ws/.vscode/launch.json:7"
    pub fn subject(&self) -> String {
        format!("the configuration {:?} of {}:{}", self.name, self.file.display(), self.node.line)
    }

    /// The error for a configuration that cannot be debugged; `what` is the reason.
    pub fn wrong(&self, what: impl Into<String>) -> Error {
        Error::usage(format!("cannot debug {}", self.subject())).because(what.into())
    }
}

impl WindowConfiguration {
    /// How messages name it: "the configuration "Run Extension" of /ws/.vscode/launch.json:7"
    pub fn subject(&self) -> String {
        format!("the configuration {:?} of {}:{}", self.name, self.file.display(), self.node.line)
    }

    /// The error for a configuration that cannot be launched; `what` is the reason.
    pub fn wrong(&self, what: impl Into<String>) -> Error {
        Error::usage(format!("cannot launch {}", self.subject())).because(what.into())
    }
}

impl LaunchFile {
    /// Reads the file of a workspace; `None` where it does not exist. Errors name file, line and column.
    pub fn read(workspace: &Path) -> Result<Option<LaunchFile>> {
        Ok(JsonDocument::read(&workspace.join(FILE))?.map(LaunchFile))
    }

    /// The path of launch.json; absolute where the workspace is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The configuration of this name. Without a name the first extension host, else the first configuration that can
    /// be launched as a window, else `None`. Errors: no configuration has the name, or it cannot be launched.
    pub fn choose_window(&self, name: Option<&str>) -> Result<Option<WindowConfiguration>> {
        match name {
            Some(name) => self.named_window(name).map(Some),
            None => {
                let usable = || self.all().filter_map(|(_, node)| self.window_configuration(node).ok());
                let preferred = usable().find(|it| it.debugger == WindowDebugger::ExtensionHost);
                Ok(preferred.or_else(|| usable().next()))
            }
        }
    }

    /// The configuration or compound of this name. Errors list the existing names.
    pub fn named_entries(&self, name: &str) -> Result<NamedEntries> {
        let compounds = self.compounds();
        let compound = compounds.iter().find(|node| node.text_of("name") == Some(name));
        match (self.entry(name), compound) {
            (Some(entry), _) => Ok(NamedEntries { entries: vec![entry], compound: None }),
            (None, Some(node)) => {
                let compound = LaunchEntry { name: name.to_owned(), node: node.clone(), file: self.path().to_owned() };
                Ok(NamedEntries { entries: self.compound_parts(&compound)?, compound: Some(compound) })
            }
            (None, None) => {
                let compounds = compounds.iter().filter_map(|node| node.text_of("name"));
                let names = quote_names(self.all().map(|(name, _)| name).chain(compounds));
                let names = if names.is_empty() { "it has none".to_owned() } else { format!("it has: {names}") };
                Err(Error::new(ErrorKind::NotFound, format!("cannot find the launch configuration {name:?}"))
                    .because(format!("{} has no such configuration; {names}", self.path().display())))
            }
        }
    }

    fn entry(&self, name: &str) -> Option<LaunchEntry> {
        let (_, node) = self.all().find(|(known, _)| *known == name)?;
        Some(LaunchEntry { name: name.to_owned(), node: platform_node(node), file: self.path().to_owned() })
    }

    fn compounds(&self) -> &[JsonNode] {
        self.0.root.get("compounds").map(JsonNode::items).unwrap_or_default()
    }

    /// The configurations of a compound. Errors: a part that is missing, or in another folder of the VS Code workspace.
    fn compound_parts(&self, compound: &LaunchEntry) -> Result<Vec<LaunchEntry>> {
        let base = self.path().ancestors().nth(2).and_then(Path::file_name).unwrap_or_default();
        let part = |part: &JsonNode| {
            let (name, folder) = (part.text().or_else(|| part.text_of("name")), part.text_of("folder"));
            let name = name.ok_or_else(|| compound.wrong(format!("line {} names no configuration", part.line)))?;
            if let Some(folder) = folder.filter(|folder| base != *folder) {
                let what =
                    format!("its part {name:?} lies in the folder {folder:?}, which is another than this workspace");
                return Err(compound.wrong(what));
            }
            let missing = || {
                let names = quote_names(self.all().map(|(name, _)| name));
                compound.wrong(format!("its part {name:?} (line {}) is not there; there are: {names}", part.line))
            };
            self.entry(name).ok_or_else(missing)
        };
        let parts = compound.node.get("configurations").map(JsonNode::items).unwrap_or_default();
        match parts.is_empty() {
            true => Err(compound.wrong("it has no `configurations`")),
            false => parts.iter().map(part).collect(),
        }
    }

    /// The reason why no configuration can be launched as a window, for the cause of an error.
    pub fn why_none(&self) -> String {
        let reasons: Vec<String> = self
            .all()
            .filter_map(|(name, node)| Some(format!("{name:?} {}", self.window_configuration(node).err()?)))
            .collect();
        match reasons.is_empty() {
            true => format!("{} has no configurations", self.path().display()),
            false => format!("{} has none that tether can launch: {}", self.path().display(), reasons.join("; ")),
        }
    }

    fn all(&self) -> impl Iterator<Item = (&str, &JsonNode)> {
        let configurations = self.0.root.get("configurations").map(JsonNode::items).unwrap_or_default();
        configurations.iter().map(|node| (node.text_of("name").unwrap_or_default(), node))
    }

    fn named_window(&self, name: &str) -> Result<WindowConfiguration> {
        let error = || Error::new(ErrorKind::NotFound, format!("cannot find the launch configuration {name:?}"));
        if let Some((_, node)) = self.all().find(|(known, _)| *known == name) {
            let refused = |why: String| {
                let subject = format!("the configuration {name:?} of {}:{}", self.path().display(), node.line);
                Error::usage(format!("cannot launch {subject}")).because(format!("it {why}"))
            };
            return self.window_configuration(node).map_err(refused);
        }
        if let Some(compound) = self.compounds().iter().find(|node| node.text_of("name") == Some(name)) {
            let parts = compound.get("configurations").map(JsonNode::items).unwrap_or_default();
            let parts = quote_names(parts.iter().filter_map(|part| part.text().or_else(|| part.text_of("name"))));
            let because =
                format!("it is a compound ({}:{}), and a window is one program", self.path().display(), compound.line);
            return Err(error().because(because).hint(format!("choose one of its parts: {parts}")));
        }
        let names = quote_names(self.all().map(|(name, _)| name));
        let names = if names.is_empty() { "it has none".to_owned() } else { format!("it has: {names}") };
        Err(error().because(format!("{} has no such configuration; {names}", self.path().display())))
    }

    /// The configuration as a window. `Err`: the reason why it cannot be launched, as a predicate: "has no `type`".
    fn window_configuration(&self, node: &JsonNode) -> Result<WindowConfiguration, String> {
        let node = platform_node(node);
        let debugger = match node.text_of("type") {
            Some("extensionHost" | "pwa-extensionHost") => WindowDebugger::ExtensionHost,
            Some("chrome" | "pwa-chrome" | "msedge" | "pwa-msedge") => WindowDebugger::Browser,
            Some("node" | "pwa-node" | "node2") => WindowDebugger::Node,
            Some(other) => return Err(format!("is of the type {other:?}, which is no window")),
            None => return Err("has no `type`".to_owned()),
        };
        if node.text_of("request").is_some_and(|request| request != "launch") {
            return Err("attaches to something that runs, and launches nothing".to_owned());
        }
        let tests = node.get("testConfiguration").is_some()
            || node.get("args").is_some_and(|args| {
                args.items().iter().filter_map(JsonNode::text).any(|arg| arg.starts_with("--extensionTestsPath"))
            });
        if debugger == WindowDebugger::ExtensionHost && tests {
            return Err("runs tests and ends, which is no window".to_owned());
        }
        let name = node.text_of("name").unwrap_or_default().to_owned();
        Ok(WindowConfiguration { name, node, debugger, file: self.path().to_owned() })
    }
}

fn quote_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{ // several
        "configurations": [
            { "name": "Python", "type": "debugpy", "request": "launch" },
            { "name": "Tests", "type": "extensionHost", "request": "launch", "args": ["--extensionTestsPath=x"] },
            { "name": "Attach", "type": "node", "request": "attach" },
            { "name": "Server", "type": "pwa-node", "request": "launch", "linux": { "program": "l.js" }, "program": "p.js" },
            { "name": "Run Extension", "type": "extensionHost", "request": "launch" },
        ],
        "compounds": [{ "name": "Both", "configurations": ["Server", "Run Extension"] }],
    }"#;

    fn file(text: &str) -> LaunchFile {
        LaunchFile(JsonDocument::parse(Path::new("/ws/.vscode/launch.json"), text).unwrap())
    }

    #[test]
    fn without_a_name_an_extension_host_is_preferred_to_other_windows() {
        let chosen = file(FILE).choose_window(None).unwrap().unwrap();
        assert_eq!((chosen.name.as_str(), chosen.debugger), ("Run Extension", WindowDebugger::ExtensionHost));
        let chosen = file(FILE).choose_window(Some("Server")).unwrap().unwrap();
        assert_eq!((chosen.node.text_of("program"), chosen.node.line), (Some("l.js"), 6));
        let none = file(r#"{"configurations": [{"name": "a", "type": "lldb"}]}"#);
        assert!(none.choose_window(None).unwrap().is_none());
        assert!(none.why_none().contains("\"a\" is of the type \"lldb\""), "{}", none.why_none());
    }

    #[test]
    fn the_error_for_a_name_that_cannot_be_launched_has_the_reason() {
        let check = |name: &str, parts: &[&str]| {
            let message = file(FILE).choose_window(Some(name)).unwrap_err().to_string();
            for part in parts {
                assert!(message.contains(part), "{part:?} is not in {message}");
            }
        };
        check("Nope", &["\"Nope\"", "it has: \"Python\", \"Tests\", \"Attach\", \"Server\", \"Run Extension\""]);
        check("Both", &["compound (/ws/.vscode/launch.json:9)", "\"Server\", \"Run Extension\""]);
        check("Attach", &["launch.json:5", "attaches"]);
        check("Tests", &["launch.json:4", "runs tests"]);
        check("Python", &["\"debugpy\""]);
    }
}
