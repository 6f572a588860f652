//! Commands of VS Code and its output channels, in the window of a project in which nothing of ours is installed.

use serde_json::json;

use crate::support::Sandbox;
use crate::support::requirements::{has_code_server, has_program};

const EXTENSION: &str = r#"
const vscode = require("vscode");
exports.activate = (context) => {
    context.subscriptions.push(vscode.commands.registerCommand("probe.answer", (given) => ({ given, answer: 41 })));
    context.subscriptions.push(vscode.commands.registerCommand("probe.extensions", () =>
        vscode.extensions.all.filter((it) => !it.packageJSON.isBuiltin).map((it) => `${it.id} ${it.extensionPath}`)));
};"#;

#[test]
fn commands_and_output_work_in_a_strangers_project() {
    if !has_program("chromium") || !has_code_server() {
        return;
    }
    let manifest = json!({
        "name": "probe", "publisher": "stranger", "version": "0.0.1", "engines": {"vscode": "^1.90.0"},
        "main": "./extension.js", "activationEvents": ["onStartupFinished"],
        "contributes": {"commands": [{"command": "probe.answer", "title": "Probe: Answer"}]},
    });
    let toml = "[window]\nkind = 'web-extension-host'\n";
    let files = [("package.json", &*manifest.to_string()), ("extension.js", EXTENSION), ("devtools.toml", toml)];
    let sandbox = Sandbox::with(&files);
    let names = |folder: &std::path::Path| -> Vec<_> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    sandbox.json(&["start"]);
    assert_eq!(sandbox.json(&["command", "probe.answer", "7"])["value"], json!({"given": 7, "answer": 41}));
    sandbox.tether(&["command", "probe.anser"]).fails(1, &["no command probe.anser in the window"]);
    // The installed code-server may have no binary with which it would write channels.
    let opened = format!("file://{}", sandbox.path("extension.js").display().to_string().replace(' ', "%20"));
    sandbox.json(&["command", "vscode.open", &json!({"$uri": opened}).to_string()]);
    let output = sandbox.json(&["output"]);
    assert!(output["editors"].to_string().contains("extension.js"), "{output:#}");
    // A new extension host has it, too, and answers with the new code.
    sandbox.write("extension.js", &EXTENSION.replace("41", "42"));
    assert_eq!(sandbox.json(&["command", "probe.answer", "8"])["value"]["answer"], 42);
    sandbox.json(&["restart"]);
    assert_eq!(sandbox.json(&["command", "probe.answer", "9"])["value"]["answer"], 42);
    // It lies with the window, and is gone with it.
    let listed = sandbox.json(&["command", "probe.extensions"])["value"].clone();
    let ours =
        listed.as_array().unwrap().iter().filter_map(|it| it.as_str()).find(|it| it.starts_with("devtether.tether "));
    let folder = std::path::PathBuf::from(ours.unwrap_or_else(|| panic!("{listed:#}")).split_once(' ').unwrap().1);
    assert!(folder.is_dir() && folder.starts_with(sandbox.home().canonicalize().unwrap()), "{}", folder.display());
    sandbox.json(&["stop"]);
    assert!(!folder.exists(), "{}", folder.display());
    assert!(!names(&sandbox.workspace).iter().any(|name| name.to_string_lossy().starts_with(".vscode")));
}
