//! Sessions that follow the window over its launches, and hold off a relaunch while they are stopped in it.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::debug_survival::surviving_debuggees::{JAVASCRIPT, events, found, line, stop};
use crate::support::mcp_client::McpClient;
use crate::support::palette::{choose_in_palette, until};
use crate::support::{Sandbox, browser, eventually};

const NODE: &str = "[window]\nkind = 'node'\nprogram = 'server.js'\n";

/// Asserts that the session follows the window; returns the stop in the present program.
fn follows(sandbox: &Sandbox, session: &str, stopped_at: u64, relaunch: impl FnOnce()) {
    let before = events(sandbox, session, "reattached").len();
    relaunch();
    let stopped = sandbox.json(&["debug", "wait", "60"]);
    assert_eq!((&stopped["sessionId"], line(&stopped)), (&json!(session), stopped_at), "{stopped}");
    assert!(stopped["notes"].to_string().contains("the window was relaunched"), "{stopped}");
    assert_eq!(events(sandbox, session, "reattached").len(), before + 1);
    assert_eq!(sandbox.status()["sessions"], json!([session]));
}

/// In a started window.
fn is_followed_and_held(sandbox: &Sandbox, part: &str, file: &str, text: &str) {
    sandbox.json(&["break", "set", &stop(file, text)]);
    let attached = sandbox.json(&["debug", "attach", "--window", part, "--wait", "60"]);
    let (session, stopped_at) = (attached["sessionId"].as_str().unwrap(), line(&attached));
    assert_eq!(sandbox.status()["sessions"], json!([session]));

    // With a stop in it, the window is reported as stale and not replaced.
    let window = sandbox.status()["pid"].clone();
    sandbox.write(file, &text.replace("hello", "farewell"));
    let held = sandbox.json(&["evaluate", "globalThis.word ?? null"]);
    let note = held["notes"].to_string();
    assert!(note.contains("stale: ") && note.contains(file) && note.contains(session), "{held}");
    assert!(held.get("refreshed").is_none() && sandbox.status()["pid"] == window, "{held}");
    // Once resumed, it is replaced.
    follows(sandbox, session, stopped_at, || {
        sandbox.json(&["break", "remove", "--all"]);
        sandbox.json(&["debug", "continue"]);
        sandbox.json(&["break", "set", &stop(file, text)]);
        let report: Value = sandbox.json(&["debug", "wait", "60"]);
        assert_eq!(report["stopped"], true);
        sandbox.json(&["restart"]);
    });
    assert_ne!(sandbox.status()["pid"], window);
    // The same holds over the kill of a supervisor.
    sandbox.kill_supervisor();
    let stopped = sandbox.json(&["debug", "wait", "60"]);
    assert_eq!((&stopped["sessionId"], line(&stopped)), (&json!(session), stopped_at), "{stopped}");
    follows(sandbox, session, stopped_at, || drop(sandbox.json(&["restart"])));
    // A session that was stopped on request no longer follows.
    sandbox.json(&["debug", "stop", session]);
    sandbox.json(&["restart"]);
    assert_eq!(sandbox.json(&["debug", "status", session])["connected"], false);
}

#[test]
fn a_session_in_a_node_window_follows_it_and_holds_it_while_it_is_stopped() {
    if found("js-debug").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("server.js", JAVASCRIPT), ("devtools.toml", NODE)]);
    sandbox.json(&["start"]);
    is_followed_and_held(&sandbox, "extension-host", "server.js", JAVASCRIPT);
}

