//! Python in the processes of a program: children that other programs start, and code that debugpy does not follow.

use serde_json::{Value, json};

use crate::support::requirements::{has_program, installed_tool};
use crate::support::scenario_sandbox::ScenarioSandbox;

/// It checks that nothing of the debugger stands in the way of the program's own modules.
const CHILD: &str = "\
import os, sys
import sitecustomize
total = len(sys.argv)
print('child', total, sitecustomize.OWN)  # STOP
assert not [path for path in sys.path if 'tether-debug' in path], sys.path
assert 'own' in [os.path.basename(path) for path in sys.path], sys.path
";
const CHILD_LINE: u32 = 4;

/// With the environment of a tool, where one is named.
fn with_python(tool: Option<&str>, file: &'static str, text: &str) -> Option<ScenarioSandbox> {
    let environment = match tool {
        Some(tool) => Some(installed_tool(tool)?),
        None => None,
    };
    let stage = ScenarioSandbox::with("debugpy", file, text)?;
    if let Some(environment) = environment {
        std::os::unix::fs::symlink(environment, stage.sandbox.path(".venv")).unwrap();
        stage.json(&["trust", "--programs", "--yes"]);
    }
    Some(stage)
}

#[test]
fn a_child_behind_another_program_is_debugged_and_keeps_its_own_modules() {
    let Some(uv) = installed_tool("uv/bin/uv") else { return };
    if !has_program("make") || !has_program("node") {
        return;
    }
    let commands = json!([
        ["sh", "-c", "echo in a shell; python3 child.py"],
        ["env", "LOCAL=1", "python3", "child.py"],
        ["make", "--silent", "run"],
        ["node", "-e", "require('child_process').execFileSync('python3', ['child.py'], {stdio: 'inherit'})"],
        [uv, "run", "--no-project", "--offline", "--python", "python3", "child.py"],
    ]);
    let text = format!(
        "import subprocess\nfor command in {commands}:\n    subprocess.run(command, check=True)\nprint('all')\n"
    );
    let Some(stage) = with_python(None, "app.py", &text) else { return };
    stage.sandbox.write("child.py", CHILD);
    stage.sandbox.write("Makefile", "run:\n\tpython3 child.py\n");
    stage.sandbox.write("own/sitecustomize.py", "OWN = 'of the user'\n");
    let own = stage.sandbox.path("own").display().to_string();
    stage.json(&["break", "set", &format!("child.py:{CHILD_LINE}")]);
    let mut stop = stage.json(&["debug", "launch", "app.py", "--env", &format!("PYTHONPATH={own}"), "--wait", "60"]);
    for command in commands.as_array().unwrap() {
        let reason = &stop["stopReason"];
        assert_eq!(
            (&reason["type"], &reason["location"]["sourcePath"]),
            (&json!("BREAKPOINT_HIT"), &json!("child.py")),
            "{command}: {stop:#}"
        );
        assert_eq!(ScenarioSandbox::local(&stop, "total"), "1", "{command}: {stop:#}");
        stop = stage.json(&["debug", "continue", "--wait", "60"]);
    }
    assert_eq!((&stop["state"], &stop["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{stop:#}");
    let printed = stage.json(&["debug", "output"]).to_string();
    assert_eq!(printed.matches("of the user").count(), 5, "{printed}");
    assert!(!stop.to_string().contains("not debugged"), "{stop:#}");
    stage.nothing_is_left();
}

/// The reason of the first breakpoint that has not stopped the program.
fn unreached(answer: &Value) -> &str {
    answer["notReached"][0]["reason"].as_str().unwrap_or_default()
}

#[test]
fn a_tracer_of_the_program_is_named_where_it_takes_the_breakpoints_away() {
    let work = "def work(n):\n    total = n * 2\n    return total  # STOP\n\nwork(21)\n";
    let traced =
        format!("import sys\n\ndef trace(frame, event, arg):\n    return trace\n\nsys.settrace(trace)\n{work}");
    let configuration = json!({"configurations": [{"name": "cover", "type": "debugpy", "request": "launch", "module": "coverage",
        "args": ["run", "app.py"]}, {"name": "test", "type": "debugpy", "request": "launch", "module": "pytest",
        "args": ["--cov=app", "test_app.py"]}]});
    for (text, launch, tracer) in [
        (traced.as_str(), &["app.py"][..], "app.py:6"),
        (work, &["--config", "cover"], "coverage/collector.py"),
        (work, &["--config", "test"], "coverage/collector.py"),
    ] {
        let Some(stage) = with_python(Some("pytest-plugins"), "app.py", text) else { return };
        stage.sandbox.write("test_app.py", "def test_app():\n    import app\n    assert app.work(21) == 42\n");
        stage.sandbox.write(".vscode/launch.json", &configuration.to_string());
        for name in ["cover", "test"] {
            stage.json(&["trust", "--yes", "--config", name]);
        }
        stage.breaks("# STOP");
        let answer = stage.json(&[&["debug", "launch"], launch, &["--wait", "60"]].concat());
        if answer["stopped"] == true {
            // From Python 3.12 on debugpy needs no trace function.
            stage.check(&answer, "BREAKPOINT_HIT", "# STOP");
            stage.json(&["debug", "stop"]);
            continue;
        }
        let reason = unreached(&answer);
        let is_named = |text: &str| text.contains(tracer) && text.contains("has replaced debugpy's trace function");
        assert!(is_named(reason) && reason.contains("nothing stopped there"), "{launch:?}: {answer:#}");
        assert!(is_named(&answer["notes"].to_string()), "{launch:?}: {answer:#}");
        stage.nothing_is_left();
    }
}

#[test]
fn a_program_that_names_gevent_is_followed_and_one_that_loads_it_elsewhere_is_told() {
    let work = "def work(n):\n    total = n * 2\n    gevent.sleep(0)\n    print(total)  # STOP\n\n\
                gevent.joinall([gevent.spawn(work, n) for n in (1, 2)])\n";
    let text = format!("from gevent import monkey\nmonkey.patch_all()\nimport gevent\n\n{work}");
    let Some(stage) = with_python(Some("gevent"), "app.py", &text) else { return };
    stage.breaks("# STOP");
    let mut stop = stage.json(&["debug", "launch", "app.py", "--wait", "60"]);
    for total in ["2", "4"] {
        stage.check(&stop, "BREAKPOINT_HIT", "# STOP");
        assert_eq!(ScenarioSandbox::local(&stop, "total"), total);
        stop = stage.json(&["debug", "continue", "--wait", "60"]);
    }
    assert_eq!(stop["exitCode"], 0, "{stop:#}");
    stage.sandbox.write("hidden.py", "from gevent import monkey\n");
    stage.sandbox.write("other.py", "import hidden\nprint('loaded')\n");
    let ended = stage.json(&["debug", "launch", "other.py", "--wait", "60"]);
    assert!(
        ended["notes"].to_string().contains(
            "it loads gevent.monkey, which debugpy does not follow: launch it again with `GEVENT_SUPPORT=True`"
        ),
        "{ended:#}"
    );
    stage.nothing_is_left();
}

const INTERPRETERS: &str = "\
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
inside = interpreters.create()
interpreters.run_string(inside, \"exec(open('inner.py').read())\")
print('end')
";

#[test]
fn a_subinterpreter_is_named() {
    let Some(stage) = with_python(None, "app.py", INTERPRETERS) else { return };
    stage.sandbox.write("inner.py", "total = 42\nprint('inner', total)\n");
    stage.json(&["break", "set", "inner.py:2"]);
    let ended = stage.json(&["debug", "launch", "app.py", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    assert!(
        unreached(&ended).contains("it has started a subinterpreter, in which debugpy debugs nothing"),
        "{ended:#}"
    );
    stage.nothing_is_left();
}

#[test]
fn a_worker_of_a_fork_server_stops() {
    let text = "import multiprocessing\nfrom inner import work\n\nif __name__ == '__main__':\n    context = multiprocessing.get_context('forkserver')\n    \
                worker = context.Process(target=work, args=(21,))\n    worker.start()\n    worker.join()\n";
    let Some(stage) = with_python(None, "app.py", text) else { return };
    stage.sandbox.write("inner.py", "def work(n):\n    total = n * 2\n    print(total)\n");
    stage.json(&["break", "set", "inner.py:3"]);
    let stop = stage.json(&["debug", "launch", "app.py", "--wait", "60"]);
    assert_eq!(ScenarioSandbox::local(&stop, "total"), "42", "{stop:#}");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    stage.nothing_is_left();
}

#[test]
fn the_exceptions_of_a_group_are_listed_with_their_places() {
    let text = "import asyncio\n\nasync def bad(n):\n    raise ValueError(f'bad {n}')  # RAISED\n\nasync def main():\n    async with asyncio.TaskGroup() as tasks:  # STOP\n        \
                tasks.create_task(bad(1))\n        tasks.create_task(bad(2))\n\nasyncio.run(main())\n";
    let Some(stage) = with_python(None, "app.py", text) else { return };
    stage.json(&["break", "exceptions", "--uncaught"]);
    let stop = stage.json(&["debug", "launch", "app.py", "--wait", "60"]);
    stage.check(&stop, "EXCEPTION", "# STOP");
    let at = format!("app.py:{}", stage.line("# RAISED"));
    for n in [1, 2] {
        let note = stop["notes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|note| note.as_str().unwrap().contains(&format!("ValueError: bad {n}")));
        assert!(note.is_some_and(|note| note.as_str().unwrap().ends_with(&at)), "{stop:#}");
    }
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn an_exception_of_a_task_that_nobody_has_retrieved_is_named_at_the_end() {
    let text = "import asyncio\n\nasync def bad():\n    raise ValueError('lost')  # RAISED\n\nasync def main():\n    task = asyncio.create_task(bad())\n    \
                await asyncio.wait([task])\n\nasyncio.run(main())\nprint('end')\n";
    let Some(stage) = with_python(None, "app.py", text) else { return };
    let ended = stage.json(&["debug", "launch", "app.py", "--wait", "60"]);
    let expect = "a task has raised an exception that nobody has retrieved: ValueError: lost at ";
    let note = ended["notes"].as_array().into_iter().flatten().find(|note| note.as_str().unwrap().starts_with(expect));
    let at = format!("app.py:{}", stage.line("# RAISED"));
    assert!(ended["exitCode"] == 0 && note.is_some_and(|note| note.as_str().unwrap().ends_with(&at)), "{ended:#}");
    stage.nothing_is_left();
}
