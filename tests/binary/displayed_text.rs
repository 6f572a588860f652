//! What files say on its way to a terminal or an agent is escaped; programs are shown as what will run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::raw_mcp::{RawMcp, visit_texts};
use crate::support::{CommandOutput, NODE_SERVICE, Sandbox, run_command};

/// Moves the cursor up, erases a line, reverses the text, and hides some.
const HOSTILE: &str = "\u{1b}[1A\u{1b}[2K\u{7f}\u{9b}2K\u{202e}\u{200b}\u{2066}";

#[track_caller]
fn is_harmless(output: &CommandOutput) {
    for text in [&output.stdout, &output.stderr] {
        let hidden = text.chars().find(|c| HOSTILE.contains(*c) && !"[1A2K".contains(*c));
        assert_eq!(hidden, None, "{text:?}");
    }
}

#[test]
fn nothing_that_files_say_reaches_a_terminal_unescaped() {
    let sandbox = Sandbox::new();
    let script = serde_json::json!({"scripts": {format!("build{HOSTILE}"): format!("evil{HOSTILE}")}});
    sandbox.write(&format!("package{HOSTILE}\n  build: \"harmless\"/package.json"), &script.to_string());
    sandbox.write("package.json", &script.to_string().replace("evil", "fine"));
    sandbox.write("server.js", "");
    sandbox.write(
        "devtools.toml",
        &format!(
            "[window]\nkind = 'node'\nprogram = 'server.js'\nargs = [{}]\n",
            serde_json::json!(HOSTILE).to_string().replace('\u{7f}', "\\u007f")
        ),
    );
    for arguments in [
        &["trust"][..],
        &["trust", "--json"],
        &["trust", "--yes"],
        &["trust", "--yes", "--json"],
        &["start", "--print-config"],
        &["start", "--print-config", "--json"],
        &["doctor"],
        &["doctor", "--json"],
    ] {
        let output = sandbox.tether(arguments);
        is_harmless(&output);
        assert!(!output.stdout.contains("\n  build: \"harmless\""), "{output:?}");
    }
    let shown = sandbox.tether(&["trust", "--yes"]);
    assert!(shown.stdout.contains("evil\\u{1b}[1A") || shown.stdout.contains("evil\\u001b[1A"), "{shown:?}");
    // As an argument and as the name of a file, in errors and in results.
    let name = format!("app{HOSTILE}.xyz");
    sandbox.write(&name, "");
    for arguments in [
        &["debug", "launch", &name][..],
        &["debug", "launch", &name, "--json"],
        &["changes", &name],
        &["start", "--config", HOSTILE],
        &["break", "set", &format!("{name}:1")],
        &["break", "list", "--json"],
    ] {
        is_harmless(&sandbox.tether(arguments));
    }
}

/// Where the second line of a name would begin.
const SECOND_LINE: &str = "second line";

/// Neither stdout nor stderr has characters that steer a terminal, or a line that a name has begun.
#[track_caller]
fn is_one_line_a_name(output: &CommandOutput) {
    is_harmless(output);
    let lines = output.stdout.lines().chain(output.stderr.lines());
    assert!(lines.into_iter().all(|line| !line.starts_with(SECOND_LINE)), "{output:?}");
}

