//! `devtools.toml`: its tables as types, and reading it with errors that name file, line and allowed keys.
//!
//! Everything is optional. Relative paths are relative to the workspace. Knows no defaults that depend on what is
//! installed or on other files; whoever resolves a window does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use toml::de::{DeTable, DeValue};

use crate::config::source_file::read_text;
use crate::error::{Error, Result};

/// The name of the file at the root of the workspace.
pub const DEVTOOLS_TOML: &str = "devtools.toml";
/// What to run, and which files count. Everything is optional: launch.json and package.json are read first.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "devtools.toml")]
pub struct Settings {
    pub window: WindowSettings,
    pub build: BuildSettings,
    pub watch: WatchSettings,
}

/// What kind of program the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowKind {
    /// A desktop VS Code with the extension under development.
    ExtensionHost,
    /// The VS Code workbench in a browser, with a real extension host.
    WebExtensionHost,
    Browser,
    Node,
    /// Any program that takes `${cdpPort}`.
    Command,
}

impl WindowKind {
    /// As written in `devtools.toml`.
    pub fn name(self) -> &'static str {
        match self {
            WindowKind::ExtensionHost => "extension-host",
            WindowKind::WebExtensionHost => "web-extension-host",
            WindowKind::Browser => "browser",
            WindowKind::Node => "node",
            WindowKind::Command => "command",
        }
    }
}

/// `[window]`: what to launch.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct WindowSettings {
    pub kind: Option<WindowKind>,
    /// `node`: the script.
    pub program: Option<PathBuf>,
    /// `browser`: the first page.
    pub url: Option<String>,
    /// `command`: program and arguments; `${cdpPort}` becomes a free port.
    pub command: Vec<String>,
    /// Added to the program's own arguments.
    pub args: Vec<String>,
    /// `node`: Node's own arguments, before the script.
    pub runtime_args: Vec<String>,
    /// The folder in which the program runs; default: the workspace.
    pub cwd: Option<PathBuf>,
    /// No visible window, even where there is a display.
    pub headless: bool,
    /// Added to the inherited environment.
    pub env: BTreeMap<String, String>,
    /// The Chromium to start; default: the first one found on PATH.
    pub browser: Option<PathBuf>,
    /// `node`, `web-extension-host`: the Node to start.
    pub node: Option<PathBuf>,
    /// `web-extension-host`: the folder of the npm package `code-server`.
    pub code_server: Option<PathBuf>,
    /// `extension-host`: the launcher of the desktop VS Code; default: the first one found.
    pub vscode: Option<PathBuf>,
    /// The extension under development; default: those that `args` name with `--extensionDevelopmentPath=`, else the
    /// workspace.
    pub extension: Option<PathBuf>,
    /// Further extensions under development.
    pub more_extensions: Vec<PathBuf>,
    /// `extension-host`, `web-extension-host`: the folder to open; default: the workspace.
    pub folder: Option<PathBuf>,
    /// A profile folder to keep; default: a fresh one per launch.
    pub profile: Option<PathBuf>,
    /// How long each step of a launch may take, such as "90s"; default: 120 s.
    #[serde(deserialize_with = "parse_some_duration")]
    #[schemars(with = "Option<String>")]
    pub timeout: Option<Duration>,
    /// The kind was derived from launch.json or package.json: an `extension-host` may then be a `web-extension-host`
    /// where there is no desktop VS Code.
    #[serde(skip)]
    pub derived: bool,
}

/// `[build]`: what to run before a launch.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct BuildSettings {
    /// Program and arguments; empty: nothing to build. Without it: what launch.json and package.json say.
    pub command: Option<Vec<String>>,
    /// For the whole build, such as "90s".
    #[serde(deserialize_with = "parse_duration")]
    #[schemars(with = "String", extend("default" = "2m"))]
    pub timeout: Duration,
}

impl Default for BuildSettings {
    fn default() -> Self {
        BuildSettings { command: None, timeout: Duration::from_secs(120) }
    }
}

/// `[watch]`: which files count.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct WatchSettings {
    /// The folder that is watched, relative to the workspace.
    pub root: PathBuf,
    /// What makes a file count as changed.
    pub confirm: ConfirmBy,
}

impl Default for WatchSettings {
    fn default() -> Self {
        WatchSettings { root: PathBuf::from("."), confirm: ConfirmBy::default() }
    }
}

/// What makes a file count as changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfirmBy {
    #[default]
    Mtime,
    /// Additionally compares contents of the files whose metadata moved.
    Content,
}

fn parse_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|cause| {
        serde::de::Error::custom(format!("{text:?} is no duration ({cause}); write \"90s\" or \"2m\" for example"))
    })
}

fn parse_some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    parse_duration(deserializer).map(Some)
}

impl Settings {
    /// Reads `<workspace>/devtools.toml`; a missing file is all defaults. Errors: [`crate::error::ErrorKind::Usage`]
    /// with file, line and the allowed keys or values.
    pub fn load(workspace: &Path) -> Result<Settings> {
        let path = workspace.join(DEVTOOLS_TOML);
        let Some(text) = read_text(&path)? else { return Ok(Settings::default()) };
        Settings::parse(&text).map_err(|cause| Error::usage(format!("cannot use {}", path.display())).because(cause))
    }

