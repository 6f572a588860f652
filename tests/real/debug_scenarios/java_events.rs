//! What happens in a virtual machine: its start and its end, and the events that stop nothing.

use serde_json::{Value, json};

use crate::support::scenario_sandbox::ScenarioSandbox;
use crate::support::{compile_java, eventually, java_listening};

const ENDS: &str = "\
public class Ends {
  public static void main(String[] arguments) {
    System.out.println(\"done\");
  }
}
";

#[test]
fn a_program_stops_at_the_end_of_its_virtual_machine() {
    let Some(stage) = ScenarioSandbox::with("java", "Ends.java", ENDS) else { return };
    stage.json(&["break", "exceptions", "--filter", "vmDeath"]);
    let stopped = stage.json(&["debug", "launch", "Ends.java", "--wait", "60"]);
    assert_eq!(
        (&stopped["state"], &stopped["stopReason"]["type"]),
        (&json!("STOPPED"), &json!("VM_DEATH")),
        "{stopped:#}"
    );
    eventually("its output", || stage.json(&["debug", "output"])["entries"].to_string().contains("done").then_some(()));
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
    stage.nothing_is_left();
}

const CONTENDS: &str = "\
public class Contends {
  static class Gate {}

  static final Gate gate = new Gate();
  static volatile boolean goes = true;

  public static void main(String[] arguments) throws Exception {
    System.out.println(\"up\"); // UP
    Thread waits = new Thread(() -> {
      synchronized (gate) {
        System.out.println(\"got it\");
      }
    }, \"the waiting one\");
    synchronized (gate) {
      waits.start();
      while (waits.getState() != Thread.State.BLOCKED) {
        Thread.onSpinWait();
      }
    }
    waits.join();
    synchronized (gate) {
      gate.wait(1);
    }
    System.out.println(\"all done\");
    while (goes) {
      Thread.sleep(10);
    }
  }
}
";

#[test]
fn classes_and_monitors_are_captured_when_that_is_switched_on_and_never_stop() {
    let Some(stage) = ScenarioSandbox::with("java", "Contends.java", CONTENDS) else { return };
    stage.breaks("UP");
    stage.json(&["debug", "launch", "Contends.java", "--wait", "60"]);
    let events = |kind: &str| stage.json(&["debug", "events", "--kinds", kind])["entries"].as_array().unwrap().clone();
    assert_eq!(events("classPrepare"), [json!(null); 0], "not captured at first");
    let kinds = "threadStarted,classPrepare,monitorContended,monitorAcquired,monitorWait,monitorWaited";
    let chosen = stage.json(&["debug", "events", "--capture", kinds]);
    assert_eq!(chosen["captured"].as_array().unwrap().len(), 6, "{chosen:#}");
    stage.json(&["break", "remove", "--all"]);
    stage.json(&["debug", "continue"]);
    eventually("output", || stage.json(&["debug", "output"])["entries"].to_string().contains("all done").then_some(()));
    assert_eq!(stage.json(&["debug", "status"])["state"], "RUNNING");
    let texts = |kind: &str| -> Vec<String> {
        events(kind).iter().map(|it: &Value| it["text"].as_str().unwrap().to_owned()).collect()
    };
    let contended = texts("monitorContended");
    let is_ours =
        |text: &String| text.starts_with("Contends.Gate (id=") && text.contains("by the waiting one in Contends.");
    assert!(contended.iter().any(is_ours), "{contended:?}");
    assert!(texts("monitorAcquired").iter().any(is_ours), "{:?}", texts("monitorAcquired"));
    for kind in ["monitorWait", "monitorWaited"] {
        assert!(texts(kind).iter().any(|text| text.contains("Contends.Gate") && text.contains("by main")), "{kind}");
    }
    let threads = texts("threadStarted");
    assert!(!threads.is_empty() && texts("threadEnded").iter().all(|ended| !threads.contains(ended)), "{threads:?}");

    // Switched off again; another kind, and one that there is none of.
    let none = stage.json(&["debug", "events", "--capture", ""]);
    assert_eq!(none["captured"], json!([]));
    let failed = stage.sandbox.tether(&["debug", "events", "--capture", "moonPhase"]);
    failed.fails(2, &["no events of the kind `moonPhase`", "monitorContended"]);
    stage.sandbox.tether(&["debug", "events", "--kinds", "classPrepare,module"]).fails(2, &["together with others"]);
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_class_that_is_prepared_is_captured_with_its_name() {
    let text = "\
public class Loads {
  static class Late { static int value = 1; }

  public static void main(String[] arguments) throws Exception {
    System.out.println(\"up\"); // UP
    System.out.println(Late.value); // AFTER
  }
}
";
    let Some(stage) = ScenarioSandbox::with("java", "Loads.java", text) else { return };
    stage.breaks("UP");
    stage.json(&["debug", "launch", "Loads.java", "--wait", "60"]);
    stage.json(&["debug", "events", "--capture", "classPrepare"]);
    stage.json(&["debug", "step", "over", "--wait", "60"]);
    stage.json(&["debug", "step", "over", "--wait", "60"]);
    let prepared = stage.json(&["debug", "events", "--kinds", "classPrepare"]);
    let entries = prepared["entries"].as_array().unwrap();
    assert!(entries.iter().any(|it| it["text"] == "Loads$Late" && it["threadId"].is_i64()), "{prepared:#}");
    stage.json(&["debug", "stop"]);
}

const LISTENS: &str = "\
import java.net.ServerSocket;

public class Listens {
  public static void main(String[] arguments) throws Exception {
    ServerSocket own = new ServerSocket(0);
    System.out.println(\"its service listens\");
    for (int total = 0; ; total++) {
      Thread.sleep(10); // STOP
    }
  }
}
";

#[test]
fn a_process_is_attached_to_by_its_id_left_and_attached_to_again() {
    let Some(stage) = ScenarioSandbox::with("java", "Listens.java", LISTENS) else { return };
    compile_java(&stage.sandbox.path(stage.file));
    let command = java_listening(&stage.sandbox.workspace, "Listens", false);
    let (mut running, _) = stage.starts(command, "its service listens");
    let pid = running.0.id().to_string();
    stage.breaks("STOP");
    for _ in 0..2 {
        // Each time the virtual machine listens on a new port, and its service on the same.
        let attached = stage.json(&["debug", "attach", "--pid", &pid, "--language", "java", "--wait", "60"]);
        stage.check(&attached, "BREAKPOINT_HIT", "STOP");
        assert_eq!(attached["pid"].to_string(), pid);
        let second = stage.json(&["debug", "attach", "--pid", &pid, "--language", "java"]);
        assert_eq!(second["sessionId"], attached["sessionId"], "{second:#}");
        stage.json(&["debug", "stop"]);
    }
    assert!(running.0.try_wait().unwrap().is_none(), "it runs on");
}

#[test]
fn a_process_that_was_not_started_for_a_debugger_is_refused_with_what_to_do() {
    let Some(stage) = ScenarioSandbox::with("java", "Listens.java", LISTENS) else { return };
    compile_java(&stage.sandbox.path(stage.file));
    let mut command = std::process::Command::new("java");
    command.arg("-cp").arg(&stage.sandbox.workspace).arg("Listens");
    let (running, _) = stage.starts(command, "its service listens");
    let pid = running.0.id().to_string();
    let failed = stage.sandbox.tether(&["debug", "attach", "--pid", &pid, "--language", "java"]);
    failed.fails(1, &["cannot attach to process", "not started for a debugger", "-agentlib:jdwp"]);
    let gone = stage.sandbox.tether(&["debug", "attach", "--pid", "4194000", "--language", "java"]);
    gone.fails(1, &["4194000"]);
}
