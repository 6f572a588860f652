//! What is started for and beside an extension host: a login shell only where no shell has set up the environment, and
//! no agent host of VS Code. And what is kept for the next one: the lists of built-in extensions, and the compiled code of
//! their language servers.

use std::path::PathBuf;

use serde_json::Value;
use tether_process::read_environment_values;

use super::VERSION;
use super::refresh::{extension, manifest, started_extension};
use crate::support::requirements::{has_code_server, has_program};
use crate::support::{Sandbox, eventually, run_command};

#[test]
fn a_login_shell_is_asked_only_where_no_shell_has_set_up_the_environment() {
    if !has_program("chromium") || !has_program("bash") || !has_code_server() {
        return;
    }
    let data = tether_base::xdg::data_dir().unwrap();
    for (level, expected) in [(Some("1"), "not asked"), (None, "asked")] {
        let sandbox = Sandbox::with(&[
            ("package.json", &manifest("Probe: Greet")),
            ("extension.js", &extension("' + (process.env.PROBE ?? 'not asked') + '", "")),
            ("devtools.toml", "[window]\nkind = 'web-extension-host'\n"),
        ]);
        let home = sandbox.home().join("user");
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join(".bash_profile"), "export PROBE=asked\n").unwrap();
        let mut start = sandbox.command(["start"]);
        start.env("HOME", &home).env("SHELL", "/bin/bash").env("DEVTETHER_DATA_DIR", &data);
        match level {
            Some(level) => start.env("SHLVL", level),
            None => start.env_remove("SHLVL"),
        };
        let started = run_command(start);
        assert_eq!(started.code, 0, "{started:?}");
        assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], expected);
    }
}

#[test]
fn no_agent_host_is_started_beside_the_server() {
    let Some(sandbox) = started_extension() else { return };
    let processes = sandbox.processes();
    let has = |kind: &str| processes.iter().any(|(_, line)| line.contains(kind));
    assert!(has("--type=extensionHost") && !has("--type=agentHost"), "{processes:#?}");
}

#[test]
fn a_window_begins_with_the_lists_of_extensions_that_the_last_one_made() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    const NAME: &str = "Windows Bat Language Basics";
    let shown = "' + vscode.extensions.getExtension('vscode.bat').packageJSON.displayName + '";
    let sandbox = Sandbox::with(&[
        ("package.json", &manifest("Probe: Greet")),
        ("extension.js", &extension(shown, "")),
        ("devtools.toml", "[window]\nkind = 'web-extension-host'\n"),
    ]);
    sandbox.json(&["start"]);
    assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], NAME);
    // One is of the server's own language, one of the page's.
    let lists = eventually("both lists are complete", || {
        let lists = ["", ".en"].map(|language| kept_list(&sandbox, &format!("extensions.builtin{language}.cache")));
        lists.iter().all(|(_, text)| serde_json::from_str::<Value>(text).is_ok()).then_some(lists)
    });
    // The server would notice the change.
    sandbox.json(&["stop"]);
    for (path, text) in lists {
        assert!(text.contains(NAME), "{}", path.display());
        std::fs::write(path, text.replace(NAME, "from the list")).unwrap();
    }
    sandbox.json(&["start"]);
    assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], "from the list");
}

#[test]
fn language_servers_of_vscode_keep_their_compiled_code_and_children_of_other_extensions_do_not() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    let text = "const vscode = require('vscode');
exports.activate = async (context) => {
    await vscode.extensions.getExtension('vscode.json-language-features').activate();
    const child = require('child_process').fork(__dirname + '/child.js', []);
    child.on('message', (cache) => {
        const item = vscode.window.createStatusBarItem();
        item.text = 'version:' + cache;
        item.show();
        context.subscriptions.push(item);
    });
};
";
    let sandbox = Sandbox::with(&[
        ("package.json", &manifest("Probe: Greet")),
        ("extension.js", text),
        ("child.js", "process.send(process.env.NODE_COMPILE_CACHE ?? 'no cache')"),
        ("devtools.toml", "[window]\nkind = 'web-extension-host'\n"),
    ]);
    sandbox.json(&["start"]);
    assert_eq!(sandbox.json(&["evaluate", VERSION])["value"], "no cache");
    let processes = sandbox.processes();
    let (server, _) = processes.iter().find(|(_, line)| line.contains("jsonServerMain")).expect("the server runs");
    let [cache] = read_environment_values(*server, ["NODE_COMPILE_CACHE"]).unwrap();
    let cache = cache.expect("it keeps its compiled code");
    assert!(std::fs::read_dir(&cache).unwrap().next().is_some(), "{cache:?} is empty");
}

/// The path and the text of a kept list; empty if there is none yet.
fn kept_list(sandbox: &Sandbox, name: &str) -> (PathBuf, String) {
    let states = std::fs::read_dir(sandbox.home().join("state/devtether")).unwrap().flatten();
    let lists = states.map(|state| state.path().join("workbench-cache/extensions/__default__profile__").join(name));
    let found = lists.filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?))).next();
    found.unwrap_or_default()
}
