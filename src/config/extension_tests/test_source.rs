//! Finds what runs the tests of an extension, by `.vscode-test.*` or launch.json, with what is run before them and the
//! lines to which the user consents.
//!
//! Reads files only. A `.vscode-test.js` is code of the workspace: it is evaluated after the consent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use tether_base::error::{Error, ErrorKind, Result};

use crate::config::build_plan::BuildPlan;
use crate::config::consent_line::ConsentLine;
use crate::config::devtools_toml::settings::{Settings, WindowKind, WindowSettings};
use crate::config::extension_tests::evaluated_tests::{EvaluatedTests, HostedTests};
use crate::config::npm::consented_scripts::{NpmScript, consented_scripts};
use crate::config::npm::package_json::PackageJson;
use crate::config::shown_environment::{secrets_of_json, show_environment_field};
use crate::config::source_file::{Origin, normalize_path, read_own_text};
use crate::config::vscode::launch_attributes::LaunchAttributes;
use crate::config::vscode::launch_json::{LaunchFile, WindowConfiguration};
use crate::config::vscode::launch_window::derive_window;
use crate::config::vscode::task_steps::plan_task;
use crate::config::vscode::tasks_json::TasksFile;
use crate::config::vscode::variables::{VariableContext, substitute_environment};

/// The file of `@vscode/test-cli`, in the order in which that looks for it.
const CONFIG_FILES: [&str; 4] = [".vscode-test.json", ".vscode-test.js", ".vscode-test.cjs", ".vscode-test.mjs"];
/// VS Code's flag: the module whose `run` runs the tests.
pub const TESTS_PATH_FLAG: &str = "--extensionTestsPath";
/// Names of scripts that build the tests, the preferred one first.
const BUILD_SCRIPTS: [&str; 4] = ["pretest", "compile-tests", "compile", "build"];
/// The digits of a digest in a line of consent.
const DIGEST_DIGITS: usize = 32;

/// Where the tests are described.
#[derive(Clone, Debug)]
pub enum TestDescription {
    /// A `.vscode-test.*` file, and the label of one of its configurations.
    File { path: PathBuf, label: Option<String> },
    /// A configuration of launch.json with a runner of the workspace.
    Launch(Box<EvaluatedTests>),
}

/// The tests of an extension, before anything of them has run.
#[derive(Clone, Debug)]
pub struct ExtensionTestSource {
    /// Canonical.
    pub workspace: PathBuf,
    pub description: TestDescription,
    /// What builds the extension and its tests.
    pub build: BuildPlan,
    /// The programs of a host, by `[window]` of devtools.toml.
    pub programs: WindowSettings,
    /// The launch configuration; `None` for a `.vscode-test.*` file.
    pub configuration: Option<String>,
    lines: Vec<ConsentLine>,
    scripts: Vec<NpmScript>,
}

