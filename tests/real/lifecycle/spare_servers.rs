//! A spare host has the language servers of VS Code ahead that the host before it had started; its extensions get those.

use std::process::Command;

use devtether::process::read_facts;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::refresh::{after_edit, only_extension_host, started_extension};
use super::spare_hosts::spare_host;
use crate::support::requirements::has_program;
use crate::support::{Sandbox, eventually, is_alive, kill};

/// An extension that shows its version once the JSON server has reported the error in a document.
fn extension_with_json(version: &str) -> String {
    format!(
        "const vscode = require('vscode');
exports.activate = async (context) => {{
    const {{ uri }} = await vscode.workspace.openTextDocument({{ language: 'json', content: '{{' }});
    await new Promise((reported) => {{
        const look = () => vscode.languages.getDiagnostics(uri).length > 0 && reported();
        context.subscriptions.push(vscode.languages.onDidChangeDiagnostics(look));
        look();
    }});
    const item = vscode.window.createStatusBarItem();
    item.text = 'version:{version}';
    item.show();
    context.subscriptions.push(item);
}};
"
    )
}

/// The JSON servers that a host has started.
fn json_servers(sandbox: &Sandbox, host: u32) -> Vec<u32> {
    let servers = sandbox.processes().into_iter().filter(|(_, line)| line.contains("jsonServerMain"));
    servers.map(|(pid, _)| pid).filter(|pid| read_facts(*pid).is_ok_and(|facts| facts.parent == host)).collect()
}

/// Waits until the spare host has a JSON server, and returns both.
fn spare_host_and_server(sandbox: &Sandbox) -> (u32, u32) {
    let spare = spare_host(sandbox);
    (spare, eventually("a JSON server is kept ahead", || json_servers(sandbox, spare).first().copied()))
}

#[test]
fn the_json_server_of_a_restarted_host_is_the_one_that_was_started_ahead() {
    let Some(sandbox) = started_extension() else { return };
    let edit = |version: u32| {
        let refreshed = after_edit(&sandbox, "extension.js", &extension_with_json(&version.to_string()));
        assert_eq!(refreshed, (json!(version.to_string()), json!("restartExtensionHost")));
    };
    edit(1);
    for version in 2..=4 {
        let (spare, ahead) = spare_host_and_server(&sandbox);
        edit(version);
        assert_eq!((only_extension_host(&sandbox), json_servers(&sandbox, spare)), (spare, vec![ahead]));
    }
    // One that is ended is no loss, and one ends with its host.
    let (_, ahead) = spare_host_and_server(&sandbox);
    kill(ahead, Signal::KILL);
    edit(5);
    let (spare, ahead) = spare_host_and_server(&sandbox);
    kill(spare, Signal::KILL);
    eventually("the server has ended with its host", || (!is_alive(ahead)).then_some(()));
    edit(6);
}

#[test]
fn a_server_is_taken_only_for_one_that_would_be_started_in_the_same_way() {
    if !has_program("node") {
        return;
    }
    let sandbox = Sandbox::with(&[
        ("servers.cjs", include_str!("../../../src/window/launch/spare_servers.cjs")),
        ("server.js", "process.on('message', () => process.send([process.argv.slice(2), process.execArgv]));"),
        ("loud.js", "process.send('hello'); process.on('message', () => {});"),
        ("ended.js", "process.exit(3);"),
        (
            "test.js",
            "const { fork } = require('child_process');
const args = ['--node-ipc', `--clientProcessId=${process.pid}`];
const options = (more) => ({ execArgv: ['--inspect=6001'], silent: true, ...more });
const env = (more) => ({ env: { ...process.env, VSCODE_IPC_HOOK_CLI: 'a', ELECTRON_NO_ASAR: '1', ...more } });
// As a host of its own does.
const load = () => {
    delete require.cache[require.resolve('./servers.cjs')];
    return require('./servers.cjs');
};
// A server that was started ahead keeps nobody running.
setInterval(() => {}, 1_000);
(async () => {
    const taken = {};
    const same = async (name, file, before, after = before, ends = false, words = args) => {
        require('fs').rmSync('servers.json', { force: true });
        const path = __dirname + '/' + file;
        if (load().takeSpareServer(path, words, options(before))) throw new Error('nothing was started ahead yet');
        const started = [];
        const host = load();
        host.startSpareServers((...words) => (started.push(fork(...words)), started.at(-1)));
        if (ends) await new Promise((ended) => started[0].on('exit', ended));
        const child = host.takeSpareServer(path, words, { ...options(after), execArgv: ['--inspect=6002'] });
        taken[name] = child !== undefined;
        if (child) {
            child.send('what are you?');
            const [argv, flags] = await new Promise((answered) => child.on('message', answered));
            taken[name] = String(argv) === String(args) && String(flags) === '--inspect=0';
        }
        started.forEach((child) => child.kill());
    };
    await same('as before', 'server.js', {});
    await same('with its variables', 'server.js', env({}), env({ VSCODE_IPC_HOOK_CLI: 'b' }));
    await same('another folder', 'server.js', { cwd: __dirname }, { cwd: '/' });
    await same('another variable of VS Code', 'server.js', env({ VSCODE_X: '1' }), env({ VSCODE_X: '2' }));
    await same('a variable of an extension', 'server.js', env({ SECRET: '1' }));
    await same('a server that has said something', 'loud.js', {}, {}, true);
    await same('a server that has ended', 'ended.js', {}, {}, true);
    await same('other arguments', 'server.js', {}, {}, false, ['--stdio']);
    console.log(JSON.stringify(taken));
    process.exit();
})();
",
        ),
    ]);
    let output = Command::new("node").arg("test.js").current_dir(sandbox.path(".")).output().unwrap();
    let taken: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let expected = json!({
        "as before": true,
        "with its variables": true,
        "another folder": false,
        "another variable of VS Code": false,
        "a variable of an extension": false,
        "a server that has said something": false,
        "a server that has ended": false,
        "other arguments": false,
    });
    assert_eq!(taken, expected, "{output:?}");
}
