//! A debug session that follows the extension host stops in each new one: in the first call of an extension, too.

use std::time::{Duration, Instant};

use serde_json::json;

use super::VERSION;
use super::refresh::{extension, extension_hosts, first_host_file, started_extension};
use crate::support::requirements::{installed_adapter, installed_tool};
use crate::support::{Sandbox, eventually};

const STOPS: [&str; 2] = ["STOP in activate", "STOP in a command"];

/// Stops in `activate`, and in a command that it runs through VS Code.
pub(super) fn extension_with_stops(version: &str) -> String {
    extension(
        version,
        "const greet = () => {
        const audience = 'everyone';
        globalThis.commands = audience.length; // STOP in a command
    };
    context.subscriptions.push(vscode.commands.registerCommand('probe.greet', greet)); // STOP in activate
    setTimeout(() => vscode.commands.executeCommand('probe.greet'), 10);",
    )
}

pub(super) fn line_of(word: &str) -> usize {
    extension_with_stops("0").lines().position(|line| line.contains(word)).unwrap() + 1
}

/// A started extension, with a session that follows its host, and both breakpoints.
pub(super) fn debugged_extension() -> Option<(Sandbox, String)> {
    installed_adapter("js-debug")?;
    let sandbox = started_extension()?;
    sandbox.write("extension.js", &extension_with_stops("0"));
    sandbox.json(&["evaluate", VERSION]);
    let attached = sandbox.json(&["debug", "attach", "--window", "extension-host"]);
    for word in STOPS {
        sandbox.json(&["break", "set", &format!("extension.js:{}", line_of(word))]);
    }
    Some((sandbox, attached["sessionId"].as_str().unwrap().to_owned()))
}

/// Asserts that the session stops in the next two places, and lets it continue.
pub(super) fn stops_in_both(sandbox: &Sandbox, session: &str, round: &str, line_of: impl Fn(&str) -> usize) {
    for word in STOPS {
        let stopped = sandbox.json(&["debug", "wait", "60"]);
        let at = &stopped["stopReason"]["location"]["lineNumber"];
        assert_eq!((&stopped["sessionId"], at), (&json!(session), &json!(line_of(word))), "{round}: {stopped:#}");
        assert!(!stopped["notes"].to_string().contains("may have been missed"), "{round}: {stopped:#}");
        if word == "STOP in a command" {
            let locals = sandbox.json(&["debug", "variables"]).to_string();
            assert!(locals.contains("audience") && locals.contains("'everyone'"), "{round}: {locals}");
        }
        sandbox.json(&["debug", "continue"]);
    }
}

#[test]
fn breakpoints_in_activate_and_in_a_command_are_hit_after_each_refresh() {
    let Some((sandbox, session)) = debugged_extension() else { return };
    for round in 1..=20 {
        let round = round.to_string();
        sandbox.write("extension.js", &extension_with_stops(&round));
        let refreshed = sandbox.json(&["evaluate", "1"]);
        assert_eq!(refreshed["refreshed"]["by"], "restartExtensionHost", "{refreshed:#}");
        stops_in_both(&sandbox, &session, &round, line_of);
        assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], json!(round));
    }
}

#[test]
fn breakpoints_in_typescript_are_bound_by_its_source_map_before_it_runs() {
    let esbuild = installed_tool("template-esbuild/node_modules/@esbuild/linux-x64/bin/esbuild");
    let (Some(esbuild), Some((sandbox, session))) = (esbuild, debugged_extension()) else { return };
    let typescript =
        |version: &str| format!("interface Unused {{\n    version: string;\n}}\n\n{}", extension_with_stops(version));
    let source_line = |word: &str| line_of(word) + 4;
    let arguments = ["source.ts", "--platform=node", "--format=cjs", "--sourcemap", "--outfile=extension.js"];
    let command: Vec<&str> = [esbuild.to_str().unwrap()].into_iter().chain(arguments).collect();
    sandbox.write("source.ts", &typescript("0"));
    sandbox.write(".devtoolsignore", "/extension.js*\n");
    let build = format!("[window]\nkind = 'web-extension-host'\n[build]\ncommand = {}\n", json!(command));
    sandbox.write("devtools.toml", &build);
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["break", "remove", "--all"]);
    sandbox.json(&["restart", "--rebuild", "always"]);
    for word in STOPS {
        sandbox.json(&["break", "set", &format!("source.ts:{}", source_line(word))]);
    }
    for round in 1..=5 {
        let round = round.to_string();
        sandbox.write("source.ts", &typescript(&round));
        let refreshed = sandbox.json(&["evaluate", "1"]);
        assert_eq!(refreshed["refreshed"]["by"], "restartExtensionHost", "{refreshed:#}");
        stops_in_both(&sandbox, &session, &round, source_line);
        assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], json!(round));
    }
}

