//! Web projects without configuration: the dev server is started, its page shown, and its updates of the page followed.

use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::requirements::{has_program, installed_tool};
use crate::support::{Sandbox, eventually, is_alive, wait_for_end};

const PAGE: &str = "<!doctype html><html><head><title>Site</title></head>\
    <body><div id=app></div><script type=module src=/src/main.js></script></body></html>";
const SCRIPT: &str =
    "import './style.css';\nconst VERSION = 'one';\ndocument.querySelector('#app').textContent = VERSION;\n";
const STYLE: &str = "body { color: rgb(1, 2, 3); }\n";

/// What `npm create vite` makes of a project without a framework. `None`, reported, when Vite is not installed.
pub fn vite_project(dev: &str) -> Option<Sandbox> {
    let installed = has_program("chromium").then(|| installed_tool("vite/node_modules")).flatten()?;
    let package = json!({
        "name": "site", "private": true, "version": "0.0.0", "type": "module",
        "scripts": {"dev": dev, "build": "vite build", "preview": "vite preview"}, "devDependencies": {"vite": "^7.0.0"},
    });
    let sandbox = Sandbox::with(&[("package.json", &package.to_string()), ("index.html", PAGE)]);
    sandbox.write("src/main.js", SCRIPT);
    sandbox.write("src/style.css", STYLE);
    sandbox.write(".gitignore", "node_modules\ndist\n");
    link_modules(&installed, &sandbox.path("node_modules"));
    Some(sandbox)
}

/// Vite keeps a cache in `node_modules`: each project has a folder of its own with links to the packages.
fn link_modules(installed: &Path, into: &Path) {
    std::fs::create_dir(into).unwrap();
    for entry in std::fs::read_dir(installed).unwrap() {
        let entry = entry.unwrap();
        std::os::unix::fs::symlink(entry.path(), into.join(entry.file_name())).unwrap();
    }
}

/// Replaces a file at once: Vite may read one that is empty for a moment, and not see that it is written right after.
pub fn save(sandbox: &Sandbox, file: &str, content: &str) {
    // An ignored folder.
    sandbox.write("dist/new", content);
    std::fs::rename(sandbox.path("dist/new"), sandbox.path(file)).unwrap();
}

fn evaluate(sandbox: &Sandbox, expression: &str) -> Value {
    sandbox.json(&["evaluate", expression])
}

fn server_of(sandbox: &Sandbox) -> u32 {
    let is_server = |(_, line): &&(u32, String)| line.contains("node_modules/.bin/vite");
    sandbox.processes().iter().find(is_server).unwrap_or_else(|| panic!("{:?}", sandbox.processes())).0
}

#[test]
fn a_vite_project_needs_no_configuration_and_is_updated_by_its_server() {
    let Some(sandbox) = vite_project("vite --host 127.0.0.1") else { return };
    sandbox.tether(&["trust", "--yes"]).ok();
    let started = sandbox.json(&["start"]);
    assert_eq!(started["state"], "ready", "{started:#}");
    let text = "document.querySelector('#app').textContent";
    assert_eq!(evaluate(&sandbox, text)["value"], "one");
    let server = server_of(&sandbox);
    let pid = sandbox.status()["pid"].clone();
    // The requests of the launch are recorded, from the first one on.
    let first = eventually("the document has ended", || {
        let requests = sandbox.json(&["network", "--limit", "500"]);
        requests["entries"].as_array().unwrap().iter().find(|it| it["type"] == "Document").cloned()
    });
    assert_eq!((&first["status"], &first["method"]), (&json!(200), &json!("GET")), "{first:#}");

    let changed = |file: &str, content: String, expression: &str| {
        save(&sandbox, file, &content);
        let answer = evaluate(&sandbox, expression);
        assert!(answer["refreshed"].is_null(), "{answer:#}");
        (answer["value"].clone(), answer["notes"].to_string())
    };
    let color = "getComputedStyle(document.body).color";
    let (value, notes) = changed("src/style.css", STYLE.replace('3', "4"), color);
    assert_eq!(value, "rgb(1, 2, 4)", "{notes}");
    assert!(notes.contains("src/style.css was modified: the dev server updated the page in place"), "{notes}");
    let (value, notes) = changed("src/main.js", SCRIPT.replace("one", "two"), text);
    assert_eq!(value, "two", "{notes}");
    assert!(notes.contains("src/main.js was modified: the dev server reloaded the page"), "{notes}");
    let (value, notes) = changed("src/main.js", SCRIPT.replace("style", "missing"), text);
    assert!(notes.contains("the dev server reports an error"), "{value} {notes}");
    let status_notes = || sandbox.status()["notes"].to_string();
    assert!(status_notes().contains("the dev server reports an error"), "{}", status_notes());
    let (value, notes) = changed("src/main.js", SCRIPT.replace("one", "four"), text);
    assert_eq!(value, "four", "{notes}");
    assert!(!status_notes().contains("the dev server reports an error"), "{}", status_notes());
    assert_eq!(sandbox.status()["stale"], false);
    assert_eq!((sandbox.status()["pid"].clone(), server_of(&sandbox)), (pid, server), "window and server stay");
    sandbox.json(&["stop"]);
    wait_for_end(server);
}

