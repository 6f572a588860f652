//! Which file decides each value.

use super::*;

const LAUNCH: &str = r#"{ "configurations": [
    { "name": "Web", "type": "chrome", "request": "launch", "url": "http://127.0.0.1:1/" },
    { "name": "Run", "type": "extensionHost", "request": "launch", "env": {"A": "${env:CARGO_PKG_NAME}"},
      "args": ["--extensionDevelopmentPath=${workspaceFolder}", "--flag"], "preLaunchTask": "make" } ] }"#;
const TASKS: &str = r#"{ "version": "2.0.0", "tasks": [{ "label": "make", "type": "shell", "command": "make" }] }"#;
const EXTENSION: &str = r#"{ "engines": {"vscode": "*"},
  "scripts": {"build": "b", "compile": "c"} }"#;

fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".vscode")).unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn lines(files: &[(&str, &str)], selected: Option<&str>) -> Result<Vec<String>> {
    let folder = workspace(files);
    let config = WindowConfig::resolve(folder.path(), selected)?;
    config.check_window()?;
    let shown = |line: &ConsentLine| {
        let origin = line.origin.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = line.text.replace(folder.path().to_str().unwrap(), "<ws>").replace("/bin/bash", "/bin/sh");
        format!("{text} [{origin}]")
    };
    Ok(config.consent_lines().iter().map(shown).collect())
}

#[track_caller]
fn check(files: &[(&str, &str)], selected: Option<&str>, expect: &[&str]) {
    assert_eq!(lines(files, selected).unwrap_or_else(|error| panic!("{error}")), expect);
}

#[track_caller]
fn refuses(files: &[(&str, &str)], selected: Option<&str>, parts: &[&str]) {
    let actual = lines(files, selected).unwrap_err().to_string();
    for part in parts {
        assert!(actual.contains(part), "{part:?} is not in {actual}");
    }
}

