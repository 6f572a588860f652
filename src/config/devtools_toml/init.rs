//! `tether init`: a commented devtools.toml for what a folder seems to be, and the schema that it refers to.
//!
//! Where other files describe the window already, everything in it is a comment: it says what is derived, to be changed.
//! Must not know windows; only ever creates files.

use std::fmt::Write as _;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use schemars::Schema;
use serde_json::{Value, json};

use crate::config::devtools_toml::settings::{DEVTOOLS_TOML, Settings, WindowKind};
use crate::config::npm::package_json::PackageJson;
use crate::config::source_file::read_text;
use crate::config::window_config::WindowConfig;
use crate::error::{Error, ErrorContext, Result};

/// Where the schema lies, relative to the workspace; the folder is ours, and keeps itself out of git.
const SCHEMA: &str = ".devtools/devtools.schema.json";
/// Scripts that a Node service is often started from.
const SCRIPTS: [&str; 6] = ["server.js", "index.js", "app.js", "main.js", "src/index.js", "src/server.js"];

/// What was written.
#[derive(Debug)]
pub struct InitResult {
    pub files: Vec<PathBuf>,
    /// Whether a window is described, here or elsewhere: `tether start` has something to start.
    pub window: bool,
}

/// The JSON schema of devtools.toml, from its types and their documentation.
pub fn settings_schema() -> Schema {
    schemars::schema_for!(Settings)
}

/// Writes devtools.toml and its schema. Errors: there is one already.
pub fn write_devtools_toml(workspace: &Path) -> Result<InitResult> {
    let file = workspace.join(DEVTOOLS_TOML);
    if file.symlink_metadata().is_ok() {
        return Err(Error::usage(format!("cannot write {}", file.display()))
            .because("there is one already, and it is not overwritten")
            .hint("`tether start --print-config` shows what it makes run; move it away to begin anew"));
    }
    let (text, window) = draft_text(workspace);
    let schema = write_schema(workspace)?;
    create_file(&file, &text).doing(|| format!("cannot write {}", file.display()))?;
    Ok(InitResult { files: vec![file, schema], window })
}

/// Writes the schema to which devtools.toml refers, where it is missing or another one; answers where. The folder is left
/// out of git, so that a fresh clone has the reference alone.
pub fn write_schema(workspace: &Path) -> Result<PathBuf> {
    let file = workspace.join(SCHEMA);
    let folder = file.parent().unwrap_or(workspace);
    let doing = || format!("cannot write {}", file.display());
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(cause).doing(doing),
        _ => {}
    }
    // A repository may bring a link in its place.
    if !folder.symlink_metadata().doing(doing)?.is_dir() {
        return Err(Error::other(doing()).because(format!("{} is no folder", folder.display())));
    }
    let mut text = serde_json::to_string_pretty(&settings_schema()).doing(doing)?;
    text.push('\n');
    let _ = create_file(&folder.join(".gitignore"), "*\n");
    if has_text(&file, &text) {
        return Ok(file);
    }
    let mut fresh = tempfile::NamedTempFile::new_in(folder).doing(doing)?;
    fresh.write_all(text.as_bytes()).doing(doing)?;
    fresh.persist(&file).doing(doing)?;
    Ok(file)
}

/// Whether devtools.toml tells an editor that its schema lies where [`write_schema`] puts it.
pub fn has_schema_reference(workspace: &Path) -> bool {
    let text = read_text(&workspace.join(DEVTOOLS_TOML)).ok().flatten().unwrap_or_default();
    let mut referred = text.lines().filter_map(|line| line.trim_start().strip_prefix("#:schema")).map(str::trim);
    referred.any(|path| path.strip_prefix("./").unwrap_or(path) == SCHEMA)
}

/// Whether it is a plain file with this text.
fn has_text(file: &Path, text: &str) -> bool {
    let is_plain = file.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    is_plain && read_text(file).is_ok_and(|known| known.as_deref() == Some(text))
}

fn create_file(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o644).open(file)?.write_all(text.as_bytes())
}

/// The text of the file, and whether there is a window to start.
fn draft_text(workspace: &Path) -> (String, bool) {
    let mut text = format!(
        "#:schema {SCHEMA}\n\
         # What `tether` runs here, and which files count. Everything is optional; what stands here wins.\n\
         # `tether start --print-config` shows what would run, and where each line of it comes from.\n\n"
    );
    let recipe = WindowConfig::resolve(workspace, None);
    let window = match &recipe {
        Ok(recipe) if recipe.window.kind.is_some() => {
            write_derived(&mut text, recipe);
            true
        }
        other => {
            if let Err(error) = other {
                let told = error.to_string();
                told.lines().for_each(|line| text.push_str(&format!("# {}\n", line.trim_start())));
                text.push_str("# With both a kind and a build of its own, this file does without that.\n");
            }
            write_guessed(&mut text, workspace, other.is_err())
        }
    };
    text.push_str(
        "\n[watch]\n# root = \".\"\n# confirm = \"content\"  # a `git checkout` there and back is then no change\n",
    );
    (text, window)
}

