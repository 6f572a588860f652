//! `settings.json` of the VS Code in a window.
//!
//! A window's VS Code runs with workspace trust switched off, since an untrusted workspace disables the extension under
//! development. It must therefore not run the tasks that a workspace declares for the opening of its folder.

use std::path::Path;

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use tether_base::error::{Error, ErrorContext, Result};

use crate::config::jsonc::DIALECT;
use crate::config::source_file::{read_text, replace_file};

/// No welcome page or chat beside the extension under development, and no unrequested network access. With another source
/// of ports, the extension host of a server looks through all processes every 2 s. And no search for npm scripts: it opens
/// `package.json` some seconds after each start, which activates the JSON extension, with its language server, in that host
/// and each one after it.
const DEFAULTS: &str = r#"{
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.enableExperiments": false,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoCheckUpdates": false,
    "extensions.autoUpdate": "off",
    "extensions.ignoreRecommendations": true,
    "npm.autoDetect": "off",
    "remote.autoForwardPorts": false,
    "remote.autoForwardPortsSource": "output",
    "task.allowAutomaticTasks": "off"
}
"#;
/// An application setting: the settings of a workspace do not override the user's.
const AUTOMATIC_TASKS: &str = "task.allowAutomaticTasks";

/// A file that VS Code writes at each start where it is missing.
const LANGUAGE_MODELS: &str = "chatLanguageModels.json";

/// Writes default settings into a new profile, so that every launch shows the same window. Existing ones are kept, but
/// for the setting that allows automatic tasks. The folder must exist.
pub fn prepare_user_settings(file: &Path) -> Result<()> {
    let models = file.with_file_name(LANGUAGE_MODELS);
    if models.symlink_metadata().is_err() {
        replace_file(&models, b"[]").doing(|| format!("cannot write {}", models.display()))?;
    }
    let text = match read_text(file)? {
        None => DEFAULTS.to_owned(),
        Some(text) => match disallow_automatic_tasks(file, &text)? {
            None => return Ok(()),
            Some(changed) => changed,
        },
    };
    replace_file(file, text.as_bytes()).doing(|| format!("cannot write {}", file.display()))
}

/// The text with the setting; `None` if it has it already.
fn disallow_automatic_tasks(file: &Path, text: &str) -> Result<Option<String>> {
    let unusable = |cause: String| {
        Error::usage(format!("cannot read the settings {}", file.display()))
            .because(cause)
            .hint("correct or remove this file: without it, the window starts with default settings")
    };
    let root = CstRootNode::parse(text, &DIALECT).map_err(|cause| unusable(cause.to_string()))?;
    if root.value().is_some_and(|value| value.as_object().is_none()) {
        return Err(unusable("it is not an object".to_owned()));
    }
    let settings = root.object_value_or_set();
    if is_disallowed(&settings) {
        return Ok(None);
    }
    for property in settings.properties() {
        if property.decoded_name().as_deref() == Some(AUTOMATIC_TASKS) {
            property.remove();
        }
    }
    // Last, since VS Code applies members in their order, and `"task": {…}` is another way to write the same setting.
    settings.append(AUTOMATIC_TASKS, CstInputValue::String("off".to_owned()));
    Ok(Some(root.to_string()))
}

/// Whether the last member is the setting, with the right value.
fn is_disallowed(settings: &CstObject) -> bool {
    settings.properties().last().is_some_and(|last| {
        let value = last.value().and_then(|value| value.as_string_lit()?.decoded_value().ok());
        last.decoded_name().as_deref() == Some(AUTOMATIC_TASKS) && value.as_deref() == Some("off")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::jsonc::{JsonDocument, JsonValue};

    /// The settings after preparing this text, or none.
    fn prepared(text: Option<&str>) -> Result<(String, JsonDocument)> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.json");
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        prepare_user_settings(&file)?;
        let once = std::fs::read_to_string(&file).unwrap();
        prepare_user_settings(&file)?;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), once, "a second launch changes nothing");
        let document = JsonDocument::parse(&file, &once)?;
        Ok((once, document))
    }

    #[test]
    fn no_task_of_a_workspace_runs_when_the_window_opens_its_folder() {
        for text in [
            None,
            Some(""),
            Some("{}"),
            Some("{\"editor.fontSize\": 20}"),
            Some("{\"task.allowAutomaticTasks\": \"on\"}"),
            Some("{\"task.allowAutomaticTasks\": \"off\", \"task.allowAutomaticTasks\": \"on\"}"),
            Some("{\"task.allowAutomaticTasks\": \"off\", \"task\": {\"allowAutomaticTasks\": \"on\"}}"),
            Some("{\"task.\\u0061llowAutomaticTasks\": \"on\", // a comment\n}"),
        ] {
            let (written, settings) = prepared(text).unwrap();
            let (name, last) = settings.root.members().last().unwrap();
            assert_eq!(name, AUTOMATIC_TASKS, "{text:?}: {written}");
            assert_eq!(last.value, JsonValue::String("off".into()), "{text:?}: {written}");
            let count = settings.root.members().iter().filter(|(name, _)| name == AUTOMATIC_TASKS).count();
            assert_eq!(count, 1, "{text:?}: {written}");
        }
    }

    #[test]
    fn other_settings_and_comments_are_kept() {
        let (written, settings) = prepared(Some("{\n    // large\n    \"editor.fontSize\": 20,\n}\n")).unwrap();
        assert!(written.contains("// large"), "{written}");
        assert_eq!(settings.root.get("editor.fontSize").unwrap().value, JsonValue::Number("20".into()));
    }

    #[test]
    fn settings_that_cannot_be_read_are_an_error() {
        for text in ["[]", "{", "\"x\"", "{\"a\" 1}"] {
            let error = prepared(Some(text)).unwrap_err().to_string();
            assert!(error.contains("settings.json"), "{text}: {error}");
        }
    }
}
