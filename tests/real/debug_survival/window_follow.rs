//! Sessions that follow the window over its launches, and hold off a relaunch while they are stopped in it.

use serde_json::{Value, json};

use crate::debug_survival::surviving_debuggees::{JAVASCRIPT, events, found, kill_supervisor, line, stop};
use crate::support::Sandbox;

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
    assert!(held.get("relaunched").is_none() && sandbox.status()["pid"] == window, "{held}");
    // Once resumed, it is replaced.
    follows(sandbox, session, stopped_at, || {
        sandbox.json(&["break", "remove", "--all"]);
        sandbox.json(&["debug", "continue"]);
        sandbox.json(&["break", "set", &stop(file, text)]);
        let told: Value = sandbox.json(&["debug", "wait", "60"]);
        assert_eq!(told["stopped"], true);
        sandbox.json(&["restart"]);
    });
    assert_ne!(sandbox.status()["pid"], window);
    // The same holds over the kill of a supervisor.
    kill_supervisor(sandbox);
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

#[test]
fn a_session_in_a_page_follows_it_and_holds_it_while_it_is_stopped() {
    if found("js-debug").is_none() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("page.js", JAVASCRIPT);
    sandbox.write("page.html", "<title>t</title><script src='page.js'></script>");
    let place = sandbox.workspace.display().to_string().replace(' ', "%20");
    sandbox.write("devtools.toml", &format!("[window]\nkind = 'browser'\nurl = 'file://{place}/page.html'\n"));
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    sandbox.arrived();
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
fn an_unknown_window_target_is_an_error_that_names_it() {
    let sandbox = Sandbox::with(&[("server.js", JAVASCRIPT), ("devtools.toml", NODE)]);
    let attach = |part| sandbox.tether(&["debug", "attach", "--window", part]);
    attach("page").fails(3, &["there is no window", "tether start"]);
    sandbox.json(&["start"]);
    attach("page").fails(2, &["this window is Node", "--window extension-host"]);
}
