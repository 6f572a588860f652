//! Resolves what to build and launch for a workspace, and where each value comes from: `devtools.toml` overrides
//! `.vscode/launch.json` and its tasks, which override `package.json`.
//!
//! Reads files; runs nothing. Does not depend on windows, processes, or the user's consent.

pub mod program_setting;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tether_base::error::{Error, Result};

use crate::config::build_checks::separate_checks;
use crate::config::build_outputs::{BuildOutput, OutputEvidence, find_build_outputs};
use crate::config::build_plan::{BuildPlan, BuildStep, StepCompletion};
use crate::config::consent_line::ConsentLine;
use crate::config::devtools_toml::overrides::override_window;
use crate::config::devtools_toml::settings::{DEVTOOLS_TOML, Settings, WatchSettings, WindowKind, WindowSettings};
use crate::config::npm::consented_scripts::{NpmScript, consented_scripts};
use crate::config::npm::dev_server::find_dev_script;
use crate::config::npm::package_json::PackageJson;
use crate::config::npm::package_search::find_packages_below;
use crate::config::npm::service::find_service;
use crate::config::shown_environment::{add_variables, secrets_of_references, show_environment};
use crate::config::source_file::{Origin, normalize_path};
use crate::config::vscode::launch_json::{LaunchFile, WindowConfiguration, WindowDebugger, missing_launch_file};
use crate::config::vscode::launch_window::{DerivedWindow, derive_window};
use crate::config::vscode::shell_quoting::quote_word;
use crate::config::vscode::task_steps::plan_task;
use crate::config::vscode::tasks_json::TasksFile;
use crate::config::vscode::variables::{VariableContext, substitute_environment};
use crate::config::window_config::program_setting::describe_program;

/// Names of scripts that build an extension, the preferred one first.
const BUILD_SCRIPTS: [&str; 2] = ["compile", "build"];
/// Of the packages below a workspace without a window: how many are read, and how many with a window are named.
const MAX_READ_PACKAGES: usize = 200;
const MAX_NAMED_PACKAGES: usize = 6;

/// What to build and launch for a workspace.
#[derive(Clone, Debug)]
pub struct WindowConfig {
    /// Canonical.
    pub workspace: PathBuf,
    /// The name of the launch configuration from which the window was derived.
    pub configuration: Option<String>,
    /// `[window]` of devtools.toml, completed by the derived values.
    pub window: WindowSettings,
    /// What runs before a launch.
    pub build: BuildPlan,
    /// Which files are watched.
    pub watch: WatchSettings,
    /// Files that the build writes, which do not count as changes.
    pub build_outputs: Vec<BuildOutput>,
    /// Attributes that were read and have no effect, one sentence each.
    pub notes: Vec<String>,
    /// By key: `window.kind`.
    origins: BTreeMap<String, Origin>,
    /// Every npm script of the workspace, when a command of the plan may call some.
    scripts: Vec<NpmScript>,
    /// Why no window is described.
    nothing: Option<String>,
}

/// What the files other than devtools.toml describe.
#[derive(Default)]
struct DerivedConfig {
    configuration: Option<String>,
    derived: DerivedWindow,
    build: Option<BuildPlan>,
    /// A dev server that runs beside the window.
    server: Option<BuildStep>,
    nothing: Option<String>,
}