#[test]
fn breakpoints_in_activate_are_hit_after_a_relaunch_and_under_a_new_supervisor() {
    let Some((sandbox, session)) = debugged_extension() else { return };
    sandbox.write("extension.js", &extension_with_stops("1"));
    sandbox.json(&["restart"]);
    stops_in_both(&sandbox, &session, "relaunch", line_of);
    sandbox.tether(&["shutdown"]).ok();
    sandbox.write("extension.js", &extension_with_stops("2"));
    sandbox.json(&["evaluate", "1"]);
    stops_in_both(&sandbox, &session, "a refresh by the next supervisor", line_of);
}

#[test]
fn a_host_is_held_by_no_session_that_was_stopped_and_by_no_supervisor_that_is_gone() {
    let Some((sandbox, session)) = debugged_extension() else { return };
    sandbox.json(&["debug", "stop", &session]);
    let began = Instant::now();
    sandbox.write("extension.js", &extension_with_stops("1"));
    assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], "1");
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());

    // With its debugger killed while the new host waits, the host goes on, and what it may have missed is said.
    let attached = sandbox.json(&["debug", "attach", "--window", "extension-host", "--adapter", "js-debug"]);
    assert_eq!(attached["state"], "RUNNING", "{attached:#}");
    let adapters = || sandbox.processes().into_iter().filter(|(_, line)| line.contains("vsDebugServer"));
    let before: Vec<u32> = adapters().map(|(pid, _)| pid).collect();
    sandbox.write("extension.js", &extension_with_stops("killed"));
    let mut refresh = sandbox.command(["evaluate", "1"]).spawn().unwrap();
    let (_, held) = eventually("the new host waits", || find_held(&sandbox));
    let new = eventually("its debugger starts", || adapters().find(|(pid, _)| !before.contains(pid)));
    crate::support::kill(new.0, rustix::process::Signal::KILL);
    eventually("the host goes on", || (!held.exists()).then_some(()));
    refresh.wait().unwrap();
    assert_eq!(version_past_stops(&sandbox), "killed");
    sandbox.json(&["debug", "stop", attached["sessionId"].as_str().unwrap()]);

    // With the supervisor killed at the moment when the new host waits, the host goes on at once.
    let attached = sandbox.json(&["debug", "attach", "--window", "extension-host"]);
    assert_eq!(attached["state"], "RUNNING", "{attached:#}");
    let before = extension_hosts(&sandbox);
    sandbox.write("extension.js", &extension_with_stops("2"));
    let mut refresh = sandbox.command(["evaluate", "1"]).spawn().unwrap();
    let (new, held) = eventually("the new host waits", || find_held(&sandbox));
    assert!(!before.contains(&new));
    crate::support::kill(sandbox.supervisor().unwrap(), rustix::process::Signal::KILL);
    eventually("the host goes on", || (!held.exists()).then_some(()));
    refresh.wait().unwrap();
    // The next supervisor may refresh once more, with the session attached to again: then both breakpoints are hit.
    assert_eq!(version_past_stops(&sandbox), "2");
    // It is attached to again by now, and its debugger ends with it.
    sandbox.json(&["debug", "stop", attached["sessionId"].as_str().unwrap()]);
}

/// The version that the page shows; sessions that stop meanwhile go on.
fn version_past_stops(sandbox: &Sandbox) -> serde_json::Value {
    eventually("an answer from a host that runs", || {
        let answer = sandbox.json(&["evaluate", VERSION]);
        if answer["stopped"].is_null() {
            return Some(answer["value"].clone());
        }
        sandbox.json(&["debug", "continue"]);
        None
    })
}

/// The extension host that waits for its debug sessions, and the file by which it does.
fn find_held(sandbox: &Sandbox) -> Option<(u32, std::path::PathBuf)> {
    let held = first_host_file(sandbox, "held-*")?;
    let pid = held.file_name()?.to_str()?.strip_prefix("held-")?.parse().ok()?;
    Some((pid, held))
}
