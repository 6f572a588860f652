//! Watched fields of classes are kept with the workspace: set before a launch, at the start of the virtual machine, while the
//! program runs, and again in the next session.

use serde_json::{Value, json};

use crate::support::scenario_sandbox::{Running, ScenarioSandbox};
use crate::support::{JDWP_PORT, compile_java, java_listening};

/// `Late` is loaded once there is the file `go`.
const COUNTS: &str = "\
import java.nio.file.*;

public class Counts {
  static class Late {
    static int total;
    int own;

    void add() {
      total += 1; // TOTAL
      own += 2;
    }
  }

  public static void main(String[] words) throws Exception {
    System.out.println(\"up\");
    while (words.length > 0 && !Files.exists(Path.of(\"go\"))) {
      Thread.sleep(10);
    }
    new Late().add();
  }
}
";

fn stage() -> Option<ScenarioSandbox> {
    ScenarioSandbox::with("java", "Counts.java", COUNTS)
}

fn watch(stage: &ScenarioSandbox, expression: &str) -> Value {
    stage.json(&["break", "watch", expression, "--access", "write"])
}

/// A stop at the first write of a field of that name, behind it.
fn is_write(stopped: &Value, field: &str, value: &str) {
    let reason = &stopped["stopReason"];
    assert_eq!(reason["type"], "WATCHPOINT_MODIFY", "{stopped:#}");
    assert_eq!((&reason["details"]["fieldName"], &reason["details"]["newValue"]), (&json!(field), &json!(value)));
}

#[test]
fn a_field_that_is_watched_before_the_launch_stops_in_each_session() {
    let Some(stage) = stage() else { return };
    let set = watch(&stage, "Counts$Late.total");
    assert_eq!(set["state"], "pending", "{set:#}");
    for _ in 0..2 {
        let stopped = stage.json(&["debug", "launch", "Counts.java", "--wait", "60"]);
        is_write(&stopped, "total", "1");
        let listed = stage.json(&["break", "list"]);
        assert_eq!(listed["breakpoints"][0]["state"], "verified", "{listed:#}");
        let ended = stage.json(&["debug", "continue", "--wait", "60"]);
        assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    }
}

#[test]
fn a_field_that_is_watched_in_a_stopped_frame_is_watched_in_the_next_session() {
    let Some(stage) = stage() else { return };
    stage.breaks("TOTAL");
    stage.json(&["debug", "launch", "Counts.java", "--wait", "60"]);
    // By an expression that means something only there.
    let set = watch(&stage, "this.own");
    assert_eq!(set["state"], "verified", "{set:#}");
    is_write(&stage.json(&["debug", "continue", "--wait", "60"]), "own", "2");
    stage.json(&["debug", "stop"]);
    let id = stage.json(&["break", "list"])["breakpoints"][0]["breakpointId"].to_string();
    stage.json(&["break", "remove", &id]);
    let stopped = stage.json(&["debug", "launch", "Counts.java", "--wait", "60"]);
    is_write(&stopped, "own", "2");
    stage.json(&["debug", "stop"]);
}

#[test]
fn a_field_is_watched_at_the_start_of_the_virtual_machine() {
    let Some(stage) = stage() else { return };
    compile_java(&stage.sandbox.path("Counts.java"));
    let (_running, line) = stage.starts(java_listening(&stage.sandbox.workspace, "Counts", true), JDWP_PORT);
    let port = line.strip_prefix(JDWP_PORT).unwrap();
    let attached = stage.json(&["debug", "attach", port, "--language", "java", "--wait", "60"]);
    assert_eq!(attached["stopReason"]["type"], "VM_START", "{attached:#}");
    let set = watch(&stage, "Counts$Late.total");
    assert_eq!(set["state"], "pending", "{set:#}");
    is_write(&stage.json(&["debug", "continue", "--wait", "60"]), "total", "1");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
}

#[test]
fn a_field_is_watched_while_the_program_runs_and_bound_when_its_class_is_prepared() {
    let Some(stage) = stage() else { return };
    compile_java(&stage.sandbox.path("Counts.java"));
    let mut command = java_listening(&stage.sandbox.workspace, "Counts", false);
    command.arg("waits").current_dir(&stage.sandbox.workspace);
    let (_running, line): (Running, String) = stage.starts(command, JDWP_PORT);
    let port = line.strip_prefix(JDWP_PORT).unwrap();
    let attached = stage.json(&["debug", "attach", port, "--language", "java"]);
    assert_eq!(attached["state"], "RUNNING", "{attached:#}");
    let set = watch(&stage, "Counts$Late.total");
    assert_eq!(set["state"], "pending", "{set:#}");
    assert_eq!(stage.json(&["debug", "status"])["state"], "RUNNING");
    stage.sandbox.write("go", "");
    is_write(&stage.json(&["debug", "wait", "60"]), "total", "1");
    // A class that is loaded already.
    let set = watch(&stage, "Counts$Late.own");
    assert_eq!(set["state"], "verified", "{set:#}");
    is_write(&stage.json(&["debug", "continue", "--wait", "60"]), "own", "2");
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.json(&["break", "list"])["breakpoints"].as_array().unwrap().len(), 2);
}