/// The `.vscode-test.*` file of a folder.
pub fn find_test_file(folder: &Path) -> Option<PathBuf> {
    CONFIG_FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// Whether `name` is a configuration of launch.json that runs the tests of an extension.
pub fn is_test_configuration(workspace: &Path, name: &str) -> bool {
    let found = LaunchFile::read(workspace).ok().flatten().and_then(|file| file.test_configuration(Some(name)));
    found.is_some()
}

/// Whether `name` means tests of an extension where a configuration is named: in launch.json, or as a label of the
/// `.vscode-test.*` file, or that file itself.
pub fn means_extension_tests(workspace: &Path, name: &str) -> bool {
    let Ok(launch) = LaunchFile::read(workspace) else { return false };
    match launch {
        Some(file) if file.test_configuration(Some(name)).is_some() => true,
        Some(file) if file.has_entry(name) => false,
        _ => find_test_file(workspace).is_some(),
    }
}

impl ExtensionTestSource {
    /// The tests of that configuration: of launch.json, or a label of the `.vscode-test.*` file, or that file's name. Without a
    /// name: that file, else the first configuration of launch.json that runs tests. Errors: there is none.
    pub fn find(workspace: &Path, name: Option<&str>) -> Result<ExtensionTestSource> {
        let launch = LaunchFile::read(workspace)?;
        let of_launch = |name: Option<&str>| launch.as_ref().and_then(|file| file.test_configuration(name));
        let file = find_test_file(workspace);
        let is_file = |name: &str| file.as_ref().is_some_and(|file| file.file_name().is_some_and(|it| it == name));
        let source = match (name, file.clone()) {
            (Some(name), _) if of_launch(Some(name)).is_some() => None,
            (Some(name), Some(path)) if is_file(name) => Some((path, None)),
            (Some(name), Some(path)) => Some((path, Some(name.to_owned()))),
            (None, Some(path)) => Some((path, None)),
            (_, None) => None,
        };
        let settings = Settings::load(workspace)?;
        if let Some((path, label)) = source {
            return Self::of_file(workspace, path, label, &settings);
        }
        match of_launch(name) {
            Some(configuration) => Self::of_launch(workspace, &configuration, &settings),
            None => Err(no_tests(workspace, name)),
        }
    }

    fn of_file(
        workspace: &Path,
        path: PathBuf,
        label: Option<String>,
        settings: &Settings,
    ) -> Result<ExtensionTestSource> {
        let folder = path.parent().unwrap_or(workspace).to_owned();
        let timeout = settings.build.timeout;
        let package = PackageJson::read(&folder)?;
        let build = package.and_then(|package| tests_build(workspace, &package, timeout));
        let text = read_own_text(&path)?.unwrap_or_default();
        let digest = &hex::encode(Sha256::digest(&text))[..DIGEST_DIGITS];
        let origin = Origin::new(workspace, &path, None);
        let line = format!("tests: node evaluates {} (sha256 {digest})", json!(origin.file));
        let line = ConsentLine { text: line, origin: Some(origin) };
        let build = build.unwrap_or_else(|| BuildPlan::empty(timeout));
        Self::new(workspace, TestDescription::File { path, label }, build, settings, vec![line])
    }

    fn of_launch(
        workspace: &Path,
        configuration: &WindowConfiguration,
        settings: &Settings,
    ) -> Result<ExtensionTestSource> {
        let variables = VariableContext::new(workspace);
        let attributes = LaunchAttributes::new(&configuration.entry, variables.clone()).resolving_environment();
        let shown = |(key, node): &(String, crate::config::jsonc::JsonNode)| {
            let value = if key == "env" { show_environment_field(&node.as_written()) } else { node.as_written() };
            ConsentLine { text: format!("tests.{}: {value}", json!(key)), origin: Some(attributes.origin(node)) }
        };
        let own = configuration.entry.node.members().iter().filter(|(key, _)| key != "name");
        let lines: Vec<ConsentLine> = own.map(shown).collect();
        let timeout = settings.build.timeout;
        let extension_build = |folder: &Path| -> Result<BuildPlan> {
            let package = PackageJson::read(folder)?;
            Ok(package.and_then(|it| tests_build(workspace, &it, timeout)).unwrap_or_else(|| BuildPlan::empty(timeout)))
        };
        let task = |node| -> Result<BuildPlan> {
            plan_task(&TasksFile::read(&variables)?, node, &configuration.entry.subject(), timeout)
        };
        if let Some((path, _)) = attributes.path("testConfiguration")? {
            let label = attributes.text("testConfigurationLabel")?.map(|(label, _)| label);
            let folder = path.parent().unwrap_or(workspace).to_owned();
            let build = match attributes.get("preLaunchTask") {
                Some(node) => task(node)?,
                None => extension_build(&folder)?,
            };
            let description = TestDescription::File { path: normalize_path(&path), label };
            let mut source = Self::new(workspace, description, build, settings, lines)?;
            source.configuration = Some(configuration.entry.name.clone());
            return Ok(source);
        }
        let secrets = secrets_of_json([&configuration.entry.node.as_written()]);
        let derived = derive_window(configuration, &variables)?;
        let build = match &derived.task {
            Some(node) => task(node)?,
            None => extension_build(derived.window.extension.as_deref().unwrap_or(workspace))?,
        };
        let mut window = programs_of(settings);
        let mut args = derived.window.args;
        let runner = take_tests_path(&mut args).ok_or_else(|| {
            configuration.entry.wrong(format!("`args` has no `{TESTS_PATH_FLAG}=…`, and it has no `testConfiguration`"))
        })?;
        let mut env = derived.window.env;
        // After the lines for the consent: the user's own environment is not part of what they trust.
        args.iter_mut().chain(env.values_mut()).for_each(|text| *text = substitute_environment(text));
        window = WindowSettings {
            kind: Some(window.kind.unwrap_or(WindowKind::ExtensionHost)),
            derived: window.kind.is_none(),
            extension: derived.window.extension,
            more_extensions: derived.window.more_extensions,
            folder: derived.window.folder,
            env,
            args,
            secrets,
            ..window
        };
        let tests = HostedTests { runner: Some(workspace.join(runner)), ..HostedTests::default() };
        let label = configuration.entry.name.clone();
        // That it runs tests is what it is for.
        let notes = derived.notes.into_iter().filter(|note| !note.contains("`testConfiguration")).collect();
        let evaluated = EvaluatedTests { label: label.clone(), window, tests, notes };
        let mut source = Self::new(workspace, TestDescription::Launch(Box::new(evaluated)), build, settings, lines)?;
        source.configuration = Some(label);
        Ok(source)
    }

    fn new(
        workspace: &Path,
        description: TestDescription,
        build: BuildPlan,
        settings: &Settings,
        lines: Vec<ConsentLine>,
    ) -> Result<ExtensionTestSource> {
        let folders = build.steps.iter().map(|step| step.cwd.clone()).chain([workspace.to_owned()]);
        let folders: Vec<PathBuf> = folders.collect();
        let scripts = match build.is_empty() {
            true => Vec::new(),
            false => consented_scripts(workspace, folders.iter().map(PathBuf::as_path))?,
        };
        let (workspace, programs) = (workspace.to_owned(), programs_of(settings));
        Ok(ExtensionTestSource { workspace, description, build, programs, configuration: None, lines, scripts })
    }

    /// Everything that is run, for the user's consent: the build, the configuration, the programs, npm scripts.
    pub fn consent_lines(&self) -> Vec<ConsentLine> {
        let steps = self.build.steps.iter().map(|step| step.consent_line("before tests", &self.workspace, true));
        let programs = [
            ("browser", &self.programs.browser),
            ("node", &self.programs.node),
            ("codeServer", &self.programs.code_server),
            ("vscode", &self.programs.vscode),
        ];
        let programs = programs.into_iter().filter_map(|(name, program)| {
            let text = format!("tests run in window.{name}: {}", json!(program.as_ref()?));
            Some(ConsentLine { text, origin: None })
        });
        let scripts = self.scripts.iter().map(NpmScript::consent_line);
        steps.chain(self.lines.iter().cloned()).chain(programs).chain(scripts).collect()
    }
}

/// The settings of a window that name the programs of a host, and how they are shown.
fn programs_of(settings: &Settings) -> WindowSettings {
    let written = &settings.window;
    let is_host = |kind: &WindowKind| matches!(kind, WindowKind::ExtensionHost | WindowKind::WebExtensionHost);
    WindowSettings {
        kind: written.kind.filter(is_host),
        headless: written.headless,
        browser: written.browser.clone(),
        node: written.node.clone(),
        code_server: written.code_server.clone(),
        vscode: written.vscode.clone(),
        timeout: written.timeout,
        ..WindowSettings::default()
    }
}

/// Removes the flag with the module of the tests; returns its path.
pub fn take_tests_path(args: &mut Vec<String>) -> Option<PathBuf> {
    let at = args.iter().position(|arg| arg.starts_with(TESTS_PATH_FLAG))?;
    let value = args.remove(at).strip_prefix(TESTS_PATH_FLAG)?.strip_prefix('=').map(PathBuf::from);
    // Written as a word of its own.
    value.or_else(|| (at < args.len()).then(|| PathBuf::from(args.remove(at))))
}

/// The script that builds the tests, as `npm test` runs it.
fn tests_build(workspace: &Path, package: &PackageJson, timeout: Duration) -> Option<BuildPlan> {
    let (name, node) = BUILD_SCRIPTS.iter().find_map(|name| Some((*name, package.script(name)?)))?;
    Some(BuildPlan::single(package.script_step(name, package.origin(workspace, node)), timeout))
}

fn no_tests(workspace: &Path, name: Option<&str>) -> Error {
    let doing = match name {
        Some(name) => format!("cannot find the test configuration {name:?}"),
        None => format!("cannot find the tests of an extension in {}", workspace.display()),
    };
    let error = Error::new(ErrorKind::NotFound, doing);
    error
        .because(format!(
            "there is no .vscode-test.js, .mjs, .cjs or .json, and no such configuration with `{TESTS_PATH_FLAG}` in launch.json"
        ))
        .hint("`tether debug launch --test NAME` debugs a test of any other runner by its name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    const PACKAGE: &str = r#"{"scripts": {"pretest": "npm run compile", "compile": "tsc", "test": "vscode-test"}}"#;
    const LAUNCH: &str = r#"{"configurations": [
        {"name": "Run", "type": "extensionHost", "request": "launch", "args": ["--extensionDevelopmentPath=${workspaceFolder}"]},
        {"name": "Tests", "type": "extensionHost", "request": "launch", "env": {"TOKEN": "s3cret"}, "args": [
            "--extensionDevelopmentPath=${workspaceFolder}", "--extensionTestsPath", "${workspaceFolder}/out/test/index"]},
        {"name": "By file", "type": "extensionHost", "request": "launch", "testConfiguration": "${workspaceFolder}/.vscode-test.mjs",
         "testConfigurationLabel": "unit"}
    ]}"#;

    #[test]
    fn a_test_file_is_preferred_and_a_configuration_is_found_by_its_name() {
        let files =
            [(".vscode-test.mjs", "export default {}"), ("package.json", PACKAGE), (".vscode/launch.json", LAUNCH)];
        let (_kept, path) = workspace(&files);
        let find = |name: Option<&str>| ExtensionTestSource::find(&path, name).unwrap();
        let label = |name: Option<&str>| match find(name).description {
            TestDescription::File { path, label } => (path.file_name().unwrap().to_str().unwrap().to_owned(), label),
            TestDescription::Launch(tests) => {
                (tests.tests.runner.unwrap().to_str().unwrap().to_owned(), Some(tests.label))
            }
        };
        let file = ".vscode-test.mjs".to_owned();
        assert_eq!(label(None), (file.clone(), None));
        assert_eq!(label(Some(".vscode-test.mjs")), (file.clone(), None));
        assert_eq!(label(Some("e2e")), (file.clone(), Some("e2e".to_owned())));
        assert_eq!(label(Some("By file")), (file, Some("unit".to_owned())));
        let runner = path.join("out/test/index").to_str().unwrap().to_owned();
        assert_eq!(label(Some("Tests")), (runner, Some("Tests".to_owned())));
        assert!(means_extension_tests(&path, "Tests") && means_extension_tests(&path, "unit"));
        assert!(!means_extension_tests(&path, "Run") && !is_test_configuration(&path, "Run"));
        std::fs::remove_file(path.join(".vscode-test.mjs")).unwrap();
        assert_eq!(find(None).configuration.as_deref(), Some("Tests"));
        let missing = ExtensionTestSource::find(&path, Some("e2e")).unwrap_err().to_string();
        assert!(missing.contains("\"e2e\"") && missing.contains("tether debug launch --test"), "{missing}");
    }

    #[test]
    fn consent_covers_the_build_the_configuration_and_the_scripts() {
        let (_kept, path) =
            workspace(&[(".vscode-test.json", "{}"), ("package.json", PACKAGE), (".vscode/launch.json", LAUNCH)]);
        let texts = |name: Option<&str>| -> Vec<String> {
            ExtensionTestSource::find(&path, name).unwrap().consent_lines().into_iter().map(|it| it.text).collect()
        };
        let file = texts(None);
        assert_eq!(file[0], r#"before tests: ["npm","run","pretest"]"#);
        assert!(file[1].starts_with(r#"tests: node evaluates ".vscode-test.json" (sha256 "#), "{file:?}");
        assert!(file.contains(&r#"script "compile": "tsc""#.to_owned()), "{file:?}");
        let launch = texts(Some("Tests")).join("\n");
        assert!(launch.contains("--extensionTestsPath") && !launch.contains("s3cret"), "{launch}");
        std::fs::write(path.join(".vscode-test.json"), "{ }").unwrap();
        assert_ne!(texts(None), file);
    }

    #[test]
    fn the_module_of_the_tests_is_taken_out_of_the_arguments() {
        let check = |args: &[&str], expect: Option<&str>, left: &[&str]| {
            let mut args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(take_tests_path(&mut args), expect.map(PathBuf::from));
            assert_eq!(args, left);
        };
        check(&["--a", "--extensionTestsPath=/x y"], Some("/x y"), &["--a"]);
        check(&["--extensionTestsPath", "/x", "--b"], Some("/x"), &["--b"]);
        check(&["--extensionTestsPath"], None, &[]);
        check(&["--b"], None, &["--b"]);
    }
}
