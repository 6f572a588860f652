//! Debug conversations of scripted editors with a scripted netcoredbg: `debugger/start`, and sessions that an editor is
//! requested to open.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::editor_client::{DapTalk, EditorClient};
use crate::support::{Sandbox, eventually};

/// A workspace with a built .NET project, and the scripted adapter on PATH.
struct DotnetSandbox {
    sandbox: Sandbox,
    path: String,
}

const SETTINGS: &str = r#"{"profiles": {
    "http": {"commandName": "Project", "commandLineArgs": "--urls x", "environmentVariables": {"LEVEL": "debug"}},
    "https": {"commandName": "Project"}
}}"#;

impl DotnetSandbox {
    fn new() -> DotnetSandbox {
        let sandbox = Sandbox::new();
        let frameworks = "<PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup>";
        sandbox.write("App/App.csproj", &format!("<Project Sdk=\"Microsoft.NET.Sdk\">{frameworks}</Project>"));
        sandbox.write("App/Properties/launchSettings.json", SETTINGS);
        sandbox.write("App/bin/Debug/net8.0/App.dll", "");
        let folder = sandbox.home().join("adapters");
        std::fs::create_dir(&folder).unwrap();
        let script = folder.join("netcoredbg");
        std::fs::write(&script, include_str!("../support/netcoredbg.py")).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        DotnetSandbox { sandbox, path }
    }

    fn editor(&self, initialize: Value) -> EditorClient {
        EditorClient::start_with(&self.sandbox, &[("PATH", &self.path)], initialize)
    }

    fn adapters(&self) -> usize {
        self.sandbox.processes().iter().filter(|(_, command)| command.contains("--interpreter=vscode")).count()
    }

    fn nothing_is_left(&self) {
        eventually("the adapters have exited", || (self.adapters() == 0).then_some(()));
    }

    fn log(&self) -> String {
        self.sandbox.tether(&["logs", "-n", "200"]).ok().stdout
    }
}

fn initialize_and_start(talk: &mut DapTalk, command: &str, arguments: Value) -> Value {
    talk.request("initialize", json!({"adapterID": "easy-dotnet", "clientID": "test"}));
    talk.request(command, arguments);
    serde_json::from_str(talk.event("output")["output"].as_str().unwrap()).unwrap()
}

#[test]
fn a_project_is_debugged_with_its_profile_whatever_the_form_of_the_parameters() {
    let stage = DotnetSandbox::new();
    let mut editor = stage.editor(json!({"request": {"clientInfo": {"name": "EasyDotnet", "version": "2.0.0"}}}));
    let target = json!({"targetPath": "App/App.csproj", "targetFramework": "net8.0", "configuration": "Debug", "launchProfileName": "http"});
    for params in [target.clone(), json!({"request": target}), json!([target])] {
        let started = editor.call("debugger/start", params);
        assert_eq!(started["success"], true, "{started}");
        assert_eq!(stage.adapters(), 0, "the adapter is started when the editor connects");
        let mut talk = DapTalk::connect(&started["port"]);
        let given = json!({"type": "easy-dotnet", "name": "easy-dotnet", "request": "attach", "justMyCode": false});
        let report = initialize_and_start(&mut talk, "attach", given);
        assert_eq!(report["argv"], json!(["--interpreter=vscode"]));
        assert_eq!(report["command"], "launch");
        let arguments = &report["arguments"];
        let expected = json!({"type": "coreclr", "request": "launch", "args": ["--urls", "x"], "justMyCode": false,
            "program": stage.sandbox.path("App/bin/Debug/net8.0/App.dll"), "cwd": stage.sandbox.path("App/")});
        for (name, value) in expected.as_object().unwrap() {
            let found = &arguments[name];
            let same = if name == "cwd" {
                found.as_str().unwrap().trim_end_matches('/') == value.as_str().unwrap().trim_end_matches('/')
            } else {
                found == value
            };
            assert!(same, "{name}: {found}");
        }
        assert_eq!(arguments["env"]["LEVEL"], "debug");
        assert_eq!(arguments["env"]["DOTNET_LAUNCH_PROFILE"], "http");
        assert_eq!(talk.request("threads", json!({"x": [1]}))["echo"], json!({"x": [1]}));
        talk.request("disconnect", json!({}));
        talk.wait_for_end();
        stage.nothing_is_left();
    }
    assert!(editor.leave().success());
}