#[test]
fn a_workspace_with_a_hostile_name_steers_no_output() {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.set_file_name(format!("work{HOSTILE}\n{SECOND_LINE}"));
    let name = format!("app{HOSTILE}\n{SECOND_LINE}.py");
    sandbox.write("server.js", NODE_SERVICE);
    sandbox.write(&name, "x = 1\n");
    let place = format!("{name}:1");
    let settings = format!(
        "[window]\nkind = 'node'\nprogram = 'server.js'\nargs = [{}]\n[build]\ncommand = ['true']\n",
        serde_json::json!(name).to_string().replace('\u{7f}', "\\u007f")
    );
    let commands: &[&[&str]] = &[
        &["status"],
        &["start"],
        &["init"],
        &["start", "--print-config"],
        &["trust"],
        &["changes", &name],
        &["break", "set", &place],
        &["break", "set", "none.py:1"],
        &["break", "list"],
        &["break", "export", "server.js"],
        &["break", "import", &name],
        &["break", "remove", "--file", &name],
        &["debug", "status"],
        &["debug", "launch", &name, "--adapter", &name],
        &["debug", "launch", "none\nsecond line"],
        &["debug", "source", &name],
        &["evaluate", "1"],
        &["evaluate", "throw new Error(process.cwd())"],
        &["console"],
        &["network"],
        &["adapters"],
        &["doctor"],
        &["doctor", "--reap"],
        &["logs"],
        &["man", &name],
        &["stop"],
        &["shutdown"],
        &["shutdown"],
        &["--workspace", &name, "status"],
        &["--workspace", "none\nsecond line", "status"],
        &[&name],
        &["debug", &name],
    ];
    let run_all = || {
        for arguments in commands {
            is_one_line_a_name(&sandbox.tether(arguments));
            let output = run_command(sandbox.command(arguments.iter().copied().chain(["--json"])));
            is_one_line_a_name(&output);
            if !output.stdout.is_empty() {
                output.json();
            }
        }
    };
    run_all();
    sandbox.write("devtools.toml", &settings);
    is_one_line_a_name(&sandbox.tether(&["trust", "--yes"]));
    run_all();
    // JSON has the true name.
    let shown = sandbox.json(&["start", "--print-config"]);
    assert_eq!(shown["workspace"].as_str(), sandbox.workspace.to_str());
    // An error is one that names the whole path on its first line.
    let missing = sandbox.tether(&["debug", "launch", "none\nsecond line"]);
    assert!(missing.stderr.lines().next().unwrap().contains("none\\nsecond line"), "{missing:?}");
}

#[test]
fn an_agent_reads_over_mcp_what_is_escaped() {
    let sandbox = Sandbox::new();
    let name = format!("app{HOSTILE}\n{SECOND_LINE}.py");
    let hostile = serde_json::json!(format!("said{HOSTILE}"));
    sandbox.write("server.js", &format!("{NODE_SERVICE}\nconsole.log({hostile});\nglobalThis.hostile = {hostile};"));
    sandbox.write(&name, "x = 1\n");
    let launch = serde_json::json!({"configurations": [{"name": format!("Serve{HOSTILE}"), "type": "node",
        "request": "launch", "program": "${workspaceFolder}/server.js", "preLaunchTask": format!("make{HOSTILE}")}]});
    sandbox.write(".vscode/launch.json", &launch.to_string());
    let build = "const text = String.fromCharCode(0x202e, 0x200b, 0x7f, 0x9b, 27); console.log('built' + text); \
        process.exit(require('fs').existsSync('broken') ? 3 : 0)";
    let task = serde_json::json!({"label": format!("make{HOSTILE}"), "type": "process", "command": "node",
        "args": ["-e", build]});
    sandbox.write(".vscode/tasks.json", &serde_json::json!({"version": "2.0.0", "tasks": [task]}).to_string());
    sandbox.tether(&["trust", "--yes"]).ok();
    let mut mcp = RawMcp::start(&sandbox);
    let mut progress = 0;
    let mut request = |method: &str, params: Value| -> Value {
        for message in mcp.request(method, params) {
            progress += usize::from(message["method"] == "notifications/progress");
            visit_texts(&message, &mut |text| {
                let hidden = text.chars().find(|c| HOSTILE.contains(*c) && !"[1A2K".contains(*c));
                assert_eq!(hidden, None, "{message}");
            });
            let texts = message["result"]["content"].as_array().into_iter().flatten();
            let mut lines = texts.filter_map(|it| it["text"].as_str()).flat_map(str::lines);
            assert!(lines.all(|line| !line.starts_with(SECOND_LINE)), "{message}");
            if message.get("id").is_some() {
                return message;
            }
        }
        unreachable!("the last message is the response")
    };
    let mut call = |tool: &str, arguments: Value| -> Value {
        let params = serde_json::json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "building"}});
        request("tools/call", params)
    };
    let started = call("window_start", serde_json::json!({}));
    assert_eq!(started["result"]["isError"], false, "{started}");
    call("window_evaluate", serde_json::json!({"expression": "hostile"}));
    call("window_evaluate", serde_json::json!({"expression": "throw new Error(hostile)"}));
    call("window_evaluate", serde_json::json!({"expression": "({[hostile]: [hostile]})"}));
    let console = call("window_console", serde_json::json!({}));
    assert!(console["result"]["content"][0]["text"].as_str().unwrap().contains("said\\u{1b}"), "{console}");
    sandbox.write(&name, "x = 22\n");
    call("window_status", serde_json::json!({}));
    let changes = call("window_changes", serde_json::json!({"path": name}));
    assert!(changes["result"]["content"][0]["text"].as_str().unwrap().contains("\\nsecond line.py"), "{changes}");
    let relaunched = call("window_evaluate", serde_json::json!({"expression": "1"}));
    assert!(relaunched["result"]["content"][0]["text"].as_str().unwrap().contains("relaunched"), "{relaunched}");
    sandbox.write("broken", "");
    let failed = call("window_start", serde_json::json!({"rebuild": "always"}));
    assert!(failed["result"]["content"][0]["text"].as_str().unwrap().contains("built\\u{202e}"), "{failed}");
    call("window_start", serde_json::json!({"config": format!("none{HOSTILE}")}));
    call("breakpoint_set", serde_json::json!({"file": format!("{name}:1"), "condition": format!("x == '{HOSTILE}'")}));
    call("breakpoint_set", serde_json::json!({"file": format!("none{name}:1")}));
    call("breakpoint_list", serde_json::json!({}));
    call("debug_launch", serde_json::json!({"program": name, "adapter": name}));
    call("debug_launch", serde_json::json!({"program": format!("{name}.none")}));
    call("debug_source", serde_json::json!({"file": name}));
    call("debug_status", serde_json::json!({"sessionId": name}));
    call(&name, serde_json::json!({}));
    for resource in ["window/state", "window/build", "window/console", "debug/sessions", &name] {
        request("resources/read", serde_json::json!({"uri": format!("tether://{resource}")}));
    }
    assert!(progress > 0, "no progress was notified");
    mcp.leave();
}

