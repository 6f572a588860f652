//! The children of a program that are not debugged: a breakpoint in the file of one names the process, its command, and why.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::scenario_sandbox::{ScenarioSandbox, found};

// On a busy machine, one that ends after some milliseconds may not be seen.
const PYTHON_CHILD: &str = "total = 1\nprint('child', total)\nimport time\ntime.sleep(0.3)\n";
const NODE_CHILD: &str = "const total = 1;\nconsole.log('child', total);\nsetTimeout(() => {}, 300);\n";
const JAVA_CHILD: &str = "\
public class Child {
  public static void main(String[] arguments) {
    System.out.println(\"child\");
  }
}
";

/// A program that starts a child, in whose file a breakpoint is on a line that runs.
struct Case {
    adapter: &'static str,
    file: &'static str,
    text: &'static str,
    child: (&'static str, &'static str, u32),
    /// More of its configuration.
    more: fn() -> Value,
    /// What is said of the child: why it was not debugged, and its command.
    said: (&'static str, &'static str),
}

const CASES: &[Case] = &[
    Case {
        adapter: "debugpy",
        file: "app.py",
        text: "import subprocess\nsubprocess.run(['sh', '-c', 'env -i python3 child.py'], check=True)\n",
        child: ("child.py", PYTHON_CHILD, 2),
        more: || json!({}),
        said: ("it was started without the program's environment", "python3 child.py"),
    },
    Case {
        adapter: "debugpy",
        file: "app.py",
        text: "import subprocess\nsubprocess.run(['node', 'child.js'], check=True)\n",
        child: ("child.js", NODE_CHILD, 2),
        more: || json!({}),
        said: ("debugpy debugs no javascript", "node child.js"),
    },
    Case {
        adapter: "debugpy",
        file: "app.py",
        text: "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)\n",
        child: ("child.py", PYTHON_CHILD, 2),
        more: || json!({"subProcess": false}),
        said: ("`subProcess` is false", "child.py"),
    },
    Case {
        adapter: "node",
        file: "app.js",
        text: "require('child_process').execFileSync('python3', ['child.py']);\n",
        child: ("child.py", PYTHON_CHILD, 2),
        more: || json!({}),
        said: ("node debugs no python", "child.py"),
    },
    Case {
        adapter: "node",
        file: "app.js",
        text: "require('child_process').execFileSync('node', ['child.js']);\n",
        child: ("child.js", NODE_CHILD, 2),
        more: || json!({"autoAttachChildProcesses": false}),
        said: ("`autoAttachChildProcesses` is false", "node child.js"),
    },
    Case {
        adapter: "node",
        file: "app.js",
        text: "require('child_process').execFileSync('env', ['-i', 'node', 'child.js']);\n",
        child: ("child.js", NODE_CHILD, 2),
        more: || json!({}),
        said: ("it was started without the program's environment", "node child.js"),
    },
    Case {
        adapter: "js-debug",
        file: "app.js",
        text: "require('child_process').execFileSync('node', ['child.js']);\n",
        child: ("child.js", NODE_CHILD, 2),
        more: || json!({"autoAttachChildProcesses": false}),
        said: ("`autoAttachChildProcesses` is false", "node child.js"),
    },
    Case {
        adapter: "java",
        file: "App.java",
        text: "\
public class App {
  public static void main(String[] arguments) throws Exception {
    new ProcessBuilder(\"java\", \"Child.java\").inheritIO().start().waitFor();
  }
}
",
        child: ("Child.java", JAVA_CHILD, 3),
        more: || json!({}),
        said: ("the adapter for Java debugs no child processes", "java Child.java"),
    },
];

/// A sandbox in which `--config app` launches the program.
fn with_configuration(case: &Case) -> Sandbox {
    let sandbox = Sandbox::with(&[(case.file, case.text), (case.child.0, case.child.1)]);
    let kind = match case.adapter {
        "js-debug" => "node",
        other => other,
    };
    let mut configuration = json!({"name": "app", "type": kind, "request": "launch",
        "program": format!("${{workspaceFolder}}/{}", case.file), "cwd": "${workspaceFolder}"});
    if let (Some(fields), Value::Object(more)) = (configuration.as_object_mut(), (case.more)()) {
        fields.extend(more);
    }
    sandbox.write(".vscode/launch.json", &json!({"version": "0.2.0", "configurations": [configuration]}).to_string());
    sandbox.tether(&["trust", "--yes", "--config", "app"]).ok();
    sandbox
}

fn reason(reports: &Value, field: &str) -> String {
    let report = reports.as_array().into_iter().flatten().next();
    report.and_then(|it| it[field].as_str()).unwrap_or_default().to_owned()
}

