//! Sessions from the user's launch.json: tasks, environment, compounds and consent.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use crate::debug_commands::command_sandbox::{CommandSandbox, has_adapter};
use crate::support::{eventually, is_alive, kill, wait_for_end};

const APP: &str = "\
import os, sys

def total(order):
    amount = order * 2
    return amount  # STOP

print(total(int(os.environ['ORDER'])), sys.argv[1:], flush=True)
";

const SERVER: &str = "\
setInterval(() => {
  globalThis.ticks = (globalThis.ticks ?? 0) + 1; // STOP
}, 20);
console.log('up');
";

const LAUNCH: &str = r#"{
  // Comments and trailing commas are read.
  "version": "0.2.0",
  "configurations": [
    { "name": "App", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/app.py",
      "args": ["${workspaceFolderBasename}"], "envFile": "${workspaceFolder}/.env", "env": { "OTHER": "7" },
      "preLaunchTask": "build", "postDebugTask": "tidy" },
    { "name": "Server", "type": "node", "request": "launch", "program": "${workspaceFolder}/server.js" },
    { "name": "This file", "type": "python", "request": "launch", "program": "${file}", "env": { "ORDER": "4" } },
    { "name": "Cobol", "type": "cobol", "request": "launch", "program": "a.cob" },
    { "name": "Unknown", "type": "node", "request": "launch", "program": "${nobodyKnows}/a.js" },
    { "name": "Gone", "type": "node", "request": "launch", "program": "${workspaceFolder}/gone.js" },
    { "name": "Fails", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/app.py",
      "preLaunchTask": "broken" },
    { "name": "Pick", "type": "debugpy", "request": "attach", "processId": "${command:pickProcess}" },
  ],
  "compounds": [
    { "name": "All", "configurations": ["App", "Server"], "stopAll": true },
    { "name": "Half", "configurations": ["Server", "Gone"] },
  ],
}"#;

const TASKS: &str = r#"{ "version": "2.0.0", "tasks": [
  { "label": "build", "type": "shell", "command": "echo built >> built.txt" },
  { "label": "tidy", "type": "shell", "command": "echo tidied > tidied.txt" },
  { "label": "broken", "type": "shell", "command": "echo no semicolon; exit 3" } ] }"#;

fn stage() -> CommandSandbox {
    CommandSandbox::with(&[
        ("app.py", APP),
        ("server.js", SERVER),
        (".env", "# of the machine\nORDER=21\nexport OTHER=\"below\"\n"),
        (".vscode/launch.json", LAUNCH),
        (".vscode/tasks.json", TASKS),
    ])
}

fn trust(stage: &CommandSandbox, name: &str) {
    stage.tether(&["trust", "--yes", "--config", name]).ok();
}

#[test]
fn a_configuration_is_debugged_between_its_tasks_with_its_environment() {
    if !has_adapter("debugpy") {
        return;
    }
    let stage = stage();
    trust(&stage, "App");
    stage.json(&["break", &stage.at("app.py", "STOP")]);
    let launched = stage.json(&["debug", "launch", "--config", "App", "--wait", "60"]);
    assert_eq!((&launched["stopped"], &launched["adapter"]), (&json!(true), &json!("debugpy")), "{launched:#}");
    assert_eq!(launched["stopReason"]["location"]["lineNumber"], 5);
    assert_eq!(stage.value("amount"), "42");
    assert_eq!(stage.value("os.environ['OTHER'] + ' ' + sys.argv[1]"), "'7 work space'");
    assert_eq!(stage.file("built.txt"), "built\n");
    assert!(!stage.sandbox.path("tidied.txt").exists());
    let status = stage.json(&["debug", "status"]);
    assert_eq!(status["name"], "App");
    // Each launch builds again.
    let id = launched["sessionId"].as_str().unwrap();
    let again = stage.json(&["debug", "launch", "--restart", id, "--wait", "60"]);
    assert_eq!((&again["stopped"], again["sessionId"] != launched["sessionId"]), (&json!(true), true), "{again:#}");
    assert_eq!(stage.file("built.txt"), "built\nbuilt\n");
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.file("tidied.txt"), "tidied\n");
    stage.is_quiet();
    // Ended with the supervisor, too.
    std::fs::remove_file(stage.sandbox.path("tidied.txt")).unwrap();
    stage.json(&["debug", "launch", "--config", "App", "--wait", "60"]);
    stage.tether(&["shutdown", "--all"]).ok();
    assert_eq!(std::fs::read_to_string(stage.sandbox.path("tidied.txt")).unwrap(), "tidied\n");
}

