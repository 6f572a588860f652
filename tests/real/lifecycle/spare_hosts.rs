//! A restart of the extension host takes a host that was started ahead, which has run nothing of an extension before.

use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::VERSION;
use super::refresh::{after_edit, extension, extension_hosts, first_host_file, only_extension_host, started_extension};
use super::refresh_breakpoints::{debugged_extension, extension_with_stops, line_of, stops_in_both};
use crate::support::requirements::has_program;
use crate::support::{Sandbox, eventually, is_alive, kill};

/// Waits until a host waits to be taken, and returns it.
pub(super) fn spare_host(sandbox: &Sandbox) -> u32 {
    let spare = eventually("a host is kept ahead", || first_host_file(sandbox, "spare-*"));
    spare.file_name().unwrap().to_str().unwrap().strip_prefix("spare-").unwrap().parse().unwrap()
}

#[test]
fn a_restart_takes_the_host_that_was_started_ahead() {
    let Some(sandbox) = started_extension() else { return };
    for version in 1..=5 {
        let (spare, before, version) = (spare_host(&sandbox), only_extension_host(&sandbox), version.to_string());
        assert_ne!(spare, before);
        let refreshed = after_edit(&sandbox, "extension.js", &extension(&version, ""));
        assert_eq!(refreshed, (json!(version), json!("restartExtensionHost")));
        assert_eq!(extension_hosts(&sandbox), [spare]);
    }
    // A host that is started ahead ends with the window, too: the sandbox checks it.
    spare_host(&sandbox);
}

#[test]
fn a_spare_host_that_is_killed_or_stopped_is_no_loss() {
    let Some(sandbox) = started_extension() else { return };
    kill(spare_host(&sandbox), Signal::KILL);
    let refreshed = after_edit(&sandbox, "extension.js", &extension("1", ""));
    assert_eq!(refreshed, (json!("1"), json!("restartExtensionHost")));
    // The next one is taken, but does not run: the answer is given by another way.
    let stopped = spare_host(&sandbox);
    kill(stopped, Signal::STOP);
    let (shown, by) = after_edit(&sandbox, "extension.js", &extension("2", ""));
    assert_eq!(shown, "2", "by {by}");
    // VS Code has asked it to end.
    kill(stopped, Signal::CONT);
    eventually("the stopped host is gone", || (!is_alive(stopped)).then_some(()));
}

#[test]
fn a_session_stops_in_the_first_call_of_a_host_that_was_started_ahead() {
    let Some((sandbox, session)) = debugged_extension() else { return };
    for round in 1..=5 {
        let (spare, round) = (spare_host(&sandbox), round.to_string());
        sandbox.write("extension.js", &extension_with_stops(&round));
        let refreshed = sandbox.json(&["evaluate", "1"]);
        assert_eq!(refreshed["refreshed"]["by"], "restartExtensionHost", "{refreshed:#}");
        stops_in_both(&sandbox, &session, &round, line_of);
        assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], json!(round));
        assert_eq!(extension_hosts(&sandbox), [spare]);
    }
}

#[test]
fn a_spare_host_that_is_older_than_the_supervisor_is_followed_when_it_is_taken() {
    let Some(sandbox) = started_extension() else { return };
    let spare = spare_host(&sandbox);
    sandbox.tether(&["shutdown"]).ok();
    let before = sandbox.status();
    assert_eq!(before["reconnected"], true, "{before:#}");
    sandbox.json(&["evaluate", "globalThis[Symbol.for('devtether.workbench')].restartExtensionHosts('by hand')"]);
    eventually("the host is followed", || (sandbox.status()["generation"] != before["generation"]).then_some(()));
    // VS Code does not wait for the end of the old one.
    eventually("the old host is gone", || (extension_hosts(&sandbox) == [spare]).then_some(()));
}

#[test]
fn a_window_whose_refresh_is_a_relaunch_has_no_spare_host() {
    let Some(sandbox) = started_extension() else { return };
    sandbox.write("devtools.toml", "[window]\nkind = 'web-extension-host'\nrefresh = 'relaunch'\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["restart"]);
    assert!(first_host_file(&sandbox, "hook.cjs").is_some() && first_host_file(&sandbox, "spare.cjs").is_none());
}

#[test]
fn no_host_is_started_ahead_that_loads_files_at_its_start_or_waits_for_a_debugger() {
    if !has_program("node") {
        return;
    }
    // Timers fire at once, and what would be started is only counted.
    let script = r"
        globalThis.setTimeout = (callback) => (callback(), { unref() {} });
        const [file, options] = [process.argv[1], JSON.parse(process.argv[2])];
        let count = 0;
        const start = () => (count++, new (require('events'))());
        require(file).startSpareHostLater('host.js', [], options, start);
        console.log(count);
    ";
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/window/launch/spare_host.cjs");
    let check = |node_options: &str, flag: &str, expect: &str| {
        let env = json!({"VSCODE_EXTHOST_WILL_SEND_SOCKET": "1", "NODE_OPTIONS": node_options});
        let options = json!({"env": env, "execArgv": [flag]}).to_string();
        let output = Command::new("node").args(["-e", script, file, &options]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expect, "{node_options} {flag} {output:?}");
    };
    check("", "--inspect=9229", "1");
    check("--max-old-space-size=4096 --enable-source-maps", "--inspect=9229", "1");
    for loading in ["-r ./a.cjs", "--require=./a.cjs", "--import ./a.mjs", "--loader=x", "--experimental-loader x"] {
        check(loading, "--inspect=9229", "0");
    }
    check("", "--inspect-brk=9229", "0");
}

#[test]
fn the_web_worker_host_is_started_only_for_extensions_that_run_there() {
    let Some(sandbox) = started_extension() else { return };
    let workers = "document.querySelectorAll('iframe.web-worker-ext-host-iframe').length";
    let has = |count: Value| assert_eq!(sandbox.json(&["evaluate", workers])["value"], count);
    has(json!(0));
    assert_eq!(after_edit(&sandbox, "extension.js", &extension("1", "")).1, "restartExtensionHost");
    has(json!(0));
    let launch = json!({"configurations": [{
        "name": "Web", "type": "extensionHost", "request": "launch",
        "args": ["--extensionDevelopmentPath=${workspaceFolder}", "--extensionDevelopmentKind=web"],
    }]});
    let manifest = json!({
        "name": "probe", "publisher": "devtether", "version": "0.0.1", "engines": {"vscode": "^1.90.0"},
        "browser": "./extension.js", "activationEvents": ["onStartupFinished"],
    });
    sandbox.write(".vscode/launch.json", &launch.to_string());
    sandbox.write("package.json", &manifest.to_string());
    sandbox.tether(&["trust", "--yes"]).ok();
    assert_eq!(sandbox.json(&["evaluate", "--timeout-ms", "60000", VERSION])["value"], "1");
    has(json!(1));
    let (shown, _) = after_edit(&sandbox, "extension.js", &extension("2", ""));
    assert_eq!(shown, "2");
    has(json!(1));
}
