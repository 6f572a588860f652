//! Substitutes VS Code's variables (`${…}`) in texts of launch.json and tasks.json, and names those without a value
//! here.
//!
//! Source: <https://code.visualstudio.com/docs/reference/variables-reference>
//! Does not depend on the use of a text.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::path::Path;

use tether_base::error::{Error, Result};

use crate::config::jsonc::{JsonDocument, JsonValue};

/// Variables whose value only VS Code has: (name or its prefix, reason).
const UNSUPPORTED: &[(&str, &str)] = &[
    ("input:", "it asks the user in VS Code"),
    ("command:", "it runs a command of VS Code"),
    ("file", "it needs an open editor"),
    ("relativeFile", "it needs an open editor"),
    ("lineNumber", "it needs an open editor"),
    ("columnNumber", "it needs an open editor"),
    ("selectedText", "it needs an open editor"),
    ("execPath", "it is VS Code's own program"),
    ("extensionInstallFolder:", "it is a folder of VS Code's"),
    ("defaultBuildTask", "it is the name of a task, for `preLaunchTask` alone"),
];

/// Derived from the file that is open in the editor.
pub const FILE_VARIABLES: &[&str] = &[
    "file",
    "fileBasename",
    "fileBasenameNoExtension",
    "fileDirname",
    "fileDirnameBasename",
    "fileExtname",
    "fileWorkspaceFolder",
    "fileWorkspaceFolderBasename",
    "relativeFile",
    "relativeFileDirname",
];
/// The id of a process that the user picks: VS Code's command, and those of debugger extensions.
pub const PROCESS_VARIABLES: &[&str] = &[
    "command:pickProcess",
    "command:PickProcess",
    "command:extension.pickNodeProcess",
    "command:pickMyProcess",
    "command:cpptools.pickNativeProcess",
];

/// The values of variables in one workspace.
#[derive(Clone)]
pub struct VariableContext<'a> {
    /// Its root.
    pub workspace: &'a Path,
    /// Substitutes `${env:…}`; else it stays, for [`substitute_environment`].
    resolves_environment: bool,
    /// Leaves editor inputs in the text, for `EditorInputs::substitute`.
    keeps_editor_inputs: bool,
    settings: OnceCell<Option<JsonDocument>>,
}

/// Substitutes `${env:…}`. This is done last: the consent must not depend on the environment of the command.
pub fn substitute_environment(text: &str) -> String {
    let value = |_: &str, name: &str| Ok::<_, Infallible>(name.strip_prefix("env:").map(environment_value));
    let Ok(expanded) = substitute_variables(text, value);
    expanded
}

/// Whether the value of a variable comes with the command that starts a debug session.
pub fn is_editor_input(name: &str) -> bool {
    FILE_VARIABLES.contains(&name) || PROCESS_VARIABLES.contains(&name)
}

/// The value of an environment variable; empty when it is not set, as in VS Code.
pub fn environment_value(variable: &str) -> String {
    std::env::var_os(variable).unwrap_or_default().to_string_lossy().into_owned()
}

/// Substitutes each `${name}` for which `value` returns one; substituted text is not searched again. `value` receives
/// the text since the previous variable, and the name.
pub fn substitute_variables<E>(
    text: &str,
    mut value: impl FnMut(&str, &str) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        expanded.push_str(&rest[..start]);
        match value(&rest[..start], &rest[start + 2..start + length])? {
            Some(value) => expanded.push_str(&value),
            None => expanded.push_str(&rest[start..=start + length]),
        }
        rest = &rest[start + length + 1..];
    }
    Ok(expanded + rest)
}

/// The place of a text that is expanded, for error messages.
#[derive(Clone, Debug)]
pub struct VariableSite<'a> {
    /// "the configuration "Run Extension""
    pub subject: &'a str,
    /// The file.
    pub document: &'a Path,
    /// 1-based.
    pub line: usize,
    /// The key under which the text is.
    pub key: &'a str,
    /// A shell reads the text: unknown variables are left to it.
    pub shell: bool,
}

impl<'a> VariableContext<'a> {
    /// Leaves `${env:…}` in the text; refuses editor inputs.
    pub fn new(workspace: &'a Path) -> VariableContext<'a> {
        VariableContext {
            workspace,
            resolves_environment: false,
            keeps_editor_inputs: false,
            settings: OnceCell::new(),
        }
    }

    /// The same, with `${env:…}` substituted: for paths, which are read.
    pub fn resolving_environment(&self) -> VariableContext<'a> {
        VariableContext { resolves_environment: true, ..self.clone() }
    }