#[test]
fn a_task_of_a_cancelled_launch_is_ended() {
    if !has_adapter("debugpy") {
        return;
    }
    let stage = stage();
    stage.sandbox.write(".vscode/tasks.json", &TASKS.replace("echo built >> built.txt", "sleep 600 & wait"));
    trust(&stage, "App");
    let mut front_end = stage.sandbox.command(["debug", "launch", "--config", "App"]).spawn().unwrap();
    eventually("the task", || stage.others().iter().any(|it| it.ends_with("sleep 600")).then_some(()));
    // As by Ctrl-C; the task of a front end that is killed goes on for a while.
    kill(front_end.id(), Signal::INT);
    front_end.wait().unwrap();
    stage.is_quiet();
    assert_eq!(stage.json(&["debug", "status"])["sessions"], json!([]));
}

#[test]
fn the_file_that_is_named_is_compiled_and_debugged_as_the_extension_for_c_writes_it() {
    if !has_adapter("gdb") {
        return;
    }
    let launch = r#"{ "configurations": [ { "name": "C/C++: gcc build and debug active file", "type": "cppdbg",
        "request": "launch", "program": "${fileDirname}/${fileBasenameNoExtension}", "args": ["21"],
        "stopAtEntry": false, "cwd": "${fileDirname}", "environment": [], "externalConsole": false, "MIMode": "gdb",
        "preLaunchTask": "C/C++: gcc build active file" } ] }"#;
    let tasks = r#"{ "version": "2.0.0", "tasks": [ { "type": "cppbuild", "label": "C/C++: gcc build active file",
        "command": "gcc", "args": ["-g", "${file}", "-o", "${fileDirname}/${fileBasenameNoExtension}"],
        "options": { "cwd": "${fileDirname}" }, "problemMatcher": ["$gcc"] } ] }"#;
    let source = "#include <stdlib.h>\nint main(int count, char **words) {\n  int total = 2 * atoi(words[1]);\n  return total; // STOP\n}\n";
    let stage = CommandSandbox::with(&[
        ("sub/my app.c", source),
        (".vscode/launch.json", launch),
        (".vscode/tasks.json", tasks),
    ]);
    let name = "C/C++: gcc build and debug active file";
    trust(&stage, name);
    let at = stage.at("sub/my app.c", "STOP");
    let launched = stage.json(&["debug", "launch", "sub/my app.c", "--config", name, "--break", &at, "--wait", "60"]);
    assert_eq!(launched["stopped"], true, "{launched:#}");
    assert_eq!(stage.value("total"), "42");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["exitCode"], 42, "{ended:#}");
    stage.is_quiet();
}

