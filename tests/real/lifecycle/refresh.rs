//! After an edit, the window runs the new code by the cheapest way that is proven to; what that leaves alone stays.

use std::path::PathBuf;

use serde_json::{Value, json};
use tether_process::read_facts;

use super::VERSION;
use crate::support::requirements::{has_code_server, has_program, installed_adapter};
use crate::support::{Sandbox, browser, eventually, is_alive};

const TOML: &str = "[window]\nkind = 'web-extension-host'\n";

/// An extension that shows its version in the status bar, and then does more.
pub(super) fn extension(version: &str, more: &str) -> String {
    format!(
        "const vscode = require('vscode');
exports.activate = (context) => {{
    const item = vscode.window.createStatusBarItem();
    item.text = 'version:{version}';
    item.show();
    context.subscriptions.push(item);
    {more}
}};
"
    )
}

pub(super) fn manifest(title: &str) -> String {
    let commands = json!([{"command": "probe.greet", "title": title}]);
    json!({
        "name": "probe", "publisher": "devtether", "version": "0.0.1", "engines": {"vscode": "^1.90.0"},
        "main": "./extension.js", "activationEvents": ["onStartupFinished"], "contributes": {"commands": commands},
    })
    .to_string()
}

/// A started Extension Development Host. `None`, reported: something that it needs is not installed.
pub(super) fn started_extension() -> Option<Sandbox> {
    if !has_program("chromium") || !has_code_server() {
        return None;
    }
    let sandbox = Sandbox::with(&[
        ("package.json", &manifest("Probe: Greet")),
        ("extension.js", &extension("0", "")),
        ("devtools.toml", TOML),
    ]);
    sandbox.json(&["start"]);
    assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], "0");
    Some(sandbox)
}

/// The extension hosts of the sandbox that a workbench is connected to. A child of a host is left out: until it runs a
/// program of its own, it has the host's command line.
pub(super) fn extension_hosts(sandbox: &Sandbox) -> Vec<u32> {
    let is_taken = |pid| first_host_file(sandbox, &format!("taken-{pid}")).is_some();
    let is_spare = |pid, line: &str| line.contains("--devtether-spare") && !is_taken(pid);
    let is_host = |(pid, line): &&(u32, String)| line.contains("--type=extensionHost") && !is_spare(*pid, line);
    let found: Vec<u32> = sandbox.processes().iter().filter(is_host).map(|(pid, _)| *pid).collect();
    let is_child = |pid: u32| read_facts(pid).is_ok_and(|facts| found.contains(&facts.parent));
    found.iter().copied().filter(|pid| !is_child(*pid)).collect()
}

/// The first file of this name by which extension hosts are held and kept ahead; the name may end with `*`.
pub(super) fn first_host_file(sandbox: &Sandbox, name: &str) -> Option<PathBuf> {
    let mut found = vec![sandbox.home().join("state/devtether")];
    for component in ["*", "window-*", "host-hold", name] {
        let Some(prefix) = component.strip_suffix('*') else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let entries = found.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
        let begins = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(prefix);
        found = entries.map(|entry| entry.path()).filter(begins).collect();
    }
    found.into_iter().find(|path| path.exists())
}

/// Waits until there is one extension host, and returns it. The host of an earlier window may still be ending.
pub(super) fn only_extension_host(sandbox: &Sandbox) -> u32 {
    eventually("there is one extension host", || match extension_hosts(sandbox)[..] {
        [host] => Some(host),
        _ => None,
    })
}

/// What the extension shows after an edit, and the way in which the window was refreshed before.
pub(super) fn after_edit(sandbox: &Sandbox, file: &str, text: &str) -> (Value, Value) {
    sandbox.write(file, text);
    let answer = sandbox.json(&["evaluate", "--timeout-ms", "60000", VERSION]);
    assert_eq!(answer["refreshed"]["because"], format!("{file} was modified"), "{answer:#}");
    (answer["value"].clone(), answer["refreshed"]["by"].clone())
}

#[test]
fn an_edit_of_a_file_that_the_workbench_keeps_reloads_the_page() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    let mut with_grammar: Value = serde_json::from_str(&manifest("Probe: Greet")).unwrap();
    with_grammar["contributes"]["languages"] = json!([{"id": "probe", "extensions": [".probe"]}]);
    with_grammar["contributes"]["grammars"] =
        json!([{"language": "probe", "scopeName": "source.probe", "path": "./syntaxes/probe.tmLanguage.json"}]);
    let grammar =
        |scope: &str| json!({"scopeName": "source.probe", "patterns": [{"match": "word", "name": scope}]}).to_string();
    let sandbox = Sandbox::with(&[
        ("package.json", &with_grammar.to_string()),
        ("syntaxes/probe.tmLanguage.json", &grammar("keyword.probe")),
        ("extension.js", &extension("0", "")),
        ("devtools.toml", TOML),
    ]);
    sandbox.json(&["start"]);
    let (shown, by) = after_edit(&sandbox, "syntaxes/probe.tmLanguage.json", &grammar("string.probe"));
    assert_eq!((shown, by), (json!("0"), json!("reload")));
    // Code alone needs no reload, before and after.
    let (shown, by) = after_edit(&sandbox, "extension.js", &extension("1", ""));
    assert_eq!((shown, by), (json!("1"), json!("restartExtensionHost")));
}

