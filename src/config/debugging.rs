//! From the name of a configuration of launch.json to what its debug sessions are, and what runs before and after them.
//!
//! A debugger's keys are the debugger's: they are handed on as they are written, with their variables replaced. What VS
//! Code itself would do with a configuration is done here. Must not know any debugger.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::env_file;
use super::file::Origin;
use super::given::{EditorInputs, MissingInput};
use super::jsonc::{self, JsonNode};
use super::launch_json::{LaunchEntry, LaunchFile, NamedEntries};
use super::plan::{BuildPlan, ConsentLine, NpmScript};
use super::scripts::scripts_of;
use super::settings::Settings;
use super::shell;
use super::task_steps;
use super::tasks::TasksFile;
use super::variables::{VariableContext, VariableSite};
use crate::error::{Error, ErrorKind, Result};

/// What VS Code reads, and no debugger.
const VSCODE_KEYS: &[&str] =
    &["preLaunchTask", "postDebugTask", "envFile", "linux", "osx", "windows", "presentation", "order"];
/// What VS Code would do with it, and we don't.
const NOT_HONOURED: &[&str] = &[
    "serverReadyAction",
    "debugServer",
    "internalConsoleOptions",
    "setupCommands",
    "sourceFileMap",
    "miDebuggerPath",
    "runtimeVersion",
];

/// What a name of launch.json stands for.
#[derive(Clone, Debug)]
pub struct DebugPlan {
    pub workspace: PathBuf,
    pub name: String,
    /// What runs before all of them.
    pub before: BuildPlan,
    /// In their order; at least one.
    pub configurations: Vec<DebugConfiguration>,
    /// With the end of one, the others are ended.
    pub stop_all: bool,
}

/// One session of it.
#[derive(Clone, Debug)]
pub struct DebugConfiguration {
    pub name: String,
    /// "the configuration "Server" of /ws/.vscode/launch.json:7"
    pub subject: String,
    /// The debugger's name for what it debugs.
    pub kind: String,
    /// The debugger's own keys.
    pub fields: Map<String, Value>,
    pub before: BuildPlan,
    pub after: BuildPlan,
    /// What was read and is not honoured.
    pub notes: Vec<String>,
    lines: Vec<ConsentLine>,
}

impl DebugPlan {
    /// Of a (canonical) workspace. Variables that can be said by hand stay, and so does `${env:…}`: see
    /// [`DebugPlan::with_editor_inputs`]. Errors name file, line and what is wrong, and for a name what there is.
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
        Ok(DebugPlan { workspace: workspace.to_owned(), name: name.to_owned(), before, configurations, stop_all })
    }

    /// What is to be run: each line unambiguous, a change of one byte changes a line.
    pub fn lines(&self) -> Vec<ConsentLine> {
        let steps = |plan: &BuildPlan, word: &str| -> Vec<ConsentLine> {
            plan.steps.iter().flat_map(|step| step.consent_lines(word, &self.workspace)).collect()
        };
        let each = self.configurations.iter().flat_map(|it| {
            steps(&it.before, "before").into_iter().chain(it.lines.clone()).chain(steps(&it.after, "after"))
        });
        steps(&self.before, "before").into_iter().chain(each).collect()
    }

    /// What really runs: with what was said by hand, and the environment, put in.
    pub fn with_editor_inputs(&self, given: &EditorInputs) -> Result<DebugPlan> {
        let fill = |it: &DebugConfiguration| {
            Ok(DebugConfiguration {
                fields: it.filled(given, &self.workspace)?,
                before: it.before.filled(given, &self.workspace)?,
                after: it.after.filled(given, &self.workspace)?,
                ..it.clone()
            })
        };
        Ok(DebugPlan {
            before: self.before.filled(given, &self.workspace)?,
            configurations: self.configurations.iter().map(fill).collect::<Result<_>>()?,
            ..self.clone()
        })
    }
}

impl DebugConfiguration {
    fn filled(&self, given: &EditorInputs, workspace: &Path) -> Result<Map<String, Value>> {
        let fields = self.fields.iter().map(|(key, value)| {
            let wrong = |MissingInput { variable, why, hint }| {
                let because = format!("`{key}` has the variable `${{{variable}}}`: {why}");
                Error::usage(format!("cannot use {}", self.subject)).because(because).hint(hint)
            };
            Ok((key.clone(), filled(value, given, workspace).map_err(wrong)?))
        });
        fields.collect()
    }
}

fn filled(value: &Value, given: &EditorInputs, workspace: &Path) -> Result<Value, MissingInput> {
    Ok(match value {
        Value::String(text) => {
            let filled = given.substitute(text, workspace)?;
            // A process is a number to most debuggers.
            let is_pid = text.starts_with("${command:") && text.find('}') == Some(text.len() - 1);
            filled.parse::<u32>().ok().filter(|_| is_pid).map_or(Value::String(filled), Value::from)
        }
        Value::Array(items) => items.iter().map(|item| filled(item, given, workspace)).collect::<Result<_, _>>()?,
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| Ok((name.clone(), filled(value, given, workspace)?));
            members.iter().map(member).collect::<Result<_, _>>()?
        }
        plain => plain.clone(),
    })
}