/// A session that stops while an automatic build runs: the window stays, and the build is used later.
#[test]
fn n14_a_stop_during_an_automatic_build_holds_the_window_and_keeps_the_build() {
    if found("js-debug").is_none() {
        return;
    }
    let build = "echo built >> .devtools/builds; echo begun > .devtools/begun; cat .devtools/go";
    let toml = format!("{NODE}[build]\ncommand = ['sh', '-c', '{build}']\n");
    let sandbox = Sandbox::with(&[("server.js", JAVASCRIPT), ("devtools.toml", &toml)]);
    sandbox.json(&["start", "--rebuild", "never"]);
    let fifos = ["begun", "go"].map(|name| sandbox.path(".devtools").join(name));
    assert!(std::process::Command::new("mkfifo").args(&fifos).status().unwrap().success());
    let window = sandbox.status()["pid"].clone();
    let attached = sandbox.json(&["debug", "attach", "--window", "extension-host"]);
    let session = attached["sessionId"].as_str().unwrap();
    sandbox.write("server.js", &JAVASCRIPT.replace("hello", "farewell"));
    let evaluate = sandbox.command(["evaluate", "1", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    std::fs::read(&fifos[0]).unwrap(); // the build has begun
    sandbox.json(&["break", "set", &stop("server.js", JAVASCRIPT)]);
    assert_eq!(sandbox.json(&["debug", "wait", "60"])["stopped"], true);
    drop(std::fs::OpenOptions::new().write(true).open(&fifos[1]).unwrap()); // the build ends
    let held: Value = serde_json::from_slice(&evaluate.wait_with_output().unwrap().stdout).unwrap();
    let note = held["notes"].to_string();
    assert!(note.contains(session) && note.contains("the finished build is kept"), "{held}");
    assert!(held.get("refreshed").is_none() && sandbox.status()["pid"] == window, "{held}");
    // Once resumed, the window is replaced by what was built: another build would wait for its FIFO.
    sandbox.json(&["break", "remove", "--all"]);
    sandbox.json(&["debug", "continue"]);
    let relaunched = sandbox.json(&["evaluate", "1"]);
    assert_eq!(relaunched["refreshed"]["because"], "server.js was modified", "{relaunched}");
    assert_ne!(sandbox.status()["pid"], window);
    assert_eq!(std::fs::read_to_string(sandbox.path(".devtools/builds")).unwrap(), "built\n");
    sandbox.json(&["debug", "stop", session]);
}

/// A started browser with `page.html`.
fn started_page(files: &[(&str, &str)]) -> Sandbox {
    let sandbox = browser("");
    files.iter().for_each(|(name, text)| sandbox.write(name, text));
    sandbox.json(&["start"]);
    sandbox.arrived();
    sandbox
}

#[test]
fn a_session_in_a_page_follows_it_and_holds_it_while_it_is_stopped() {
    if found("js-debug").is_none() {
        return;
    }
    let sandbox =
        started_page(&[("page.js", JAVASCRIPT), ("page.html", "<title>t</title><script src='page.js'></script>")]);
    is_followed_and_held(&sandbox, "page", "page.js", JAVASCRIPT);
}

/// The extension's own code in a real Extension Development Host; after a relaunch for an edit it is debugged again.
#[test]
fn a_session_in_an_extension_follows_the_extension_development_host() {
    if found("js-debug").is_none() || !crate::support::requirements::has_code_server() {
        return;
    }
    let manifest = json!({
        "name": "ticks", "publisher": "devtether", "version": "0.0.1", "engines": {"vscode": "^1.90.0"},
        "main": "./extension.js", "activationEvents": ["*"],
    });
    let text = "let total = 0;\nexports.activate = () => setInterval(() => {\n  total += 1;\n  const word = 'hello'; // STOP\n  globalThis.word = word;\n}, 100);\n";
    let sandbox = Sandbox::with(&[
        ("package.json", &manifest.to_string()),
        ("extension.js", text),
        ("devtools.toml", "[window]\nkind = 'web-extension-host'\n"),
    ]);
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    sandbox.json(&["break", "set", &stop("extension.js", text)]);
    let attached = sandbox.json(&["debug", "attach", "--window", "extension-host", "--wait", "60"]);
    let (session, stopped_at) = (attached["sessionId"].as_str().unwrap(), line(&attached));
    assert_eq!(attached["stopReason"]["type"], "BREAKPOINT_HIT", "{attached}");
    assert_eq!(sandbox.json(&["debug", "evaluate", "typeof total"])["result"], "'number'");
    sandbox.json(&["debug", "step", "--wait", "60"]);
    let next = sandbox.json(&["debug", "evaluate", "word"]);
    assert_eq!(next["result"], "'hello'", "{next}");
    let window = sandbox.status()["pid"].clone();
    sandbox.write("extension.js", &text.replace("hello", "farewell"));
    follows(&sandbox, session, stopped_at, || drop(sandbox.json(&["restart"])));
    assert_ne!(sandbox.status()["pid"], window);
    sandbox.json(&["debug", "step", "--wait", "60"]);
    assert_eq!(sandbox.json(&["debug", "evaluate", "word"])["result"], "'farewell'");
}

#[test]
fn n17_a_session_in_a_window_is_stale_when_the_window_is_and_an_attach_says_so() {
    if found("js-debug").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("server.js", JAVASCRIPT), ("other.js", ""), ("devtools.toml", NODE)]);
    sandbox.json(&["start"]);
    let fresh = sandbox.json(&["debug", "attach", "--window", "extension-host"]);
    assert!(fresh.get("notes").is_none() && sandbox.json(&["debug", "status"])["stale"] == false, "{fresh}");
    sandbox.json(&["debug", "stop"]);
    // No program of the session, and without a breakpoint: the window's files count.
    sandbox.write("other.js", "edited");
    let stale = sandbox.json(&["debug", "attach", "--window", "extension-host"]);
    let note = stale["notes"][0].as_str().unwrap();
    assert!(note.contains("stale (other.js was modified)") && note.contains("`tether restart`"), "{stale}");
    assert_eq!(sandbox.json(&["debug", "status"])["stale"], true);
    sandbox.json(&["restart"]);
    assert_eq!(sandbox.json(&["debug", "status"])["stale"], false);
    sandbox.json(&["debug", "stop"]);
}