#[test]
fn a_request_with_its_own_program_is_not_changed_and_an_exiting_adapter_closes_the_connection() {
    let stage = DotnetSandbox::new();
    let mut editor = stage.editor(json!({"name": "test"}));
    let started = editor.call("debugger/start", json!({"targetPath": "App/bin/Debug/net8.0/App.dll"}));
    let mut talk = DapTalk::connect(&started["port"]);
    let own = json!({"program": "/other.dll", "x": {"y": null}});
    let report = initialize_and_start(&mut talk, "launch", own.clone());
    assert_eq!(report["arguments"], own);
    talk.request("exit", json!({"code": 3}));
    talk.wait_for_end();
    stage.nothing_is_left();
    // An editor that closes its side ends the adapter.
    let started = editor.call("debugger/start", json!({"targetPath": "App/App.csproj"}));
    let mut talk = DapTalk::connect(&started["port"]);
    initialize_and_start(&mut talk, "launch", json!({}));
    assert_eq!(stage.adapters(), 1);
    drop(talk);
    stage.nothing_is_left();
}

#[test]
fn what_cannot_be_debugged_is_an_error_with_its_hint() {
    let stage = DotnetSandbox::new();
    let mut editor = stage.editor(json!({"name": "test"}));
    let mut check = |params: Value, code: i64, words: &[&str]| editor.fails("debugger/start", params, code, words);
    check(json!({}), -32602, &["nothing to debug was named", "hint: name `targetPath`"]);
    check(json!({"targetPath": 7}), -32602, &["the parameters of debugger/start are wrong"]);
    check(json!({"targetPath": "no/such.dll"}), -32602, &["cannot debug", "no/such.dll", "hint: "]);
    check(json!({"targetPath": "App/App.csproj", "configuration": "Release"}), -32001, &["not built", "`dotnet build"]);
    check(json!({"targetPath": "App/App.csproj", "targetFramework": "net9.0"}), -32602, &["are: net8.0"]);
    check(json!({"targetPath": "App/App.csproj", "launchProfileName": "x"}), -32001, &["\"x\"", "are: http, https"]);
    check(json!({"targetPath": "App/App.csproj", "adapter": "xdbg"}), -32602, &["no adapter \"xdbg\"", "hint: "]);
    check(json!({"targetPath": "Run server"}), -32001, &["\"Run server\"", "launch.json", "by its path"]);
    check(json!({"config": "Run server"}), -32001, &["\"Run server\"", "launch.json"]);
}

#[test]
fn an_editor_opens_and_ends_sessions_with_ids_of_its_own() {
    let stage = DotnetSandbox::new();
    let capabilities = json!({"startDebugSession": true, "terminateDebugSession": true});
    let mut caller = stage.editor(json!({"name": "caller"}));
    let target = json!({"targetPath": "App/App.csproj"});
    caller.fails("debugger/open", target.clone(), -32001, &["no editor is connected", "startDebugSession"]);
    let mut editor = stage.editor(json!({"name": "nvim", "capabilities": capabilities}));
    let ids = [json!(7), json!(-2.5), json!("a \"b\"")];
    let mut talks = Vec::new();
    for (index, session_id) in ids.iter().enumerate() {
        let opening = caller.send("debugger/open", target.clone());
        let asked = editor.incoming("startDebugSession");
        assert_eq!(asked["params"]["host"], "127.0.0.1");
        let mut talk = DapTalk::connect(&asked["params"]["port"]);
        initialize_and_start(&mut talk, "attach", json!({"request": "attach"}));
        // Both forms of the result are in use.
        let result = if index == 0 { session_id.clone() } else { json!({"sessionId": session_id}) };
        editor.respond(&asked, result);
        assert_eq!(caller.response(opening)["result"]["sessionId"], *session_id);
        talks.push(talk);
    }
    assert_eq!(stage.adapters(), 3);
    for (session_id, answer) in ids.iter().zip([json!(true), json!(false), Value::Null]) {
        let closing = caller.send("debugger/close", json!({"sessionId": session_id}));
        let asked = editor.incoming("terminateDebugSession");
        assert_eq!(asked["params"], json!({"sessionId": session_id}));
        if answer.is_null() {
            editor.respond_with_error(&asked, "it is gone");
        } else {
            editor.respond(&asked, answer.clone());
        }
        assert_eq!(caller.response(closing)["result"]["confirmed"], answer == true);
        talks.remove(0).wait_for_end();
        caller.fails("debugger/close", json!({"sessionId": session_id}), -32001, &["no editor has a session"]);
    }
    stage.nothing_is_left();
    let log = stage.log();
    assert!(log.contains("has not closed its session -2.5: false") && log.contains("it is gone"), "{log}");
}