impl WindowConfig {
    /// Resolves the launch configuration `name` of a (canonical) workspace, else the first that can be launched.
    /// `${env:…}` stays: see [`WindowConfig::with_environment_values`]. Errors name file and line.
    pub fn resolve(workspace: &Path, name: Option<&str>) -> Result<WindowConfig> {
        let settings = Settings::load(workspace)?;
        let lines = Settings::key_lines(workspace);
        // A complete devtools.toml does not depend on the other files, nor on errors in them.
        let complete = name.is_none() && settings.window.kind.is_some() && settings.build.command.is_some();
        let base = if complete { DerivedConfig::default() } else { DerivedConfig::derive(workspace, &settings, name)? };
        let is_set = |name: &str| lines.contains_key(&format!("window.{name}"));
        let toml = |key: &str| Origin::new(workspace, &workspace.join(DEVTOOLS_TOML), lines.get(key).copied());
        let build = match &settings.build.command {
            Some(command) => explicit_build(workspace, command, toml("build.command"), settings.build.timeout),
            None => base.build.unwrap_or_else(|| BuildPlan::empty(settings.build.timeout)),
        };
        let server = match &settings.server.command {
            Some(command) => explicit_server(workspace, command, toml("server.command")),
            None => base.server,
        };
        let has_server = server.is_some();
        let build = server.into_iter().fold(build, BuildPlan::followed_by);
        let mut origins: BTreeMap<String, Origin> =
            base.derived.origins.into_iter().map(|(name, origin)| (format!("window.{name}"), origin)).collect();
        origins.extend(lines.keys().map(|key| (key.clone(), toml(key))));
        let mut window = override_window(base.derived.window, settings.window, is_set);
        if has_server && window.kind.is_none() {
            window.kind = Some(WindowKind::Browser);
            origins.insert("window.kind".to_owned(), toml("server.command"));
        }
        let mut config = WindowConfig {
            workspace: workspace.to_owned(),
            configuration: base.configuration,
            window,
            build,
            watch: settings.watch,
            build_outputs: Vec::new(),
            notes: base.derived.notes,
            origins,
            scripts: Vec::new(),
            nothing: base.nothing,
        };
        if !config.keeps_background_tasks() {
            config.build = separate_checks(config.build, workspace);
        }
        config.build_outputs = config.build_outputs_of(&base.derived.out_files);
        if config.has_commands() {
            config.scripts = consented_scripts(workspace, config.working_folders())?;
        }
        Ok(config)
    }

    /// Whether a command, an executable or arguments of the workspace's choice are run: any of them may call npm
    /// scripts.
    fn has_commands(&self) -> bool {
        let window = &self.window;
        let words = [&window.command, &window.args, &window.runtime_args];
        let programs = [&window.node, &window.browser, &window.vscode, &window.code_server];
        !self.build.is_empty()
            || words.iter().any(|words| !words.is_empty())
            || programs.iter().any(|program| program.is_some())
    }

    fn working_folders(&self) -> impl Iterator<Item = &Path> {
        let steps = self.build.steps.iter().map(|step| step.cwd.as_path());
        steps.chain([self.window.cwd.as_deref().unwrap_or(&self.workspace)])
    }

    fn build_outputs_of(&self, out_files: &[(String, usize)]) -> Vec<BuildOutput> {
        let root = self.workspace.join(&self.watch.root);
        let root = root.canonicalize().unwrap_or(root);
        let package = PackageJson::read(&self.workspace).ok().flatten();
        let origin = self.origins.get("window.profile").cloned().unwrap_or_default();
        find_build_outputs(&OutputEvidence {
            workspace: &self.workspace,
            root: &root,
            out_files,
            launch: &self.workspace.join(".vscode/launch.json"),
            package: package.as_ref(),
            profile: self.window.profile.as_deref().map(|profile| (profile, origin)),
            extensions: &self.extension_folders(),
            serves: self.build.steps.iter().any(|step| matches!(step.completion, StepCompletion::AfterAddress)),
            builds: !self.build.is_empty(),
        })
    }

    fn extension_folders(&self) -> Vec<&Path> {
        self.window.extension.iter().chain(&self.window.more_extensions).map(PathBuf::as_path).collect()
    }

    /// The folder below the watched one in which all extensions under development are: to watch only that is quicker.
    pub fn suggested_watch_root(&self) -> Option<PathBuf> {
        let root = normalize_path(&self.workspace.join(&self.watch.root));
        let folder = match &self.extension_folders()[..] {
            [folder] => normalize_path(&self.workspace.join(folder)),
            _ => return None,
        };
        let is_default = self.watch.root == WatchSettings::default().root;
        folder.strip_prefix(&root).ok().filter(|below| is_default && !below.as_os_str().is_empty()).map(Path::to_owned)
    }