    fn parse(text: &str) -> Result<Settings, toml::de::Error> {
        toml::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    /// On which line each key stands: "window.kind" → 2. Empty when there is no file, or it cannot be read.
    pub fn key_lines(workspace: &Path) -> BTreeMap<String, usize> {
        let text = read_text(&workspace.join(DEVTOOLS_TOML)).ok().flatten().unwrap_or_default();
        let Ok(table) = DeTable::parse(&text) else { return BTreeMap::new() };
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        let mut lines = BTreeMap::new();
        for (section, value) in table.get_ref() {
            let DeValue::Table(keys) = value.get_ref() else { continue };
            for key in keys.keys() {
                lines.insert(format!("{}.{}", section.get_ref(), key.get_ref()), line(key.span().start));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_documentation_is_understood() {
        let text = r#"
            [window]
            kind = "extension-host"
            program = "server.js"
            url = "http://127.0.0.1:3000"
            command = ["app", "--remote-debugging-port=${cdpPort}"]
            args = []
            headless = false
            env = {}
            codeServer = "/opt/code-server"
            vscode = "/opt/code/bin/code"
            timeout = "90s"

            [build]
            command = ["npm", "run", "compile"]
            timeout = "2m"

            [watch]
            root = "."
            confirm = "content"
        "#;
        let settings = Settings::parse(text).unwrap();
        assert_eq!(settings.window.kind, Some(WindowKind::ExtensionHost));
        assert_eq!(settings.window.code_server.as_deref(), Some(Path::new("/opt/code-server")));
        assert_eq!(settings.window.timeout, Some(Duration::from_secs(90)));
        assert_eq!(settings.build.timeout, Duration::from_secs(120));
        assert_eq!(settings.watch.confirm, ConfirmBy::Content);
        assert_eq!(settings.build.command.unwrap(), ["npm", "run", "compile"]);
        assert_eq!(Settings::parse("\u{feff}").unwrap(), Settings::default());
        assert_eq!(Settings::parse("[build]\ntimeout = '1m 30s'").unwrap().build.timeout.as_secs(), 90);
    }

    #[test]
    fn every_kind_is_written_as_it_is_named() {
        use WindowKind::*;
        for kind in [ExtensionHost, WebExtensionHost, Browser, Node, Command] {
            let text = format!("[window]\nkind = \"{}\"", kind.name());
            assert_eq!(Settings::parse(&text).unwrap().window.kind, Some(kind));
        }
    }

    #[test]
    fn mistakes_are_told_with_file_line_and_what_is_allowed() {
        let workspace = tempfile::tempdir().unwrap();
        let check = |text: &str, expect: &[&str]| {
            std::fs::write(workspace.path().join(DEVTOOLS_TOML), text).unwrap();
            let error = Settings::load(workspace.path()).unwrap_err();
            assert_eq!(error.kind, crate::error::ErrorKind::Usage);
            let told = error.to_string();
            for part in ["devtools.toml"].iter().chain(expect) {
                assert!(told.contains(part), "{part:?} is not in:\n{told}");
            }
        };
        check("[window]\nkid = 1", &["line 2", "unknown field `kid`", "`kind`", "`codeServer`"]);
        check("[windows]", &["unknown field `windows`", "`window`, `build`, `watch`"]);
        check("\n\n[window]\nkind = 'car'", &["line 4", "unknown variant `car`", "`web-extension-host`"]);
        check("[build]\ntimeout = 'soon'", &["line 2", "\"soon\" is no duration", "\"2m\""]);
        check("[build]\ncommand = 'make'", &["line 2", "expected a sequence"]);
        check("[build", &["line 1"]);
    }

    #[test]
    fn each_key_is_found_on_its_line() {
        let workspace = tempfile::tempdir().unwrap();
        let text = "# ours\n[window]\nkind = 'node'\nenv.A = '1'\nenv.B = '2'\n\n[build]\ncommand = [\n'make']\n";
        std::fs::write(workspace.path().join(DEVTOOLS_TOML), text).unwrap();
        let lines = Settings::key_lines(workspace.path());
        assert_eq!(
            lines.into_iter().collect::<Vec<_>>(),
            [("build.command", 8), ("window.env", 4), ("window.kind", 3)].map(|(key, line)| (key.to_owned(), line))
        );
    }

    #[test]
    fn a_missing_file_is_all_defaults_and_a_strange_one_is_refused() {
        let workspace = tempfile::tempdir().unwrap();
        assert_eq!(Settings::load(workspace.path()).unwrap(), Settings::default());
        let path = workspace.path().join(DEVTOOLS_TOML);
        std::fs::create_dir(&path).unwrap();
        assert!(Settings::load(workspace.path()).unwrap_err().to_string().contains("not a regular file"));
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(Settings::load(workspace.path()).unwrap_err().to_string().contains("UTF-8"));
    }
}
