//! `tether init`: writes a commented devtools.toml that fits the files of the workspace, and the schema it refers to.
//!
//! Where launch.json or package.json describes the window already, the derived values are written as comments.
//! Does not depend on running windows. Never overwrites a devtools.toml.

use std::fmt::Write as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use schemars::Schema;
use serde_json::{Value, json};
use tether_base::error::{Error, ErrorContext, Result};

use crate::config::build_plan::{BuildStep, StepCompletion};
use crate::config::devtools_toml::settings::{DEVTOOLS_TOML, Settings, WindowKind};
use crate::config::npm::package_json::PackageJson;
use crate::config::source_file::{read_text, replace_file};
use crate::config::window_config::WindowConfig;

/// The path of the schema, relative to the workspace. The folder belongs to tether, and its .gitignore excludes it.
const SCHEMA: &str = ".devtools/devtools.schema.json";
/// Common names of the main script of a Node service, in order of preference.
const SCRIPTS: [&str; 6] = ["server.js", "index.js", "app.js", "main.js", "src/index.js", "src/server.js"];

/// The result of `tether init`.
#[derive(Debug)]
pub struct InitResult {
    /// The written files: devtools.toml and its schema.
    pub files: Vec<PathBuf>,
    /// Whether devtools.toml or another file describes a window, so that `tether start` can start one.
    pub window: bool,
}

/// The JSON schema of devtools.toml, generated from [`Settings`] and its doc comments.
pub fn settings_schema() -> Schema {
    schemars::schema_for!(Settings)
}

/// Writes devtools.toml and its schema. Errors: the file exists already, or cannot be written.
pub fn write_devtools_toml(workspace: &Path) -> Result<InitResult> {
    let file = workspace.join(DEVTOOLS_TOML);
    if file.symlink_metadata().is_ok() {
        return Err(Error::usage(format!("cannot write {}", file.display()))
            .because("there is one already, and it is not overwritten")
            .hint("`tether start --print-config` shows what it makes run; move it away to start over"));
    }
    let (text, window) = draft_text(workspace);
    let schema = write_schema(workspace)?;
    create_file(&file, &text).doing(|| format!("cannot write {}", file.display()))?;
    Ok(InitResult { files: vec![file, schema], window })
}

/// Writes the schema to which devtools.toml refers, unless it is up to date, and returns its path. Git ignores the
/// folder: a new clone has the reference, but not the schema.
pub fn write_schema(workspace: &Path) -> Result<PathBuf> {
    let file = workspace.join(SCHEMA);
    let folder = file.parent().unwrap_or(workspace);
    let doing = || format!("cannot write {}", file.display());
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(cause).doing(doing),
        _ => {}
    }
    // A repository may contain a symlink at this path.
    if !folder.symlink_metadata().doing(doing)?.is_dir() {
        return Err(Error::other(doing()).because(format!("{} is not a folder", folder.display())));
    }
    let mut text = serde_json::to_string_pretty(&settings_schema()).doing(doing)?;
    text.push('\n');
    let _ = create_file(&folder.join(".gitignore"), "*\n");
    let is_plain = file.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_plain || !read_text(&file).is_ok_and(|known| known.as_ref() == Some(&text)) {
        replace_file(&file, text.as_bytes()).doing(doing)?;
    }
    Ok(file)
}

/// Whether the `#:schema` line of devtools.toml names the file that [`write_schema`] writes.
pub fn has_schema_reference(workspace: &Path) -> bool {
    let text = read_text(&workspace.join(DEVTOOLS_TOML)).ok().flatten().unwrap_or_default();
    let mut referred = text.lines().filter_map(|line| line.trim_start().strip_prefix("#:schema")).map(str::trim);
    referred.any(|path| path.strip_prefix("./").unwrap_or(path) == SCHEMA)
}

fn create_file(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o644).open(file)?.write_all(text.as_bytes())
}

/// The text of devtools.toml, and whether there is a window to start.
fn draft_text(workspace: &Path) -> (String, bool) {
    let mut text = format!(
        "#:schema {SCHEMA}\n\
         # What `tether` runs here, and which files count. Every key is optional; a key here overrides the derived one.\n\
         # `tether start --print-config` shows what would run, and where each line of it comes from.\n\n"
    );
    let config = WindowConfig::resolve(workspace, None);
    let window = match &config {
        Ok(config) if config.window.kind.is_some() => {
            write_derived(&mut text, config);
            true
        }
        other => {
            if let Err(error) = other {
                let message = error.to_string();
                message.lines().for_each(|line| text.push_str(&format!("# {}\n", line.trim_start())));
                text.push_str("# A `kind` and a build `command` in this file override all of that.\n");
            }
            write_guessed(&mut text, workspace, other.is_err())
        }
    };
    text.push_str(
        "\n[watch]\n# root = \".\"\n# confirm = \"content\"  # a `git checkout` there and back is then no change\n",
    );
    (text, window)
}

