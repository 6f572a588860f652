//! The values that VS Code takes from its editor or its user for a debug session: here they come with the command.
//!
//! Texts keep these variables until a session is started, so that the consent does not depend on the values.

use std::path::{Path, PathBuf};

use tether_base::error::Error;

use crate::config::vscode::shell_line::{LinePosition, substitute_in_shell_line};
use crate::config::vscode::variables::{FILE_VARIABLES, PROCESS_VARIABLES, environment_value, substitute_variables};

/// The values that came with the command.
#[derive(Clone, Debug, Default)]
pub struct EditorInputs {
    /// Absolute: the value of `${file}`, from which the other file variables derive.
    pub file: Option<PathBuf>,
    /// The value of `${command:pickProcess}`.
    pub pid: Option<u32>,
    /// `${env:…}` stays: for what is shown.
    keeps_environment: bool,
}

/// A variable that cannot be substituted, nearly always because its value is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingInput {
    /// Its name.
    pub variable: String,
    /// The reason.
    pub why: &'static str,
    /// How to supply the value.
    pub hint: String,
}

impl MissingInput {
    fn new(variable: &str, why: &'static str, hint: impl Into<String>) -> MissingInput {
        MissingInput { variable: variable.to_owned(), why, hint: hint.into() }
    }

    /// The user-facing error: what cannot be done, and what has the variable.
    pub fn error(self, doing: String, holder: &str) -> Error {
        let MissingInput { variable, why, hint } = self;
        Error::usage(doing).because(format!("{holder} has the variable `${{{variable}}}`: {why}")).hint(hint)
    }
}

impl EditorInputs {
    /// With these values.
    pub fn new(file: Option<PathBuf>, pid: Option<u32>) -> EditorInputs {
        EditorInputs { file, pid, keeps_environment: false }
    }

    /// The same, for what is shown: `${env:…}` stays in a text, and is the shell's own variable in a line.
    #[must_use]
    pub fn keeping_environment(&self) -> EditorInputs {
        EditorInputs { keeps_environment: true, ..self.clone() }
    }

    /// Substitutes editor inputs and `${env:…}` in a text.
    pub fn substitute(&self, text: &str, workspace: &Path) -> Result<String, MissingInput> {
        substitute_variables(text, |_, name| self.input_value(name, workspace))
    }

    /// The same in a shell's line, with each value quoted so that the shell reads it as text.
    pub fn substitute_in_line(
        &self,
        line: &str,
        first: LinePosition,
        workspace: &Path,
    ) -> Result<String, MissingInput> {
        substitute_in_shell_line(line, first, |name, place| match self.input_value(name, workspace)? {
            Some(_) if self.keeps_environment && name.starts_with("env:") => {
                Ok(name.strip_prefix("env:").map(|variable| place.environment_reference(variable)))
            }
            Some(value) if name.starts_with("env:") => Ok(Some(place.quote_environment_value(&value))),
            Some(value) => place.quote_value(&value).map(Some).ok_or_else(|| unsafe_input(name)),
            None => Ok(None),
        })
    }

    fn input_value(&self, name: &str, workspace: &Path) -> Result<Option<String>, MissingInput> {
        match name.strip_prefix("env:") {
            Some(_) if self.keeps_environment => Ok(Some(format!("${{{name}}}"))),
            Some(variable) => Ok(Some(environment_value(variable))),
            None if FILE_VARIABLES.contains(&name) => self.file_part(name, workspace).map(Some),
            None if PROCESS_VARIABLES.contains(&name) => self.process_id(name).map(Some),
            None => Ok(None),
        }
    }

