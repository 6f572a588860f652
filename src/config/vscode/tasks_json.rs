//! `.vscode/tasks.json`: finds a task by its label, by its definition, or as the default build.
//!
//! Includes the tasks that VS Code detects without a tasks.json: npm scripts and TypeScript projects. Does not depend
//! on the order in which tasks run: `task_steps` plans it.

use std::path::{Path, PathBuf};

use tether_base::error::{Error, Result};

use crate::config::jsonc::{JsonDocument, JsonNode, JsonValue};
use crate::config::npm::package_json::PackageJson;
use crate::config::source_file::Origin;
use crate::config::vscode::variables::VariableContext;

const FILE: &str = ".vscode/tasks.json";
/// The key of the section for this platform in tasks.json and launch.json.
const PLATFORM: &str = if cfg!(target_os = "macos") { "osx" } else { "linux" };

/// The tasks of one workspace.
pub struct TasksFile<'a> {
    /// The values of `${…}` in tasks, and the path of the workspace.
    pub variables: &'a VariableContext<'a>,
    path: PathBuf,
    document: Option<JsonDocument>,
}

/// One task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its `label`, or the name that VS Code gives it: "npm: watch".
    pub label: String,
    /// Its definition, with the file's common `options` and the section for this platform merged in.
    pub node: JsonNode,
    /// The file that defines it: tasks.json, package.json or a tsconfig.json.
    pub file: PathBuf,
}

impl Task {
    /// Its `type`; default: "process".
    pub fn kind(&self) -> &str {
        self.node.text_of("type").unwrap_or("process")
    }

    /// The file and line of its definition.
    pub fn origin(&self, workspace: &Path) -> Origin {
        Origin::new(workspace, &self.file, Some(self.node.line))
    }

    /// How messages name it: "the task "build" of /ws/.vscode/tasks.json:4"
    pub fn subject(&self) -> String {
        format!("the task {:?} of {}:{}", self.label, self.file.display(), self.node.line)
    }
}

impl<'a> TasksFile<'a> {
    /// Reads tasks.json; a missing file has no tasks. Errors: a syntax error, or an unsupported `version`.
    pub fn read(variables: &'a VariableContext<'a>) -> Result<TasksFile<'a>> {
        let path = variables.workspace.join(FILE);
        let document = JsonDocument::read(&path)?;
        if let Some(document) = &document {
            check_version(document)?;
        }
        Ok(TasksFile { variables, path, document })
    }

    /// The task to which the value of a `preLaunchTask` or `dependsOn` refers. `referrer` names the owner of that value
    /// in errors: "the task "all" of /ws/.vscode/tasks.json:4".
    pub fn find_task(&self, reference: &JsonNode, referrer: &str) -> Result<Task> {
        let found = match reference.text() {
            Some("${defaultBuildTask}") => return self.default_build_task(referrer),
            Some(label) => match self.file_tasks().into_iter().find(|task| task.label == label) {
                Some(task) => Some(task),
                None => self.detected_task(label)?,
            },
            None => self.defined_task(reference)?,
        };
        found.ok_or_else(|| self.missing_task(reference, referrer))
    }

    fn missing_task(&self, reference: &JsonNode, referrer: &str) -> Error {
        let task = match reference.text() {
            Some(label) => format!("{label:?}"),
            None => format!("of type {:?}", reference.text_of("type").unwrap_or_default()),
        };
        let labels: Vec<String> = self.file_tasks().iter().map(|task| format!("{:?}", task.label)).collect();
        let existing = match (&self.document, labels.is_empty()) {
            (None, _) => format!("there is no {}", self.path.display()),
            (_, true) => format!("{} has no tasks", self.path.display()),
            (_, false) => format!("{} has: {}", self.path.display(), labels.join(", ")),
        };
        Error::usage(format!("cannot find the task {task}"))
            .because(format!("{referrer} refers to it, and {existing}"))
            .hint("correct the name, or set `command` in the [build] section of devtools.toml")
    }

    /// The task of the group `build` with `isDefault`, else the only task of that group.
    fn default_build_task(&self, referrer: &str) -> Result<Task> {
        let group = |task: &Task| {
            let group = task.node.get("group")?;
            let kind = group.text().or_else(|| group.text_of("kind"))?.to_owned();
            let default =
                group.get("isDefault").is_some_and(|it| !matches!(it.value, JsonValue::Bool(false) | JsonValue::Null));
            (kind == "build").then_some(default)
        };
        let builds: Vec<(Task, bool)> =
            self.file_tasks().into_iter().filter_map(|task| group(&task).map(|default| (task, default))).collect();
        let defaults: Vec<&Task> = builds.iter().filter(|(_, default)| *default).map(|(task, _)| task).collect();
        match (&defaults[..], &builds[..]) {
            ([task], _) => Ok((*task).clone()),
            ([], [(task, _)]) => Ok(task.clone()),
            (several, all) => {
                let labels: Vec<String> = all.iter().map(|(task, _)| format!("{:?}", task.label)).collect();
                let which = match (several.is_empty(), labels.is_empty()) {
                    (_, true) => format!("{} has no task in the group \"build\"", self.path.display()),
                    (true, _) => format!("none of {} is marked as the default", labels.join(", ")),
                    (false, _) => format!("several of {} are marked as the default", labels.join(", ")),
                };
                Err(Error::usage("cannot find the default build task")
                    .because(format!("{referrer} refers to it, and {which}"))
                    .hint(
                        "mark one with `\"group\": {\"kind\": \"build\", \"isDefault\": true}` in .vscode/tasks.json",
                    ))
            }
        }
    }

    /// The tasks of the file. A task without a name is skipped, as in VS Code.
    fn file_tasks(&self) -> Vec<Task> {
        let Some(document) = &self.document else { return Vec::new() };
        let common = platform_node(&document.root);
        let tasks = document.root.items_of("tasks");
        tasks.iter().filter_map(|node| read_task(document, &common, node)).collect()
    }

    /// The task of a definition instead of a label: `{"type": "npm", "script": "watch"}`.
    fn defined_task(&self, definition: &JsonNode) -> Result<Option<Task>> {
        let same = |task: &Task| definition.members().iter().all(|(key, node)| task.node.text_of(key) == node.text());
        let listed = self.file_tasks().into_iter().find(same);
        let own = || Some(Task { label: task_label(definition)?, node: definition.clone(), file: self.path.clone() });
        Ok(listed.or_else(own))
    }

    /// A task that VS Code detects without a tasks.json: "npm: watch", "npm: watch - folder",
    /// "tsc: build - tsconfig.json".
    fn detected_task(&self, label: &str) -> Result<Option<Task>> {
        let Some((kind, rest)) = label.split_once(": ") else { return Ok(None) };
        let workspace = self.variables.workspace;
        let members: Vec<(&str, &str)> = match (kind, rest.split_once(" - ")) {
            ("npm", Some((script, path))) => vec![("type", "npm"), ("script", script), ("path", path)],
            ("npm", None) => vec![("type", "npm"), ("script", rest)],
            ("tsc", Some((option, project))) if workspace.join(project).is_file() => {
                vec![("type", "typescript"), ("option", option), ("tsconfig", project)]
            }
            _ => return Ok(None),
        };
        let node = object_node(1, &members);
        if kind == "tsc" {
            let file = workspace.join(node.text_of("tsconfig").unwrap_or_default());
            return Ok(Some(Task { label: label.to_owned(), node, file }));
        }
        let folder = workspace.join(node.text_of("path").unwrap_or_default());
        let Some(package) = PackageJson::read(&folder)? else { return Ok(None) };
        let line = package.script(node.text_of("script").unwrap_or_default()).map(|script| script.line);
        let file = folder.join("package.json");
        Ok(line.map(|line| Task { label: label.to_owned(), node: JsonNode { line, ..node }, file }))
    }
}