#[test]
fn a_compound_with_stop_all_goes_on_when_one_ends_by_itself_and_a_stop_ends_all() {
    if !has_adapter("debugpy") || !has_adapter("js-debug") {
        return;
    }
    let stage = stage();
    trust(&stage, "All");
    stage.json(&["break", &stage.at("app.py", "STOP")]);
    let launched = stage.json(&["debug", "launch", "--config", "All", "--wait", "60"]);
    assert_eq!((&launched["stopped"], &launched["sessionId"]), (&json!(true), &json!("d1")), "{launched:#}");
    assert_eq!(launched["notes"], json!(["d1 has 2 programs: App, Server"]));
    let status = stage.json(&["debug", "status"]);
    assert_eq!((&status["sessionId"], &status["state"]), (&json!("d1"), &json!("STOPPED")), "{status:#}");
    let roots = status["targets"].as_array().unwrap().iter().filter(|it| it["parent"].is_null());
    let shown: Vec<_> = roots.map(|it| (it["name"].as_str().unwrap(), it["language"].as_str().unwrap())).collect();
    assert_eq!(shown, [("App", "python"), ("Server", "javascript")], "{status:#}");
    // One that ends by itself leaves the other, as in VS Code; what follows it is done.
    stage.json(&["debug", "continue"]);
    eventually("the task after it", || stage.sandbox.path("tidied.txt").exists().then_some(()));
    let status = stage.json(&["debug", "status"]);
    let targets = status["targets"].as_array().unwrap();
    let states: Vec<_> =
        targets.iter().map(|it| (it["name"].as_str().unwrap(), it["state"].as_str().unwrap())).collect();
    assert_eq!(states, [("App", "TERMINATED"), ("Server", "RUNNING")], "{status:#}");
    let ended = stage.json(&["debug", "stop"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    stage.is_quiet();
}

#[test]
fn an_attribute_that_is_not_honoured_is_named_with_its_line_and_the_reason() {
    if !has_adapter("node") {
        return;
    }
    let launch = r#"{ "configurations": [ { "name": "Server", "type": "node", "request": "launch",
      "program": "${workspaceFolder}/server.js", "sourceMaps": true, "console": "internalConsole",
      "killBehavior": "polite",
      "surprise": 1 },
      { "name": "Remote", "type": "cppdbg", "request": "launch", "program": "a", "pipeTransport": {} } ] }"#;
    let stage = CommandSandbox::with(&[("server.js", SERVER), (".vscode/launch.json", launch)]);
    trust(&stage, "Server");
    let at = stage.at("server.js", "STOP");
    let launched = stage.json(&["debug", "launch", "--config", "Server", "--break", &at, "--wait", "60"]);
    let notes: Vec<_> = launched["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
    let killed = "a program that is stopped gets SIGTERM, and SIGKILL later; `--adapter js-debug` honours it";
    assert_eq!(
        notes,
        [
            &*format!(".vscode/launch.json:3: `killBehavior` is not honoured: {killed}"),
            ".vscode/launch.json:4: `surprise` is not honoured"
        ],
        "{launched:#}"
    );
    stage.json(&["debug", "stop"]);
    if has_adapter("gdb") {
        let refused = stage.tether(&["debug", "launch", "--config", "Remote", "--adapter", "gdb"]);
        refused.fails(2, &["\"Remote\"", "`pipeTransport` (.vscode/launch.json:5)", "on this machine"]);
    }
    stage.is_quiet();
}

#[test]
fn a_compound_with_a_failing_configuration_leaves_nothing() {
    if !has_adapter("js-debug") {
        return;
    }
    let stage = stage();
    trust(&stage, "Half");
    let failed = stage.tether(&["debug", "launch", "--config", "Half"]);
    failed.fails(3, &["the configuration \"Gone\" of ", "launch.json:12", "gone.js", "there is no such file"]);
    let all = stage.json(&["debug", "status"]);
    assert!(all["sessions"].as_array().unwrap().iter().all(|it| it["endedAt"].is_u64()), "{all:#}");
    stage.is_quiet();
}

