//! `devtools.toml`: its tables as types, and a parser whose errors name the file, the line and the allowed keys.
//!
//! Every key is optional. Relative paths are relative to the workspace. Defaults that depend on installed programs or
//! on other files are not set here: `window_config` resolves them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use tether_base::error::{Error, Result};
use tether_base::secret_values::SecretValues;
use toml::de::{DeTable, DeValue};

use crate::config::source_file::read_own_text;

/// The name of the file at the root of the workspace.
pub const DEVTOOLS_TOML: &str = "devtools.toml";

/// What to run, and which files are watched. Every key is optional; it overrides what launch.json and package.json say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "devtools.toml")]
pub struct Settings {
    /// What to launch.
    pub window: WindowSettings,
    /// What to run before a launch.
    pub build: BuildSettings,
    /// What to run beside the window.
    pub server: ServerSettings,
    /// Which files are watched for changes.
    pub watch: WatchSettings,
    /// When a change brings the window up to date.
    pub refresh: RefreshSettings,
    /// Where programs that are attached to by their port have the folders of this machine, as in a container.
    pub paths: Vec<PathSetting>,
}

/// The kind of program that runs as the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowKind {
    /// A desktop VS Code with the extension under development.
    ExtensionHost,
    /// The VS Code workbench in a browser, with a real extension host.
    WebExtensionHost,
    /// A Chromium that shows a page.
    Browser,
    /// A Node process that runs a script.
    Node,
    /// Any program that accepts a CDP port, which replaces `${cdpPort}` in its command.
    Command,
}

impl WindowKind {
    /// The value of `kind` in `devtools.toml`.
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

/// `[[paths]]`: a folder, and the same folder where the program runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathSetting {
    /// The folder on this machine, relative to the workspace.
    pub local: PathBuf,
    /// The folder as the program names it, absolute.
    pub remote: PathBuf,
}

/// `[window]`: what to launch.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct WindowSettings {
    /// The kind of program; default: derived from launch.json or package.json.
    pub kind: Option<WindowKind>,
    /// `node`: the script.
    pub program: Option<PathBuf>,
    /// `browser`: the URL of the first page.
    pub url: Option<String>,
    /// `command`: the program and its arguments; `${cdpPort}` is replaced by a free port.
    pub command: Vec<String>,
    /// Further arguments of the program.
    pub args: Vec<String>,
    /// `node`: arguments of Node itself, before the script.
    pub runtime_args: Vec<String>,
    /// The folder in which the program runs; default: the workspace.
    pub cwd: Option<PathBuf>,
    /// Show no window, even where there is a display.
    pub headless: bool,
    /// Environment variables, added to the inherited ones.
    pub env: BTreeMap<String, String>,
    /// The Chromium to start; default: the first one on PATH.
    pub browser: Option<PathBuf>,
    /// `node`, `web-extension-host`: the Node to start.
    pub node: Option<PathBuf>,
    /// `web-extension-host`: the folder of the npm package `code-server`.
    pub code_server: Option<PathBuf>,
    /// `extension-host`: the launcher of the desktop VS Code; default: the first installed one.
    pub vscode: Option<PathBuf>,
    /// The folder of the extension under development; default: those of `--extensionDevelopmentPath=` in `args`, else
    /// the workspace.
    pub extension: Option<PathBuf>,
    /// The folders of further extensions under development.
    pub more_extensions: Vec<PathBuf>,
    /// `extension-host`, `web-extension-host`: the folder to open; default: the workspace.
    pub folder: Option<PathBuf>,
    /// A profile folder that is kept between launches; default: a new one per launch.
    pub profile: Option<PathBuf>,
    /// How an automatic refresh after a change makes the window run the new code; `tether restart` always relaunches.
    pub refresh: RefreshSetting,
    /// The timeout of each step of a launch, such as "90s"; default: 120 s.
    #[serde(deserialize_with = "parse_some_duration")]
    #[schemars(with = "Option<String>")]
    pub timeout: Option<Duration>,
    /// Whether `kind` was derived from launch.json or package.json. A derived `extension-host` falls back to
    /// `web-extension-host` where no desktop VS Code is installed.
    #[serde(skip)]
    pub derived: bool,
    /// The values of its variables, once they are substituted: masked in its output and its errors.
    #[serde(skip)]
    pub secrets: SecretValues,
}

/// How a stale window is made to run the new code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefreshSetting {
    /// By the cheapest way that is proven to: a restart of the extension host, a reload of the page, or a relaunch.
    #[default]
    Auto,
    /// By a relaunch.
    Relaunch,
}

/// `[build]`: what to run before a launch.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct BuildSettings {
    /// The program and its arguments; empty: nothing is built. Default: derived from launch.json and package.json.
    pub command: Option<Vec<String>>,
    /// The timeout of the whole build, such as "90s".
    #[serde(deserialize_with = "parse_duration")]
    #[schemars(with = "String", extend("default" = "2m"))]
    pub timeout: Duration,
}

impl Default for BuildSettings {
    fn default() -> Self {
        BuildSettings { command: None, timeout: Duration::from_secs(120) }
    }
}

/// `[server]`: the dev server of a web project.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ServerSettings {
    /// The program and its arguments; it runs as long as the window, which shows the address that it prints. Empty: none.
    /// Default: derived from package.json.
    pub command: Option<Vec<String>>,
}

/// `[refresh]`: when a change brings the window up to date.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RefreshSettings {
    /// What the window is built and refreshed on.
    pub on: RefreshOn,
}

/// What a stale window is built and refreshed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefreshOn {
    /// On its next use.
    #[default]
    Use,
    /// On each save, too.
    Save,
}