#[test]
fn launch_json_and_its_tasks_describe_a_window() {
    let (launch, tasks) = ((".vscode/launch.json", LAUNCH), (".vscode/tasks.json", TASKS));
    let build = r#"build: ["/bin/sh","-c","make"] [.vscode/tasks.json:1]"#;
    let run = [
        r#"window.kind: "extension-host" [.vscode/launch.json:3]"#,
        r#"window.args: ["--flag"] [.vscode/launch.json:4]"#,
        r#"window.env: {"A":"${env:CARGO_PKG_NAME}"} [.vscode/launch.json:3]"#,
        r#"window.extension: "<ws>" [.vscode/launch.json:4]"#,
    ];
    check(&[launch, tasks], None, &[&[build], &run[..]].concat());
    let web = [
        r#"window.kind: "browser" [.vscode/launch.json:2]"#,
        r#"window.url: "http://127.0.0.1:1/" [.vscode/launch.json:2]"#,
    ];
    check(&[launch, tasks], Some("Web"), &web);
    // What devtools.toml says wins, key by key.
    let toml = ("devtools.toml", "[window]\nargs = []\n[build]\ncommand = ['ninja']");
    let build = r#"build: ["ninja"] [devtools.toml:4]"#;
    check(&[launch, toml], None, &[build, run[0], run[2], run[3]]);
    check(&[launch, ("devtools.toml", "[build]\ncommand = []")], None, &run);
    let kind = ("devtools.toml", "[window]\nkind = 'web-extension-host'");
    let own = r#"window.kind: "web-extension-host" [devtools.toml:2]"#;
    let build = r#"build: ["/bin/sh","-c","make"] [.vscode/tasks.json:1]"#;
    check(&[launch, tasks, kind], None, &[build, own, run[2], run[3]]);
    // Of another kind, it stands alone.
    let node = ("devtools.toml", "[window]\nkind = 'node'\nprogram = 'a.js'");
    check(
        &[launch, tasks, node],
        None,
        &[r#"window.kind: "node" [devtools.toml:2]"#, r#"window.program: "a.js" [devtools.toml:3]"#],
    );
    refuses(&[launch, tasks, node], Some("Run"), &["launch.json:3", "\"node\""]);
}

#[test]
fn errors_in_other_files_do_not_matter_to_a_complete_devtools_toml() {
    let broken = [(".vscode/launch.json", "{"), ("package.json", "{")];
    let toml = ("devtools.toml", "[window]\nkind = 'node'\nprogram = 'a.js'\n[build]\ncommand = []");
    let expect = [r#"window.kind: "node" [devtools.toml:2]"#, r#"window.program: "a.js" [devtools.toml:3]"#];
    check(&[broken[0], broken[1], toml], None, &expect);
    refuses(&broken, None, &["launch.json:1:"]);
}

#[test]
fn package_json_describes_an_extension() {
    let expect = [
        r#"build: ["yarn","run","compile"] [package.json:2]"#,
        r#"window.kind: "extension-host" [package.json:1]"#,
        r#"window.extension: "<ws>" [package.json:1]"#,
        r#"script "build": "b" [package.json:2]"#,
        r#"script "compile": "c" [package.json:2]"#,
    ];
    check(&[("package.json", EXTENSION), ("yarn.lock", "")], None, &expect);
    // Its scripts build a configuration that has no preLaunchTask, too.
    let launch =
        r#"{"configurations": [{"name": "R", "type": "extensionHost", "args": ["--extensionDevelopmentPath=."]}]}"#;
    let actual = lines(&[("package.json", EXTENSION), (".vscode/launch.json", launch)], None).unwrap();
    assert_eq!(actual[0], r#"build: ["npm","run","compile"] [package.json:2]"#);
}

#[test]
fn a_script_that_watches_a_service_describes_it() {
    let package = ("package.json", r#"{"scripts": {"dev": "PORT=1 tsx watch src/server.ts --verbose"}}"#);
    let expect = [
        r#"window.kind: "node" [package.json:1]"#,
        r#"window.program: "src/server.ts" [package.json:1]"#,
        r#"window.args: ["--verbose"] [package.json:1]"#,
        r#"window.runtimeArgs: ["--import","tsx"] [package.json:1]"#,
    ];
    let actual = lines(&[package], None).unwrap();
    assert_eq!(actual[..4], expect);
    let toml = ("devtools.toml", "[window]\nprogram = 'other.js'\nkind = 'node'");
    assert!(
        lines(&[package, toml], None).unwrap().contains(&r#"window.program: "other.js" [devtools.toml:2]"#.to_owned())
    );
}

#[test]
fn an_error_without_a_window_names_the_files_that_can_describe_one() {
    refuses(&[], None, &["cannot tell what to launch", "no .vscode/launch.json", "no package.json", "`tether init`"]);
    let python = (".vscode/launch.json", r#"{"configurations": [{"name": "Py", "type": "debugpy"}]}"#);
    refuses(&[python, ("package.json", "{}")], None, &["\"Py\" is of the type \"debugpy\"", "`engines.vscode`"]);
    refuses(&[("devtools.toml", "[window]\nurl = 'x:y'")], None, &["has no `kind`"]);
    refuses(&[], Some("Run"), &["\"Run\"", "there is no "]);
}

#[test]
fn an_error_at_the_root_of_a_monorepo_names_the_packages_with_a_window() {
    let files = [
        ("package.json", r#"{"private": true, "workspaces": ["packages/*"]}"#),
        ("packages/ext/package.json", EXTENSION),
        ("packages/lib/package.json", "{}"),
        ("packages/lib/node_modules/x/package.json", EXTENSION),
        ("packages/web app/package.json", r#"{"scripts": {"dev": "vite"}, "devDependencies": {"vite": "1"}}"#),
        ("packages/broken/package.json", "{"),
    ];
    let (ext, web) =
        ("/packages/ext start` launches the window of its package packages/ext", "/packages/web app' start`");
    refuses(&files, None, &["cannot tell what to launch", ext, web]);
    let error = lines(&files, None).unwrap_err().to_string();
    assert_eq!(error.matches("--workspace").count(), 2, "{error}");
}

#[test]
fn consent_covers_every_script_once_a_command_is_run() {
    let package = ("package.json", r#"{"scripts": {"app": "electron ."}}"#);
    let toml =
        "[window]\nkind = 'command'\ncommand = ['npm', 'run', 'app', '--', '--port=${cdpPort}']\n[build]\ncommand = []";
    let expect = [
        r#"window.kind: "command" [devtools.toml:2]"#,
        r#"window.command: ["npm","run","app","--","--port=${cdpPort}"] [devtools.toml:3]"#,
        r#"script "app": "electron ." [package.json:1]"#,
    ];
    check(&[package, ("devtools.toml", toml)], None, &expect);
    let script = r#"script "app": "electron ." [package.json:1]"#;
    let covers = |toml: &str, expect: bool| {
        let lines = lines(&[package, ("devtools.toml", toml)], None).unwrap();
        assert_eq!(lines.iter().any(|line| line == script), expect, "{toml}");
    };
    let node = "[window]\nkind = 'node'\nprogram = 'a.js'\n";
    covers(&format!("{node}[build]\ncommand = ['make']"), true);
    covers(&format!("{node}runtimeArgs = ['--run']\n[build]\ncommand = []"), true);
    covers(&format!("{node}args = ['x']\n[build]\ncommand = []"), true);
    covers(&format!("{node}node = './runner'\n[build]\ncommand = []"), true);
    covers(&format!("{node}[build]\ncommand = []"), false);
}

#[test]
fn a_profile_in_the_workspace_is_a_build_output() {
    let check = |file: &str, text: &str, expect: &str| {
        let folder = workspace(&[(file, text)]);
        let generated = WindowConfig::resolve(folder.path(), None).unwrap().build_outputs;
        let actual: Vec<String> = generated.iter().map(|it| format!("{} {}", it.pattern, it.origin)).collect();
        assert_eq!(actual, [expect]);
    };
    let toml = "[window]\nkind = 'browser'\nurl = 'about:blank'\nprofile = '.profile'";
    check("devtools.toml", toml, "/.profile/ devtools.toml:4");
    let launch = "{\"configurations\": [{\"name\": \"W\", \"type\": \"chrome\", \"url\": \"about:blank\",\n\
                  \"userDataDir\": \"${workspaceFolder}/.vscode/chrome\"}]}";
    check(".vscode/launch.json", launch, "/.vscode/chrome/ .vscode/launch.json:2");
}

#[test]
fn environment_values_are_substituted_last() {
    let folder = workspace(&[(".vscode/launch.json", LAUNCH), (".vscode/tasks.json", TASKS)]);
    let config = WindowConfig::resolve(folder.path(), None).unwrap();
    assert_eq!(config.window.env["A"], "${env:CARGO_PKG_NAME}");
    assert_eq!(config.with_environment_values().window.env["A"], "devtether");
}
