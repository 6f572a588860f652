//! What each kind of configuration becomes, as tables.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::config::jsonc::JsonDocument;
use crate::config::vscode::attribute_use::AttributeUse;
use crate::config::vscode::launch_json::LaunchEntry;

fn derive(configuration: &str) -> Result<(DerivedWindow, String)> {
    let folder = sample_folder();
    let derived = derive_in(folder.path(), configuration)?;
    Ok((derived, folder.path().to_str().unwrap().to_owned()))
}

fn sample_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(".env"), "# ours\nexport A=1\nB = \"two words\"\nnothing\nC=\n").unwrap();
    std::fs::create_dir(folder.path().join("fixture")).unwrap();
    folder
}

fn derive_in(folder: &Path, configuration: &str) -> Result<DerivedWindow> {
    let file = folder.join(".vscode/launch.json");
    let document = JsonDocument::parse(&file, configuration).unwrap();
    let debugger = match document.root.text_of("type") {
        Some("extensionHost") => WindowDebugger::ExtensionHost,
        Some("chrome" | "msedge") => WindowDebugger::Browser,
        _ => WindowDebugger::Node,
    };
    let name = document.root.text_of("name").unwrap_or("it").to_owned();
    let configuration =
        WindowConfiguration { entry: LaunchEntry { name, node: document.root, file, verb: "launch" }, debugger };
    derive_window(&configuration, &VariableContext::new(folder))
}

/// The settings that `configuration` becomes, as `expect` writes them; and how many notes there are.
#[track_caller]
fn check(configuration: &str, expect: &str, notes: usize) {
    let (derived, workspace) = derive(configuration).unwrap_or_else(|error| panic!("{configuration}: {error}"));
    let mut expect: WindowSettings = toml::from_str(&expect.replace("<ws>", &workspace)).unwrap();
    expect.derived = true;
    assert_eq!(derived.window, expect, "{configuration}");
    assert_eq!(derived.notes.len(), notes, "{:?}", derived.notes);
}

#[track_caller]
fn refuses(configuration: &str, parts: &[&str]) {
    let actual = derive(configuration).unwrap_err().to_string();
    for part in parts {
        assert!(actual.contains(part), "{part:?} is not in {actual}");
    }
}

