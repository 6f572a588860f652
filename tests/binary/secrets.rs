//! Values of environment files and variables are in no listing, message, record or log.

use std::fs;
use std::path::Path;

use crate::support::{NODE_SERVICE, Sandbox};

const SECRETS: [&str; 4] = ["s3cret-of-the-file", "s3cret-of-launch", "s3cret-of-a-task", "s3cret-of-the-user"];
const LAUNCH: &str = r#"{ "configurations": [{ "name": "Serve", "type": "node", "request": "launch",
    "program": "${workspaceFolder}/server.js", "preLaunchTask": "make", "envFile": "${workspaceFolder}/.secrets",
    "env": { "LAUNCH": "s3cret-of-launch", "USERS": "${env:USERS_TOKEN}", "NODE_OPTIONS": "--no-warnings" } }] }"#;
const TASKS: &str = r#"{ "version": "2.0.0", "tasks": [{ "label": "make", "type": "shell", "command": "exit ${env:CODE}",
    "options": { "env": { "TASK": "s3cret-of-a-task" } } }] }"#;

/// Every file below a folder, as text.
fn texts_below(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(texts_below(&path));
        } else if kind.is_file() {
            found.push((path.display().to_string(), String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()));
        }
    }
    found
}

#[test]
fn a_connection_token_that_a_program_prints_is_not_shown() {
    let url = "http://localhost:80/?tkn=";
    let check = |arguments: &[&str], settings: &str, code: i32| {
        let service = format!("{NODE_SERVICE}console.log('Web UI at {url}s3cret-of-the-server');");
        let sandbox = Sandbox::with(&[("server.js", &service), ("devtools.toml", settings)]);
        let output = sandbox.tether(arguments);
        assert_eq!(output.code, code, "{output:?}");
        for shown in
            [output, sandbox.tether(&["status", "--json"]), sandbox.tether(&["console"]), sandbox.tether(&["logs"])]
        {
            assert!(!format!("{shown:?}").contains("s3cret"), "{shown:?}");
        }
        sandbox
    };
    let command = format!("['sh', '-c', 'echo Web UI at {url}s3cret-of-the-server; exit 3', '${{cdpPort}}']");
    let sandbox = check(&["start"], &format!("[window]\nkind = 'command'\ncommand = {command}\n"), 1);
    sandbox.tether(&["start"]).fails(1, &[&format!("{url}…")]);
    let sandbox = check(&["start"], "[window]\nkind = 'node'\nprogram = 'server.js'\n", 0);
    let window = sandbox.status()["pid"].as_u64().unwrap() as u32;
    crate::support::kill(window, rustix::process::Signal::KILL);
    crate::support::eventually("the exit is reported", || {
        sandbox.tether(&["status"]).stdout.contains(&format!("{url}…")).then_some(())
    });
}

#[test]
fn values_of_environment_files_and_variables_appear_nowhere() {
    let sandbox = Sandbox::new();
    sandbox.write("server.js", NODE_SERVICE);
    sandbox.write(".secrets", "FILE=s3cret-of-the-file\n");
    sandbox.write(".vscode/launch.json", LAUNCH);
    sandbox.write(".vscode/tasks.json", TASKS);
    let run = |arguments: &[&str], code: &str| {
        let mut command = sandbox.command(arguments);
        command.env("USERS_TOKEN", "s3cret-of-the-user").env("CODE", code);
        let output = crate::support::run_command(command);
        for secret in SECRETS {
            let shown = output.stdout.contains(secret) || output.stderr.contains(secret);
            assert!(!shown, "{secret} is shown by {arguments:?}: {output:?}");
        }
        output
    };
    let shown = run(&["trust", "--config", "Serve", "--yes"], "0").ok().stdout;
    for part in
        ["\"FILE\":\"sha256 ", "\"LAUNCH\":\"sha256 ", "\"TASK\":\"sha256 ", "\"NODE_OPTIONS\":\"--no-warnings\""]
    {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    run(&["trust", "--config", "Serve", "--yes", "--json"], "0").ok();
    for arguments in [&["start", "--print-config"][..], &["start", "--print-config", "--json"]] {
        run(arguments, "0").ok();
    }
    run(&["start"], "0").ok();
    for arguments in [&["status", "--json"][..], &["doctor"], &["logs"], &["stop"]] {
        run(arguments, "0");
    }
    run(&["shutdown"], "9").ok();
    run(&["start"], "9").fails(4, &["exit"]);
    for (path, text) in
        [texts_below(&sandbox.home().join("config")), texts_below(&sandbox.home().join("state"))].concat()
    {
        assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{path} has a secret: {text}");
    }
    // A change of a value needs new consent, which names the variable and not the value.
    sandbox.write(".secrets", "FILE=s3cret-of-the-file2\n");
    run(&["start"], "0").fails(5, &["has changed since you agreed", "\"FILE\":\"sha256 "]);
}

/// The outputs of commands that a secret of the environment must not be in; each command runs with it.
struct SecretRuns<'s>(&'s Sandbox);

