//! `.vscode/launch.json`: reads its configurations and compounds, and selects one by name or by default.
//!
//! Does not interpret a configuration's attributes beyond its type and request: `launch_window` and `debug_plan` do.

use std::path::{Path, PathBuf};

use tether_base::error::{Error, ErrorKind, Result};

use crate::config::jsonc::{JsonDocument, JsonNode};
use crate::config::source_file::normalize_path;
use crate::config::vscode::shell_quoting::quote_word;
use crate::config::vscode::tasks_json::platform_node;
use crate::config::vscode::variables::{VariableContext, VariableSite};

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

/// A configuration, or a compound of several.
#[derive(Clone, Debug)]
pub struct LaunchEntry {
    /// Its `name`.
    pub name: String,
    /// Its attributes, with the section for this platform merged in.
    pub node: JsonNode,
    /// The path of launch.json.
    pub file: PathBuf,
    /// What cannot be done with it, in its errors: "launch", "debug".
    pub verb: &'static str,
}

/// A configuration that can be launched as a window.
#[derive(Clone, Debug)]
pub struct WindowConfiguration {
    /// The configuration.
    pub entry: LaunchEntry,
    /// Its `type`.
    pub debugger: WindowDebugger,
}

impl LaunchEntry {
    /// How messages name it: "the configuration "Run Server" of /ws/.vscode/launch.json:7"
    pub fn subject(&self) -> String {
        format!("the configuration {:?} of {}:{}", self.name, self.file.display(), self.node.line)
    }

    /// The error for a configuration that cannot be launched or debugged; `what` is the reason.
    pub fn wrong(&self, what: impl Into<String>) -> Error {
        Error::usage(format!("cannot {} {}", self.verb, self.subject())).because(what.into())
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
        if let Some(name) = name {
            return self.named_window(name).map(Some);
        }
        let usable = || self.configurations().iter().filter_map(|node| self.window_configuration(node).ok());
        let preferred = usable().find(|it| it.debugger == WindowDebugger::ExtensionHost);
        Ok(preferred.or_else(|| usable().next()))
    }

    /// The configuration of this name; or those of the compound of this name, in its order, and the compound. Errors
    /// list the existing names.
    pub fn named_entries(&self, name: &str) -> Result<(Vec<LaunchEntry>, Option<LaunchEntry>)> {
        if let Some(node) = self.configuration(name) {
            return Ok((vec![self.entry(node, "debug")], None));
        }
        let Some(node) = self.compound(name) else {
            let compounds = self.compounds().iter().filter_map(|node| node.text_of("name"));
            return Err(self.unknown_name(name, compounds));
        };
        let compound = LaunchEntry { node: node.clone(), ..self.entry(node, "debug") };
        Ok((self.compound_parts(&compound)?, Some(compound)))
    }

    /// The configuration of this name, if it runs the tests of an extension; without a name the first that does.
    pub fn test_configuration(&self, name: Option<&str>) -> Option<WindowConfiguration> {
        let mut named = self.configurations().iter().filter(|node| name.is_none_or(|name| name_of(node) == name));
        let entry =
            named.find_map(|node| Some(self.entry(node, "run")).filter(|entry| runs_extension_tests(&entry.node)))?;
        Some(WindowConfiguration { entry, debugger: WindowDebugger::ExtensionHost })
    }

    /// Whether a configuration or compound has this name.
    pub fn has_entry(&self, name: &str) -> bool {
        self.configuration(name).is_some() || self.compound(name).is_some()
    }

    fn entry(&self, node: &JsonNode, verb: &'static str) -> LaunchEntry {
        let (name, file) = (name_of(node).to_owned(), self.path().to_owned());
        LaunchEntry { name, node: platform_node(node), file, verb }
    }

    fn configurations(&self) -> &[JsonNode] {
        self.0.root.items_of("configurations")
    }