const COMMAND: &str = "\
const vscode = require('vscode');
exports.activate = (context) => {
  context.subscriptions.push(vscode.commands.registerCommand('ready.go', () => {
    const word = 'hello'; // STOP
    vscode.window.setStatusBarMessage(word);
  }));
  vscode.window.setStatusBarMessage('active now');
};
";

/// Attach, set a breakpoint, run the command at once: each time anew, in the same Extension Development Host.
#[tokio::test]
async fn n1_a_command_that_is_run_at_once_after_an_attach_stops_at_its_breakpoint() {
    if found("js-debug").is_none() || !crate::support::requirements::has_code_server() {
        return;
    }
    let command = json!({"command": "ready.go", "title": "Ready Go"});
    let manifest = json!({
        "name": "ready", "publisher": "devtether", "version": "0.0.1", "engines": {"vscode": "^1.90.0"},
        "main": "./extension.js", "activationEvents": ["*"], "contributes": {"commands": [command]},
    });
    let sandbox = Sandbox::with(&[
        ("package.json", &manifest.to_string()),
        ("extension.js", COMMAND),
        ("devtools.toml", "[window]\nkind = 'web-extension-host'\n"),
    ]);
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    let agent = McpClient::start(&sandbox).await;
    until(&agent, "window_snapshot", json!({}), "active now").await;
    for round in 0..rounds() {
        let row = choose_in_palette(&agent, "Ready Go").await;
        // First the one, then the other: a breakpoint may be there before the session, or not.
        let attach = json!({"window": "extensionHost"});
        let set = json!({"file": stop("extension.js", COMMAND)});
        let (first, second) = match round % 2 {
            0 => (("debug_attach", &attach), ("breakpoint_set", &set)),
            _ => (("breakpoint_set", &set), ("debug_attach", &attach)),
        };
        let first = agent.call(first.0, first.1.clone()).await;
        let second = agent.call(second.0, second.1.clone()).await;
        agent.call("window_input", json!({"actions": [{"do": "click", "ref": row}]})).await;
        let stopped = agent.call("wait_for_stop", json!({"timeout": 20})).await;
        assert_eq!(
            stopped["stopReason"]["type"], "BREAKPOINT_HIT",
            "round {round}: {stopped} after {first} and {second}"
        );
        let listed = agent.call("breakpoint_list", json!({})).await;
        assert_eq!(listed["breakpoints"][0]["state"], "verified", "{listed}");
        agent.call("debug_continue", json!({})).await;
        agent.call("debug_stop", json!({})).await;
        agent.call("breakpoint_remove", json!({"all": true})).await;
    }
    agent.leave().await;
}

