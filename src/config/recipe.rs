//! What to run for a workspace, and where each line of it comes from: `devtools.toml` over `.vscode/launch.json` with its
//! tasks, over `package.json`.
//!
//! Reads files and decides; runs nothing. Must not know windows, processes, or what the user trusts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::file::Origin;
use super::generated::{self, BuildOutput, OutputEvidence};
use super::launch_json::{LaunchFile, WindowConfiguration, WindowDebugger};
use super::launch_window;
use super::package::PackageJson;
use super::plan::{BuildPlan, BuildStep, ConsentLine, NpmScript, StepCompletion};
use super::scripts::scripts_of;
use super::settings::{DEVTOOLS_TOML, Settings, WatchSettings, WindowKind, WindowSettings};
use super::tasks::TasksFile;
use super::variables::{VariableContext, substitute_environment};
use super::{merge, shell, task_steps};
use crate::error::{Error, ErrorKind, Result};

/// The scripts of an extension that build it, the preferred one first.
const BUILD_SCRIPTS: [&str; 2] = ["compile", "build"];

/// What to run for a workspace.
#[derive(Clone, Debug)]
pub struct WindowConfig {
    pub workspace: PathBuf,
    /// The launch configuration that it was derived from.
    pub configuration: Option<String>,
    pub window: WindowSettings,
    pub build: BuildPlan,
    pub watch: WatchSettings,
    /// What the build writes: no changes.
    pub build_outputs: Vec<BuildOutput>,
    /// What was read and is not honoured.
    pub notes: Vec<String>,
    origins: BTreeMap<String, Origin>,
    /// The texts that a package manager would run for the window.
    scripts: Vec<NpmScript>,
    /// Why there is no window.
    nothing: Option<String>,
}

/// What the workspace's other files say.
#[derive(Default)]
struct DerivedConfig {
    configuration: Option<String>,
    window: WindowSettings,
    origins: BTreeMap<&'static str, Origin>,
    build: Option<BuildPlan>,
    out_files: Vec<(String, usize)>,
    notes: Vec<String>,
    nothing: Option<String>,
}

impl WindowConfig {
    /// The recipe of a (canonical) workspace: of the launch configuration `wanted`, else of the first that can be
    /// launched. Errors name file, line and what is wrong. `${env:…}` stays: see [`WindowConfig::with_environment_values`].
    pub fn resolve(workspace: &Path, wanted: Option<&str>) -> Result<WindowConfig> {
        let settings = Settings::load(workspace)?;
        let lines = Settings::key_lines(workspace);
        // Who says all of it needs nobody else, and is not troubled by what is wrong there.
        let complete = wanted.is_none() && settings.window.kind.is_some() && settings.build.command.is_some();
        let base =
            if complete { DerivedConfig::default() } else { DerivedConfig::derive(workspace, &settings, wanted)? };
        let is_set = |name: &str| lines.contains_key(&format!("window.{name}"));
        let toml = |key: &str| Origin::new(workspace, &workspace.join(DEVTOOLS_TOML), lines.get(key).copied());
        let build = match &settings.build.command {
            Some(command) => explicit_build(workspace, command, toml("build.command"), settings.build.timeout)?,
            None => base.build.unwrap_or_else(|| BuildPlan::empty(settings.build.timeout)),
        };
        let mut origins: BTreeMap<String, Origin> =
            base.origins.into_iter().map(|(name, origin)| (format!("window.{name}"), origin)).collect();
        origins.extend(lines.keys().map(|key| (key.clone(), toml(key))));
        let window = merge::override_window(base.window, settings.window, is_set);
        let scripts = window_scripts(workspace, &window)?;
        let mut recipe = WindowConfig {
            workspace: workspace.to_owned(),
            configuration: base.configuration,
            window,
            build,
            watch: settings.watch,
            build_outputs: Vec::new(),
            notes: base.notes,
            origins,
            scripts,
            nothing: base.nothing,
        };
        recipe.build_outputs = recipe.find_build_outputs(&base.out_files);
        Ok(recipe)
    }

    fn find_build_outputs(&self, out_files: &[(String, usize)]) -> Vec<BuildOutput> {
        let root = self.workspace.join(&self.watch.root);
        let root = root.canonicalize().unwrap_or(root);
        let package = PackageJson::read(&self.workspace).ok().flatten();
        let origin = self.origins.get("window.profile").cloned().unwrap_or_default();
        generated::find_build_outputs(&OutputEvidence {
            workspace: &self.workspace,
            root: &root,
            out_files,
            launch: &self.workspace.join(".vscode/launch.json"),
            package: package.as_ref(),
            profile: self.window.profile.as_deref().map(|profile| (profile, origin)),
            builds: !self.build.is_empty(),
        })
    }

