//! Resolves a launch configuration or compound of launch.json into debug sessions, with the tasks before and after
//! them.
//!
//! The debugger's keys are passed on as written, with variables substituted; the keys of VS Code itself take effect
//! here.
//! Does not depend on any debugger.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tether_base::error::{Error, Result};
use tether_base::secret_values::SecretValues;

use crate::config::build_plan::BuildPlan;
use crate::config::consent_line::ConsentLine;
use crate::config::devtools_toml::settings::Settings;
use crate::config::jsonc::JsonNode;
use crate::config::npm::consented_scripts::{NpmScript, consented_scripts};
use crate::config::shown_environment::{secrets_of_configuration, secrets_of_references, show_environment_field};
use crate::config::source_file::Origin;
use crate::config::vscode::attribute_use::AttributeReader;
use crate::config::vscode::editor_inputs::{EditorInputs, MissingInput};
use crate::config::vscode::env_file::read_env_file;
use crate::config::vscode::launch_attributes::LaunchAttributes;
use crate::config::vscode::launch_json::{
    LaunchEntry, LaunchFile, missing_launch_file, runs_extension_tests, tests_hint,
};
use crate::config::vscode::shell_quoting::quote_word;
use crate::config::vscode::task_steps::plan_task;
use crate::config::vscode::tasks_json::TasksFile;
use crate::config::vscode::variables::VariableContext;

/// Keys for VS Code itself, which no debugger reads.
const VSCODE_KEYS: &[&str] =
    &["preLaunchTask", "postDebugTask", "envFile", "linux", "osx", "windows", "presentation", "order"];

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
    /// The values of its variables: masked in its errors.
    pub secrets: SecretValues,
    lines: Vec<ConsentLine>,
    /// Each key as written, and where it stands.
    written: Vec<(String, Value, Origin)>,
}

impl DebugPlan {
    /// Resolves the configuration or compound `name` of a (canonical) workspace. Editor inputs and `${env:…}` stay: see
    /// [`DebugPlan::with_editor_inputs`]. Errors name file and line; for an unknown name, the names that exist.
    pub fn resolve(workspace: &Path, name: &str) -> Result<DebugPlan> {
        let Some(file) = LaunchFile::read(workspace)? else {
            return Err(missing_launch_file(workspace, name).hint("`tether debug launch PROGRAM` needs none"));
        };
        let (entries, compound) = file.named_entries(name)?;
        let variables = VariableContext::for_debugging(workspace);
        let timeout = Settings::load(workspace)?.build.timeout;
        let draft = |entry| ConfigurationDraft { attributes: LaunchAttributes::new(entry, variables.clone()), timeout };
        let nothing = BuildPlan::empty(timeout);
        let before = compound.as_ref().map(|it| draft(it).task("preLaunchTask")).transpose()?.unwrap_or(nothing);
        let several = compound.is_some();
        let configurations = entries.iter().map(|it| draft(it).configuration(several)).collect::<Result<_>>()?;
        let (workspace, name) = (workspace.to_owned(), name.to_owned());
        let mut plan = DebugPlan { workspace, name, before, configurations, scripts: Vec::new() };
        plan.scripts = consented_scripts(&plan.workspace, plan.working_folders())?;
        Ok(plan)
    }

    /// Where its tasks and programs run.
    fn working_folders(&self) -> impl Iterator<Item = &Path> {
        let plans = self.configurations.iter().flat_map(|it| [&it.before, &it.after]).chain([&self.before]);
        let steps = plans.flat_map(|plan| &plan.steps).map(|step| step.cwd.as_path());
        let programs = self.configurations.iter().map(|it| it.fields.get("cwd").and_then(Value::as_str));
        steps.chain(programs.map(|cwd| cwd.map_or(self.workspace.as_path(), Path::new)))
    }