#[test]
fn a_hot_update_that_throws_is_told_with_its_error() {
    let Some(sandbox) = vite_project("vite --host 127.0.0.1") else { return };
    sandbox
        .write("src/part.js", "document.body.dataset.part = 'one';\nif (import.meta.hot) import.meta.hot.accept();\n");
    sandbox.write("src/main.js", &format!("import './part.js';\n{SCRIPT}"));
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    assert_eq!(evaluate(&sandbox, "document.body.dataset.part")["value"], "one");
    save(&sandbox, "src/part.js", "import.meta.hot.accept();\nthrow new Error('not this time');\n");
    let answer = evaluate(&sandbox, "document.body.dataset.part");
    let notes = answer["notes"].to_string();
    assert!(notes.contains("new error") && notes.contains("not this time"), "{answer:#}");
    assert!(!notes.contains("and it stays"), "{answer:#}");
    sandbox.json(&["stop"]);
}

#[test]
fn a_dev_server_of_a_launch_configuration_needs_no_problem_matcher() {
    // Free a moment ago: a configuration names its port.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let Some(sandbox) = vite_project(&format!("vite --host 127.0.0.1 --strictPort --port {port}")) else { return };
    let configuration = json!({
        "name": "Page", "type": "chrome", "request": "launch", "url": format!("http://127.0.0.1:{port}/"), "preLaunchTask": "dev",
    });
    let task = json!({"label": "dev", "type": "npm", "script": "dev", "isBackground": true, "problemMatcher": []});
    sandbox.write(".vscode/launch.json", &json!({"configurations": [configuration]}).to_string());
    sandbox.write(".vscode/tasks.json", &json!({"tasks": [task]}).to_string());
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.json(&["start"]);
    assert_eq!(evaluate(&sandbox, "location.port")["value"], port.to_string());
    save(&sandbox, "src/main.js", &SCRIPT.replace("one", "two"));
    let answer = evaluate(&sandbox, "document.querySelector('#app').textContent");
    assert_eq!((&answer["value"], answer["refreshed"].is_null()), (&json!("two"), true), "{answer:#}");
    let server = server_of(&sandbox);
    sandbox.json(&["stop"]);
    wait_for_end(server);
}

#[test]
fn init_writes_the_dev_server_and_a_broken_one_is_an_error() {
    let Some(sandbox) = vite_project("vite --no-such-option") else { return };
    sandbox.tether(&["init"]).ok();
    let written = std::fs::read_to_string(sandbox.path("devtools.toml")).unwrap();
    assert!(written.contains("# command = [\"npm\", \"run\", \"dev\"]"), "{written}");
    sandbox.tether(&["trust", "--yes"]).ok();
    sandbox.tether(&["start"]).fails(4, &["npm run dev", "ended before it served a page", "no-such-option"]);
    // The command that is set runs instead.
    sandbox.write("devtools.toml", "[server]\ncommand = ['npx', 'vite', '--host', '127.0.0.1']\n");
    sandbox.tether(&["trust", "--yes"]).ok();
    let started = sandbox.json(&["start"]);
    assert_eq!(started["state"], "ready", "{started:#}");
    assert_eq!(evaluate(&sandbox, "document.title")["value"], "Site");
    let server = server_of(&sandbox);
    assert!(is_alive(server));
    sandbox.json(&["stop"]);
    wait_for_end(server);
}
