//! Resolves a launch configuration or compound of launch.json into debug sessions, with the tasks before and after them.
//!
//! The debugger's keys are passed on as written, with variables substituted; the keys of VS Code itself take effect here.
//! Does not depend on any debugger.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::config::build_plan::BuildPlan;
use crate::config::consent_line::ConsentLine;
use crate::config::devtools_toml::settings::Settings;
use crate::config::jsonc::{self, JsonNode};
use crate::config::npm::scripts::{NpmScript, workspace_scripts};
use crate::config::source_file::Origin;
use crate::config::vscode::editor_inputs::{EditorInputs, MissingInput};
use crate::config::vscode::env_file::read_env_file;
use crate::config::vscode::launch_json::{LaunchEntry, LaunchFile, NamedEntries};
use crate::config::vscode::shell_quoting::quote_word;
use crate::config::vscode::task_steps::plan_task;
use crate::config::vscode::tasks_json::TasksFile;
use crate::config::vscode::variables::{VariableContext, VariableSite};
use crate::error::{Error, ErrorKind, Result};

/// Keys for VS Code itself, which no debugger reads.
const VSCODE_KEYS: &[&str] =
    &["preLaunchTask", "postDebugTask", "envFile", "linux", "osx", "windows", "presentation", "order"];
/// Keys that have an effect in VS Code and none here: each becomes a note.
const NOT_HONOURED: &[&str] = &[
    "serverReadyAction",
    "debugServer",
    "internalConsoleOptions",
    "setupCommands",
    "sourceFileMap",
    "miDebuggerPath",
    "runtimeVersion",
];

/// A launch configuration, or a compound of several, ready to be debugged.
#[derive(Clone, Debug)]
pub struct DebugPlan {
    /// Canonical.
    pub workspace: PathBuf,
    /// Of the configuration or compound.
    pub name: String,
    /// The compound's `preLaunchTask`.
    pub before: BuildPlan,
    /// In the order of the compound; at least one.
    pub configurations: Vec<DebugConfiguration>,
    /// When one session ends, the others are stopped.
    pub stop_all: bool,
    /// Every npm script of the workspace: a debugger's program or a task may call any of them.
    scripts: Vec<NpmScript>,
}

/// One launch configuration: one debug session.
#[derive(Clone, Debug)]
pub struct DebugConfiguration {
    /// As in launch.json.
    pub name: String,
    /// "the configuration "Server" of /ws/.vscode/launch.json:7"
    pub subject: String,
    /// `type`: which debugger it is for.
    pub kind: String,
    /// The keys for the debugger.
    pub fields: Map<String, Value>,
    /// `preLaunchTask`.
    pub before: BuildPlan,
    /// `postDebugTask`.
    pub after: BuildPlan,
    /// Keys that were read and have no effect, one sentence each.
    pub notes: Vec<String>,
    lines: Vec<ConsentLine>,
}

impl DebugPlan {
    /// Resolves the configuration or compound `name` of a (canonical) workspace. Editor inputs and `${env:…}` stay: see
    /// [`DebugPlan::with_editor_inputs`]. Errors name file and line; for an unknown name, the names that exist.
    pub fn resolve(workspace: &Path, name: &str) -> Result<DebugPlan> {
        let Some(file) = LaunchFile::read(workspace)? else {
            return Err(Error::new(ErrorKind::NotFound, format!("cannot find the launch configuration {name:?}"))
                .because(format!("there is no {}", workspace.join(".vscode/launch.json").display()))
                .hint("`tether debug launch PROGRAM` needs none"));
        };
        let NamedEntries { entries, compound } = file.named_entries(name)?;
        let variables = VariableContext::for_debugging(workspace);
        let timeout = Settings::load(workspace)?.build.timeout;
        let draft = |entry| draft_of(entry, &variables, timeout);
        let nothing = BuildPlan::empty(timeout);
        let before = compound.as_ref().map(|it| draft(it).task("preLaunchTask")).transpose()?.unwrap_or(nothing);
        let stop_all = compound.as_ref().is_some_and(|it| it.node.is_true("stopAll"));
        let several = compound.is_some();
        let configurations = entries.iter().map(|it| draft(it).configuration(several)).collect::<Result<_>>()?;
        let (workspace, name) = (workspace.to_owned(), name.to_owned());
        let mut plan = DebugPlan { workspace, name, before, configurations, stop_all, scripts: Vec::new() };
        plan.scripts = workspace_scripts(&plan.workspace, plan.working_folders())?;
        Ok(plan)
    }

    /// Where its tasks and programs run.
    fn working_folders(&self) -> impl Iterator<Item = &Path> {
        let plans = self.configurations.iter().flat_map(|it| [&it.before, &it.after]).chain([&self.before]);
        let steps = plans.flat_map(|plan| &plan.steps).map(|step| step.cwd.as_path());
        let cwd = |it| DebugConfiguration::cwd(it).unwrap_or(&self.workspace);
        steps.chain(self.configurations.iter().map(cwd))
    }

