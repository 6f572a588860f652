//! S1–S8, E1–E5 on the virtual machine of Java, by our own adapter.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::mcp_client::McpClient;
use crate::support::scenario_sandbox::{Running, ScenarioSandbox};
use crate::support::{JDWP_PORT, compile_java, java_listening, kill, run_command};

/// Starts the compiled program, which waits for its debugger if `waits`; returns its port.
fn listening(stage: &ScenarioSandbox, waits: bool) -> (Running, String) {
    compile_java(&stage.sandbox.path(stage.file));
    let class = stage.file.trim_end_matches(".java");
    let (running, line) = stage.starts(java_listening(&stage.sandbox.workspace, class, waits), JDWP_PORT);
    let port = line.strip_prefix(JDWP_PORT).unwrap().to_owned();
    (running, port)
}

const LOOP: &str = "\
public class Äpp {
  static int total(int order) {
    int result = order * 2;
    return result; // RETURN
  }

  public static void main(String[] arguments) {
    int value = 0;
    for (int number = 0; number < 300; number++) {
      value = total(number); // CALL
      value++; // AFTER
    }
    System.out.println(value);
  }
}
";

#[test]
fn a_breakpoint_in_a_loop_is_hit_each_time_and_steps_advance() {
    let Some(stage) = ScenarioSandbox::with("java", "Äpp.java", LOOP) else { return };
    let set = stage.breaks("CALL");
    assert_eq!(set["state"], "pending");
    let (mut running, port) = listening(&stage, true);
    let attached = stage.json(&["debug", "attach", &port, "--language", "java", "--wait", "60"]);
    let attached = match attached["stopReason"]["type"].as_str() {
        Some("VM_START") => stage.json(&["debug", "continue", "--wait", "60"]),
        _ => attached,
    };
    stage.check(&attached, "BREAKPOINT_HIT", "CALL");
    let status = stage.json(&["debug", "status"]);
    stage.check(&status, "BREAKPOINT_HIT", "CALL");
    let reason = &status["stopReason"];
    assert_eq!(reason["details"]["breakpointId"], set["breakpointId"], "{status:#}");
    assert_eq!(reason["details"]["hitCount"], 1);
    assert_eq!(
        (&reason["location"]["className"], &reason["threadName"]),
        (&json!("Äpp"), &json!("main")),
        "{status:#}"
    );
    assert!(status["vmName"].as_str().is_some_and(|name| name.contains("VM")), "{status:#}");
    assert_eq!(ScenarioSandbox::local(&attached, "number"), "0");
    let again = stage.json(&["debug", "continue", "--wait", "60"]);
    stage.check(&again, "BREAKPOINT_HIT", "CALL");
    assert_eq!(again["stopReason"]["details"]["hitCount"], 2);
    assert_eq!(ScenarioSandbox::local(&again, "number"), "1");

    let over = stage.json(&["debug", "step", "over", "--wait", "60"]);
    stage.check(&over, "STEP_COMPLETE", "AFTER");
    stage.json(&["debug", "continue", "--wait", "60"]);
    let into = stage.json(&["debug", "step", "into", "--wait", "60"]);
    assert_eq!(into["stopReason"]["type"], "STEP_COMPLETE");
    assert_eq!(into["stopReason"]["location"]["methodName"], "total", "{into:#}");
    let out = stage.json(&["debug", "step", "out", "--wait", "60"]);
    assert_eq!(out["stopReason"]["location"]["methodName"], "main", "{out:#}");
    // The attached program is detached and keeps running.
    assert_eq!(stage.json(&["debug", "stop"])["state"], "TERMINATED");
    assert!(running.0.wait().unwrap().success(), "it was let go, and runs to its end");
}

const SLEEPS: &str = "\
public class Sleeps {
  public static void main(String[] arguments) throws InterruptedException {
    Thread.sleep(1000);
    System.out.println(\"slept\"); // STOP
    while (true) {
      Thread.sleep(10);
    }
  }
}
";

#[test]
fn a_wait_ends_with_the_stop_or_in_time_or_at_once() {
    let Some(stage) = ScenarioSandbox::with("java", "Sleeps.java", SLEEPS) else { return };
    stage.breaks("STOP");
    stage.json(&["debug", "launch", "Sleeps.java"]);
    let waited = stage.json(&["debug", "wait", "60"]);
    stage.check(&waited, "BREAKPOINT_HIT", "STOP");
    assert!(waited["waitedMs"].as_u64().unwrap() < 60_000);
    let at_once = stage.json(&["debug", "wait", "60"]);
    stage.check(&at_once, "BREAKPOINT_HIT", "STOP");
    assert!(at_once["waitedMs"].as_u64().unwrap() < 1_000, "{at_once}");
    stage.json(&["debug", "continue"]);
    let begun = Instant::now();
    let in_vain = stage.json(&["debug", "wait", "2"]);
    assert!(begun.elapsed() >= Duration::from_secs(2));
    assert_eq!((&in_vain["stopped"], &in_vain["state"]), (&json!(false), &json!("RUNNING")));
    assert!(in_vain["waitedMs"].as_u64().unwrap() >= 2_000 && in_vain["message"].is_string(), "{in_vain}");
    let paused = stage.json(&["debug", "pause", "--wait", "60"]);
    assert_eq!(paused["stopReason"]["type"], "USER_SUSPEND", "{paused:#}");
    assert_eq!(stage.json(&["debug", "stop"])["state"], "TERMINATED");
    assert_eq!(stage.others(), []);
}

