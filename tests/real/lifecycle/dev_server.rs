//! A dev server that is the background `preLaunchTask` of a `chrome` configuration, and the page that it serves.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::json;

use crate::support::requirements::has_code_server;
use crate::support::{Sandbox, is_alive, kill, wait_for_end};

/// Serves the workspace's page, and its own PID.
const DEV_SERVER: &str = r#"
const fs = require("fs");
const server = require("http").createServer((request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(request.url === "/pid" ? `${process.pid}` : fs.readFileSync("page.html"));
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log("ready in 12 ms"));
"#;

#[test]
fn a_dev_server_runs_as_long_as_the_page_that_it_serves() {
    // Free a moment ago: a configuration names its port.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let sandbox = Sandbox::new();
    let configuration = json!({"name": "Page", "type": "chrome", "request": "launch", "url": format!("http://127.0.0.1:{port}/"), "preLaunchTask": "dev"});
    let task = json!({
        "label": "dev", "type": "process", "command": "node", "args": ["dev.js", port.to_string()], "isBackground": true,
        "problemMatcher": {"background": {"activeOnStart": true, "beginsPattern": ".", "endsPattern": "ready in"}},
    });
    sandbox.write(".vscode/launch.json", &json!({"configurations": [configuration]}).to_string());
    sandbox.write(".vscode/tasks.json", &json!({"tasks": [task]}).to_string());
    sandbox.write("dev.js", DEV_SERVER);
    sandbox.write("page.html", "<title>one</title>");
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    sandbox.arrived();
    let value = |expression: &str| sandbox.json(&["evaluate", expression])["value"].clone();
    assert_eq!(value("document.title"), "one");
    let server_pid = || value("fetch('/pid').then(it => it.text())").as_str().unwrap().parse::<u32>().unwrap();
    let server = server_pid();
    // The window is relaunched; the server runs on.
    sandbox.write("page.html", "<title>two</title>");
    assert!(sandbox.json(&["evaluate", "document.title"])["refreshed"].is_object());
    sandbox.arrived();
    assert_eq!((value("document.title"), server_pid()), (json!("two"), server));
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    assert_eq!((value("document.title"), server_pid()), (json!("two"), server));
    assert!(is_alive(server));
    sandbox.json(&["stop"]);
    wait_for_end(server);
}

#[test]
fn the_watcher_of_an_extension_host_is_ended_after_its_first_cycle() {
    if !has_code_server() {
        return;
    }
    let sandbox = Sandbox::new();
    let launch = json!({"name": "Run", "type": "extensionHost", "request": "launch", "args": ["--extensionDevelopmentPath=${workspaceFolder}"], "preLaunchTask": "watch"});
    let task = json!({
        "label": "watch", "type": "shell", "command": "mkdir -p node_modules; echo $$ > node_modules/watcher; echo ready; exec sleep 1000",
        "isBackground": true,
        "problemMatcher": {"background": {"activeOnStart": true, "beginsPattern": ".", "endsPattern": "^ready$"}},
    });
    let manifest =
        json!({"name": "probe", "publisher": "devtether", "version": "0.0.1", "engines": {"vscode": "^1.90.0"}});
    sandbox.write("package.json", &manifest.to_string());
    sandbox.write("devtools.toml", "[window]\nkind = 'web-extension-host'\n");
    sandbox.write(".vscode/launch.json", &json!({"configurations": [launch]}).to_string());
    sandbox.write(".vscode/tasks.json", &json!({"tasks": [task]}).to_string());
    sandbox.tether(&["trust", "--yes"]).ok();
    let started = sandbox.json(&["start"]);
    assert!(started["pid"].is_u64(), "{started}");
    let watcher = std::fs::read_to_string(sandbox.path("node_modules/watcher")).unwrap();
    assert!(!is_alive(watcher.trim().parse().unwrap()), "tether builds; two writers of one folder would race");
}

#[test]
fn a_page_that_does_not_load_is_no_ready_window() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    drop(server);
    let sandbox = Sandbox::new();
    let configure = |url: &str| {
        sandbox.write("devtools.toml", &format!("[window]\nkind = 'browser'\nurl = '{url}'\n"));
        sandbox.tether(&["trust", "--yes"]).ok();
    };
    let url = format!("http://127.0.0.1:{port}/");
    configure(&url);
    let refused =
        [&format!("cannot load {url} in the window"), "because: ERR_CONNECTION_REFUSED", "hint: start what serves it"];
    sandbox.tether(&["start"]).fails(1, &refused);
    assert_eq!(sandbox.status()["state"], "absent");
    configure("file:///no/such/page.html");
    sandbox.tether(&["start"]).fails(1, &["ERR_FILE_NOT_FOUND"]);
    // One that is there, and has no title.
    sandbox.write("page.html", "<p>here");
    configure(&format!("file://{}/page.html", sandbox.workspace.display().to_string().replace(' ', "%20")));
    sandbox.json(&["start"]);
    assert_eq!(sandbox.arrived()["state"], "ready");
}
