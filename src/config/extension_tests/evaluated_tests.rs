//! One configuration of extension tests, evaluated: what its host opens, and which tests run in it.
//!
//! Does not depend on how a host is launched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tether_base::error::{Error, ErrorKind, Result};

use crate::config::devtools_toml::settings::{WindowKind, WindowSettings};

/// Evaluates a `.vscode-test.*` file: its path and that of the result are the last two arguments.
pub const EVALUATE_SCRIPT: &str = include_str!("evaluate.mjs");
/// A file of that many configurations is a mistake.
const MAX_CONFIGURATIONS: usize = 50;

/// What runs in a host, as its test runner reads it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostedTests {
    /// The test files; empty where `runner` finds them itself.
    pub files: Vec<PathBuf>,
    /// The options of Mocha.
    pub mocha: Map<String, Value>,
    /// Modules that are loaded before the tests.
    pub preload: Vec<PathBuf>,
    /// The main file of Mocha, where that is known.
    pub mocha_main: Option<PathBuf>,
    /// The workspace's own runner: `--extensionTestsPath`.
    pub runner: Option<PathBuf>,
}

/// A configuration whose tests can be run.
#[derive(Clone, Debug)]
pub struct EvaluatedTests {
    /// For readers: its label, the name of a launch configuration, or the file.
    pub label: String,
    /// The host, with the kind of the user's choice.
    pub window: WindowSettings,
    /// What runs in it.
    pub tests: HostedTests,
    /// What is not honoured, one sentence each.
    pub notes: Vec<String>,
}

/// A configuration, as the script writes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTests {
    label: Option<String>,
    platform: Option<String>,
    #[serde(default)]
    files: Vec<PathBuf>,
    #[serde(default)]
    patterns: Vec<String>,
    #[serde(default)]
    extensions: Vec<PathBuf>,
    workspace_folder: Option<PathBuf>,
    #[serde(default)]
    launch_args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    mocha: Map<String, Value>,
    #[serde(default)]
    preload: Vec<PathBuf>,
    mocha_main: Option<PathBuf>,
    #[serde(default)]
    install_extensions: Vec<String>,
}

/// The configurations that a `.vscode-test.*` file describes, by the result of the script; with `label` the one of that
/// label. `programs`: the settings that name the programs of a host. Errors: there is none, it has no test files, it runs
/// in a browser.
pub fn read_evaluated(
    file: &Path,
    written: &str,
    label: Option<&str>,
    programs: &WindowSettings,
) -> Result<Vec<EvaluatedTests>> {
    let subject = || format!("the tests of {}", file.display());
    let all: Vec<WrittenTests> = serde_json::from_str(written)
        .map_err(|cause| Error::usage(format!("cannot read {}", subject())).because(cause))?;
    if all.len() > MAX_CONFIGURATIONS {
        return Err(Error::usage(format!("cannot run {}", subject()))
            .because(format!("it has {} configurations; at most {MAX_CONFIGURATIONS} are run", all.len())));
    }
    let labels: Vec<String> = all.iter().filter_map(|it| it.label.as_ref()).map(|it| format!("{it:?}")).collect();
    let is_chosen = |it: &WrittenTests| label.is_none_or(|label| it.label.as_deref() == Some(label));
    let chosen: Vec<EvaluatedTests> =
        all.into_iter().filter(is_chosen).map(|it| it.evaluated(file, programs)).collect::<Result<_>>()?;
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let error = match label {
        Some(label) => Error::new(ErrorKind::NotFound, format!("cannot find the test configuration {label:?}")),
        None => Error::new(ErrorKind::NotFound, format!("cannot run {}", subject())),
    };
    Err(error.because(match labels.is_empty() {
        true => format!("{} has no configuration with a label", file.display()),
        false => format!("{} has: {}", file.display(), labels.join(", ")),
    }))
}

impl WrittenTests {
    fn evaluated(self, file: &Path, programs: &WindowSettings) -> Result<EvaluatedTests> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let label = self.label.unwrap_or(name);
        let wrong =
            |why: String| Error::usage(format!("cannot run the tests {label:?} of {}", file.display())).because(why);
        if let Some(platform) = self.platform.filter(|platform| platform != "desktop") {
            return Err(wrong(format!("its platform is {platform:?}, and tests run in the extension host of Node")));
        }
        if self.files.is_empty() {
            let error = wrong(format!("no file fits `files`: {}", self.patterns.join(", ")));
            return Err(error.hint("build them first: its `pretest` script, or a [build] command in devtools.toml"));
        }
        let mut notes = Vec::new();
        if !self.install_extensions.is_empty() {
            let names = self.install_extensions.join(", ");
            notes.push(format!("`installExtensions` is not honoured: {names} is not there, unless VS Code brings it"));
        }
        let mut extensions = self.extensions.into_iter();
        let window = WindowSettings {
            kind: Some(programs.kind.unwrap_or(WindowKind::ExtensionHost)),
            derived: programs.kind.is_none(),
            extension: extensions.next(),
            more_extensions: extensions.collect(),
            folder: self.workspace_folder,
            args: self.launch_args,
            env: self.env,
            ..programs.clone()
        };
        let tests = HostedTests {
            files: self.files,
            mocha: self.mocha,
            preload: self.preload,
            mocha_main: self.mocha_main,
            runner: None,
        };
        Ok(EvaluatedTests { label, window, tests, notes })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(written: &Value, label: Option<&str>) -> Result<Vec<EvaluatedTests>> {
        read_evaluated(Path::new("/ws/.vscode-test.mjs"), &written.to_string(), label, &WindowSettings::default())
    }

    #[test]
    fn a_configuration_is_chosen_by_its_label_and_all_without_one() {
        let one = |label: &str| json!({"label": label, "files": ["/ws/out/a.test.js"], "extensions": ["/ws", "/ws/b"]});
        let both = json!([one("unit"), one("e2e")]);
        let labels = |label: Option<&str>| -> Vec<String> {
            read(&both, label).unwrap().into_iter().map(|it| it.label).collect()
        };
        assert_eq!(labels(None), ["unit", "e2e"]);
        assert_eq!(labels(Some("e2e")), ["e2e"]);
        let missing = read(&both, Some("web")).unwrap_err().to_string();
        assert!(missing.contains("\"unit\", \"e2e\""), "{missing}");
        let unlabelled = read(&json!([{"files": ["/ws/a.js"], "extensions": ["/ws"]}]), None).unwrap().remove(0);
        assert_eq!(unlabelled.label, ".vscode-test.mjs");
        assert_eq!((unlabelled.window.derived, unlabelled.window.kind), (true, Some(WindowKind::ExtensionHost)));
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_its_reason() {
        let refused = |written: Value, part: &str| {
            let error = read(&written, None).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        refused(json!([{"files": [], "patterns": ["out/**/*.test.js"]}]), "no file fits `files`: out/**/*.test.js");
        refused(json!([{"files": ["/a"], "platform": "chromium"}]), "\"chromium\"");
        refused(json!([]), "has no configuration");
        refused(json!({"a": 1}), "cannot read the tests");
        let many = vec![json!({"files": ["/a"]}); MAX_CONFIGURATIONS + 1];
        refused(json!(many), "at most 50");
        let notes = read(&json!([{"files": ["/a"], "installExtensions": ["a.b"]}]), None).unwrap().remove(0).notes;
        assert!(notes[0].contains("a.b"), "{notes:?}");
    }
}
