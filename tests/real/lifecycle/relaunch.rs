//! A browser or Node is started while the window before closes; its page is loaded, its program is run afterwards.

use std::process::Command;

use serde_json::json;
use tether_process::{read_facts, read_ticks_since_boot};

use crate::support::requirements::has_program;
use crate::support::{Sandbox, browser, is_alive, wait_for_end};

fn pid_of(sandbox: &Sandbox) -> u32 {
    sandbox.status()["pid"].as_u64().expect("a window").try_into().unwrap()
}

#[test]
fn a_browser_is_started_while_the_one_before_closes() {
    if !has_program("chromium") {
        return;
    }
    let sandbox = browser("<title>0</title>");
    sandbox.json(&["start"]);
    for _ in 0..5 {
        let old = pid_of(&sandbox);
        let ended = std::thread::spawn(move || {
            wait_for_end(old);
            read_ticks_since_boot()
        });
        sandbox.json(&["restart"]);
        let new = read_facts(pid_of(&sandbox)).unwrap();
        assert!(new.start_ticks < ended.join().unwrap());
        assert_eq!(sandbox.json(&["evaluate", "document.title"])["value"], "0");
    }
}

#[test]
fn what_follows_a_launch_in_the_console_is_of_the_new_page() {
    if !has_program("chromium") {
        return;
    }
    let page = |round: u32| {
        let says = format!("console.log('page {round}')");
        format!("<script>said = new Promise((done) => setInterval(() => {{ {says}; done(); }}, 10));</script>")
    };
    let sandbox = browser(&page(0));
    sandbox.json(&["start"]);
    for round in 1..=5 {
        sandbox.write("page.html", &page(round));
        sandbox.json(&["restart"]);
        let shown = sandbox.json(&["evaluate", "said"]);
        assert_eq!(shown["refreshed"], json!(null), "{shown:#}");
        let console = sandbox.json(&["console", "--limit", "1000"]);
        let texts: Vec<&str> =
            console["entries"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
        let launched = texts.iter().rposition(|text| *text == "a window is being launched").expect("it is recorded");
        let of_now = &texts[launched + 1..];
        assert!(!of_now.is_empty() && of_now.iter().all(|text| *text == format!("page {round}")), "{texts:#?}");
    }
}

#[test]
fn a_window_whose_successor_cannot_be_started_is_kept() {
    if !has_program("chromium") {
        return;
    }
    let sandbox = browser("<title>0</title>");
    sandbox.json(&["start"]);
    let old = pid_of(&sandbox);
    sandbox.write("devtools.toml", "[window]\nkind = 'browser'\nbrowser = '/nowhere/chromium'\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    let failed = sandbox.tether(&["restart", "--json"]);
    assert!(failed.code != 0 && failed.stdout.contains("/nowhere/chromium"), "{failed:?}");
    assert!(is_alive(old));
    assert_eq!(pid_of(&sandbox), old);
}

/// A service that listens on the port that it had before, needs some time to end, and says when it begins and ends.
const SERVICE: &str = "
const { appendFileSync, existsSync, readFileSync, writeFileSync } = require('fs');
const file = `${__dirname}/.devtools/port`;
const port = existsSync(file) ? Number(readFileSync(file)) : 0;
const say = (what) => appendFileSync(`${__dirname}/.devtools/said`, `${what} VERSION\n`);
say('begins');
globalThis.version = new Promise((done) => {
    const server = require('net').createServer().listen(port, '127.0.0.1', () => {
        writeFileSync(file, String(server.address().port));
        done('VERSION');
    });
});
process.on('SIGTERM', () => setTimeout(() => (say('ends'), process.exit()), 300));
";

fn service(version: u32) -> String {
    SERVICE.replace("VERSION", &version.to_string())
}

/// A started service. `None`, reported: there is no Node.
fn started_service(more: &str) -> Option<Sandbox> {
    if !has_program("node") {
        return None;
    }
    let settings = format!("[window]\nkind = 'node'\nprogram = 'service.js'\n{more}\n");
    let sandbox = Sandbox::with(&[("service.js", &service(0)), ("devtools.toml", &settings), (".devtools/said", "")]);
    sandbox.json(&["start"]);
    Some(sandbox)
}

/// Whether Node was started before the old window had ended; its program runs afterwards, and gets the same port.
fn relaunch_service(sandbox: &Sandbox, version: u32) -> bool {
    let old = pid_of(sandbox);
    let ended = std::thread::spawn(move || {
        wait_for_end(old);
        read_ticks_since_boot()
    });
    sandbox.write("service.js", &service(version));
    assert_eq!(sandbox.json(&["evaluate", "version"])["value"], json!(version.to_string()));
    let new = read_facts(pid_of(sandbox)).unwrap();
    let said = std::fs::read_to_string(sandbox.path(".devtools/said")).unwrap();
    let expect: Vec<String> =
        (1..=version).flat_map(|it| [format!("ends {}", it - 1), format!("begins {it}")]).collect();
    assert_eq!(said.lines().skip(1).collect::<Vec<_>>(), expect);
    new.start_ticks < ended.join().unwrap()
}

#[test]
fn node_is_started_while_the_service_before_ends_and_runs_its_program_afterwards() {
    let Some(sandbox) = started_service("") else { return };
    for version in 1..=5 {
        assert!(relaunch_service(&sandbox, version));
    }
}

#[test]
fn node_is_started_afterwards_where_it_cannot_be_held() {
    let options = "env = { NODE_OPTIONS = '--max-old-space-size=512' }";
    for setting in [options, "runtimeArgs = ['--inspect=127.0.0.1:0']"] {
        let Some(sandbox) = started_service(setting) else { return };
        assert!(!relaunch_service(&sandbox, 1), "{setting}");
    }
}

#[test]
fn a_service_whose_successor_cannot_be_started_is_kept() {
    let Some(sandbox) = started_service("") else { return };
    let old = pid_of(&sandbox);
    std::fs::remove_file(sandbox.path("service.js")).unwrap();
    let failed = sandbox.tether(&["restart", "--json"]);
    assert!(failed.code != 0 && failed.stdout.contains("service.js"), "{failed:?}");
    assert!(is_alive(old));
    assert_eq!(pid_of(&sandbox), old);
}

#[test]
fn a_program_that_is_held_is_not_run_without_its_supervisor() {
    if !has_program("node") {
        return;
    }
    let script = include_str!("../../../src/window/launch/node_turn.cjs");
    let sandbox = Sandbox::with(&[("node-turn.cjs", script), ("program.js", "console.log('it runs')")]);
    let mut supervisor = Command::new("true").spawn().unwrap();
    supervisor.wait().unwrap();
    sandbox.write("held", &supervisor.id().to_string());
    let run = || {
        let arguments = ["--require", "./node-turn.cjs", "program.js"];
        let output = Command::new("node").args(arguments).current_dir(sandbox.path("")).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run(), (Some(1), String::new()));
    std::fs::remove_file(sandbox.path("held")).unwrap();
    assert_eq!(run(), (Some(0), "it runs\n".to_owned()));
}