/// One configuration on its way.
struct ConfigurationDraft<'a> {
    entry: &'a LaunchEntry,
    /// For errors about its variables, which say where it stands themselves.
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
                return Err(self.entry.wrong(format!("its `request` is {other:?}, and no launch or attach")));
            }
            None => return Err(self.entry.wrong("it has no `request`").hint("add `\"request\": \"launch\"`")),
        }
        if kind.ends_with("xtensionHost") && node.text_of("request") == Some("launch") {
            let error = self.entry.wrong("an extension host is a window, which is started before it is debugged");
            return Err(error.hint(format!(
                "`tether start --config {}` starts it, and `tether debug attach --window extensionHost` debugs it",
                shell::quote_word(name)
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
            lines: self.lines(&fields, &prefix)?,
            fields,
        })
    }

    /// What a task's name stands for; `null` and no name are no task.
    fn task(&self, key: &str) -> Result<BuildPlan> {
        let Some(reference) = self.entry.node.get(key).filter(|node| node.value != jsonc::JsonValue::Null) else {
            return Ok(BuildPlan::empty(self.timeout));
        };
        task_steps::plan_task(&TasksFile::read(self.variables)?, reference, &self.entry.subject(), self.timeout)
    }

    fn fields(&self) -> Result<Map<String, Value>> {
        let expand =
            |text: &str, at: &JsonNode, key: &str| self.variables.expand(text, &self.site(at, key)).map(Value::String);
        let own = self.entry.node.members().iter().filter(|(key, _)| !VSCODE_KEYS.contains(&key.as_str()));
        let own = own.map(|(key, value)| Ok((key.clone(), value.json(key, &expand)?)));
        let mut fields: Map<String, Value> = own.collect::<Result<_>>()?;
        if let Some(mut env) = self.env_file()? {
            // What `env` says wins.
            env.extend(fields.get("env").and_then(Value::as_object).cloned().unwrap_or_default());
            fields.insert("env".to_owned(), env.into());
        }
        Ok(fields)
    }

    /// The variables of `envFile`; of a list of files, what a later one says wins.
    fn env_file(&self) -> Result<Option<Map<String, Value>>> {
        let Some(written) = self.written_env_file() else { return self.default_env_file() };
        let mut variables = Map::new();
        for node in written.one_or_many() {
            let wrong = |what: String| self.entry.wrong(format!("{what} (line {})", node.line));
            let text = node.text().ok_or_else(|| wrong("`envFile` is no text".to_owned()))?;
            let path = self.variables.resolving_environment().expand(text, &self.site(node, "envFile"))?;
            let path = self.variables.workspace().join(path);
            let read = env_file::read_env_file(&path)?;
            variables
                .extend(json_values(read.ok_or_else(|| wrong(format!("there is no `envFile` {}", path.display())))?));
        }
        Ok(Some(variables))
    }

    fn written_env_file(&self) -> Option<&JsonNode> {
        self.entry.node.get("envFile").filter(|node| node.value != jsonc::JsonValue::Null)
    }

    /// VS Code's debugger for Python reads `.env` when it is there.
    /// Source: <https://code.visualstudio.com/docs/python/environments#_environment-variables>
    fn default_env_file(&self) -> Result<Option<Map<String, Value>>> {
        let is_python = matches!(self.entry.node.text_of("type"), Some("python" | "debugpy"));
        if !is_python || self.entry.node.text_of("request") != Some("launch") {
            return Ok(None);
        }
        // Some keep their Python in a folder of that name.
        let path = Some(self.default_env_path()).filter(|path| path.is_file());
        let read = path.map(|path| env_file::read_env_file(&path)).transpose()?;
        Ok(read.flatten().map(json_values))
    }

    fn default_env_path(&self) -> PathBuf {
        self.variables.workspace().join(".env")
    }

    fn lines(&self, fields: &Map<String, Value>, prefix: &str) -> Result<Vec<ConsentLine>> {
        let runtime =
            ["runtimeExecutable", "runtimeArgs", "command", "args"].into_iter().filter_map(|key| fields.get(key));
        let words = |value: &Value| match value {
            Value::Array(words) => words.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect(),
            word => word.as_str().map(str::to_owned).into_iter().collect::<Vec<_>>(),
        };
        let argv: Vec<String> = runtime.flat_map(words).collect();
        let workspace = self.variables.workspace();
        let cwd = workspace.join(fields.get("cwd").and_then(Value::as_str).unwrap_or_default());
        let scripts = scripts_of(workspace, &argv, &cwd)?;
        let own = fields.iter().filter(|(key, _)| *key != "name").map(|(key, value)| ConsentLine {
            text: format!("{prefix}.{}: {value}", quote_key(key)),
            origin: Some(self.origin_of(key)),
        });
        Ok(own.chain(scripts.iter().map(NpmScript::consent_line)).collect())
    }

    /// Only `env` may be there without being written: its file is, or is the one that everybody knows.
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

/// A key that could be taken for something else, in quotes.
fn quote_key(key: &str) -> String {
    let is_plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if is_plain { key.to_owned() } else { json!(key).to_string() }
}

#[cfg(test)]
mod tests;