const THROWS: &str = "\
public class Throws {
  static void careful() {
    try {
      throw new IllegalStateException(\"other\");
    } catch (IllegalStateException ignored) {
    }
    try {
      throw new IllegalArgumentException(\"caught\"); // CAUGHT
    } catch (IllegalArgumentException ignored) {
    }
  }

  public static void main(String[] arguments) {
    careful();
    throw new IllegalArgumentException(\"uncaught\"); // UNCAUGHT
  }
}
";

#[test]
fn exceptions_of_a_class_stop_caught_and_uncaught_with_class_message_and_stack() {
    let Some(stage) = ScenarioSandbox::with("java", "Throws.java", THROWS) else { return };
    let class = "java.lang.IllegalArgumentException";
    stage.json(&["break", "exceptions", "--caught", "--uncaught", "--class", class]);
    let caught = stage.json(&["debug", "launch", "Throws.java", "--wait", "60"]);
    stage.check(&caught, "EXCEPTION", "CAUGHT");
    let details = &caught["stopReason"]["details"];
    assert_eq!((&details["exceptionType"], &details["exceptionMessage"]), (&json!(class), &json!("caught")));
    let exception = stage.json(&["debug", "status"])["exception"].clone();
    assert_eq!((&exception["class"], &exception["message"]), (&json!(class), &json!("caught")));
    assert!(exception["stack"].as_str().unwrap().contains("careful"), "{exception}");
    let uncaught = stage.json(&["debug", "continue", "--wait", "60"]);
    stage.check(&uncaught, "EXCEPTION", "UNCAUGHT");
    assert_eq!(uncaught["stopReason"]["details"]["exceptionMessage"], "uncaught");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(1)), "{ended:#}");
    stage.nothing_is_left();
}

const SHARED: &str = "\
public class Shared {
  static int shared = 1;
  int own = 5;

  static int reads() {
    return shared + 1; // READ
  }

  public static void main(String[] arguments) {
    Shared it = new Shared();
    int sum = 0;
    for (int number = 0; number < 3; number++) { // START
      sum += reads();
      shared = sum; // WRITE
      it.own = sum + 100; // OWN
    }
    System.out.println(sum + it.own);
  }
}
";

#[test]
fn a_watchpoint_stops_on_reads_or_on_writes_with_the_old_and_the_new_value() {
    let Some(stage) = ScenarioSandbox::with("java", "Shared.java", SHARED) else { return };
    stage.breaks("START");
    let launched = stage.json(&["debug", "launch", "Shared.java", "--wait", "60"]);
    stage.check(&launched, "BREAKPOINT_HIT", "START");
    stage.json(&["break", "remove", "--all"]);
    let stops_at = |watched: &str, access: &str, kind: &str| {
        let watch = stage.json(&["break", "watch", watched, "--access", access]);
        assert_eq!(watch["state"], "verified", "{watch}");
        let stopped = stage.json(&["debug", "continue", "--wait", "60"]);
        assert_eq!(stopped["stopReason"]["type"], kind, "{stopped:#}");
        stage.json(&["break", "remove", "--all"]);
        let details = &stopped["stopReason"]["details"];
        let text = |name: &str| details[name].as_str().unwrap_or("-").to_owned();
        (text("fieldName"), text("oldValue"), text("newValue"))
    };
    let of = |name: &str, old: &str, new: &str| (name.to_owned(), old.to_owned(), new.to_owned());
    assert_eq!(stops_at("shared", "write", "WATCHPOINT_MODIFY"), of("shared", "1", "2"));
    // A field of an instance, on all of its instances.
    assert_eq!(stops_at("it.own", "write", "WATCHPOINT_MODIFY"), of("own", "5", "102"));
    let (name, ..) = stops_at("Shared.shared", "read", "WATCHPOINT_ACCESS");
    assert_eq!(name, "shared");
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.others(), []);
}

