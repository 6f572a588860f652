//! A test by name, beside its runner alone.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::{call, in_turns, open, run, tell, tools, workspace, write};

const LAUNCHER: &str = "/usr/share/java/junit-platform-console-standalone.jar";

const PYTEST: &str =
    "def test_doubles():\n    assert 21 * 2 == 42\n\n\ndef test_other():\n    raise AssertionError('nobody asked')\n";

const JUNIT: &str = "\
package com.example;

import static org.junit.jupiter.api.Assertions.*;
import org.junit.jupiter.api.Test;

class OrdersTest {
    @Test
    void doubles() {
        assertEquals(42, 21 * 2);
    }

    @Test
    void other() {
        fail();
    }
}
";

fn ends(client: &mut Client, test: &str) -> Duration {
    let (took, end) = call(client, "debug_launch", json!({"test": test, "wait": 60}));
    assert_eq!((&end["state"], &end["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{end:#}");
    took
}

fn report(runner: &str, [ours, bare]: [Duration; 2]) {
    let over = ours.saturating_sub(bare);
    let figure = format!("{over:.2?} more ({ours:.2?}, {runner} alone {bare:.2?})");
    tell(&format!("a test by name with {runner}"), &figure, "≤ 400 ms", over.as_millis() <= 400);
}

pub fn pytest(tether: &Path, runs: usize) {
    let sandbox = workspace(tether);
    write(&sandbox, "pytest.ini", "[pytest]\n");
    write(&sandbox, "tests/test_orders.py", PYTEST);
    symlink(tools().join("pytest"), sandbox.workspace.join(".venv")).unwrap();
    let mut client = open(&sandbox, ".");
    let bare = || {
        let mut command = Command::new(sandbox.workspace.join(".venv/bin/python"));
        command.args(["-m", "pytest", "tests/test_orders.py::test_doubles"]);
        run(command.current_dir(&sandbox.workspace))
    };
    report("pytest", in_turns(runs, || ends(&mut client, "test_doubles"), bare));
}

pub fn junit(tether: &Path, runs: usize) {
    let sandbox = workspace(tether);
    write(&sandbox, "pom.xml", "");
    write(&sandbox, "src/test/java/com/example/OrdersTest.java", JUNIT);
    let mut compile = Command::new("javac");
    compile.args(["-g", "-cp", LAUNCHER, "-d", "target/test-classes", "src/test/java/com/example/OrdersTest.java"]);
    run(compile.current_dir(&sandbox.workspace));
    let mut client = open(&sandbox, ".");
    let bare = || {
        let mut command = Command::new("java");
        command.args(["-jar", LAUNCHER, "execute", "--class-path", "target/test-classes"]);
        command.args(["--select-method", "com.example.OrdersTest#doubles"]);
        run(command.current_dir(&sandbox.workspace))
    };
    report("JUnit", in_turns(runs, || ends(&mut client, "doubles"), bare));
}