#[test]
fn an_extension_host_takes_its_extensions_its_folder_and_its_flags() {
    check(
        r#"{"type": "extensionHost", "runtimeExecutable": "${execPath}", "outFiles": ["${workspaceFolder}/out/**/*.js"],
            "args": ["--extensionDevelopmentPath=${workspaceFolder}"], "presentation": {"hidden": true}}"#,
        "kind = 'extension-host'\nextension = '<ws>'",
        0,
    );
    check(
        r#"{"type": "extensionHost", "args": ["--extensionDevelopmentPath", "${workspaceFolder}/a",
            "--extensionDevelopmentPath=b", "--disable-extensions", "${workspaceFolder}/fixture", "--profile=x"]}"#,
        "kind = 'extension-host'\nextension = '<ws>/a'\nmoreExtensions = ['<ws>/b']\nfolder = '<ws>/fixture'\nargs = ['--disable-extensions']",
        1,
    );
    check(
        r#"{"type": "extensionHost", "args": ["--folder-uri=file:///a%20b", "--extensionDevelopmentPath=."], "foo": 1}"#,
        "kind = 'extension-host'\nextension = '<ws>/.'\nfolder = '/a b'",
        1,
    );
    check(
        r#"{"type": "extensionHost", "args": ["--extensionDevelopmentPath=.", "--enable-proposed-api", "me.ext",
            "--disable-extension", "x.y", "--locale", "de", "--profile", "z", "--log=trace", "${workspaceFolder}/fixture"]}"#,
        "kind = 'extension-host'\nextension = '<ws>/.'\nfolder = '<ws>/fixture'\n\
         args = ['--enable-proposed-api', 'me.ext', '--disable-extension', 'x.y', '--locale', 'de', '--log=trace']",
        1,
    );
    // Without a flag before it, it is a folder that is missing, which whoever opens it says.
    check(
        r#"{"type": "extensionHost", "args": ["--extensionDevelopmentPath", ".", "none"]}"#,
        "kind = 'extension-host'\nextension = '<ws>/.'\nfolder = '<ws>/none'",
        0,
    );
    refuses(r#"{"type": "extensionHost"}"#, &["launch.json:1", "no `--extensionDevelopmentPath=…`"]);
    // Of a web extension only the debugging is not honoured.
    check(
        r#"{"type": "extensionHost", "debugWebWorkerHost": true,
            "args": ["--extensionDevelopmentPath=.", "--extensionDevelopmentKind=web"]}"#,
        "kind = 'extension-host'\nextension = '<ws>/.'\nargs = ['--extensionDevelopmentKind=web']",
        1,
    );
    refuses(
        "{\"name\": \"Run\", \"type\": \"extensionHost\",\n \"args\":\n [\"${input:x}\"]}",
        &["the configuration \"Run\"", "launch.json:3", "`args`", "`${input:x}`"],
    );
    refuses(r#"{"type": "extensionHost", "args": ["--folder-uri=vscode-remote://x/y"]}"#, &["another machine"]);
    refuses(r#"{"type": "extensionHost", "args": "x"}"#, &["`args` (line 1) is not a list of texts"]);
}

#[test]
fn a_browser_takes_its_page_and_its_flags() {
    check(
        r#"{"type": "chrome", "url": "http://localhost:${env:PORT}", "webRoot": "${workspaceFolder}", "runtimeArgs": ["--kiosk"],
            "runtimeExecutable": "stable", "userDataDir": "${workspaceFolder}/.profile"}"#,
        "kind = 'browser'\nurl = 'http://localhost:${env:PORT}'\nargs = ['--kiosk']\nprofile = '<ws>/.profile'",
        0,
    );
    check(r#"{"type": "msedge", "file": "/a b/x.html"}"#, "kind = 'browser'\nurl = 'file:///a%20b/x.html'", 1);
    check(
        r#"{"type": "chrome", "url": "about:blank", "runtimeExecutable": "/opt/chrome", "userDataDir": false}"#,
        "kind = 'browser'\nurl = 'about:blank'\nbrowser = '/opt/chrome'",
        1,
    );
    refuses(r#"{"type": "chrome"}"#, &["neither a `url` nor a `file`"]);
}

#[test]
fn a_node_takes_its_script_its_arguments_and_its_environment() {
    check(
        r#"{"type": "node", "program": "${workspaceFolder}/server.js", "args": ["--port", "${env:PORT}"], "cwd": "${workspaceFolder}/app",
            "runtimeExecutable": "node", "runtimeArgs": ["--inspect-brk", "--enable-source-maps"], "envFile": "${workspaceFolder}/.env",
            "env": {"B": "mine", "D": 4}}"#,
        "kind = 'node'\nprogram = '<ws>/server.js'\nargs = ['--port', '${env:PORT}']\ncwd = '<ws>/app'\n\
         runtimeArgs = ['--enable-source-maps']\nenv = { A = '1', B = 'mine', C = '', D = '4' }",
        0,
    );
    check(
        r#"{"type": "node", "program": "a.ts", "runtimeExecutable": "tsx", "serverReadyAction": {}, "postDebugTask": "x"}"#,
        "kind = 'node'\nprogram = '<ws>/a.ts'\nnode = 'tsx'",
        2,
    );
    refuses(r#"{"type": "node", "runtimeExecutable": "npm", "runtimeArgs": ["start"]}"#, &["it has no `program`"]);
    refuses(r#"{"type": "node", "program": "a", "envFile": "none"}"#, &["there is no `envFile`"]);
}

#[test]
fn each_value_knows_its_line() {
    let (derived, _) = derive("{\"type\": \"node\",\n \"program\": \"a.js\",\n \"args\": [\n  \"x\"] }").unwrap();
    let actual: Vec<String> = derived.origins.iter().map(|(name, origin)| format!("{name} {origin}")).collect();
    assert_eq!(actual, ["args .vscode/launch.json:4", "kind .vscode/launch.json:1", "program .vscode/launch.json:2"]);
}

/// The documented attributes of a type in a `launch`.
fn documented(kind: &str) -> Vec<String> {
    let table: toml::Table = include_str!("../documented_attributes.toml").parse().unwrap();
    let is_meant = |one: &&toml::Value| [kind, "*"].contains(&one["type"].as_str().unwrap());
    let types = table["type"].as_array().unwrap().iter().filter(is_meant);
    types.flat_map(|one| one["launch"].as_str().unwrap().split_whitespace().map(str::to_owned)).collect()
}

#[test]
fn every_documented_attribute_has_the_effect_that_its_table_says() {
    let folder = sample_folder();
    let with = |base: &Value, name: &str, value: Value| {
        let mut all = base.clone();
        all[name] = value;
        derive_in(folder.path(), &all.to_string())
    };
    let is_basic = |name: &str| ["name", "type", "request", "linux"].contains(&name);
    for (kind, base) in [
        ("extensionHost", json!({"type": "extensionHost", "args": ["--extensionDevelopmentPath=."]})),
        ("chrome", json!({"type": "chrome", "url": "http://x/"})),
        ("node", json!({"type": "node", "program": "a.js"})),
    ] {
        let reader = AttributeReader { name: WINDOW, kind, request: "launch" };
        for name in documented(kind).iter().filter(|name| !is_basic(name)) {
            let mut base = base.clone();
            let value = match &**name {
                "args" if kind == "extensionHost" => json!(["--extensionDevelopmentPath=sub"]),
                "args" | "runtimeArgs" | "outFiles" => json!(["--other"]),
                "env" => json!({"A": "1"}),
                "envFile" => json!(".env"),
                "file" => {
                    base.as_object_mut().unwrap().remove("url");
                    json!("/other.html")
                }
                _ => json!("other"),
            };
            let plain = format!("{:?}", derive_in(folder.path(), &base.to_string()));
            let derived = with(&base, name, value);
            let shown = format!("{derived:?}");
            let notes = derived.as_ref().map(|it| it.notes.join("\n")).unwrap_or_default();
            let place = format!("{kind}: {name}: {shown}");
            match reader.use_of(name) {
                AttributeUse::Honoured => assert!(plain != shown && !notes.contains(&format!("`{name}`")), "{place}"),
                AttributeUse::NoEffect(_) => assert_eq!(plain, shown, "{place}"),
                AttributeUse::Noted(why) => {
                    assert!(notes.contains(&format!("`{name}` is not honoured: {why}")), "{place}")
                }
                AttributeUse::Refused(why) => {
                    let error = derived.unwrap_err().to_string();
                    assert!(error.contains(&format!("`{name}` is not supported: {why}")), "{place}");
                }
                AttributeUse::Passed | AttributeUse::Unknown => panic!("{place} has no use"),
            }
        }
    }
}