#[test]
fn nothing_of_a_configuration_runs_before_the_user_has_agreed_to_exactly_that() {
    if !has_adapter("debugpy") {
        return;
    }
    let stage = stage();
    let launch = |code: i32, words: &[&str]| {
        stage.tether(&["debug", "launch", "--config", "App"]).fails(code, words);
        assert!(!stage.sandbox.path("built.txt").exists());
    };
    let how = format!("`tether trust --workspace '{}' --config App`", stage.sandbox.workspace.display());
    launch(5, &["for \"App\" are not trusted", "consent to them is not recorded", &how]);
    // Consent to another configuration, or to the window, does not cover this one.
    trust(&stage, "Server");
    launch(5, &["consent to them is not recorded"]);
    let reported = stage.tether(&["trust", "--config", "App", "--yes"]).ok().stdout;
    for part in
        ["echo built >> built.txt", "echo tidied", r#"debug.env: {"ORDER":"sha256 "#, "app.py\"", "launch.json:6"]
    {
        assert!(reported.contains(part), "{part:?} is not in {reported}");
    }
    stage.sandbox.write(".env", "ORDER=21\nPYTHONSTARTUP=/tmp/evil.py\n");
    launch(5, &["this has changed since you agreed: debug.env:", "evil.py"]);
    stage.sandbox.write(".env", "ORDER=21\n");
    stage.sandbox.write(".vscode/tasks.json", &TASKS.replace("echo built", "echo built; curl evil"));
    launch(5, &["this has changed since you agreed: before:", "curl evil"]);
    stage.sandbox.write(".vscode/tasks.json", TASKS);
    stage.tether(&["debug", "launch", "--config", "App"]).ok();
}

#[test]
fn a_configuration_that_cannot_be_debugged_is_an_error_with_its_line_and_the_alternatives() {
    let stage = stage();
    let check = |line: &[&str], code: i32, words: &[&str]| {
        stage.tether(&[&["debug"], line].concat()).fails(code, words);
    };
    check(
        &["launch", "--config", "Nope"],
        3,
        &["\"Nope\"", "it has: \"App\", \"Server\", \"This file\"", "\"All\", \"Half\""],
    );
    check(
        &["launch", "--config", "Cobol"],
        2,
        &["launch.json:10", "type \"cobol\"", "the types are: ", "debugpy", "pwa-node"],
    );
    check(
        &["launch", "--config", "Unknown"],
        2,
        &["launch.json:11", "`program`", "`${nobodyKnows}`", "write its value"],
    );
    check(
        &["launch", "--config", "This file"],
        2,
        &["launch.json:9", "${file}", "`tether debug launch FILE --config NAME`"],
    );
    check(&["attach", "--config", "Pick"], 2, &["launch.json:15", "`${command:pickProcess}`", "--pid PID"]);
    check(
        &["launch", "--config", "App", "--test", "x"],
        2,
        &["name one of: `program`, `programs`, `config`, `test`, `restart`"],
    );
    check(&["launch", "--config", "All", "--", "x"], 2, &["\"All\"", "it is a compound"]);
    check(&["attach", "--config", "Pick", "--window", "page"], 2, &["name one of", "`config`"]);
    stage.sandbox.write(".vscode/launch.json", "{\n  \"configurations\": [\n    { \"name\" \"App\" }\n  ]\n}\n");
    check(&["launch", "--config", "App"], 2, &[".vscode/launch.json:3:"]);
    stage.tether(&["trust", "--config", "App", "--yes"]).fails(2, &[".vscode/launch.json:3:"]);
}

#[test]
fn a_failed_task_is_an_error_with_its_last_output_and_no_session_starts() {
    if !has_adapter("debugpy") {
        return;
    }
    let stage = stage();
    trust(&stage, "Fails");
    let failed = stage.tether(&["debug", "launch", "--config", "Fails"]);
    failed
        .fails(4, &["\"Fails\" of ", "launch.json:13", "`broken`", "tasks.json:4", "no semicolon", "runs it by hand"]);
    assert_eq!(stage.json(&["debug", "status"])["sessions"], json!([]));
    stage.is_quiet();
}

#[test]
fn the_callers_file_and_values_override_the_configuration() {
    if !has_adapter("debugpy") {
        return;
    }
    let stage = stage();
    trust(&stage, "This file");
    let at = stage.at("app.py", "STOP");
    let line = ["debug", "launch", "app.py", "--config", "This file", "--break", &at, "--wait", "60"];
    let launched = stage.json(&[&line[..], &["--env", "MINE=1", "--", "a b"]].concat());
    assert_eq!(launched["stopped"], true, "{launched:#}");
    assert_eq!(stage.value("os.environ['MINE'] + os.environ['ORDER'] + sys.argv[1]"), "'14a b'");
}

#[test]
fn a_configuration_that_attaches_leaves_the_program_alone_when_it_is_stopped() {
    if !has_adapter("js-debug") {
        return;
    }
    let stage = stage();
    let mut command = stage.sandbox.command([""; 0]);
    let variables: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.unwrap().to_owned())).collect();
    command = std::process::Command::new("node");
    command.args(["--inspect=127.0.0.1:0", "server.js"]).current_dir(&stage.sandbox.workspace).envs(variables);
    let mut server = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let output = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    let port =
        output.into_iter().find_map(|line| line.split("127.0.0.1:").nth(1)?.split('/').next()?.parse::<u16>().ok());
    let configuration = json!({"name": "Running", "type": "node", "request": "attach", "port": port.unwrap()});
    stage.sandbox.write(".vscode/launch.json", &json!({"configurations": [configuration]}).to_string());
    trust(&stage, "Running");
    stage.json(&["break", &stage.at("server.js", "STOP")]);
    let attached = stage.json(&["debug", "attach", "--config", "Running", "--wait", "60"]);
    assert_eq!(attached["stopped"], true, "{attached:#}");
    stage.json(&["debug", "stop"]);
    assert!(server.try_wait().unwrap().is_none());
    server.kill().unwrap();
    server.wait().unwrap();
}

