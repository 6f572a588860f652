//! `debug status` at stops of the virtual machine, field by field as `api.md` names them.

use serde_json::{Value, json};

use crate::support::scenario_sandbox::ScenarioSandbox;

const ORDERS: &str = "\
public class Orders {
  static class Sum {
    int of(int order) {
      return order * 2; // STOP
    }
  }

  public static void main(String[] arguments) throws InterruptedException {
    Thread thread = new Thread(() -> System.out.println(new Sum().of(21)), \"worker\");
    thread.start();
    thread.join();
    try {
      throw new IllegalStateException(\"no order\"); // THROW
    } catch (IllegalStateException refused) {
      System.out.println(refused);
    }
  }
}
";

/// Every path to a null.
fn nulls(value: &Value, path: &str) -> Vec<String> {
    match value {
        Value::Null => vec![path.to_owned()],
        Value::Array(items) => items.iter().flat_map(|item| nulls(item, &format!("{path}[]"))).collect(),
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, field)| nulls(field, &format!("{path}.{name}"))).collect()
        }
        _ => Vec::new(),
    }
}

fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_status_of_a_stop_has_every_field_that_the_virtual_machine_knows() {
    let Some(stage) = ScenarioSandbox::with("java", "Orders.java", ORDERS) else { return };
    let set = stage.breaks("STOP");
    let launched = stage.json(&["debug", "launch", "Orders.java", "--wait", "60"]);
    let status = stage.json(&["debug", "status"]);
    assert_eq!(nulls(&status, ""), [""; 0], "{status:#}");
    let expected = [
        "adapter",
        "connected",
        "name",
        "pid",
        "runningThreads",
        "sessionId",
        "stale",
        "startedAt",
        "state",
        "stopReason",
        "suspendedThreads",
        "targets",
        "vmName",
    ];
    // The adapter is no process of its own; nothing was thrown.
    assert_eq!(names(&status), expected, "{status:#}");
    assert_eq!(
        (&status["sessionId"], &status["adapter"], &status["connected"], &status["state"], &status["stale"]),
        (&launched["sessionId"], &json!("java"), &json!(true), &json!("STOPPED"), &json!(false))
    );
    assert!(status["vmName"].as_str().unwrap().contains("VM") && status["pid"].as_u64() > Some(1), "{status:#}");
    let reason = &status["stopReason"];
    let thread = &status["suspendedThreads"][0];
    let location = json!({
        "className": "Orders$Sum", "methodName": "of", "lineNumber": stage.line("STOP"), "sourcePath": "Orders.java",
    });
    let details = json!({"breakpointId": set["breakpointId"], "hitCount": 1});
    let expected = json!({
        "type": "BREAKPOINT_HIT", "threadId": thread["threadId"], "threadName": "worker", "location": location,
        "details": details,
    });
    assert_eq!(reason, &expected, "{status:#}");
    assert_eq!((&thread["name"], &thread["stopReason"]), (&json!("worker"), reason));
    let running = status["runningThreads"].as_array().unwrap();
    let main = running.iter().find(|thread| thread["name"] == "main").unwrap();
    assert_eq!((names(main), &main["state"]), (vec!["name", "state", "threadId"], &json!("waiting")), "it joins");
    let target = &status["targets"][0];
    assert_eq!(names(target), ["language", "name", "pid", "state", "targetId", "threadIds"], "{status:#}");
    assert_eq!((&target["language"], &target["pid"]), (&json!("java"), &status["pid"]));
    assert_eq!(target["threadIds"].as_array().unwrap().len(), running.len() + 1, "{status:#}");

    stage.json(&["break", "exceptions", "--caught"]);
    stage.json(&["debug", "continue", "--wait", "60"]);
    let status = stage.json(&["debug", "status"]);
    assert_eq!(nulls(&status, ""), [""; 0], "{status:#}");
    let reason = &status["stopReason"];
    assert_eq!((&reason["type"], &reason["threadName"]), (&json!("EXCEPTION"), &json!("main")), "{status:#}");
    assert_eq!(reason["location"]["lineNumber"], stage.line("THROW"));
    assert_eq!(reason["details"]["exceptionType"], "java.lang.IllegalStateException");
    let exception = &status["exception"];
    assert_eq!(names(exception), ["class", "message", "stack"], "{status:#}");
    assert_eq!(
        (&exception["class"], &exception["message"]),
        (&json!("java.lang.IllegalStateException"), &json!("no order"))
    );
    let frame = format!("at Orders.main(Orders.java:{})", stage.line("THROW"));
    assert!(exception["stack"].as_str().unwrap().contains(&frame), "{status:#}");
    stage.json(&["debug", "stop"]);
    assert_eq!(stage.others(), []);
}