impl SecretRuns<'_> {
    const SECRET: &'static str = "s3cret-of-the-user";

    fn run(&self, arguments: &[&str]) -> crate::support::CommandOutput {
        let mut command = self.0.command(arguments);
        command.env("USERS_TOKEN", SecretRuns::SECRET);
        let output = crate::support::run_command(command);
        let shown = output.stdout.contains(SecretRuns::SECRET) || output.stderr.contains(SecretRuns::SECRET);
        assert!(!shown, "{arguments:?} shows the secret: {output:?}");
        output
    }

    /// Nothing that tells of the last command has it, nor any file that is ours.
    fn check_reports(&self) {
        for arguments in [&["status"][..], &["status", "--json"], &["doctor"], &["doctor", "--json"], &["logs"]] {
            self.run(arguments);
        }
        let ours = ["config", "state"].map(|folder| self.0.home().join(folder));
        for (path, text) in ours.iter().flat_map(|folder| texts_below(folder)) {
            // What a program prints is its own; what is shown of it is masked.
            let is_output = path.contains("/output-") || path.contains("/task-");
            assert!(is_output || !text.contains(SecretRuns::SECRET), "{path} has the secret: {text}");
        }
    }
}

#[test]
fn a_value_of_the_environment_in_a_build_is_not_shown_when_it_fails_nor_when_it_succeeds() {
    let check = |build: &str, code: i32, parts: &[&str]| {
        let settings = format!("[build]\ncommand = {build}\n[window]\nkind = 'node'\nprogram = 'server.js'\n");
        let sandbox = Sandbox::with(&[("server.js", NODE_SERVICE), ("devtools.toml", &settings)]);
        let runs = SecretRuns(&sandbox);
        runs.run(&["trust", "--yes"]).ok();
        let output = runs.run(&["start"]);
        assert_eq!(output.code, code, "{output:?}");
        parts.iter().for_each(|part| assert!(output.stderr.contains(part), "{part} is not in {output:?}"));
        runs.run(&["start", "--json"]);
        runs.check_reports();
        sandbox
    };
    check(
        "['sh', '-c', 'echo got ${env:USERS_TOKEN}; exit 3']",
        4,
        &["got ${env:USERS_TOKEN}", "echo got ${USERS_TOKEN}; exit 3"],
    );
    check("['false', '--token=${env:USERS_TOKEN}']", 4, &["`cd ", "false --token=\"${USERS_TOKEN}\"` runs it by hand"]);
    check("['no-such-program', '${env:USERS_TOKEN}']", 6, &["no-such-program ${env:USERS_TOKEN}"]);
    check("['sh', '-c', 'cd ${env:USERS_TOKEN}']", 4, &["cd ${USERS_TOKEN}"]);
    let sandbox = check("['sh', '-c', 'echo got ${env:USERS_TOKEN}']", 0, &[]);
    assert_eq!(sandbox.status()["lastBuild"]["tail"].as_str().unwrap().trim(), "got ${env:USERS_TOKEN}");
}

#[test]
fn a_value_of_the_environment_in_a_window_is_not_shown_when_it_fails() {
    let check = |window: &str, parts: &[&str]| {
        let sandbox =
            Sandbox::with(&[("server.js", NODE_SERVICE), ("devtools.toml", &format!("[window]\n{window}\n"))]);
        let runs = SecretRuns(&sandbox);
        runs.run(&["trust", "--yes"]).ok();
        let output = runs.run(&["start"]);
        assert_ne!(output.code, 0, "{output:?}");
        parts.iter().for_each(|part| assert!(output.stderr.contains(part), "{part} is not in {output:?}"));
        runs.check_reports();
    };
    let echo = "command = ['sh', '-c', 'echo $TOKEN $1; exit 3', '${cdpPort}', '${env:USERS_TOKEN}']";
    check(&format!("kind = 'command'\n{echo}\nenv = {{ TOKEN = 's3cret-of-the-user' }}"), &["${env:USERS_TOKEN}"]);
    check("kind = 'command'\ncommand = ['no-such-${env:USERS_TOKEN}', '${cdpPort}']", &["no-such-${env:USERS_TOKEN}"]);
}