fn check(case: &Case) {
    let Case { adapter, said: (why, command), .. } = case;
    if found(adapter).is_none() {
        return;
    }
    let sandbox = with_configuration(case);
    let (file, _, line) = case.child;
    sandbox.json(&["break", "set", &format!("{file}:{line}")]);
    let launch = ["debug", "launch", "--config", "app", "--adapter", adapter, "--wait", "60"];
    let ended = sandbox.json(&launch);
    assert_eq!(ended["state"], "TERMINATED", "{adapter}: {ended:#}");
    let told = reason(&ended["notReached"], "reason");
    let is_told = |text: &str| {
        text.contains(&format!(" was not debugged ({why}")) && text.contains(command) && text.contains("process ")
    };
    assert!(is_told(&told), "{adapter}, {why}: {ended:#}");
    assert_eq!(told.matches("was not debugged").count(), 1, "{adapter}: {told}");
    let status = sandbox.json(&["debug", "status", ended["sessionId"].as_str().unwrap()]);
    assert_eq!(reason(&status["notReached"], "reason"), told, "{adapter}: {status:#}");
    let listed = reason(&sandbox.json(&["break", "list"])["breakpoints"], "message");
    assert!(listed.ends_with(&told), "{adapter}: {listed}");
    let printed = sandbox.tether(&launch).ok().stdout;
    assert!(is_told(&printed), "{adapter}: {printed}");
}

#[test]
fn a_breakpoint_in_the_file_of_a_child_that_is_not_debugged_names_the_child() {
    CASES.iter().for_each(check);
}

/// While the program waits for a child that is not debugged.
#[test]
fn a_wait_that_times_out_and_the_status_name_a_child_that_is_not_debugged() {
    let text = "import subprocess\nsubprocess.run(['sh', '-c', 'env -i python3 child.py'], check=True)\n";
    let Some(stage) = ScenarioSandbox::with("debugpy", "app.py", text) else { return };
    let waits = "import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.02)\n";
    stage.sandbox.write("child.py", &format!("{waits}print('gone')\n"));
    // Of nobody's session.
    stage.sandbox.write("stranger.py", &format!("print('up', flush=True)\n{waits}"));
    let mut stranger = Command::new("python3");
    stranger.arg("stranger.py");
    let (_stranger, _) = stage.starts(stranger, "up");
    stage.json(&["break", "set", "child.py:4"]);
    let mut running = stage.json(&["debug", "launch", "app.py", "--wait", "1"]);
    let mut named = String::new();
    // It may not have been started within the first.
    while !named.contains("python3 child.py") {
        assert_eq!(running["state"], "RUNNING", "{running:#}");
        named = reason(&running["notReached"], "reason") + &running["notes"].to_string();
        assert!(!named.contains("stranger"), "{running:#}");
        running = stage.json(&["debug", "wait", "1"]);
    }
    let told = reason(&running["notReached"], "reason");
    assert!(
        told.contains("is not debugged (it was started without the program's environment): python3 child.py"),
        "{running:#}"
    );
    stage.sandbox.write("go", "");
    let ended = stage.json(&["debug", "wait", "60"]);
    assert!(reason(&ended["notReached"], "reason").contains("was not debugged"), "{ended:#}");
    assert!(!ended.to_string().contains("stranger"), "{ended:#}");
}

/// Also one whose breakpoint is not reached.
#[test]
fn a_child_that_is_debugged_is_never_named() {
    let python = "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)\n";
    let forks = "import os, time\nif os.fork() == 0:\n    time.sleep(1.2)\n    os._exit(0)\nos.wait()\n";
    let node = "require('child_process').execFileSync('node', ['child.js']);\n";
    let ruby = "Process.wait(fork { sleep 1.2 })\n";
    for (adapter, file, text, child, child_text) in [
        ("debugpy", "app.py", python, "child.py", PYTHON_CHILD),
        ("debugpy", "app.py", forks, "child.py", PYTHON_CHILD),
        ("node", "app.js", node, "child.js", NODE_CHILD),
        ("js-debug", "app.js", node, "child.js", NODE_CHILD),
        ("rdbg", "app.rb", ruby, "child.rb", "total = 1\nputs total\n"),
    ] {
        let Some(stage) = ScenarioSandbox::with(adapter, file, text) else { continue };
        stage.sandbox.write(child, child_text);
        stage.json(&["break", "set", &format!("{child}:2"), "--condition", "total > 5"]);
        let ended = stage.json(&["debug", "launch", file, "--adapter", adapter, "--wait", "60"]);
        assert_eq!(ended["state"], "TERMINATED", "{adapter}: {ended:#}");
        assert!(!ended.to_string().contains("not debugged"), "{adapter}: {ended:#}");
        let events = stage.json(&["debug", "events"]);
        assert!(!events.to_string().contains("processNotDebugged"), "{adapter}: {events:#}");
    }
}