    fn configuration(&self, name: &str) -> Option<&JsonNode> {
        self.configurations().iter().find(|node| name_of(node) == name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.configurations().iter().map(name_of)
    }

    fn compounds(&self) -> &[JsonNode] {
        self.0.root.items_of("compounds")
    }

    fn compound(&self, name: &str) -> Option<&JsonNode> {
        self.compounds().iter().find(|node| node.text_of("name") == Some(name))
    }

    /// The configurations of a compound. Errors: a part that is missing, or in another folder of the VS Code workspace.
    fn compound_parts(&self, compound: &LaunchEntry) -> Result<Vec<LaunchEntry>> {
        let base = self.path().ancestors().nth(2).and_then(Path::file_name).unwrap_or_default();
        let part = |part: &JsonNode| {
            let unnamed = || compound.wrong(format!("line {} names no configuration", part.line));
            let name = part_name(part).ok_or_else(unnamed)?;
            if let Some(folder) = part.text_of("folder").filter(|folder| base != *folder) {
                let what =
                    format!("its part {name:?} lies in the folder {folder:?}, which is another than this workspace");
                return Err(compound.wrong(what));
            }
            let missing = || {
                let names = quote_names(self.names());
                compound.wrong(format!("its part {name:?} (line {}) is not there; there are: {names}", part.line))
            };
            Ok(self.entry(self.configuration(name).ok_or_else(missing)?, compound.verb))
        };
        let parts = compound.node.items_of("configurations");
        match parts.is_empty() {
            true => Err(compound.wrong("it has no `configurations`")),
            false => parts.iter().map(part).collect(),
        }
    }

    /// The reason why no configuration can be launched as a window, for the cause of an error.
    pub fn why_none(&self) -> String {
        let reason = |node| Some(format!("{:?} {}", name_of(node), self.window_configuration(node).err()?));
        let reasons: Vec<String> = self.configurations().iter().filter_map(reason).collect();
        match reasons.is_empty() {
            true => format!("{} has no configurations", self.path().display()),
            false => format!("{} has none that tether can launch: {}", self.path().display(), reasons.join("; ")),
        }
    }

    fn named_window(&self, name: &str) -> Result<WindowConfiguration> {
        if let Some(node) = self.configuration(name) {
            let refused = |why| self.entry(node, "launch").wrong(format!("it {why}"));
            let window = self.window_configuration(node).map_err(refused);
            return match self.test_configuration(Some(name)) {
                Some(_) => window.map_err(|error| error.hint(tests_hint(name))),
                None => window,
            };
        }
        let Some(compound) = self.compound(name) else { return Err(self.unknown_name(name, std::iter::empty())) };
        let parts = quote_names(compound.items_of("configurations").iter().filter_map(part_name));
        let because =
            format!("it is a compound ({}:{}), and a window is one program", self.path().display(), compound.line);
        Err(not_found(name).because(because).hint(format!("choose one of its parts: {parts}")))
    }

    /// The error for a name that neither a configuration nor one of `others` has.
    fn unknown_name<'a>(&'a self, name: &str, others: impl Iterator<Item = &'a str>) -> Error {
        let names = quote_names(self.names().chain(others));
        let names = if names.is_empty() { "it has none".to_owned() } else { format!("it has: {names}") };
        not_found(name).because(format!("{} has no such configuration; {names}", self.path().display()))
    }

    /// The configuration as a window. `Err`: the reason why it cannot be launched, as a predicate: "has no `type`".
    fn window_configuration(&self, node: &JsonNode) -> Result<WindowConfiguration, String> {
        let entry = self.entry(node, "launch");
        let node = &entry.node;
        let debugger = match node.text_of("type") {
            Some("extensionHost" | "pwa-extensionHost") => WindowDebugger::ExtensionHost,
            Some("chrome" | "pwa-chrome" | "msedge" | "pwa-msedge") => WindowDebugger::Browser,
            Some("node" | "pwa-node" | "node2") => WindowDebugger::Node,
            Some(other) => return Err(format!("is of the type {other:?}, which is not a window")),
            None => return Err("has no `type`".to_owned()),
        };
        if node.text_of("request").is_some_and(|request| request != "launch") {
            return Err("attaches to something that runs, and launches nothing".to_owned());
        }
        if runs_extension_tests(node) {
            return Err("runs tests and ends, so it is not a window".to_owned());
        }
        Ok(WindowConfiguration { entry, debugger })
    }
}