    /// Resolves which files are watched; errors in other parts of the configuration do not matter.
    pub fn watch_settings(workspace: &Path, name: Option<&str>) -> Result<(WatchSettings, Vec<BuildOutput>)> {
        match WindowConfig::resolve(workspace, name) {
            Ok(config) => Ok((config.watch, config.build_outputs)),
            Err(_) => Ok((Settings::load(workspace)?.watch, Vec::new())),
        }
    }

    /// The packages of a monorepo that describe a window of their own, relative to the workspace; at most
    /// [`MAX_NAMED_PACKAGES`].
    fn find_package_windows(&self) -> Vec<PathBuf> {
        let packages = find_packages_below(&self.workspace).into_iter().take(MAX_READ_PACKAGES);
        let has_window = |package: &PathBuf| {
            let config = WindowConfig::resolve(&self.workspace.join(package), None);
            config.is_ok_and(|config| config.window.kind.is_some())
        };
        packages.filter(has_window).take(MAX_NAMED_PACKAGES).collect()
    }

    /// Errors: no window is described; the hints name the files that can describe one.
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
        let because = self.nothing.clone().unwrap_or_else(|| "no file describes a window".to_owned());
        let error = error.because(because);
        let packages = self.find_package_windows();
        let error = packages.iter().fold(error, |error, package| {
            let folder = quote_word(&self.workspace.join(package).to_string_lossy());
            error.hint(format!(
                "`tether --workspace {folder} start` launches the window of its package {}",
                package.display()
            ))
        });
        Err(error
            .hint(format!("`tether init` writes a {DEVTOOLS_TOML} for what it finds"))
            .hint("or add a .vscode/launch.json with a configuration of type extensionHost, chrome, msedge or node"))
    }

    /// Replaces every `${env:…}` by its value: the result is what is run.
    #[must_use]
    pub fn with_environment_values(mut self) -> WindowConfig {
        let replace = |text: &mut String| *text = substitute_environment(text);
        let window = &mut self.window;
        let plain = window.args.iter().chain(&window.runtime_args).chain(&window.command).chain(&window.url);
        let secrets = secrets_of_references(plain.chain(window.env.values()).map(String::as_str));
        window.secrets.extend(secrets);
        let own = window.env.iter().filter(|(_, value)| !value.contains("${env:"));
        add_variables(&mut window.secrets, own.map(|(name, value)| (name.as_str(), value.as_str())));
        window.args.iter_mut().chain(&mut window.runtime_args).chain(&mut window.command).for_each(replace);
        window.url.iter_mut().chain(window.env.values_mut()).for_each(replace);
        self.build.steps.iter_mut().for_each(BuildStep::substitute_environment);
        self
    }

    /// Whether background tasks of the build run on with the window. An extension host needs no watcher: tether builds.
    pub fn keeps_background_tasks(&self) -> bool {
        !matches!(self.window.kind, Some(WindowKind::ExtensionHost | WindowKind::WebExtensionHost))
    }

    /// Everything that is run, for the user's consent: build steps, window, npm scripts.
    pub fn consent_lines(&self) -> Vec<ConsentLine> {
        let steps = self
            .build
            .written_steps()
            .map(|step| step.consent_line("build", &self.workspace, self.keeps_background_tasks()));
        let window = self.window_values().into_iter().map(|(name, value)| {
            let runs = describe_program(&self.workspace, &self.window, name);
            let runs = runs.map(|program| format!(" runs {program}")).unwrap_or_default();
            let name = format!("window.{name}");
            ConsentLine {
                text: self.window.secrets.mask(&format!("{name}: {value}{runs}")),
                origin: self.origins.get(&name).cloned(),
            }
        });
        steps.chain(window).chain(self.scripts.iter().map(NpmScript::consent_line)).collect()
    }

    /// The keys of `[window]` that are set and decide what runs, as JSON; variables by names and digests.
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
            ("env", show_environment(window.env.iter().map(|(name, value)| (name, json!(value))))),
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
        let shown = |(name, mut value): (&'static str, Value)| {
            window.secrets.mask_json(&mut value);
            (name, value)
        };
        values.into_iter().filter(|(_, value)| is_set(value)).map(shown).collect()
    }
}