    /// For a debug session: editor inputs stay in the text.
    pub fn for_debugging(workspace: &'a Path) -> VariableContext<'a> {
        VariableContext { keeps_editor_inputs: true, ..VariableContext::new(workspace) }
    }

    /// Substitutes every variable. Errors name the variable, the key, the subject, file and line.
    pub fn expand(&self, text: &str, site: &VariableSite<'_>) -> Result<String> {
        substitute_variables(text, |_, name| match self.lookup_value(name) {
            Ok(None) if !site.shell => Err(self.unsupported_variable(name, "tether does not know it", site)),
            Ok(value) => Ok(value),
            Err(why) => Err(self.unsupported_variable(name, &why, site)),
        })
    }

    fn unsupported_variable(&self, name: &str, why: &str, site: &VariableSite<'_>) -> Error {
        let VariableSite { subject, document, line, key, .. } = site;
        let error = Error::usage(format!("cannot use {subject} of {}:{line}", document.display()))
            .because(format!("`{key}` has the unsupported variable `${{{name}}}`: {why}"));
        let otherwise = match self.keeps_editor_inputs {
            true => "",
            false => ", or describe the window in devtools.toml (`tether init` begins one)",
        };
        error.hint(format!("write its value into `{key}`{otherwise}"))
    }

    /// `None`: an unknown variable. An error: a variable of VS Code without a value here.
    fn lookup_value(&self, name: &str) -> Result<Option<String>, String> {
        let folder = || self.workspace.to_str().map(str::to_owned).ok_or("the workspace's path is not UTF-8");
        let base = self.workspace.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Ok(Some(match name {
            "workspaceFolder" | "workspaceRoot" | "cwd" => folder()?,
            "workspaceFolderBasename" => base.to_owned(),
            "userHome" => {
                let home = std::env::home_dir().and_then(|home| home.to_str().map(str::to_owned));
                home.ok_or("there is no home folder")?
            }
            "pathSeparator" | "/" => "/".to_owned(),
            // js-debug substitutes it.
            "webRoot" if self.keeps_editor_inputs => "${webRoot}".to_owned(),
            _ if self.keeps_editor_inputs && is_editor_input(name) => format!("${{{name}}}"),
            _ => match name.split_once(':') {
                Some(("env", variable)) => self.environment(variable)?,
                Some(("config", key)) => self.setting(key)?,
                Some(("workspaceFolder", which)) if which == base => folder()?,
                Some(("workspaceFolder", which)) => Err(format!("{which:?} is another folder than this workspace"))?,
                _ => match UNSUPPORTED.iter().find(|(start, _)| name.starts_with(start)) {
                    Some((_, why)) => Err(*why)?,
                    None => return Ok(None),
                },
            },
        }))
    }

    /// Empty when it is not set, as in VS Code.
    fn environment(&self, variable: &str) -> Result<String, String> {
        if !self.resolves_environment {
            return Ok(format!("${{env:{variable}}}"));
        }
        let value = std::env::var_os(variable).unwrap_or_default();
        value.into_string().map_err(|_| "its value is not UTF-8".to_owned())
    }

    /// From the workspace's settings; those of the user belong to an editor that need not be installed.
    fn setting(&self, key: &str) -> Result<String, String> {
        let file = self.workspace.join(".vscode/settings.json");
        if self.settings.get().is_none() {
            let document = JsonDocument::read(&file).map_err(|error| error.to_string())?;
            let _ = self.settings.set(document);
        }
        let root = self.settings.get().and_then(Option::as_ref).map(|document| &document.root);
        let nested = || key.split('.').try_fold(root?, |node, part| node.get(part));
        match root.and_then(|root| root.get(key)).or_else(nested).map(|node| &node.value) {
            Some(JsonValue::String(text) | JsonValue::Number(text)) => Ok(text.clone()),
            Some(JsonValue::Bool(value)) => Ok(value.to_string()),
            Some(_) => Err(format!("{key:?} in .vscode/settings.json is neither a text nor a number")),
            None => Err(format!("there is no {key:?} in .vscode/settings.json")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str, resolves_environment: bool, shell: bool) -> Result<String> {
        let workspace = tempfile::tempdir().unwrap();
        let folder = workspace.path().join("my app");
        std::fs::create_dir_all(folder.join(".vscode")).unwrap();
        let settings = "{ // ours\n \"a.b\": \"flat\", \"c\": {\"d\": 7}, \"e\": [] }";
        std::fs::write(folder.join(".vscode/settings.json"), settings).unwrap();
        let site =
            VariableSite { subject: "the task \"t\"", document: Path::new("tasks.json"), line: 3, key: "args", shell };
        let variables = VariableContext { resolves_environment, ..VariableContext::new(&folder) };
        let expanded = variables.expand(text, &site)?;
        Ok(expanded.replace(folder.to_str().unwrap(), "<ws>"))
    }

    #[test]
    fn known_variables_are_substituted() {
        let check = |text: &str, expect: &str| {
            assert_eq!(expand(text, true, false).unwrap(), expect, "{text}");
        };
        check("${workspaceFolder}/out ${workspaceRoot} ${cwd}", "<ws>/out <ws> <ws>");
        check("${workspaceFolderBasename}${/}${pathSeparator}${workspaceFolder:my app}", "my app//<ws>");
        check("--x=${config:a.b},${config:c.d}", "--x=flat,7");
        check("${env:DEVTETHER_SURELY_UNSET}|", "|");
        check("${env:CARGO_PKG_NAME}", "devtether");
        check("$HOME $ {x} ${open", "$HOME $ {x} ${open");
        assert!(!expand("${userHome}", true, false).unwrap().contains('$'));
        assert_eq!(expand("a${env:HOME}", false, false).unwrap(), "a${env:HOME}");
        assert_eq!(
            substitute_environment("a ${env:CARGO_PKG_NAME}${env:DEVTETHER_SURELY_UNSET}, ${env:"),
            "a devtether, ${env:"
        );
        assert_eq!(expand("${HOME}/x", true, true).unwrap(), "${HOME}/x");
    }

    #[test]
    fn variables_without_a_value_are_named() {
        let check = |text: &str, part: &str| {
            for shell in [true, false] {
                let message = expand(text, true, shell).unwrap_err().to_string();
                for part in ["the task \"t\" of tasks.json:3", "`args`", part] {
                    assert!(message.contains(part), "{part:?} is not in {message}");
                }
            }
        };
        check("${input:port}", "`${input:port}`: it asks the user");
        check("x${command:pick}", "`${command:pick}`: it runs a command");
        check("${fileBasename}", "`${fileBasename}`: it needs an open editor");
        check("${config:x.y}", "there is no \"x.y\" in .vscode/settings.json");
        check("${config:e}", "neither a text nor a number");
        check("${workspaceFolder:other}", "another folder");
        assert!(expand("${nobody}", true, false).unwrap_err().to_string().contains("`${nobody}`"));
    }
}