/// Whether a configuration launches an extension host that runs tests and ends.
pub fn runs_extension_tests(node: &JsonNode) -> bool {
    let is_host = matches!(node.text_of("type"), Some("extensionHost" | "pwa-extensionHost"));
    let launches = node.text_of("request").is_none_or(|request| request == "launch");
    let mut arguments = node.items_of("args").iter().filter_map(JsonNode::text);
    let has_tests =
        node.get("testConfiguration").is_some() || arguments.any(|arg| arg.starts_with("--extensionTestsPath"));
    is_host && launches && has_tests
}

/// What runs and debugs the tests of a configuration.
pub fn tests_hint(name: &str) -> String {
    let name = quote_word(name);
    format!("`tether test --config {name}` runs its tests, and `tether debug launch --config {name}` debugs them")
}

/// The names of the configurations and compounds of a workspace; none where its launch.json cannot be read.
pub fn launch_names(workspace: &Path) -> Vec<String> {
    let Ok(Some(launch)) = LaunchFile::read(workspace) else { return Vec::new() };
    let compounds = launch.compounds().iter().filter_map(|node| node.text_of("name"));
    launch.names().chain(compounds).map(str::to_owned).collect()
}

/// Whether the launch.json of `workspace` names something in `folder`, a folder below it; `false` when it cannot be read.
pub fn launch_names_folder(workspace: &Path, folder: &Path) -> bool {
    let Ok(Some(launch)) = LaunchFile::read(workspace) else { return false };
    let is_inside = |text: &str| {
        let path = text.split_once('=').map_or(text, |(_, value)| value);
        let inside = ["${workspaceFolder}", "${workspaceRoot}"].iter().find_map(|name| path.strip_prefix(name));
        inside.is_some_and(|path| normalize_path(&workspace.join(path.trim_start_matches('/'))).starts_with(folder))
    };
    let names = |node: &JsonNode| {
        let attributes = node.members().iter().map(|(_, value)| value);
        let mut texts = attributes.flat_map(JsonNode::one_or_many).filter_map(JsonNode::text);
        texts.any(is_inside)
    };
    launch.configurations().iter().any(names)
}

/// The files of variables (`envFile`) that the launch.json of a workspace names; none when it cannot be read.
pub fn environment_files(workspace: &Path) -> Vec<PathBuf> {
    let Ok(Some(launch)) = LaunchFile::read(workspace) else { return Vec::new() };
    let variables = VariableContext::for_debugging(workspace).resolving_environment();
    let (document, subject) = (launch.path(), "a configuration");
    let expand = |node: &JsonNode| {
        let site = VariableSite { subject, document, line: node.line, key: "envFile", shell: true };
        Some(normalize_path(&workspace.join(variables.expand(node.text()?, &site).ok()?)))
    };
    let configurations = launch.configurations().iter().map(platform_node);
    configurations
        .flat_map(|it| it.get("envFile").map(|written| written.one_or_many().to_vec()))
        .flatten()
        .filter_map(|node| expand(&node))
        .collect()
}

/// The error for a configuration by name in a workspace without launch.json.
pub fn missing_launch_file(workspace: &Path, name: &str) -> Error {
    not_found(name).because(format!("there is no {}", workspace.join(FILE).display()))
}

fn not_found(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("cannot find the launch configuration {name:?}"))
}

fn name_of(node: &JsonNode) -> &str {
    node.text_of("name").unwrap_or_default()
}

/// The name of the configuration that a part of a compound refers to.
fn part_name(part: &JsonNode) -> Option<&str> {
    part.text().or_else(|| part.text_of("name"))
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
        assert_eq!((chosen.entry.name.as_str(), chosen.debugger), ("Run Extension", WindowDebugger::ExtensionHost));
        let chosen = file(FILE).choose_window(Some("Server")).unwrap().unwrap();
        assert_eq!((chosen.entry.node.text_of("program"), chosen.entry.node.line), (Some("l.js"), 6));
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
        check("Tests", &["launch.json:4", "runs tests", "`tether test --config Tests`"]);
        check("Python", &["\"debugpy\""]);
    }
}