impl DerivedConfig {
    fn derive(workspace: &Path, settings: &Settings, name: Option<&str>) -> Result<DerivedConfig> {
        let launch = LaunchFile::read(workspace)?;
        let chosen = launch.as_ref().map(|launch| launch.choose_window(name)).transpose()?.flatten();
        if let (None, Some(name)) = (&launch, name) {
            return Err(missing_launch_file(workspace, name).hint("leave `config` out"));
        }
        if let Some(configuration) = chosen {
            return match is_kind_compatible(settings.window.kind, configuration.debugger) {
                true => DerivedConfig::from_launch_configuration(workspace, &configuration, settings),
                false if name.is_some() => Err(configuration.entry.wrong(format!(
                    "{DEVTOOLS_TOML} sets the kind of the window to {:?}",
                    settings.window.kind.map(WindowKind::name).unwrap_or_default()
                ))),
                false => Ok(DerivedConfig::default()),
            };
        }
        let package = PackageJson::read(workspace)?;
        match package.as_ref().and_then(|package| Some((package, package.vscode_engine()?))) {
            Some((package, node)) if is_kind_compatible(settings.window.kind, WindowDebugger::ExtensionHost) => {
                let window = WindowSettings {
                    kind: Some(WindowKind::ExtensionHost),
                    extension: Some(workspace.to_owned()),
                    derived: true,
                    ..WindowSettings::default()
                };
                let origin = package.origin(workspace, node);
                let origins = ["kind", "extension"].map(|name| (name, origin.clone())).into();
                let derived = DerivedWindow { window, origins, ..DerivedWindow::default() };
                let build = extension_build(workspace, package, settings.build.timeout);
                Ok(DerivedConfig { derived, build, ..DerivedConfig::default() })
            }
            _ if let Some(derived) = DerivedConfig::from_dev_script(workspace, package.as_ref(), settings) => {
                Ok(derived)
            }
            _ if let Some(derived) = DerivedConfig::from_service(workspace, package.as_ref(), settings) => Ok(derived),
            _ => {
                let launch = launch.map_or_else(|| "there is no .vscode/launch.json".to_owned(), |it| it.why_none());
                let package = match package {
                    None => "there is no package.json",
                    Some(_) => {
                        "its package.json is not that of a VS Code extension (`engines.vscode`), and has no script that \
                         starts a known dev server, or a service with `tsx watch`, nodemon or `node --watch`"
                    }
                };
                let nothing = Some(format!("{launch}; {package}; and no {DEVTOOLS_TOML} describes a window"));
                Ok(DerivedConfig { nothing, ..DerivedConfig::default() })
            }
        }
    }

    /// The page of a web project, whose dev server is started by a script of its package.json. `None` without such a
    /// script, or where devtools.toml says what to show.
    fn from_dev_script(workspace: &Path, package: Option<&PackageJson>, settings: &Settings) -> Option<DerivedConfig> {
        let is_open =
            settings.window.url.is_none() && is_kind_compatible(settings.window.kind, WindowDebugger::Browser);
        let package = package.filter(|_| is_open && settings.server.command.is_none())?;
        let (name, node) = find_dev_script(package)?;
        let origin = package.origin(workspace, node);
        let window = WindowSettings { kind: Some(WindowKind::Browser), derived: true, ..WindowSettings::default() };
        let derived = DerivedWindow { window, origins: [("kind", origin.clone())].into(), ..DerivedWindow::default() };
        let server = Some(package.script_step(name, origin).into_server());
        Some(DerivedConfig { derived, server, ..DerivedConfig::default() })
    }