    fn file_part(&self, name: &str, workspace: &Path) -> Result<String, MissingInput> {
        let hint = "name the file: `tether debug launch FILE --config NAME` (`program` beside `config`)";
        let missing = || MissingInput::new(name, "it needs an open editor", hint);
        let file = self.file.as_deref().ok_or_else(missing)?;
        let inside = file.strip_prefix(workspace).unwrap_or(file);
        let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let whole = |path: Option<&Path>| path.unwrap_or(Path::new("")).to_string_lossy().into_owned();
        Ok(match name {
            "fileBasename" => part(file.file_name()),
            "fileBasenameNoExtension" => part(file.file_stem()),
            "fileDirname" => whole(file.parent()),
            "fileDirnameBasename" => part(file.parent().and_then(Path::file_name)),
            "fileExtname" => file.extension().map(|it| format!(".{}", it.to_string_lossy())).unwrap_or_default(),
            "fileWorkspaceFolder" => whole(Some(workspace)),
            "fileWorkspaceFolderBasename" => part(workspace.file_name()),
            "relativeFile" => whole(Some(inside)),
            "relativeFileDirname" => whole(inside.parent()),
            _ => whole(Some(file)),
        })
    }

    fn process_id(&self, name: &str) -> Result<String, MissingInput> {
        let hint = "name the process: `tether debug attach --config NAME --pid PID` (`pid` beside `config`)";
        let missing = || MissingInput::new(name, "VS Code asks its user for a process", hint);
        self.pid.map(|pid| pid.to_string()).ok_or_else(missing)
    }
}

fn unsafe_input(name: &str) -> MissingInput {
    let why = "at this place a shell could read a part of its value as a command";
    let hint = format!("make it an argument of its own, `\"args\": [\"${{{name}}}\"]`, or rename the file");
    MissingInput::new(name, why, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::vscode::shell_quoting::LineSource;

    #[test]
    fn values_are_substituted_once() {
        let inputs = EditorInputs::new(Some("/w s/sub/a.b.py".into()), Some(7));
        let check = |text: &str, expect: &str| {
            assert_eq!(inputs.substitute(text, Path::new("/w s")).unwrap(), expect, "{text}");
        };
        check("${file} ${relativeFile}", "/w s/sub/a.b.py sub/a.b.py");
        check("${fileDirname}|${relativeFileDirname}|${fileDirnameBasename}", "/w s/sub|sub|sub");
        check("${fileBasename} ${fileBasenameNoExtension} ${fileExtname}", "a.b.py a.b .py");
        check("${fileWorkspaceFolder} ${fileWorkspaceFolderBasename}", "/w s w s");
        check("${command:pickProcess}${command:PickProcess}", "77");
        check("${env:CARGO_PKG_NAME} ${HOME} ${open", "devtether ${HOME} ${open");
        let odd = EditorInputs::new(Some("/w s/${file}".into()), None);
        assert_eq!(odd.substitute("${file}", Path::new("/w s")).unwrap(), "/w s/${file}");
        assert_eq!(inputs.substitute("${relativeFile}", Path::new("/other")).unwrap(), "/w s/sub/a.b.py");
    }

    #[test]
    fn a_value_that_a_shell_could_read_as_a_command_is_refused_or_quoted() {
        let inputs = EditorInputs::new(Some("/ws/a;cmd;.c".into()), None);
        let fill = |line: &str| {
            inputs.substitute_in_line(
                line,
                LinePosition::line_start("/bin/bash", line, LineSource::AsWritten),
                Path::new("/ws"),
            )
        };
        assert_eq!(fill("gcc ${file} -o ${relativeFile}.o").unwrap(), "gcc '/ws/a;cmd;.c' -o 'a;cmd;.c'.o");
        let missing = fill("cd \"$(dirname ${file})\"").unwrap_err();
        assert_eq!((missing.variable.as_str(), missing.hint.contains("\"args\": [\"${file}\"]")), ("file", true));
    }

    #[test]
    fn a_missing_input_names_the_option_that_supplies_it() {
        let check = |text: &str, variable: &str, hint: &str| {
            let missing = EditorInputs::default().substitute(text, Path::new("/ws")).unwrap_err();
            assert_eq!(missing.variable, variable);
            assert!(missing.hint.contains(hint), "{missing:?}");
        };
        check("x ${fileBasename}", "fileBasename", "`tether debug launch FILE --config NAME`");
        check("${command:PickProcess}", "command:PickProcess", "--pid PID");
    }
}