    /// Everything that is run, for the user's consent: tasks, configurations, npm scripts.
    pub fn consent_lines(&self) -> Vec<ConsentLine> {
        let steps = |plan: &BuildPlan, word: &str| -> Vec<ConsentLine> {
            plan.steps.iter().map(|step| step.consent_line(word, &self.workspace, word == "before")).collect()
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
    /// What is to be said of its keys when this adapter debugs it, one sentence each. Errors: without one of them,
    /// another program would run.
    pub fn attribute_notes(&self, adapter: &str) -> Result<Vec<String>> {
        let request = self.fields.get("request").and_then(Value::as_str).unwrap_or_default();
        let reader = AttributeReader { name: adapter, kind: &self.kind, request };
        let note = |(key, value, origin): &(String, Value, Origin)| match reader.remark(key, value) {
            Ok(remark) => Ok(remark.map(|remark| format!("{origin}: `{key}` {remark}"))),
            Err(why) => Err(Error::usage(format!("cannot honour `{key}` ({origin})")).because(why)),
        };
        self.written.iter().filter_map(|attribute| note(attribute).transpose()).collect()
    }

    fn substituted_fields(&self, inputs: &EditorInputs, workspace: &Path) -> Result<Map<String, Value>> {
        let fields = self.fields.iter().map(|(key, value)| {
            let wrong =
                |missing: MissingInput| missing.error(format!("cannot use {}", self.subject), &format!("`{key}`"));
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
    attributes: LaunchAttributes<'a>,
    timeout: Duration,
}

impl ConfigurationDraft<'_> {
    fn configuration(&self, several: bool) -> Result<DebugConfiguration> {
        let entry = self.attributes.entry;
        let LaunchEntry { name, node, .. } = entry;
        let kind = node.text_of("type").ok_or_else(|| entry.wrong("it has no `type`"))?;
        match node.text_of("request") {
            Some("launch" | "attach") => {}
            Some(other) => {
                return Err(entry.wrong(format!("its `request` is {other:?}, which is neither launch nor attach")));
            }
            None => return Err(entry.wrong("it has no `request`").hint("add `\"request\": \"launch\"`")),
        }
        if kind.ends_with("xtensionHost") && node.text_of("request") == Some("launch") {
            if runs_extension_tests(node) {
                let error = entry.wrong("it runs the tests of an extension, which are debugged alone");
                return Err(error.hint(tests_hint(name)));
            }
            let error = entry.wrong("an extension host is a window, which is started before it is debugged");
            return Err(error.hint(format!(
                "`tether start --config {}` starts it, and `tether debug attach --window extensionHost` debugs it",
                quote_word(name)
            )));
        }
        let fields = self.fields()?;
        let prefix = if several { format!("debug {}", json!(name)) } else { "debug".to_owned() };
        let written = node.members().iter().map(|(key, it)| (key.clone(), it.as_written(), self.attributes.origin(it)));
        Ok(DebugConfiguration {
            name: name.clone(),
            subject: entry.subject(),
            kind: kind.to_owned(),
            before: self.task("preLaunchTask")?,
            after: self.task("postDebugTask")?,
            written: written.collect(),
            lines: self.consent_lines(&fields, &prefix),
            secrets: secrets_of_configuration(&fields),
            fields,
        })
    }

    /// The plan of the task under `key`; empty without one, or for `null`.
    fn task(&self, key: &str) -> Result<BuildPlan> {
        let Some(reference) = self.attributes.get(key) else { return Ok(BuildPlan::empty(self.timeout)) };
        let tasks = TasksFile::read(&self.attributes.variables)?;
        plan_task(&tasks, reference, &self.attributes.entry.subject(), self.timeout)
    }

    fn fields(&self) -> Result<Map<String, Value>> {
        let expand =
            |text: &str, node: &JsonNode, key: &str| self.attributes.expand(text, node, key).map(Value::String);
        let own = self.attributes.root().members().iter().filter(|(key, _)| !VSCODE_KEYS.contains(&key.as_str()));
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
        let Some(written) = self.attributes.get("envFile") else { return self.default_env_file() };
        let resolved = self.attributes.resolving_environment();
        let mut variables = Map::new();
        for node in written.one_or_many() {
            let wrong = |what: String| self.attributes.wrong(format!("{what} (line {})", node.line));
            let text = node.text().ok_or_else(|| wrong("`envFile` is not a text".to_owned()))?;
            let path = resolved.variables.workspace.join(resolved.expand(text, node, "envFile")?);
            let read = read_env_file(&path)?;
            let shown = || secrets_of_references([text]).mask(&path.display().to_string());
            let missing = || wrong(format!("there is no `envFile` {}", shown()));
            variables.extend(json_values(read.ok_or_else(missing)?));
        }
        Ok(Some(variables))
    }

    /// The Python debugger of VS Code reads `.env` when it exists.
    /// Source: <https://code.visualstudio.com/docs/python/environments#_environment-variables>
    fn default_env_file(&self) -> Result<Option<Map<String, Value>>> {
        let node = self.attributes.root();
        let is_python = matches!(node.text_of("type"), Some("python" | "debugpy"));
        if !is_python || node.text_of("request") != Some("launch") {
            return Ok(None);
        }
        // `.env` may be a folder with a virtual environment.
        let path = Some(self.default_env_path()).filter(|path| path.is_file());
        let read = path.map(|path| read_env_file(&path)).transpose()?;
        Ok(read.flatten().map(json_values))
    }

    fn default_env_path(&self) -> PathBuf {
        self.attributes.variables.workspace.join(".env")
    }

    fn consent_lines(&self, fields: &Map<String, Value>, prefix: &str) -> Vec<ConsentLine> {
        let shown = |key: &str, value: &Value| match key {
            "env" | "environment" => show_environment_field(value),
            _ => value.clone(),
        };
        let own = fields.iter().filter(|(key, _)| *key != "name").map(|(key, value)| ConsentLine {
            text: format!("{prefix}.{}: {}", quote_key(key), shown(key, value)),
            origin: Some(self.origin_of(key)),
        });
        own.collect()
    }

    /// Only `env` can be set without its key: by `envFile`, or by the default `.env`.
    fn origin_of(&self, key: &str) -> Origin {
        match self.attributes.root().get(key).or_else(|| self.attributes.get("envFile")) {
            Some(node) => self.attributes.origin(node),
            None => Origin::new(self.attributes.variables.workspace, &self.default_env_path(), None),
        }
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