/// Appends the settings that are derived from other files, as comments.
fn write_derived(text: &mut String, config: &WindowConfig) {
    let origin = match &config.configuration {
        Some(name) => format!(".vscode/launch.json, the configuration {name:?}"),
        None => "package.json".to_owned(),
    };
    let _ = writeln!(text, "[window]\n# From {origin}:");
    for (name, value) in config.window_values() {
        let _ = match value.as_object() {
            Some(variables) => {
                let names: Vec<&str> = variables.keys().map(String::as_str).collect();
                writeln!(text, "# {name} sets {}; the values, which may be secrets, are not copied", names.join(", "))
            }
            None => writeln!(text, "# {name} = {}", toml_text(&value)),
        };
    }
    text.push_str("# headless = true\n# timeout = \"60s\"\n\n");
    let is_server = |step: &&BuildStep| matches!(step.completion, StepCompletion::AfterAddress);
    if let Some(server) = config.build.written_steps().find(is_server).filter(|_| config.configuration.is_none()) {
        text.push_str("[server]\n# It runs as long as the window, which shows the address that it prints.\n");
        let _ = writeln!(text, "# From {}:\n# command = {}\n", server.origin, toml_text(&json!(server.argv)));
    }
    text.push_str("[build]\n");
    let builds: Vec<&BuildStep> = config.build.written_steps().filter(|step| !is_server(step)).collect();
    match &builds[..] {
        [] => text.push_str("# Nothing is built before a launch.\n# command = [\"npm\", \"run\", \"compile\"]\n"),
        steps => {
            let labels: Vec<String> = steps.iter().map(|step| format!("`{}` ({})", step.label, step.origin)).collect();
            let _ = writeln!(text, "# Runs {}; a command here runs instead:", labels.join(", "));
            let _ = writeln!(text, "# command = {}", toml_text(&json!(steps[0].argv)));
        }
    }
    text.push_str("# timeout = \"2m\"\n");
}

/// Appends settings guessed from the files of the workspace; returns whether they name a window to start. `complete`:
/// writes an explicit empty build where no build script exists.
fn write_guessed(text: &mut String, workspace: &Path, complete: bool) -> bool {
    let package = PackageJson::read(workspace).ok().flatten();
    let extension = package.as_ref().is_some_and(|package| package.vscode_engine().is_some());
    let main =
        package.as_ref().and_then(|package| package.main()?.text()).filter(|main| workspace.join(main).is_file());
    let script = main.or_else(|| SCRIPTS.into_iter().find(|script| workspace.join(script).is_file()));
    let page = workspace.join("index.html");
    let page = url::Url::from_file_path(&page).ok().filter(|_| page.is_file());
    text.push_str("[window]\n");
    let found = match (extension, script, page) {
        (true, ..) => Some((WindowKind::ExtensionHost, String::new())),
        (_, Some(script), _) => Some((WindowKind::Node, format!("program = {}\n", toml_text(&json!(script))))),
        (_, _, Some(page)) => Some((WindowKind::Browser, format!("url = {}\n", toml_text(&json!(page.as_str()))))),
        _ => {
            text.push_str(
                "# Choose one of these:\n\
                 # kind = \"web-extension-host\"  # VS Code in a browser, with the extension in this folder\n\
                 # kind = \"extension-host\"      # VS Code on the desktop, with the extension in this folder\n\
                 # kind = \"browser\"             # a Chromium, on `url`\n\
                 # url = \"http://127.0.0.1:3000\"\n\
                 # kind = \"node\"                # Node, with `program`\n\
                 # program = \"server.js\"\n\
                 # kind = \"command\"             # any program that takes a CDP port\n\
                 # command = [\"app\", \"--remote-debugging-port=${cdpPort}\"]\n",
            );
            None
        }
    };
    if let Some((kind, setting)) = &found {
        let _ = write!(text, "kind = \"{}\"\n{setting}", kind.name());
    }
    text.push_str("# args = []\n# env = { NAME = \"value\" }\n# headless = true\n\n[build]\n");
    let script =
        ["compile", "build"].into_iter().find(|name| package.as_ref().is_some_and(|it| it.script(name).is_some()));
    match script {
        Some(script) => drop(writeln!(text, "command = [\"npm\", \"run\", \"{script}\"]")),
        None if complete => text.push_str("command = []  # nothing to build\n"),
        None => text.push_str("# command = [\"npm\", \"run\", \"compile\"]  # runs before a launch\n"),
    }
    text.push_str("# timeout = \"2m\"\n");
    found.is_some()
}