/// How often a race is tried: `TETHER_ROUNDS` says otherwise.
fn rounds() -> u32 {
    std::env::var("TETHER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(2)
}

#[test]
fn an_unknown_window_target_is_an_error_that_names_it() {
    let sandbox = Sandbox::with(&[("server.js", JAVASCRIPT), ("devtools.toml", NODE)]);
    let attach = |part| sandbox.tether(&["debug", "attach", "--window", part]);
    attach("page").fails(3, &["there is no window", "tether start"]);
    sandbox.json(&["start"]);
    attach("page").fails(2, &["this window is Node", "--window extension-host"]);
}

/// Ends the window while an operation waits for a stop in it; returns how that ended.
fn wait_ends_with_the_window(sandbox: &Sandbox, part: &str) -> Value {
    let attached = sandbox.json(&["debug", "attach", "--window", part]);
    let mut waiting = sandbox.command(["debug", "wait", "600", "--json"]);
    let mut waiting = waiting.stdout(Stdio::piped()).spawn().unwrap();
    let is_connected = |fd: procfs::process::FDInfo| matches!(fd.target, procfs::process::FDTarget::Socket(_));
    eventually("it has reached the supervisor", || {
        let descriptors = procfs::process::Process::new(waiting.id() as i32).unwrap().fd().unwrap();
        descriptors.filter_map(Result::ok).any(is_connected).then_some(())
    });
    assert!(waiting.try_wait().unwrap().is_none(), "it waits");
    sandbox.json(&["stop"]);
    let output = waiting.wait_with_output().unwrap();
    let waited: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!((&waited["sessionId"], &waited["stopped"]), (&attached["sessionId"], &json!(false)), "{waited}");
    assert!(waited["waitedMs"].as_u64().unwrap() < 100_000, "{waited}");
    waited
}

#[test]
fn n16_the_end_of_the_window_wakes_an_operation_that_waits_for_a_stop_in_it() {
    if found("js-debug").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("server.js", JAVASCRIPT), ("devtools.toml", NODE)]);
    sandbox.json(&["start"]);
    let waited = wait_ends_with_the_window(&sandbox, "extension-host");
    assert!(matches!(waited["state"].as_str(), Some("TERMINATED" | "DISCONNECTED")), "{waited}");
    // Another one that begins after it is not held up either.
    let ended = sandbox.json(&["debug", "wait", "600"]);
    assert_eq!((&ended["stopped"], &ended["state"]), (&json!(false), &waited["state"]), "{ended}");
}

#[test]
fn n16_the_end_of_the_window_ends_a_session_whose_adapter_does_not_notice_it() {
    if found("js-debug").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("server.js", JAVASCRIPT), ("devtools.toml", NODE)]);
    sandbox.json(&["start"]);
    sandbox.json(&["debug", "attach", "--window", "extension-host", "--adapter", "js-debug"]);
    let adapter = sandbox.processes().into_iter().find(|(_, line)| line.contains("vsDebugServer")).unwrap().0;
    crate::support::kill(adapter, rustix::process::Signal::STOP);
    sandbox.json(&["stop"]);
    let ended = sandbox.json(&["debug", "wait", "600"]);
    assert!(matches!(ended["state"].as_str(), Some("TERMINATED" | "DISCONNECTED")), "{ended}");
    crate::support::wait_for_end(adapter);
}

#[test]
fn n16_the_end_of_a_browser_wakes_an_operation_that_waits_for_a_stop_in_its_page() {
    if found("js-debug").is_none() {
        return;
    }
    let sandbox = started_page(&[("page.html", "<title>t</title>")]);
    let waited = wait_ends_with_the_window(&sandbox, "page");
    assert!(matches!(waited["state"].as_str(), Some("TERMINATED" | "DISCONNECTED")), "{waited}");
}