fn check_version(document: &JsonDocument) -> Result<()> {
    match document.root.get("version") {
        Some(node) if node.text() != Some("2.0.0") => {
            let what =
                format!("its version is {:?}, and only \"2.0.0\" is understood", node.text().unwrap_or_default());
            Err(document.unusable(node, what).hint("VS Code 1.14 and later write that version"))
        }
        _ => Ok(()),
    }
}

/// One entry of `tasks`, on top of the file's common `options`; `None` where it has no name.
fn read_task(document: &JsonDocument, common: &JsonNode, node: &JsonNode) -> Option<Task> {
    let mut node = platform_node(node);
    if let Some(options) = common.get("options") {
        let own = node.get("options").cloned().unwrap_or_else(|| object_node(node.line, &[]));
        node = node.with_member("options", overlay_options(options, &own));
    }
    Some(Task { label: task_label(&node)?, node, file: document.path.clone() })
}

/// The name of a task: its label, or the one that VS Code derives from its definition.
fn task_label(node: &JsonNode) -> Option<String> {
    let text = |name: &str| node.text_of(name);
    let at = |path: Option<&str>| path.map(|path| format!(" - {path}")).unwrap_or_default();
    match (text("label").or_else(|| text("taskName")), text("type")) {
        (Some(label), _) => Some(label.to_owned()),
        (None, Some("npm")) => Some(format!("npm: {}{}", text("script")?, at(text("path")))),
        (None, Some("typescript")) => {
            Some(format!("tsc: {}{}", text("option").unwrap_or("build"), at(text("tsconfig"))))
        }
        // A task type of a VS Code extension: "gulp: default".
        (None, Some(kind)) if text("command").is_none() => Some(format!("{kind}: {}", text("task")?)),
        (None, _) => text("command").map(str::to_owned),
    }
}

/// The object with the members of its section for this platform on top.
pub fn platform_node(node: &JsonNode) -> JsonNode {
    let Some(section) = node.get(PLATFORM).filter(|section| matches!(section.value, JsonValue::Object(_))) else {
        return node.clone();
    };
    node.overlaid_with(section, "options", overlay_options)
}

/// The options `base` with `over` on top; their `env` members are merged by name.
fn overlay_options(base: &JsonNode, over: &JsonNode) -> JsonNode {
    base.overlaid_with(over, "env", JsonNode::overlaid)
}

fn object_node(line: usize, members: &[(&str, &str)]) -> JsonNode {
    let member = |(name, text): &(&str, &str)| {
        ((*name).to_owned(), JsonNode { line, value: JsonValue::String((*text).to_owned()) })
    };
    JsonNode { line, value: JsonValue::Object(members.iter().map(member).collect()) }
}