    /// How the files are watched, whatever else is wrong.
    pub fn watch_settings(workspace: &Path, wanted: Option<&str>) -> Result<(WatchSettings, Vec<BuildOutput>)> {
        match WindowConfig::resolve(workspace, wanted) {
            Ok(recipe) => Ok((recipe.watch, recipe.build_outputs)),
            Err(_) => Ok((Settings::load(workspace)?.watch, Vec::new())),
        }
    }

    /// Agrees when there is a window to launch; else says where one could be described.
    pub fn check_window(&self) -> Result<()> {
        if self.window.kind.is_some() {
            return Ok(());
        }
        let error = Error::usage(format!("cannot tell what to launch in {}", self.workspace.display()));
        if self.origins.keys().any(|key| key.starts_with("window.")) {
            let because = format!("the [window] section of {DEVTOOLS_TOML} has no `kind`");
            return Err(error
                .because(because)
                .hint("set `kind` to extension-host, web-extension-host, browser, node or command"));
        }
        let because = self.nothing.clone().unwrap_or_else(|| "nothing there says so".to_owned());
        Err(error
            .because(because)
            .hint(format!("`tether init` writes a {DEVTOOLS_TOML} for what it finds"))
            .hint("or add a .vscode/launch.json with a configuration of type extensionHost, chrome, msedge or node"))
    }

    /// The same with every `${env:…}` replaced by its value: what is really run.
    #[must_use]
    pub fn with_environment_values(mut self) -> WindowConfig {
        let replace = |text: &mut String| *text = substitute_environment(text);
        let window = &mut self.window;
        window.args.iter_mut().chain(&mut window.runtime_args).chain(&mut window.command).for_each(replace);
        window.url.iter_mut().chain(window.env.values_mut()).for_each(replace);
        self.build.steps.iter_mut().for_each(BuildStep::substitute_environment);
        self
    }

    /// What is to be run: each line unambiguous, a change of one byte changes a line.
    pub fn consent_lines(&self) -> Vec<ConsentLine> {
        let steps = self.build.steps.iter().flat_map(|step| step.consent_lines("build", &self.workspace));
        let window = self.window_values().into_iter().map(|(name, value)| {
            let name = format!("window.{name}");
            ConsentLine { text: format!("{name}: {value}"), origin: self.origins.get(&name).cloned() }
        });
        steps.chain(window).chain(self.scripts.iter().map(NpmScript::consent_line)).collect()
    }

    /// What is set of `[window]` and decides what runs.
    pub fn window_values(&self) -> Vec<(&'static str, Value)> {
        let window = &self.window;
        let values = [
            ("kind", json!(window.kind.map(WindowKind::name))),
            ("program", json!(window.program)),
            ("url", json!(window.url)),
            ("command", json!(window.command)),
            ("args", json!(window.args)),
            ("runtimeArgs", json!(window.runtime_args)),
            ("cwd", json!(window.cwd)),
            ("env", json!(window.env)),
            ("browser", json!(window.browser)),
            ("node", json!(window.node)),
            ("codeServer", json!(window.code_server)),
            ("vscode", json!(window.vscode)),
            ("extension", json!(window.extension)),
            ("moreExtensions", json!(window.more_extensions)),
            ("folder", json!(window.folder)),
            ("profile", json!(window.profile)),
        ];
        let is_set = |value: &Value| match value {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
            _ => true,
        };
        values.into_iter().filter(|(_, value)| is_set(value)).collect()
    }
}

impl DerivedConfig {
    fn derive(workspace: &Path, settings: &Settings, wanted: Option<&str>) -> Result<DerivedConfig> {
        let launch = LaunchFile::read(workspace)?;
        let chosen = launch.as_ref().map(|launch| launch.choose_window(wanted)).transpose()?.flatten();
        if let (None, Some(name)) = (&launch, wanted) {
            return Err(Error::new(ErrorKind::NotFound, format!("cannot find the launch configuration {name:?}"))
                .because(format!("there is no {}", workspace.join(".vscode/launch.json").display()))
                .hint("leave `config` out"));
        }
        if let Some(configuration) = chosen {
            return match is_kind_compatible(settings.window.kind, configuration.debugger) {
                true => DerivedConfig::from_launch_configuration(workspace, &configuration, settings),
                false if wanted.is_some() => Err(configuration.wrong(format!(
                    "{DEVTOOLS_TOML} says that the window is of the kind {:?}",
                    settings.window.kind.map(WindowKind::name).unwrap_or_default()
                ))),
                false => Ok(DerivedConfig::default()),
            };
        }
        let package = PackageJson::read(workspace)?;
        match package.as_ref().and_then(|package| Some((package, package.vscode_engine()?))) {
            Some((package, node)) if is_kind_compatible(settings.window.kind, WindowDebugger::ExtensionHost) => {
                let origin = package.origin(workspace, node);
                DerivedConfig::from_extension_package(workspace, package, &origin, settings.build.timeout)
            }
            _ => {
                let launch = launch.map_or_else(|| "there is no .vscode/launch.json".to_owned(), |it| it.why_none());
                let package = match package {
                    None => "there is no package.json",
                    Some(_) => "its package.json is not that of a VS Code extension (`engines.vscode`)",
                };
                let nothing = Some(format!("{launch}; {package}; and no {DEVTOOLS_TOML} describes a window"));
                Ok(DerivedConfig { nothing, ..DerivedConfig::default() })
            }
        }
    }