fn toml_text(value: &Value) -> String {
    toml::Value::try_from(value).map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `tether init` on `files`: the text has all `lines`, and resolves to a window only if `window`.
    fn check(files: &[(&str, &str)], window: bool, lines: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".vscode")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let before = WindowConfig::resolve(folder.path(), None).map(|config| config.window);
        let written = write_devtools_toml(folder.path()).unwrap();
        assert_eq!(written.window, window);
        let text = std::fs::read_to_string(folder.path().join(DEVTOOLS_TOML)).unwrap();
        assert!(text.starts_with("#:schema .devtools/devtools.schema.json\n"), "{text}");
        for line in lines {
            assert!(text.lines().any(|it| it == *line), "{line:?} is not in {text}");
        }
        let after = WindowConfig::resolve(folder.path(), None).unwrap();
        assert_eq!(after.check_window().is_ok(), window, "{text}");
        if let Some(before) = before.ok().filter(|before| before.kind.is_some()) {
            assert_eq!(after.window, before, "what is derived stays as it was");
        }
        let again = write_devtools_toml(folder.path()).unwrap_err().to_string();
        assert!(again.contains("devtools.toml") && again.contains("not overwritten"), "{again}");
    }

    #[test]
    fn the_written_file_fits_the_workspace_and_resolves_to_its_window() {
        check(&[], false, &["[window]", "# kind = \"browser\"             # a Chromium, on `url`"]);
        check(&[("server.js", "")], true, &["kind = \"node\"", "program = \"server.js\""]);
        let package = r#"{"main": "lib.js", "scripts": {"build": "x"}}"#;
        check(
            &[("package.json", package), ("lib.js", "")],
            true,
            &["program = \"lib.js\"", "command = [\"npm\", \"run\", \"build\"]"],
        );
        check(&[("index.html", "")], true, &["kind = \"browser\""]);
        let vite = r#"{"scripts": {"dev": "vite", "build": "vite build"}}"#;
        let expect = ["# kind = \"browser\"", "[server]", "# command = [\"npm\", \"run\", \"dev\"]"];
        check(&[("index.html", ""), ("package.json", vite)], true, &expect);
        check(
            &[("package.json", r#"{"engines": {"vscode": "*"}}"#)],
            true,
            &["# kind = \"extension-host\"", "# From package.json:"],
        );
        let launch = r#"{"configurations": [{"name": "S", "type": "node", "program": "s.js", "env": {"A": "b"}}]}"#;
        let expect = [
            "# From .vscode/launch.json, the configuration \"S\":",
            "# kind = \"node\"",
            "# env sets A; the values, which may be secrets, are not copied",
        ];
        check(&[(".vscode/launch.json", launch)], true, &expect);
        // A launch.json that cannot be used is overridden as a whole.
        let broken = r#"{"configurations": [{"name": "S", "type": "node", "program": "${input:x}"}]}"#;
        check(
            &[(".vscode/launch.json", broken), ("app.js", "")],
            true,
            &["program = \"app.js\"", "command = []  # nothing to build"],
        );
    }

    #[test]
    fn the_schema_is_rewritten_only_when_it_is_missing_or_differs() {
        let folder = tempfile::tempdir().unwrap();
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.symlink_metadata().unwrap());
        let file = write_schema(folder.path()).unwrap();
        assert_eq!(file, folder.path().join(SCHEMA));
        let first = inode(&file);
        assert_eq!(inode(&write_schema(folder.path()).unwrap()), first, "it is left as it is");
        let text = std::fs::read(&file).unwrap();
        std::fs::write(&file, "{}").unwrap();
        write_schema(folder.path()).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), text);
        // A symlink at this path is replaced; its target is not written.
        let other = folder.path().join("other.json");
        std::fs::rename(&file, &other).unwrap();
        std::os::unix::fs::symlink(&other, &file).unwrap();
        write_schema(folder.path()).unwrap();
        assert!(file.symlink_metadata().unwrap().is_file() && inode(&file) != inode(&other));
    }

    #[test]
    fn only_a_reference_to_the_generated_schema_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!has_schema_reference(folder.path()));
        let check = |text: &str, expect: bool| {
            std::fs::write(folder.path().join(DEVTOOLS_TOML), text).unwrap();
            assert_eq!(has_schema_reference(folder.path()), expect, "{text}");
        };
        check("#:schema .devtools/devtools.schema.json\n[window]\n", true);
        check("# ours\n#:schema ./.devtools/devtools.schema.json\r\n", true);
        check("#:schema https://example.org/devtools.schema.json\n", false);
        check("[window]\nurl = '.devtools/devtools.schema.json'\n", false);
    }

    #[test]
    fn the_schema_has_every_key_and_its_values() {
        let schema = serde_json::to_value(settings_schema()).unwrap();
        let text = schema.to_string();
        for part in ["codeServer", "web-extension-host", "moreExtensions", "confirm", "\"additionalProperties\":false"]
        {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("\"derived\""), "{text}");
        assert_eq!(schema["$defs"]["BuildSettings"]["properties"]["timeout"]["default"], "2m");
    }
}