    /// The Node service of a package whose script watches it. `None` without such a script, or where devtools.toml says what to run.
    fn from_service(workspace: &Path, package: Option<&PackageJson>, settings: &Settings) -> Option<DerivedConfig> {
        let is_open =
            settings.window.program.is_none() && is_kind_compatible(settings.window.kind, WindowDebugger::Node);
        let package = package.filter(|_| is_open && settings.server.command.is_none())?;
        let (service, node) = find_service(package)?;
        let origin = package.origin(workspace, node);
        let origins = ["kind", "program", "args", "runtimeArgs", "env"].map(|name| (name, origin.clone())).into();
        let window = WindowSettings {
            kind: Some(WindowKind::Node),
            program: Some(service.program.into()),
            args: service.args,
            runtime_args: service.runtime_args,
            env: service.env,
            derived: true,
            ..WindowSettings::default()
        };
        let derived = DerivedWindow { window, origins, ..DerivedWindow::default() };
        Some(DerivedConfig { derived, ..DerivedConfig::default() })
    }

    fn from_launch_configuration(
        workspace: &Path,
        configuration: &WindowConfiguration,
        settings: &Settings,
    ) -> Result<DerivedConfig> {
        let variables = VariableContext::new(workspace);
        let derived = derive_window(configuration, &variables)?;
        let timeout = settings.build.timeout;
        let build = match &derived.task {
            _ if settings.build.command.is_some() => None,
            Some(task) => {
                let tasks = TasksFile::read(&variables)?;
                Some(plan_task(&tasks, task, &configuration.entry.subject(), timeout)?)
            }
            None if configuration.debugger == WindowDebugger::ExtensionHost => {
                let extension = derived.window.extension.as_deref().unwrap_or(workspace);
                PackageJson::read(extension)?.and_then(|package| extension_build(workspace, &package, timeout))
            }
            None => None,
        };
        let configuration = Some(configuration.entry.name.clone());
        Ok(DerivedConfig { configuration, derived, build, ..DerivedConfig::default() })
    }
}

/// Whether the kind in devtools.toml fits the debugger of a launch configuration.
fn is_kind_compatible(kind: Option<WindowKind>, debugger: WindowDebugger) -> bool {
    match kind {
        None => true,
        Some(WindowKind::ExtensionHost | WindowKind::WebExtensionHost) => debugger == WindowDebugger::ExtensionHost,
        Some(WindowKind::Browser) => debugger == WindowDebugger::Browser,
        Some(WindowKind::Node) => debugger == WindowDebugger::Node,
        Some(WindowKind::Command) => false,
    }
}

/// The build by a script of the extension's package.json.
fn extension_build(workspace: &Path, package: &PackageJson, timeout: Duration) -> Option<BuildPlan> {
    let (name, node) = BUILD_SCRIPTS.iter().find_map(|name| Some((*name, package.script(name)?)))?;
    Some(BuildPlan::single(package.script_step(name, package.origin(workspace, node)), timeout))
}

/// The build that devtools.toml sets.
fn explicit_build(workspace: &Path, command: &[String], origin: Origin, timeout: Duration) -> BuildPlan {
    if command.is_empty() {
        return BuildPlan::empty(timeout);
    }
    BuildPlan::single(BuildStep::of_command(command.to_vec(), workspace, origin), timeout)
}

/// The dev server that devtools.toml sets.
fn explicit_server(workspace: &Path, command: &[String], origin: Origin) -> Option<BuildStep> {
    (!command.is_empty()).then(|| BuildStep::of_command(command.to_vec(), workspace, origin).into_server())
}

#[cfg(test)]
mod tests;