/// What the client of easy-dotnet.nvim sends when it starts, and reads of the answer.
#[test]
fn the_client_of_easy_dotnet_opens_sessions_and_knows_our_methods() {
    let stage = DotnetSandbox::new();
    let mut editor = EditorClient::spawn(&stage.sandbox, &[("PATH", &stage.path)]);
    let result = editor.call(
        "initialize",
        json!({"request": {
            "clientInfo": {"name": "EasyDotnet", "version": "3.0.0", "pid": 7},
            "projectInfo": {"rootDir": stage.sandbox.path(""), "solutionFile": null},
            "options": {"useVisualStudio": false, "debuggerOptions": {"memCpuUsage": true}},
        }}),
    );
    assert_eq!(result["serverInfo"]["name"], "devtether", "{result}");
    assert!(result["serverInfo"]["version"].is_string(), "{result}");
    for method in ["initialize", "debugger/start", "debugger/open", "debug/launch"] {
        assert!(result["capabilities"]["routes"].as_array().unwrap().contains(&json!(method)), "{method}: {result}");
    }
    let mut caller = stage.editor(json!({"name": "caller"}));
    let opening = caller.send("debugger/open", json!({"targetPath": "App/App.csproj"}));
    let asked = editor.incoming("startDebugSession");
    let mut talk = DapTalk::connect(&asked["params"]["port"]);
    initialize_and_start(&mut talk, "attach", json!({"request": "attach"}));
    editor.respond(&asked, json!(1));
    assert_eq!(caller.response(opening)["result"]["sessionId"], 1);
    let closing = caller.send("debugger/close", json!({"sessionId": 1}));
    let asked = editor.incoming("terminateDebugSession");
    editor.respond(&asked, json!(true));
    assert_eq!(caller.response(closing)["result"]["confirmed"], true);
    talk.wait_for_end();
    stage.nothing_is_left();
}

#[test]
fn a_late_answer_closes_the_relay_and_an_editor_that_dies_is_forgotten() {
    let stage = DotnetSandbox::new();
    let mut caller = stage.editor(json!({"name": "caller"}));
    let mut editor = stage.editor(json!({"name": "nvim", "capabilities": {"startDebugSession": true}}));
    let target = json!({"targetPath": "App/App.csproj"});
    let open = |editor: &mut EditorClient, caller: &mut EditorClient, answer: Value| {
        let opening = caller.send("debugger/open", target.clone());
        let asked = editor.incoming("startDebugSession");
        let mut talk = DapTalk::connect(&asked["params"]["port"]);
        initialize_and_start(&mut talk, "attach", json!({}));
        editor.respond(&asked, answer);
        (caller.response(opening), talk)
    };
    // No id: the relay is closed.
    let (response, talk) = open(&mut editor, &mut caller, json!({"ok": true}));
    assert!(response["error"]["message"].as_str().unwrap().contains("not the id of a session"), "{response}");
    talk.wait_for_end();
    // No answer to the end: the relay is closed at the deadline.
    let (response, talk) = open(&mut editor, &mut caller, json!(1));
    assert_eq!(response["result"]["sessionId"], 1);
    let closing = caller.send("debugger/close", json!({"sessionId": 1}));
    let late = editor.incoming("terminateDebugSession");
    assert_eq!(caller.response(closing)["result"]["confirmed"], false);
    talk.wait_for_end();
    editor.respond(&late, json!(true));
    // The editor ends the session itself: it is forgotten.
    let (_, mut talk) = open(&mut editor, &mut caller, json!(2));
    talk.request("disconnect", json!({}));
    talk.wait_for_end();
    eventually("the session is forgotten", || {
        let id = caller.send("debugger/close", json!({"sessionId": 2}));
        let response = caller.response(id);
        response["error"]["message"].as_str().is_some_and(|it| it.contains("no editor has a session")).then_some(())
    });
    let (response, talk) = open(&mut editor, &mut caller, json!("dies"));
    assert_eq!(response["result"]["sessionId"], "dies");
    editor.die();
    eventually("its session is forgotten", || {
        let id = caller.send("debugger/close", json!({"sessionId": "dies"}));
        let response = caller.response(id);
        response["error"]["message"].as_str().is_some_and(|it| it.contains("no editor has a session")).then_some(())
    });
    drop(talk);
    stage.nothing_is_left();
}