/// What follows from other files, as comments.
fn write_derived(text: &mut String, recipe: &WindowConfig) {
    let origin = match &recipe.configuration {
        Some(name) => format!(".vscode/launch.json, the configuration {name:?}"),
        None => "package.json".to_owned(),
    };
    let _ = writeln!(text, "[window]\n# From {origin}:");
    for (name, value) in recipe.window_values() {
        let _ = writeln!(text, "# {name} = {}", toml_text(&value));
    }
    text.push_str("# headless = true\n# timeout = \"60s\"\n\n[build]\n");
    match &recipe.build.steps[..] {
        [] => text.push_str("# Nothing is built before a launch.\n# command = [\"npm\", \"run\", \"compile\"]\n"),
        steps => {
            let labels: Vec<String> = steps.iter().map(|step| format!("`{}` ({})", step.label, step.origin)).collect();
            let _ = writeln!(text, "# Runs {}; a command here runs instead:", labels.join(", "));
            let _ = writeln!(text, "# command = {}", toml_text(&json!(steps[0].argv)));
        }
    }
    text.push_str("# timeout = \"2m\"\n");
}

/// What the folder looks like. Answers whether that is enough to start.
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
        (true, ..) => write_kind(text, WindowKind::ExtensionHost, None),
        (_, Some(script), _) => write_kind(text, WindowKind::Node, Some(("program", script))),
        (_, _, Some(page)) => write_kind(text, WindowKind::Browser, Some(("url", page.as_str()))),
        _ => {
            text.push_str(
                "# One of these has to be chosen:\n\
                 # kind = \"web-extension-host\"  # VS Code in a browser, with the extension in this folder\n\
                 # kind = \"extension-host\"      # VS Code on the desktop, with the extension in this folder\n\
                 # kind = \"browser\"             # a Chromium, on `url`\n\
                 # url = \"http://127.0.0.1:3000\"\n\
                 # kind = \"node\"                # Node, with `program`\n\
                 # program = \"server.js\"\n\
                 # kind = \"command\"             # any program that takes a CDP port\n\
                 # command = [\"app\", \"--remote-debugging-port=${cdpPort}\"]\n",
            );
            false
        }
    };
    text.push_str("# args = []\n# env = { NAME = \"value\" }\n# headless = true\n\n[build]\n");
    let script =
        ["compile", "build"].into_iter().find(|name| package.as_ref().is_some_and(|it| it.script(name).is_some()));
    match script {
        Some(script) => drop(writeln!(text, "command = [\"npm\", \"run\", \"{script}\"]")),
        None if complete => text.push_str("command = []  # nothing to build\n"),
        None => text.push_str("# command = [\"npm\", \"run\", \"compile\"]  # runs before a launch\n"),
    }
    text.push_str("# timeout = \"2m\"\n");
    found
}

fn write_kind(text: &mut String, kind: WindowKind, also: Option<(&str, &str)>) -> bool {
    let _ = writeln!(text, "kind = \"{}\"", kind.name());
    if let Some((name, value)) = also {
        let _ = writeln!(text, "{name} = {}", toml_text(&json!(value)));
    }
    true
}

fn toml_text(value: &Value) -> String {
    toml::Value::try_from(value).map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `tether init` writes for these files means this; the file is one line of `[window]` or `[build]` each.
    fn check(files: &[(&str, &str)], window: bool, lines: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".vscode")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let before = WindowConfig::resolve(folder.path(), None).map(|recipe| recipe.window);
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
    fn what_is_found_is_written_and_means_what_it_says() {
        check(&[], false, &["[window]", "# kind = \"browser\"             # a Chromium, on `url`"]);
        check(&[("server.js", "")], true, &["kind = \"node\"", "program = \"server.js\""]);
        let package = r#"{"main": "lib.js", "scripts": {"build": "x"}}"#;
        check(
            &[("package.json", package), ("lib.js", "")],
            true,
            &["program = \"lib.js\"", "command = [\"npm\", \"run\", \"build\"]"],
        );
        check(&[("index.html", "")], true, &["kind = \"browser\""]);
        check(
            &[("package.json", r#"{"engines": {"vscode": "*"}}"#)],
            true,
            &["# kind = \"extension-host\"", "# From package.json:"],
        );
        let launch = r#"{"configurations": [{"name": "S", "type": "node", "program": "s.js", "env": {"A": "b"}}]}"#;
        let expect =
            ["# From .vscode/launch.json, the configuration \"S\":", "# kind = \"node\"", "# env = { A = \"b\" }"];
        check(&[(".vscode/launch.json", launch)], true, &expect);
        // The way out of a launch.json that cannot be used.
        let broken = r#"{"configurations": [{"name": "S", "type": "node", "program": "${input:x}"}]}"#;
        check(
            &[(".vscode/launch.json", broken), ("app.js", "")],
            true,
            &["program = \"app.js\"", "command = []  # nothing to build"],
        );
    }

    #[test]
    fn the_schema_is_written_again_only_when_it_is_missing_or_another() {
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
        // A repository may bring a link in its place, to a file that is not ours to write.
        let other = folder.path().join("other.json");
        std::fs::rename(&file, &other).unwrap();
        std::os::unix::fs::symlink(&other, &file).unwrap();
        write_schema(folder.path()).unwrap();
        assert!(file.symlink_metadata().unwrap().is_file() && inode(&file) != inode(&other));
    }

    #[test]
    fn only_a_reference_to_our_own_schema_counts() {
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
    fn the_schema_knows_every_key_and_its_words() {
        let schema = serde_json::to_value(settings_schema()).unwrap();
        let told = schema.to_string();
        for part in ["codeServer", "web-extension-host", "moreExtensions", "confirm", "\"additionalProperties\":false"]
        {
            assert!(told.contains(part), "{part} is not in {told}");
        }
        assert!(!told.contains("\"derived\""), "{told}");
        assert_eq!(schema["$defs"]["BuildSettings"]["properties"]["timeout"]["default"], "2m");
    }
}