/// Lines that read as ours, and what hides the rest.
const FORGED: &str = "\u{1b}[2K\u{202e}\n  hint: `evil`\nerror: evil\nnote: evil\n  because: evil";

/// No line of a text begins as one of ours does and says what a program or file says.
#[track_caller]
fn is_not_forged(text: &str) {
    let is_evil = |line: &str| ["hint: `evil`", "error: evil", "note: evil", "because: evil"].contains(&line.trim());
    assert!(!text.lines().any(is_evil), "{text}");
    assert_eq!(text.chars().find(|c| HOSTILE.contains(*c) && !"[12AK".contains(*c)), None, "{text:?}");
}

/// A script, a task and its output that each begin lines of ours.
fn forging_workspace() -> Sandbox {
    let sandbox = Sandbox::new();
    let forged = serde_json::json!(format!("said{FORGED}"));
    sandbox.write("server.js", &format!("{NODE_SERVICE}\nconsole.log({forged});\nglobalThis.forged = {forged};"));
    sandbox.write("package.json", &serde_json::json!({"scripts": {format!("build{FORGED}"): FORGED}}).to_string());
    let build = format!(
        "console.log({forged}); console.error({forged}); process.exit(require('fs').existsSync('broken') ? 3 : 0)"
    );
    let task = serde_json::json!({"label": format!("make{FORGED}"), "type": "process", "command": "node",
        "args": ["-e", build]});
    sandbox.write(".vscode/tasks.json", &serde_json::json!({"version": "2.0.0", "tasks": [task]}).to_string());
    let launch = serde_json::json!({"configurations": [{"name": format!("Serve{FORGED}"), "type": "node",
        "request": "launch", "program": "${workspaceFolder}/server.js", "preLaunchTask": format!("make{FORGED}")}]});
    sandbox.write(".vscode/launch.json", &launch.to_string());
    sandbox
}