const BUTTON: &str = "\
document.querySelector('button').onclick = () => {
  const count = 1; // STOP
  document.title = 'clicked ' + count;
};
";

/// A click that runs into a breakpoint, and what is asked of the page while it is stopped there.
#[test]
fn n2_an_operation_on_a_page_that_is_stopped_is_answered_at_once_and_says_where() {
    if found("js-debug").is_none() {
        return;
    }
    let sandbox = started_page(&[
        ("page.js", BUTTON),
        ("page.html", "<title>t</title><button>Go</button><script src='page.js'></script>"),
    ]);
    let attached = sandbox.json(&["debug", "attach", "--window", "page"]);
    let session = attached["sessionId"].as_str().unwrap();
    sandbox.json(&["break", "set", &stop("page.js", BUTTON)]);
    eventually("the breakpoint is bound", || {
        (sandbox.json(&["break", "list"])["breakpoints"][0]["state"] == "verified").then_some(())
    });
    let element = |text: &str| {
        let line = text.lines().find(|line| line.contains("button \"Go\""))?;
        Some(line.trim().split(' ').next()?.to_owned())
    };
    let button = element(sandbox.json(&["snapshot"])["text"].as_str().unwrap()).unwrap();
    let click = format!("click {button}");
    let hovered = format!("hover {button}");
    let clicked = sandbox.json(&["input", &hovered, &click, &hovered]);
    let (stopped, location) = (&clicked["stopped"], &clicked["stopped"]["location"]);
    assert_eq!(stopped["sessionId"], session, "{clicked}");
    assert_eq!((&location["sourcePath"], &location["lineNumber"]), (&json!("page.js"), &json!(2)), "{clicked}");
    // What was done is said: not the click, which is under way.
    assert_eq!(clicked["actions"].as_array().unwrap().len(), 1, "{clicked}");
    assert!(clicked["notes"].to_string().contains(&format!("tether debug continue --session {session}")), "{clicked}");
    let text = sandbox.tether(&["input", &hovered]).ok().stdout;
    assert!(text.starts_with(&format!("stopped: {session} at page.js:2")), "{text}");
    let image = sandbox.home().join("image.png");
    for command in [&["screenshot", "-o", image.to_str().unwrap()][..], &["snapshot"]] {
        let answered = sandbox.tether(command);
        assert!(answered.code == 0 || answered.stderr.contains("stopped in the debugger"), "{answered:?}");
    }
    sandbox.json(&["debug", "continue"]);
    let title = eventually("the click is done", || {
        Some(sandbox.json(&["evaluate", "document.title"])).filter(|title| title["value"] != "t")
    });
    assert!(title["value"] == "clicked 1" && title.get("stopped").is_none(), "{title}");
    sandbox.json(&["debug", "stop", session]);
}

/// The window ends, and two supervisors after it: the session is stored until it is stopped by request.
#[test]
fn n20_an_ended_session_that_follows_the_window_comes_back_with_it_after_later_supervisors() {
    if found("js-debug").is_none() {
        return;
    }
    let sandbox = Sandbox::with(&[("server.js", JAVASCRIPT), ("devtools.toml", NODE)]);
    sandbox.json(&["start"]);
    sandbox.json(&["break", "set", &stop("server.js", JAVASCRIPT)]);
    let attached = sandbox.json(&["debug", "attach", "--window", "extension-host", "--wait", "60"]);
    let session = attached["sessionId"].as_str().unwrap();
    sandbox.json(&["stop"]);
    for _ in 0..2 {
        assert_eq!(sandbox.json(&["debug", "status", session])["connected"], false);
        sandbox.kill_supervisor();
    }
    sandbox.json(&["start"]);
    let stopped = sandbox.json(&["debug", "wait", "60"]);
    assert_eq!((&stopped["sessionId"], line(&stopped)), (&json!(session), line(&attached)), "{stopped}");
    sandbox.json(&["debug", "stop", session]);
    sandbox.kill_supervisor();
    // It is readable, and follows no more.
    sandbox.json(&["restart"]);
    assert_eq!(sandbox.json(&["debug", "status", session])["connected"], false);
}