    fn from_launch_configuration(
        workspace: &Path,
        configuration: &WindowConfiguration,
        settings: &Settings,
    ) -> Result<DerivedConfig> {
        let variables = VariableContext::new(workspace);
        let derived = launch_window::derive_window(configuration, &variables)?;
        let timeout = settings.build.timeout;
        let build = match &derived.task {
            _ if settings.build.command.is_some() => None,
            Some(task) => {
                let tasks = TasksFile::read(&variables)?;
                Some(task_steps::plan_task(&tasks, task, &configuration.subject(), timeout)?)
            }
            None if configuration.debugger == WindowDebugger::ExtensionHost => {
                let extension = derived.window.extension.as_deref().unwrap_or(workspace);
                PackageJson::read(extension)?
                    .map(|package| extension_build(workspace, &package, timeout))
                    .transpose()?
                    .flatten()
            }
            None => None,
        };
        Ok(DerivedConfig {
            configuration: Some(configuration.name.clone()),
            window: derived.window,
            origins: derived.origins,
            build,
            out_files: derived.out_files,
            notes: derived.notes,
            nothing: None,
        })
    }

    fn from_extension_package(
        workspace: &Path,
        package: &PackageJson,
        origin: &Origin,
        timeout: Duration,
    ) -> Result<DerivedConfig> {
        let window = WindowSettings {
            kind: Some(WindowKind::ExtensionHost),
            extension: Some(workspace.to_owned()),
            derived: true,
            ..WindowSettings::default()
        };
        let origins = ["kind", "extension"].map(|name| (name, origin.clone())).into();
        Ok(DerivedConfig {
            window,
            origins,
            build: extension_build(workspace, package, timeout)?,
            ..DerivedConfig::default()
        })
    }
}

/// Whether a kind that is written in devtools.toml goes with what a configuration describes.
fn is_kind_compatible(kind: Option<WindowKind>, debugger: WindowDebugger) -> bool {
    match kind {
        None => true,
        Some(WindowKind::ExtensionHost | WindowKind::WebExtensionHost) => debugger == WindowDebugger::ExtensionHost,
        Some(WindowKind::Browser) => debugger == WindowDebugger::Browser,
        Some(WindowKind::Node) => debugger == WindowDebugger::Node,
        Some(WindowKind::Command) => false,
    }
}

/// The build that an extension's scripts offer.
fn extension_build(workspace: &Path, package: &PackageJson, timeout: Duration) -> Result<Option<BuildPlan>> {
    let found = BUILD_SCRIPTS.iter().find_map(|name| Some((*name, package.script(name)?)));
    let Some((name, node)) = found else { return Ok(None) };
    let step = package.script_step(workspace, name, package.origin(workspace, node))?;
    Ok(Some(BuildPlan::single(step, timeout)))
}

/// What a package manager would run, where the window is started through one.
fn window_scripts(workspace: &Path, window: &WindowSettings) -> Result<Vec<NpmScript>> {
    let node = window.node.iter().map(|node| node.to_string_lossy().into_owned());
    let words = window.command.iter().cloned().chain(node);
    let words: Vec<String> = words.chain(window.runtime_args.iter().chain(&window.args).cloned()).collect();
    scripts_of(workspace, &words, window.cwd.as_deref().unwrap_or(workspace))
}

/// The build that devtools.toml writes out.
fn explicit_build(workspace: &Path, command: &[String], origin: Origin, timeout: Duration) -> Result<BuildPlan> {
    if command.is_empty() {
        return Ok(BuildPlan::empty(timeout));
    }
    let step = BuildStep {
        label: command.join(" "),
        scripts: scripts_of(workspace, command, workspace)?,
        argv: command.to_vec(),
        shell_line: shell::find_shell_line(command),
        cwd: workspace.to_owned(),
        env: BTreeMap::new(),
        completion: StepCompletion::OnExit,
        origin,
    };
    Ok(BuildPlan::single(step, timeout))
}

#[cfg(test)]
mod tests;
