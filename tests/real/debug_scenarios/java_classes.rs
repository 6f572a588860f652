//! Java's classes: breakpoints by class and line.

use serde_json::json;

use crate::support::scenario_sandbox::ScenarioSandbox;

const SERVICE: &str = "\
package com.example;

public class OrderService {
  public int total(int order) {
    int result = order * 2; // TOTAL
    Runnable inner = () -> {
      int local = order + 1; // LAMBDA
    };
    inner.run();
    return result;
  }

  public static class Line {
    public int price = 3; // NESTED
  }
}
";

const APP: &str = "\
import com.example.OrderService;

public class App {
  public static void main(String[] arguments) {
    System.out.println(new OrderService().total(21) + new OrderService.Line().price);
  }
}
";

fn line_of(marker: &str) -> String {
    let line = SERVICE.lines().position(|line| line.ends_with(marker)).unwrap() + 1;
    line.to_string()
}

#[test]
fn a_breakpoint_on_a_line_of_a_class_waits_for_it_and_is_listed_under_its_name() {
    let Some(stage) = ScenarioSandbox::with("java", "App.java", APP) else { return };
    stage.sandbox.write("com/example/OrderService.java", SERVICE);
    let place = format!("com.example.OrderService:{}", line_of("TOTAL"));
    let set = stage.json(&["break", "set", "--class", &place]);
    let class = json!("com.example.OrderService");
    assert_eq!((&set["state"], &set["className"], &set["file"]), (&json!("pending"), &class, &json!(null)), "{set:#}");
    for (marker, condition) in [("LAMBDA", ["--log", "logged {order}"]), ("NESTED", ["--condition", "price == 0"])] {
        stage.json(
            &[&["break", "set", "--class", "com.example.OrderService", "--line", &line_of(marker)][..], &condition]
                .concat(),
        );
    }
    let stopped = stage.json(&["debug", "launch", "App.java", "--wait", "60"]);
    let reason = &stopped["stopReason"];
    assert_eq!((&reason["type"], &reason["location"]["className"]), (&json!("BREAKPOINT_HIT"), &class), "{stopped:#}");
    assert_eq!(reason["location"]["lineNumber"].to_string(), line_of("TOTAL"));
    assert_eq!(reason["details"]["breakpointId"], set["breakpointId"], "{stopped:#}");
    let list = stage.json(&["break", "list"]);
    let own = |index: usize| &list["breakpoints"][index];
    assert_eq!((&own(0)["state"], &own(0)["hitCount"]), (&json!("verified"), &json!(1)), "{list:#}");
    let waits = &own(2)["message"];
    assert_eq!((&own(2)["state"], &own(2)["className"]), (&json!("pending"), &class), "{list:#}");
    assert!(waits.as_str().is_some_and(|text| text.contains("no loaded class")), "{list:#}");
    let nested = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(nested["stopReason"]["location"]["className"], "com.example.OrderService$Line", "{nested:#}");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    let output = stage.json(&["debug", "output"])["entries"].to_string();
    assert!(output.contains("logged 21") && output.contains("45"), "{output}");
    stage.nothing_is_left();
}

#[test]
fn a_breakpoint_by_class_is_unknown_to_another_language() {
    let Some(stage) = ScenarioSandbox::with("debugpy", "app.py", "print('up')\ninput()\n") else { return };
    stage.json(&["break", "set", "--class", "com.example.OrderService:3"]);
    stage.breaks("print('up')");
    stage.json(&["debug", "launch", "app.py", "--wait", "60"]);
    let list = stage.json(&["break", "list"]);
    let own = &list["breakpoints"][0];
    assert_eq!(own["state"], "unbound", "{list:#}");
    assert!(own["message"].as_str().unwrap().contains("only Java"), "{list:#}");
    stage.json(&["debug", "stop"]);
}