#[test]
fn a_value_of_the_environment_in_a_debug_configuration_is_not_shown_when_it_cannot_start() {
    const LAUNCH: &str = r#"{ "configurations": [
        { "name": "Missing", "type": "node", "request": "launch", "program": "${workspaceFolder}/no-${env:USERS_TOKEN}.js" },
        { "name": "Task", "type": "node", "request": "launch", "program": "${workspaceFolder}/server.js", "preLaunchTask": "make" },
        { "name": "File", "type": "node", "request": "launch", "program": "server.js", "envFile": "${env:USERS_TOKEN}.env" },
        { "name": "Runs", "type": "node", "request": "launch", "program": "${workspaceFolder}/server.js", "args": ["${env:USERS_TOKEN}"] }
    ] }"#;
    const TASKS: &str = r#"{ "version": "2.0.0", "tasks": [{ "label": "make", "type": "process", "command": "false",
        "args": ["--token", "${env:USERS_TOKEN}"] }] }"#;
    let files = [("server.js", NODE_SERVICE), (".vscode/launch.json", LAUNCH), (".vscode/tasks.json", TASKS)];
    let sandbox = Sandbox::with(&files);
    let runs = SecretRuns(&sandbox);
    for name in ["Missing", "Task", "File", "Runs"] {
        runs.run(&["trust", "--config", name, "--yes"]);
        let output = runs.run(&["debug", "launch", "--config", name]);
        assert_eq!(output.code == 0, name == "Runs", "{output:?}");
        for arguments in [&["debug", "status"][..], &["debug", "status", "--json"]] {
            runs.run(arguments);
        }
        runs.check_reports();
    }
}

#[test]
fn a_file_of_environment_variables_is_shown_without_its_values() {
    let launch = r#"{ "configurations": [{ "name": "a", "type": "node", "request": "launch", "program": "server.js", "envFile": "${workspaceFolder}/vars.txt" }] }"#;
    let sandbox = Sandbox::with(&[
        (".env", "# ours\nTOKEN=s3cret-of-the-file\nKEY=\"s3cret-of-launch\ns3cret-of-a-task\"\n"),
        ("vars.txt", "export TOKEN='s3cret-of-the-file'\n"),
        ("plain.txt", "A=1\n"),
        ("server.js", NODE_SERVICE),
        (".vscode/launch.json", launch),
    ]);
    std::os::unix::fs::symlink(".env", sandbox.path("link.txt")).unwrap();
    for (file, part) in
        [(".env", "TOKEN=***"), ("vars.txt", "export TOKEN=***"), ("link.txt", "KEY=***"), ("plain.txt", "A=1")]
    {
        for json in [&[][..], &["--json"]] {
            let output = sandbox.tether(&[&["debug", "source", file][..], json].concat()).ok();
            assert!(!output.stdout.contains("s3cret"), "{output:?}");
            assert!(output.stdout.contains(part), "{part} is not in {output:?}");
        }
    }
}

#[test]
fn a_value_of_the_environment_that_a_background_task_prints_last_is_not_shown() {
    let script = "echo ready; while [ ! -e node_modules/go ]; do sleep 0.05; done; echo got $1; exit 3";
    let task = serde_json::json!({"label": "dev", "type": "process", "command": "sh",
        "args": ["-c", script, "dev", "${env:USERS_TOKEN}"], "isBackground": true,
        "problemMatcher": {"background": {"activeOnStart": true, "beginsPattern": "^begin$", "endsPattern": "^ready$"}}});
    let launch = r#"{ "configurations": [{ "name": "Serve", "type": "node", "request": "launch",
        "program": "server.js", "preLaunchTask": "dev" }] }"#;
    let tasks = serde_json::json!({"tasks": [task]}).to_string();
    let files = [("server.js", NODE_SERVICE), (".vscode/launch.json", launch), (".vscode/tasks.json", &tasks)];
    let sandbox = Sandbox::with(&files);
    let runs = SecretRuns(&sandbox);
    runs.run(&["trust", "--yes"]).ok();
    runs.run(&["start"]).ok();
    sandbox.write("node_modules/go", "");
    crate::support::eventually("the exit is reported", || {
        runs.run(&["status"]).stdout.contains("has exited after `got ${env:USERS_TOKEN}`").then_some(())
    });
    runs.check_reports();
}