/// `[watch]`: which files are watched for changes.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct WatchSettings {
    /// The watched folder, relative to the workspace.
    pub root: PathBuf,
    /// How a change of a file is detected.
    pub confirm: ConfirmBy,
}

impl Default for WatchSettings {
    fn default() -> Self {
        WatchSettings { root: PathBuf::from("."), confirm: ConfirmBy::default() }
    }
}

/// How a change of a file is detected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfirmBy {
    /// By its metadata alone.
    #[default]
    Mtime,
    /// Where its metadata changed, by its content.
    Content,
}

fn parse_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    humantime::parse_duration(&text).map_err(|cause| {
        serde::de::Error::custom(format!("{text:?} is not a duration ({cause}); write \"90s\" or \"2m\" for example"))
    })
}

fn parse_some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    parse_duration(deserializer).map(Some)
}

/// Refuses folders that are no project: reading all of them takes longer than any build. The paths are canonical. Errors:
/// `root` is not the workspace, but the root of the file system, the home folder, or a folder that contains it.
pub fn check_watch_root(workspace: &Path, root: &Path) -> Result<()> {
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let what = match () {
        () if root == workspace => return Ok(()),
        () if root.parent().is_none() => "it is the root of the file system",
        () if home.is_some_and(|home| home.starts_with(root)) => "it is, or contains, your home folder",
        () => return Ok(()),
    };
    let error = Error::usage(format!("cannot watch {}", root.display())).because(what);
    Err(error.hint(format!("set [watch] root in {DEVTOOLS_TOML} to a folder of the project")))
}

/// Whether a save refreshes the window. A file that cannot be read says nothing.
pub fn refreshes_on_save(workspace: &Path) -> bool {
    Settings::load(workspace).is_ok_and(|settings| settings.refresh.on == RefreshOn::Save)
}

impl Settings {
    /// Reads `<workspace>/devtools.toml`; without the file all settings are defaults. Errors:
    /// [`tether_base::error::ErrorKind::Usage`] with file, line and the allowed keys or values.
    pub fn load(workspace: &Path) -> Result<Settings> {
        let path = workspace.join(DEVTOOLS_TOML);
        let Some(text) = read_own_text(&path)? else { return Ok(Settings::default()) };
        Settings::parse(&text).map_err(|cause| Error::usage(format!("cannot use {}", path.display())).because(cause))
    }

    fn parse(text: &str) -> Result<Settings, toml::de::Error> {
        toml::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    /// The line (from 1) of each key: "window.kind" → 2. Empty where the file is missing or cannot be read.
    pub fn key_lines(workspace: &Path) -> BTreeMap<String, usize> {
        let text = read_own_text(&workspace.join(DEVTOOLS_TOML)).ok().flatten().unwrap_or_default();
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
    fn the_example_in_the_documentation_is_parsed() {
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

            [[paths]]
            local = "src"
            remote = "/app/src"
        "#;
        let settings = Settings::parse(text).unwrap();
        assert_eq!(settings.window.kind, Some(WindowKind::ExtensionHost));
        assert_eq!(settings.window.code_server.as_deref(), Some(Path::new("/opt/code-server")));
        assert_eq!(settings.window.timeout, Some(Duration::from_secs(90)));
        assert_eq!(settings.build.timeout, Duration::from_secs(120));
        assert_eq!(settings.watch.confirm, ConfirmBy::Content);
        assert_eq!(settings.build.command.unwrap(), ["npm", "run", "compile"]);
        assert_eq!(settings.paths, [PathSetting { local: "src".into(), remote: "/app/src".into() }]);
        assert_eq!(Settings::parse("\u{feff}").unwrap(), Settings::default());
        assert_eq!(Settings::parse("[build]\ntimeout = '1m 30s'").unwrap().build.timeout.as_secs(), 90);
    }

    #[test]
    fn every_kind_is_parsed_from_its_name() {
        use WindowKind::*;
        for kind in [ExtensionHost, WebExtensionHost, Browser, Node, Command] {
            let text = format!("[window]\nkind = \"{}\"", kind.name());
            assert_eq!(Settings::parse(&text).unwrap().window.kind, Some(kind));
        }
    }

    #[test]
    fn errors_name_the_file_the_line_and_the_allowed_values() {
        let workspace = tempfile::tempdir().unwrap();
        let check = |text: &str, expect: &[&str]| {
            std::fs::write(workspace.path().join(DEVTOOLS_TOML), text).unwrap();
            let error = Settings::load(workspace.path()).unwrap_err();
            assert_eq!(error.kind, tether_base::error::ErrorKind::Usage);
            let message = error.to_string();
            for part in ["devtools.toml"].iter().chain(expect) {
                assert!(message.contains(part), "{part:?} is not in:\n{message}");
            }
        };
        check("[window]\nkid = 1", &["line 2", "unknown field `kid`", "`kind`", "`codeServer`"]);
        check("[windows]", &["unknown field `windows`", "`window`, `build`, `server`, `watch`"]);
        check("\n\n[window]\nkind = 'car'", &["line 4", "unknown variant `car`", "`web-extension-host`"]);
        check("[build]\ntimeout = 'soon'", &["line 2", "\"soon\" is not a duration", "\"2m\""]);
        check("[build]\ncommand = 'make'", &["line 2", "expected a sequence"]);
        check("[[paths]]\nlocal = 'src'", &["line 1", "missing field `remote`"]);
        check("[build", &["line 1"]);
    }

    #[test]
    fn key_lines_name_the_line_of_each_key() {
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
    fn a_missing_file_means_defaults_and_an_unreadable_one_is_an_error() {
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