    /// Everything that is run, for the user's consent: tasks, configurations, npm scripts.
    pub fn consent_lines(&self) -> Vec<ConsentLine> {
        let steps = |plan: &BuildPlan, word: &str| -> Vec<ConsentLine> {
            plan.steps.iter().map(|step| step.consent_line(word, &self.workspace)).collect()
        };
        let each = self.configurations.iter().flat_map(|it| {
            steps(&it.before, "before").into_iter().chain(it.lines.clone()).chain(steps(&it.after, "after"))
        });
        let scripts = self.scripts.iter().map(NpmScript::consent_line);
        steps(&self.before, "before").into_iter().chain(each).chain(scripts).collect()
    }

    /// Substitutes editor inputs and the environment: the result is what is run.
    pub fn with_editor_inputs(&self, inputs: &EditorInputs) -> Result<DebugPlan> {
        let substitute = |it: &DebugConfiguration| {
            Ok(DebugConfiguration {
                fields: it.substituted_fields(inputs, &self.workspace)?,
                before: it.before.with_editor_inputs(inputs, &self.workspace)?,
                after: it.after.with_editor_inputs(inputs, &self.workspace)?,
                ..it.clone()
            })
        };
        Ok(DebugPlan {
            before: self.before.with_editor_inputs(inputs, &self.workspace)?,
            configurations: self.configurations.iter().map(substitute).collect::<Result<_>>()?,
            ..self.clone()
        })
    }
}

impl DebugConfiguration {
    fn cwd(&self) -> Option<&Path> {
        self.fields.get("cwd").and_then(Value::as_str).map(Path::new)
    }

    fn substituted_fields(&self, inputs: &EditorInputs, workspace: &Path) -> Result<Map<String, Value>> {
        let fields = self.fields.iter().map(|(key, value)| {
            let wrong = |MissingInput { variable, why, hint }| {
                let because = format!("`{key}` has the variable `${{{variable}}}`: {why}");
                Error::usage(format!("cannot use {}", self.subject)).because(because).hint(hint)
            };
            Ok((key.clone(), substitute_inputs(value, inputs, workspace).map_err(wrong)?))
        });
        fields.collect()
    }
}

fn substitute_inputs(value: &Value, inputs: &EditorInputs, workspace: &Path) -> Result<Value, MissingInput> {
    Ok(match value {
        Value::String(text) => {
            let text_value = inputs.substitute(text, workspace)?;
            // Most debuggers take the id of a process as a number.
            let is_pid = text.starts_with("${command:") && text.find('}') == Some(text.len() - 1);
            text_value.parse::<u32>().ok().filter(|_| is_pid).map_or(Value::String(text_value), Value::from)
        }
        Value::Array(items) => {
            items.iter().map(|item| substitute_inputs(item, inputs, workspace)).collect::<Result<_, _>>()?
        }
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| Ok((name.clone(), substitute_inputs(value, inputs, workspace)?));
            members.iter().map(member).collect::<Result<_, _>>()?
        }
        plain => plain.clone(),
    })
}

/// A configuration or compound that is being resolved.
struct ConfigurationDraft<'a> {
    entry: &'a LaunchEntry,
    /// Without file and line, which errors about variables add themselves.
    subject: String,
    variables: &'a VariableContext<'a>,
    timeout: Duration,
}

fn draft_of<'a>(
    entry: &'a LaunchEntry,
    variables: &'a VariableContext<'a>,
    timeout: Duration,
) -> ConfigurationDraft<'a> {
    ConfigurationDraft { entry, subject: format!("the configuration {:?}", entry.name), variables, timeout }
}

