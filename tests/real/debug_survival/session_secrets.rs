//! Values of a debug session's environment are in no answer, log, stored session or resource.

use std::path::Path;

use rmcp::model::ReadResourceRequestParams;

use crate::debug_survival::surviving_debuggees::{found, stop};
use crate::support::mcp_client::McpClient;
use crate::support::{CommandOutput, Sandbox, run_command};

const SECRETS: [&str; 4] = ["s3cret-of-the-file", "s3cret-of-launch", "s3cret-of-the-caller", "s3cret-of-the-user"];
const PYTHON: &str = "import time\nwhile True:\n    time.sleep(0.01)  # STOP\n";
const NODE: &str = "setInterval(() => {\n  Math.sqrt(2); // STOP\n}, 10);\n";
const LAUNCH: &str = r#"{ "configurations": [{ "name": "Serve", "type": "node", "request": "launch",
    "program": "${workspaceFolder}/app.js", "envFile": "${workspaceFolder}/.secrets",
    "env": { "LAUNCH": "s3cret-of-launch", "USERS": "${env:USERS_TOKEN}" } }] }"#;

/// Asserts that no secret is in a text.
fn is_free_of_secrets(what: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} is in {what}: {text}");
    }
}

fn files_are_free_of_secrets(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            files_are_free_of_secrets(&path);
        } else if kind.is_file() {
            let text = std::fs::read(&path).unwrap();
            is_free_of_secrets(&path.display().to_string(), &String::from_utf8_lossy(&text));
        }
    }
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let mut command = sandbox.command(arguments);
    command.env("USERS_TOKEN", "s3cret-of-the-user");
    let output = run_command(command);
    is_free_of_secrets(&arguments.join(" "), &format!("{}{}", output.stdout, output.stderr));
    output
}

/// All answers and files about the sessions, as they are now.
async fn everything_is_free_of_secrets(sandbox: &Sandbox) {
    for session in ["d1", "d2"] {
        for operation in ["output", "events"] {
            run(sandbox, &["debug", operation, "--session", session, "--json"]).ok();
        }
        run(sandbox, &["debug", "status", session, "--json"]).ok();
    }
    for arguments in [&["debug", "status"][..], &["status", "--json"], &["doctor"], &["logs"]] {
        run(sandbox, arguments);
    }
    for folder in ["state", "config", "run", "work space/.devtools"] {
        files_are_free_of_secrets(&sandbox.home().join(folder));
    }
    let client = McpClient::start(sandbox).await;
    for resource in client.service().list_all_resources().await.unwrap() {
        let read = client.service().read_resource(ReadResourceRequestParams::new(&*resource.uri)).await.unwrap();
        is_free_of_secrets(&resource.uri, &serde_json::to_string(&read).unwrap());
    }
    client.leave().await;
}

#[tokio::test]
async fn n6_values_of_a_debug_sessions_environment_appear_nowhere() {
    if found("debugpy").is_none() || found("js-debug").is_none() {
        return;
    }
    let files = [("app.py", PYTHON), ("app.js", NODE), (".secrets", "FILE=s3cret-of-the-file\n")];
    let sandbox = Sandbox::with(&files);
    let sandbox = &sandbox;
    sandbox.write(".vscode/launch.json", LAUNCH);
    run(sandbox, &["trust", "--yes", "--config", "Serve"]).ok();
    for at in [stop("app.py", PYTHON), stop("app.js", NODE)] {
        run(sandbox, &["break", "set", &at]).ok();
    }
    run(sandbox, &["debug", "launch", "--config", "Serve", "--wait", "60", "--json"]).ok();
    let mut launch = sandbox.command(["debug", "launch", "app.py", "--env", "GIVEN=s3cret-of-the-caller"]);
    let launched = run_command({
        launch.args(["--wait", "60", "--json"]);
        launch
    });
    is_free_of_secrets("the launch", &format!("{launched:?}"));
    assert_eq!(launched.ok().json()["stopped"], true);
    // The programs have them.
    for (session, expression, value) in [
        (
            "d1",
            "process.env.FILE + process.env.LAUNCH + process.env.USERS",
            [SECRETS[0], SECRETS[1], SECRETS[3]].concat(),
        ),
        ("d2", "__import__('os').environ['GIVEN']", SECRETS[2].to_owned()),
    ] {
        let evaluated = sandbox.json(&["debug", "evaluate", "--session", session, expression]);
        assert!(evaluated["result"].as_str().unwrap().contains(&value), "{evaluated}");
    }
    everything_is_free_of_secrets(sandbox).await;
    // The next supervisor finds them in their hosts, which have the values.
    sandbox.kill_supervisor();
    for session in ["d1", "d2"] {
        assert_eq!(sandbox.json(&["debug", "status", session])["state"], "STOPPED");
    }
    everything_is_free_of_secrets(sandbox).await;
    // Without the hosts they are lost, and cannot be launched again without these values.
    sandbox.kill_supervisor();
    sandbox.kill_session_hosts();
    for (session, names) in [("d1", "FILE, LAUNCH, USERS"), ("d2", "GIVEN")] {
        assert_eq!(sandbox.json(&["debug", "status", session])["state"], "DISCONNECTED");
        let refused = run(sandbox, &["debug", "launch", "--restart", session]);
        refused.fails(2, &[&format!("cannot restart {session}"), names, "tether debug launch"]);
    }
    everything_is_free_of_secrets(sandbox).await;
}