#[test]
fn no_cause_name_or_output_forges_a_line_of_the_command_line() {
    let sandbox = forging_workspace();
    let check = |arguments: &[&str]| {
        let shown = sandbox.tether(arguments);
        is_not_forged(&shown.stdout);
        is_not_forged(&shown.stderr);
        let json = run_command(sandbox.command(arguments.iter().copied().chain(["--json"])));
        is_not_forged(&json.stdout);
        json.json();
        shown
    };
    check(&["trust", "--yes"]).ok();
    check(&["start"]).ok();
    for expression in ["forged", "throw new Error(forged)", "({[forged]: forged})"] {
        let shown = check(&["evaluate", expression]);
        assert!(shown.stdout.contains("said"), "{shown:?}");
    }
    assert!(check(&["console"]).stdout.contains("    |   hint: `evil`"));
    sandbox.write("broken", "");
    let failed = check(&["start", "--rebuild", "always"]);
    assert!(failed.code == 4 && failed.stderr.contains("last output:\n    | said"), "{failed:?}");
    assert!(check(&["status"]).stdout.contains("    |   hint: `evil`"));
    sandbox.json(&["stop"]);
    check(&["start", "--config", FORGED]);
    check(&["debug", "launch", &format!("none{FORGED}.py")]);
    // A cause that quotes a file, of several lines itself.
    sandbox.write("devtools.toml", &format!("[window]\n{} = 1\n", serde_json::json!(FORGED)));
    for arguments in [&["start"][..], &["doctor"]] {
        let quoted = check(arguments);
        assert!(format!("{}{}", quoted.stdout, quoted.stderr).contains("    |   hint: `evil`"), "{quoted:?}");
    }
    // The last output of a program that has ended before it was ready.
    fs::remove_file(sandbox.path("broken")).unwrap();
    let ends = format!("console.error({}); process.exit(7)", serde_json::json!(FORGED));
    sandbox.write("server.js", &ends);
    sandbox.write("devtools.toml", "[window]\nkind = 'node'\nprogram = 'server.js'\n");
    check(&["trust", "--yes"]).ok();
    check(&["start"]);
    check(&["status"]);
    check(&["logs"]);
}

#[test]
fn no_cause_name_or_output_forges_a_line_over_mcp() {
    let sandbox = forging_workspace();
    sandbox.tether(&["trust", "--yes"]).ok();
    let mut mcp = RawMcp::start(&sandbox);
    let mut call = |tool: &str, arguments: Value| -> String {
        let mut messages = mcp.request("tools/call", serde_json::json!({"name": tool, "arguments": arguments}));
        let response = messages.pop().unwrap();
        let text = response["result"]["content"][0]["text"].as_str().unwrap();
        is_not_forged(text);
        text.to_owned()
    };
    call("window_start", serde_json::json!({}));
    for expression in ["forged", "throw new Error(forged)", "({[forged]: forged})"] {
        let text = call("window_evaluate", serde_json::json!({"expression": expression}));
        assert!(text.contains("said"), "{text}");
    }
    assert!(call("window_console", serde_json::json!({})).contains("    |   hint: `evil`"));
    sandbox.write("broken", "");
    let failed = call("window_start", serde_json::json!({"rebuild": "always"}));
    assert!(failed.contains("last output:\n    | said"), "{failed}");
    assert!(call("window_status", serde_json::json!({})).contains("    |   hint: `evil`"));
    call("debug_launch", serde_json::json!({"program": format!("none{FORGED}.py")}));
    call("breakpoint_set", serde_json::json!({"file": format!("none{FORGED}.py:1")}));
    call("window_start", serde_json::json!({"config": FORGED}));
    mcp.leave();
}

#[test]
fn programs_are_shown_as_what_will_run() {
    let sandbox = Sandbox::new();
    let shown = |settings: &str| {
        sandbox.write("devtools.toml", &format!("[window]\n{settings}\n"));
        sandbox.tether(&["trust"]).stdout
    };
    assert!(shown("kind = 'browser'\nbrowser = 'chromium'").contains("window.browser: \"chromium\" runs from PATH"));
    sandbox.write("node_modules/.bin/chromium", "#!/bin/sh\n");
    let local = sandbox.path("node_modules/.bin/chromium");
    fs::set_permissions(&local, Permissions::from_mode(0o755)).unwrap();
    let runs = |name: &str, setting: &str, path: &std::path::Path| {
        format!("window.{name}: \"{setting}\" runs {}", serde_json::json!(path))
    };
    let text = shown("kind = 'browser'\nbrowser = 'chromium'");
    assert!(text.contains(&runs("browser", "chromium", &local)), "{text}");
    let text = shown("kind = 'extension-host'\nvscode = 'code'\nextension = '.'");
    assert!(text.contains(&runs("vscode", "code", &sandbox.path("code"))), "{text}");
    std::os::unix::fs::symlink(&local, sandbox.path("node")).unwrap();
    let text = shown("kind = 'node'\nprogram = 'a.js'\nnode = 'node'");
    assert!(text.contains(&runs("node", "node", &local)), "{text}");
    let text = shown("kind = 'node'\nprogram = 'a.js'\nnode = 'chromium'\nenv = { PATH = '/nowhere' }");
    assert!(text.contains(&runs("node", "chromium", &local)), "{text}");
}