const THREADS: &str = "\
public class Threads {
  public static void main(String[] arguments) throws InterruptedException {
    for (int number = 0; number < 3; number++) {
      Thread thread = new Thread(() -> System.out.println(\"works\"), \"worker \" + number);
      thread.start();
      thread.join();
    }
    System.out.println(\"all done\");
    while (true) {
      Thread.sleep(10);
    }
  }
}
";

#[test]
fn monitoring_does_not_stop_and_its_events_are_read_once_or_peeked_at() {
    let Some(stage) = ScenarioSandbox::with("java", "Threads.java", THREADS) else { return };
    stage.json(&["debug", "launch", "Threads.java"]);
    crate::support::eventually("output", || {
        let printed = stage.json(&["debug", "output"])["entries"].to_string();
        printed.contains("all done").then_some(())
    });
    let count = |answer: &Value, event: &str| {
        let entries = answer["entries"].as_array().unwrap();
        entries.iter().filter(|it| it["event"] == event).count()
    };
    let first = stage.json(&["debug", "events"]);
    assert!(count(&first, "threadStarted") >= 3, "{first}");
    assert_eq!(count(&stage.json(&["debug", "events"]), "threadStarted"), count(&first, "threadStarted"));
    let cursor = first["cursor"].to_string();
    assert_eq!(count(&stage.json(&["debug", "events", "--since", &cursor]), "threadStarted"), 0);
    assert_eq!(stage.json(&["debug", "status"])["state"], "RUNNING");
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.others(), []);
}

const WORKERS: &str = "\
import java.util.concurrent.CountDownLatch;

public class Workers {
  public static void main(String[] arguments) throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
    Thread worker = new Thread(() -> {
      begun.countDown();
      System.out.println(\"worker\"); // WORKER
    }, \"the worker\");
    worker.start();
    begun.await();
    System.out.println(\"main\"); // MAIN
    worker.join();
  }
}
";

#[test]
fn several_threads_stop_the_first_is_primary_and_all_are_listed() {
    let Some(stage) = ScenarioSandbox::with("java", "Workers.java", WORKERS) else { return };
    stage.breaks("MAIN");
    stage.breaks("WORKER");
    stage.json(&["debug", "launch", "Workers.java", "--wait", "60"]);
    let (status, threads) = crate::support::eventually("two stops", || {
        let status = stage.json(&["debug", "status"]);
        let stopped: Vec<Value> = status["suspendedThreads"].as_array().unwrap().clone();
        let own: Vec<Value> = stopped.into_iter().filter(|it| it["stopReason"].is_object()).collect();
        (own.len() == 2).then_some((status, own))
    });
    let line = |it: &Value| it["stopReason"]["location"]["lineNumber"].as_u64().unwrap();
    let mut lines: Vec<u64> = threads.iter().map(line).collect();
    lines.sort_unstable();
    assert_eq!(lines, [stage.line("WORKER"), stage.line("MAIN")]);
    let waited = stage.json(&["debug", "wait", "1"]);
    assert_eq!(waited["stopReason"]["threadId"], status["stopReason"]["threadId"], "the first stays primary");
    assert_eq!(waited["alsoStopped"].as_array().unwrap().len(), 1);
    // Each thread resumes separately.
    let other = waited["alsoStopped"][0]["threadId"].to_string();
    stage.json(&["debug", "continue", "--thread", &other]);
    let primary = if line(&waited) == stage.line("MAIN") { "MAIN" } else { "WORKER" };
    stage.check(&stage.json(&["debug", "status"]), "BREAKPOINT_HIT", primary);
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.others(), []);
}

const ENTRY: &str = "\
public class Entry {
  public static void main(String[] arguments) {
    String[] words = {\"b\", \"a\"}; // FIRST
    System.arraycopy(words, 0, words, 0, 1); // NATIVE
    System.out.println(\"up\"); // AFTER
  }
}
";

#[test]
fn a_launched_program_stops_at_its_entry_and_a_step_into_native_code_comes_back() {
    let Some(stage) = ScenarioSandbox::with("java", "Entry.java", ENTRY) else { return };
    let launched = stage.json(&["debug", "launch", "Entry.java", "--stop-on-entry", "--wait", "60"]);
    stage.check(&launched, "ENTRY", "FIRST");
    stage.check(&stage.json(&["debug", "step", "over", "--wait", "60"]), "STEP_COMPLETE", "NATIVE");
    stage.check(&stage.json(&["debug", "step", "into", "--wait", "60"]), "STEP_COMPLETE", "AFTER");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
    assert!(stage.json(&["debug", "output"])["entries"].to_string().contains("up"));
    stage.nothing_is_left();
}

#[test]
fn a_program_that_waits_for_its_debugger_stops_at_the_start_of_the_virtual_machine() {
    let Some(stage) = ScenarioSandbox::with("java", "Entry.java", ENTRY) else { return };
    let (mut running, port) = listening(&stage, true);
    let attached = stage.json(&["debug", "attach", &port, "--language", "java", "--wait", "60"]);
    assert_eq!(
        (&attached["state"], &attached["stopReason"]["type"]),
        (&json!("STOPPED"), &json!("VM_START")),
        "{attached:#}"
    );
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    assert!(running.0.wait().unwrap().success());
}

#[test]
fn the_end_of_the_program_or_of_its_connection_ends_a_wait_and_is_named() {
    let text = "public class Ends { public static void main(String[] arguments) { System.exit(3); } }\n";
    let Some(stage) = ScenarioSandbox::with("java", "Ends.java", text) else { return };
    stage.json(&["debug", "launch", "Ends.java"]);
    let ended = stage.json(&["debug", "wait", "60"]);
    assert_eq!((&ended["stopped"], &ended["state"]), (&json!(false), &json!("TERMINATED")), "{ended}");
    assert_eq!(ended["exitCode"], 3, "{ended}");

    stage.sandbox.write("Sleeps.java", SLEEPS);
    let launched = stage.json(&["debug", "launch", "Sleeps.java"]);
    let mut waiting = stage.sandbox.command(["--json", "debug", "wait", "60"]);
    let waiting = std::thread::spawn(move || {
        waiting.stdin(std::process::Stdio::null());
        run_command(waiting)
    });
    kill(launched["pid"].as_u64().unwrap() as u32, Signal::KILL);
    let lost = waiting.join().unwrap().ok().json();
    assert_eq!(lost["stopped"], false);
    let state = lost["state"].as_str().unwrap();
    assert!(["DISCONNECTED", "TERMINATED"].contains(&state), "{lost}");
    assert!(lost["message"].as_str().is_some_and(|text| text.contains("signal 9")), "{lost}");
    stage.nothing_is_left();
}

/// By an MCP client, whose calls follow each other faster than command lines.
#[tokio::test]
async fn a_thousand_resumes_and_waits_never_see_the_old_stop_and_never_lose_one() {
    let text = "\
public class Counts {
  public static void main(String[] arguments) {
    int number = 0;
    while (number < 5000) {
      number += 1; // STOP
    }
  }
}
";
    let Some(stage) = ScenarioSandbox::with("java", "Counts.java", text) else { return };
    stage.breaks("STOP");
    let agent = McpClient::start(&stage.sandbox).await;
    agent.call("debug_launch", json!({"program": "Counts.java", "wait": 60})).await;
    for hit in 2..=1001 {
        agent.call("debug_continue", json!({"budget": 0})).await;
        let waited = agent.call("wait_for_stop", json!({"timeout": 60, "budget": 0})).await;
        stage.check(&waited, "BREAKPOINT_HIT", "STOP");
        assert_eq!(waited["stopReason"]["details"]["hitCount"], hit, "{waited}");
    }
    assert_eq!(agent.call("debug_evaluate", json!({"expression": "number"})).await["result"], "1000");
    agent.call("debug_stop", json!({})).await;
    agent.leave().await;
}

#[test]
fn a_source_with_errors_and_a_missing_class_say_so() {
    let Some(stage) = ScenarioSandbox::with("java", "Bad.java", "public class Bad { int x = \"text\"; }\n") else {
        return;
    };
    let failed = stage.sandbox.tether(&["debug", "launch", "Bad.java"]);
    failed.fails(1, &["cannot compile", "Bad.java:1", "incompatible types"]);
    stage.sandbox.write("Good.java", "public class Good { }\n");
    let ended = stage.json(&["debug", "launch", "Good.java", "--wait", "60"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(1)), "{ended:#}");
    assert!(ended["message"].as_str().unwrap().contains("Main method not found"), "{ended:#}");
    stage.nothing_is_left();
}

const METHODS: &str = "\
public class Methods {
  static int twice(int order) {
    return order * 2;
  }

  public static void main(String[] arguments) {
    System.out.println(twice(21)); // CALL
  }
}
";

#[test]
fn entries_and_exits_of_methods_stop() {
    let Some(stage) = ScenarioSandbox::with("java", "Methods.java", METHODS) else { return };
    stage.json(&["break", "set", "--function", "Methods.twice"]);
    stage.json(&["break", "set", "--function", "twice:exit"]);
    let entry = stage.json(&["debug", "launch", "Methods.java", "--wait", "60"]);
    let reason = &entry["stopReason"];
    assert_eq!(
        (&reason["type"], &reason["location"]["methodName"]),
        (&json!("METHOD_ENTRY"), &json!("twice")),
        "{entry:#}"
    );
    let exit = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(exit["stopReason"]["type"], "METHOD_EXIT", "{exit:#}");
    assert!(exit["stopReason"].to_string().contains("42"), "the value that it returns: {exit:#}");
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.others(), []);
}