#[test]
fn each_edit_of_an_extension_is_answered_by_its_new_code_and_the_page_stays() {
    let Some(sandbox) = started_extension() else { return };
    let before = sandbox.status();
    sandbox.json(&["evaluate", "globalThis.kept = 'state of the page'"]);
    for version in 1..=20 {
        let version = version.to_string();
        let (shown, by) = after_edit(&sandbox, "extension.js", &extension(&version, ""));
        assert_eq!((shown, by), (json!(version), json!("restartExtensionHost")));
    }
    let after = sandbox.status();
    assert_eq!((&after["pid"], &after["cdpPort"]), (&before["pid"], &before["cdpPort"]));
    let generations = |status: &Value| status["generation"].as_u64().unwrap();
    assert_eq!((&after["stale"], generations(&after) - generations(&before)), (&json!(false), 20));
    assert_eq!(after["refreshed"]["by"], "restartExtensionHost", "{after:#}");
    let session = sandbox.session().unwrap();
    assert_eq!(
        (&session["inspectorPort"], &session["debugWindowStartedAt"]),
        (&after["inspectorPort"], &after["startedAt"])
    );
    assert_eq!(sandbox.json(&["evaluate", "kept"])["value"], "state of the page");
    // What the hosts have compiled is kept for the next ones: a folder for each version of Node.
    let state = std::fs::read_dir(sandbox.home().join("state/devtether")).unwrap().next().unwrap().unwrap().path();
    assert_ne!(std::fs::read_dir(state.join("compile-cache")).unwrap().count(), 0);
}

#[test]
fn each_change_is_taken_up_by_the_cheapest_way_that_can() {
    let Some(sandbox) = started_extension() else { return };
    let window = sandbox.status()["pid"].as_u64().unwrap() as u32;
    // What the workbench knows of an extension is read when the workbench is loaded.
    assert_eq!(after_edit(&sandbox, "package.json", &manifest("Probe: Welcome")), (json!("0"), json!("reload")));
    assert_eq!(sandbox.status()["pid"], window);
    // The way of a launch.
    let set = |more: &str| sandbox.write("devtools.toml", &format!("{TOML}{more}"));
    set("refresh = 'relaunch'\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    let answer = sandbox.json(&["evaluate", "1"]);
    assert_eq!(answer["refreshed"]["by"], "relaunch", "{answer:#}");
    assert!(!is_alive(window));
    assert_eq!(after_edit(&sandbox, "extension.js", &extension("1", "")), (json!("1"), json!("relaunch")));
    set("");
    sandbox.json(&["evaluate", "1"]);
    assert_eq!(after_edit(&sandbox, "extension.js", &extension("2", "")), (json!("2"), json!("restartExtensionHost")));
    // A restart on request replaces everything.
    let window = sandbox.status()["pid"].as_u64().unwrap() as u32;
    let restarted = sandbox.json(&["restart"]);
    assert_eq!(restarted["refreshed"]["by"], "relaunch", "{restarted:#}");
    assert!(!is_alive(window));
}

#[test]
fn an_extension_that_fails_never_ends_or_blocks_its_host_is_refreshed_too() {
    let Some(sandbox) = started_extension() else { return };
    for (version, more) in [
        ("1", "throw new Error('no such luck');"),
        ("2", "return new Promise(() => {});"),
        ("3", "setTimeout(() => { for (;;); }, 100);"),
        ("4", "process.exit(1);"),
        ("5", ""),
    ] {
        sandbox.write("extension.js", &extension(version, more));
        let answer = sandbox.json(&["evaluate", "1"]);
        assert!(answer["refreshed"].is_object(), "{version}: {answer:#}");
        // The old host is gone, busy or not; VS Code itself starts one again that has exited.
        assert!(extension_hosts(&sandbox).len() <= 1, "{version}: {answer:#}");
    }
    assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], "5");
}

#[test]
fn a_session_in_an_extension_is_attached_again_after_each_refresh() {
    if installed_adapter("js-debug").is_none() {
        return;
    }
    let Some(sandbox) = started_extension() else { return };
    let text =
        |version: &str| extension(version, "setInterval(() => {\n    globalThis.count = 1; // STOP\n    }, 50);");
    let line = text("0").lines().position(|line| line.contains("STOP")).unwrap() + 1;
    let spot = format!("extension.js:{line}");
    let attached = sandbox.json(&["debug", "attach", "--window", "extension-host"]);
    let session = attached["sessionId"].as_str().unwrap();
    for version in 1..=5 {
        assert_eq!(after_edit(&sandbox, "extension.js", &text(&version.to_string())).1, "restartExtensionHost");
        sandbox.json(&["break", "set", &spot]);
        let stopped = sandbox.json(&["debug", "wait", "60"]);
        assert_eq!((&stopped["sessionId"], &stopped["stopped"]), (&json!(session), &json!(true)), "{stopped:#}");
        sandbox.json(&["break", "remove", "--all"]);
        sandbox.json(&["debug", "continue"]);
    }
}

#[test]
fn the_page_of_a_browser_is_loaded_anew_and_its_storage_stays() {
    if !has_program("chromium") {
        return;
    }
    let sandbox = browser("<title>0</title>");
    let page = |title: &str| sandbox.write("page.html", &format!("<title>{title}</title>"));
    sandbox.json(&["start"]);
    let window = sandbox.arrived()["pid"].clone();
    sandbox.json(&["evaluate", "sessionStorage.setItem('kept', 'yes')"]);
    for title in 1..=20 {
        let title = title.to_string();
        page(&title);
        let answer = sandbox.json(&["evaluate", "document.title + sessionStorage.getItem('kept')"]);
        let by = &answer["refreshed"]["by"];
        assert_eq!((&answer["value"], by), (&json!(format!("{title}yes")), &json!("reload")), "{answer:#}");
    }
    assert_eq!(sandbox.status()["pid"], window);
}
