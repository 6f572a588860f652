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
fn n1_a_connection_token_that_a_program_prints_is_not_shown() {
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
fn n6_values_of_environment_files_and_variables_appear_nowhere() {
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