/// A server that writes its PID, and is `ready` at once.
const BACKEND: &str = "\
require('http').createServer((_, response) => response.end('hi')).listen(0, '127.0.0.1', () => {
  require('fs').appendFileSync('servers.txt', process.pid + '\\n');
  console.log('ready');
});
";

#[test]
fn a_server_runs_as_long_as_the_session_that_needs_it() {
    if !has_adapter("js-debug") {
        return;
    }
    let configuration = |name: &str| json!({"name": name, "type": "node", "request": "launch", "program": "${workspaceFolder}/server.js", "preLaunchTask": "backend"});
    let compound = json!({"name": "Both", "configurations": ["One", "Two"]});
    let launch = json!({"configurations": [configuration("One"), configuration("Two")], "compounds": [compound]});
    let task = json!({
        "label": "backend", "type": "process", "command": "node", "args": ["backend.js"], "isBackground": true,
        "problemMatcher": {"background": {"activeOnStart": true, "beginsPattern": ".", "endsPattern": "^ready$"}},
    });
    let stage = CommandSandbox::with(&[
        ("server.js", SERVER),
        ("backend.js", BACKEND),
        (".vscode/launch.json", &launch.to_string()),
        (".vscode/tasks.json", &json!({"tasks": [task]}).to_string()),
    ]);
    ["One", "Both"].iter().for_each(|name| trust(&stage, name));
    let servers = || -> Vec<u32> { stage.file("servers.txt").lines().map(|pid| pid.parse().unwrap()).collect() };
    let launched = stage.json(&["debug", "launch", "--config", "One"]);
    let notes = launched["notes"].to_string();
    assert!(notes.contains("the background task \\\"backend\\\" runs until the session ends"), "{launched:#}");
    assert!(is_alive(servers()[0]));
    stage.json(&["debug", "stop"]);
    wait_for_end(servers()[0]);
    stage.is_quiet();
    // Two programs of one session share it: it ends with the last one.
    let both = stage.json(&["debug", "launch", "--config", "Both"]);
    assert_eq!(servers().len(), 2, "{both:#}");
    assert!(is_alive(servers()[1]));
    stage.json(&["debug", "stop", both["sessionId"].as_str().unwrap()]);
    wait_for_end(servers()[1]);
    stage.json(&["debug", "launch", "--config", "Both"]);
    assert!(is_alive(servers()[2]));
    // Ended with the supervisor, the sessions take the server with them.
    stage.tether(&["shutdown", "--all"]).ok();
    wait_for_end(servers()[2]);
    stage.is_quiet();
}