impl ConfigurationDraft<'_> {
    fn configuration(&self, several: bool) -> Result<DebugConfiguration> {
        let LaunchEntry { name, node, .. } = self.entry;
        let kind = node.text_of("type").ok_or_else(|| self.entry.wrong("it has no `type`"))?;
        match node.text_of("request") {
            Some("launch" | "attach") => {}
            Some(other) => {
                return Err(self
                    .entry
                    .wrong(format!("its `request` is {other:?}, which is neither launch nor attach")));
            }
            None => return Err(self.entry.wrong("it has no `request`").hint("add `\"request\": \"launch\"`")),
        }
        if kind.ends_with("xtensionHost") && node.text_of("request") == Some("launch") {
            let error = self.entry.wrong("an extension host is a window, which is started before it is debugged");
            return Err(error.hint(format!(
                "`tether start --config {}` starts it, and `tether debug attach --window extensionHost` debugs it",
                quote_word(name)
            )));
        }
        let fields = self.fields()?;
        let prefix = if several { format!("debug {}", json!(name)) } else { "debug".to_owned() };
        let notes = NOT_HONOURED.iter().filter_map(|key| {
            let origin = self.origin(node.get(key)?);
            Some(format!("{origin}: `{key}` is not honoured"))
        });
        Ok(DebugConfiguration {
            name: name.clone(),
            subject: self.entry.subject(),
            kind: kind.to_owned(),
            before: self.task("preLaunchTask")?,
            after: self.task("postDebugTask")?,
            notes: notes.collect(),
            lines: self.consent_lines(&fields, &prefix),
            fields,
        })
    }

    /// The plan of the task under `key`; empty without one, or for `null`.
    fn task(&self, key: &str) -> Result<BuildPlan> {
        let Some(reference) = self.entry.node.get(key).filter(|node| node.value != jsonc::JsonValue::Null) else {
            return Ok(BuildPlan::empty(self.timeout));
        };
        plan_task(&TasksFile::read(self.variables)?, reference, &self.entry.subject(), self.timeout)
    }

    fn fields(&self) -> Result<Map<String, Value>> {
        let expand =
            |text: &str, at: &JsonNode, key: &str| self.variables.expand(text, &self.site(at, key)).map(Value::String);
        let own = self.entry.node.members().iter().filter(|(key, _)| !VSCODE_KEYS.contains(&key.as_str()));
        let own = own.map(|(key, value)| Ok((key.clone(), value.json(key, &expand)?)));
        let mut fields: Map<String, Value> = own.collect::<Result<_>>()?;
        if let Some(mut env) = self.env_file()? {
            // `env` overrides `envFile`.
            env.extend(fields.get("env").and_then(Value::as_object).cloned().unwrap_or_default());
            fields.insert("env".to_owned(), env.into());
        }
        Ok(fields)
    }

    /// The variables of `envFile`; later files of a list override earlier ones.
    fn env_file(&self) -> Result<Option<Map<String, Value>>> {
        let Some(written) = self.written_env_file() else { return self.default_env_file() };
        let mut variables = Map::new();
        for node in written.one_or_many() {
            let wrong = |what: String| self.entry.wrong(format!("{what} (line {})", node.line));
            let text = node.text().ok_or_else(|| wrong("`envFile` is no text".to_owned()))?;
            let path = self.variables.resolving_environment().expand(text, &self.site(node, "envFile"))?;
            let path = self.variables.workspace().join(path);
            let read = read_env_file(&path)?;
            variables
                .extend(json_values(read.ok_or_else(|| wrong(format!("there is no `envFile` {}", path.display())))?));
        }
        Ok(Some(variables))
    }

    fn written_env_file(&self) -> Option<&JsonNode> {
        self.entry.node.get("envFile").filter(|node| node.value != jsonc::JsonValue::Null)
    }

    /// The Python debugger of VS Code reads `.env` when it exists.
    /// Source: <https://code.visualstudio.com/docs/python/environments#_environment-variables>
    fn default_env_file(&self) -> Result<Option<Map<String, Value>>> {
        let is_python = matches!(self.entry.node.text_of("type"), Some("python" | "debugpy"));
        if !is_python || self.entry.node.text_of("request") != Some("launch") {
            return Ok(None);
        }
        // `.env` may be a folder with a virtual environment.
        let path = Some(self.default_env_path()).filter(|path| path.is_file());
        let read = path.map(|path| read_env_file(&path)).transpose()?;
        Ok(read.flatten().map(json_values))
    }

    fn default_env_path(&self) -> PathBuf {
        self.variables.workspace().join(".env")
    }

    fn consent_lines(&self, fields: &Map<String, Value>, prefix: &str) -> Vec<ConsentLine> {
        let own = fields.iter().filter(|(key, _)| *key != "name").map(|(key, value)| ConsentLine {
            text: format!("{prefix}.{}: {value}", quote_key(key)),
            origin: Some(self.origin_of(key)),
        });
        own.collect()
    }

    /// Only `env` can be set without its key: by `envFile`, or by the default `.env`.
    fn origin_of(&self, key: &str) -> Origin {
        match self.entry.node.get(key).or_else(|| self.written_env_file()) {
            Some(node) => self.origin(node),
            None => Origin::new(self.variables.workspace(), &self.default_env_path(), None),
        }
    }

    fn origin(&self, node: &JsonNode) -> Origin {
        Origin::new(self.variables.workspace(), &self.entry.file, Some(node.line))
    }

    fn site<'s>(&'s self, node: &JsonNode, key: &'s str) -> VariableSite<'s> {
        VariableSite { subject: &self.subject, document: &self.entry.file, line: node.line, key, shell: false }
    }
}

fn json_values(variables: Vec<(String, String)>) -> Map<String, Value> {
    variables.into_iter().map(|(name, text)| (name, text.into())).collect()
}

/// The key, in quotes when it could be mistaken for other text of its line.
fn quote_key(key: &str) -> String {
    let is_plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if is_plain { key.to_owned() } else { json!(key).to_string() }
}

#[cfg(test)]
mod tests;
