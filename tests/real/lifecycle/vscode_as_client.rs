//! VS Code itself as the MCP client: its workbench starts `tether mcp`, lists the tools and calls them.
//!
//! The workbench runs in a `tether` window, with an extension that provides the server's definition.

use std::fs;

use serde_json::Value;

use crate::support::{Sandbox, run_command};

const PACKAGE: &str = r#"{
    "name": "tether", "publisher": "test", "version": "0.0.1", "engines": {"vscode": "^1.100.0"},
    "main": "./main.js", "activationEvents": ["onStartupFinished"],
    "contributes": {"mcpServerDefinitionProviders": [{"id": "tether", "label": "tether"}]}
}"#;

/// Writes the result of each step to a file.
const EXTENSION: &str = r#"
const vscode = require("vscode"), fs = require("fs"), path = require("path");
const say = (name, what) => {
  const file = path.join(__dirname, ".devtools", name + ".json");
  fs.writeFileSync(file + ".new", JSON.stringify(what));
  fs.renameSync(file + ".new", file);
};
const names = () => vscode.lm.tools.map((tool) => tool.name).filter((name) => name.startsWith("mcp_tether_"));
const listed = async () => {
  // A start before the definition is known is silently ignored, and no event reports a new tool.
  while (!names().includes("mcp_tether_window_status")) {
    await vscode.commands.executeCommand("workbench.mcp.startServer", "test.tether/tether");
    await new Promise((resume) => setTimeout(resume, 100));
  }
  return names();
};
const invoke = async (tool) => {
  const result = await vscode.lm.invokeTool("mcp_tether_" + tool, { input: {}, toolInvocationToken: undefined });
  return JSON.parse(result.content[0].value);
};
exports.activate = async () => {
  const server = { label: "tether", command: TETHER, args: ["--workspace", SERVICE, "mcp"] };
  const definition = new vscode.McpStdioServerDefinition(server.label, server.command, server.args, {});
  vscode.lm.registerMcpServerDefinitionProvider("tether", { provideMcpServerDefinitions: () => [definition] });
  try {
    say("tools", await listed());
    say("status", await invoke("window_status"));
    say("start", await invoke("window_start"));
  } catch (error) {
    say("failed", String(error.stack));
  }
};
"#;

/// Waits for the extension's file, and reads it.
fn output(sandbox: &Sandbox, name: &str) -> Value {
    crate::support::eventually(name, || {
        if let Ok(failure) = fs::read_to_string(sandbox.path(".devtools/failed.json")) {
            panic!("{failure}");
        }
        serde_json::from_slice(&fs::read(sandbox.path(&format!(".devtools/{name}.json"))).ok()?).ok()
    })
}

#[test]
fn vs_code_starts_our_server_lists_its_tools_and_calls_them() {
    if !crate::support::requirements::has_code_server() {
        return;
    }
    let sandbox = Sandbox::new();
    let service = sandbox.home().join("service");
    fs::create_dir(&service).unwrap();
    fs::write(service.join("server.js"), crate::support::NODE_SERVICE).unwrap();
    fs::write(service.join("devtools.toml"), "[window]\nkind = 'node'\nprogram = 'server.js'\n").unwrap();
    let literal = |text: &str| serde_json::to_string(text).unwrap();
    let extension = EXTENSION.replace("TETHER", &literal(env!("CARGO_BIN_EXE_tether")));
    sandbox.write("main.js", &extension.replace("SERVICE", &literal(service.to_str().unwrap())));
    sandbox.write("package.json", PACKAGE);
    sandbox.write("devtools.toml", "[window]\nkind = 'web-extension-host'\n");
    let of_service = |words: &[&str]| {
        run_command(sandbox.command(["--workspace", service.to_str().unwrap()].iter().chain(words).copied())).ok()
    };
    sandbox.tether(&["trust", "--yes"]).ok();
    of_service(&["trust", "--yes"]);
    sandbox.json(&["start"]);

    let tools = output(&sandbox, "tools").to_string();
    assert!(tools.contains("mcp_tether_window_start") && tools.contains("mcp_tether_window_evaluate"), "{tools}");
    // A read-only tool needs no confirmation.
    assert_eq!(output(&sandbox, "status")["state"], "absent");
    // A tool that acts does: the user confirms.
    let yes = "[...document.querySelectorAll('.monaco-dialog-box .monaco-button')].find(it => it.textContent === 'Yes')?.click() === undefined";
    let start = crate::support::eventually("the window is started", || {
        sandbox.json(&["evaluate", yes]);
        sandbox.path(".devtools/start.json").exists().then(|| output(&sandbox, "start"))
    });
    // A page that did not respond in time is read again.
    let answers = |reported: Value| Some(reported).filter(|it| it["state"] != "unresponsive");
    let status = crate::support::eventually("the page answers", || answers(of_service(&["status", "--json"]).json()));
    assert_eq!(answers(start.clone()).unwrap_or(status.clone())["state"], "ready", "{start}");
    assert_eq!((&status["state"], &status["pid"]), (&"ready".into(), &start["pid"]));
    of_service(&["stop"]);
    of_service(&["shutdown"]);
}
