//! Java's classes: breakpoints by class and line, hot swap.

use std::io::{Read, Write};

use serde_json::json;

use crate::support::scenario_sandbox::ScenarioSandbox;
use crate::support::{JDWP_PORT, compile_java, java_listening};

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

const SERVER: &str = "\
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

public class Server {
  static String answer(int count) {
    String text = \"old \" + count;
    return text; // ANSWER
  }

  public static void main(String[] arguments) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress(\"127.0.0.1\", 0), 0);
    int[] count = {0};
    server.createContext(\"/\", exchange -> {
      byte[] body = answer(++count[0]).getBytes(StandardCharsets.UTF_8);
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.start();
    System.out.println(\"up on \" + server.getAddress().getPort());
  }
}
";

/// What the program has printed, once it contains the words.
fn printed(stage: &ScenarioSandbox, words: &str) -> String {
    crate::support::eventually("output", || {
        let entries = stage.json(&["debug", "output"])["entries"].clone();
        let texts = entries.as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap());
        Some(texts.collect::<String>()).filter(|text| text.contains(words))
    })
}

fn request(port: u16) -> String {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.rsplit("\r\n").next().unwrap().to_owned()
}

#[test]
fn a_changed_method_is_swapped_into_a_running_service_and_seen_by_its_next_request() {
    let Some(stage) = ScenarioSandbox::with("java", "Server.java", SERVER) else { return };
    let launched = stage.json(&["debug", "launch", "Server.java"]);
    let id = launched["sessionId"].as_str().unwrap().to_owned();
    let output = printed(&stage, "up on ");
    let port: u16 = output.trim().rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(request(port), "old 1");
    let swap = || stage.json(&["debug", "launch", "--restart", &id, "--swap"]);
    let notes = |report: &serde_json::Value| report["notes"].to_string();
    let unchanged = swap();
    assert!(notes(&unchanged).contains("none of the loaded classes has changed"), "{unchanged:#}");

    stage.sandbox.write("Server.java", &SERVER.replace("\"old \"", "\"new \""));
    assert_eq!(stage.json(&["debug", "status"])["stale"], true);
    let swapped = swap();
    assert!(notes(&swapped).contains("swapped into the running program: Server"), "{swapped:#}");
    assert_eq!((&swapped["sessionId"], &swapped["pid"]), (&json!(id), &launched["pid"]), "{swapped:#}");
    assert_eq!(request(port), "new 2", "the next request of the same process");
    assert_ne!(stage.json(&["debug", "status"])["stale"], true);

    // A breakpoint in the class stays, and moves with its code.
    stage.breaks("ANSWER");
    let line = stage.line("ANSWER");
    stage.sandbox.write("Server.java", &SERVER.replace("    String text = \"old \"", "\n    String text = \"third \""));
    assert!(notes(&swap()).contains("swapped into"));
    let asking = std::thread::spawn(move || request(port));
    let stopped = stage.json(&["debug", "wait", "60"]);
    let reason = &stopped["stopReason"];
    assert_eq!(
        (&reason["type"], &reason["location"]["lineNumber"]),
        (&json!("BREAKPOINT_HIT"), &json!(line + 1)),
        "{stopped:#}"
    );
    assert_eq!(ScenarioSandbox::local(&stopped, "text"), "\"third 3\"");
    stage.json(&["debug", "continue"]);
    assert_eq!(asking.join().unwrap(), "third 3");

    // What does not compile changes nothing.
    stage.sandbox.write("Server.java", &SERVER.replace("return text;", "return 1;"));
    stage
        .sandbox
        .tether(&["debug", "launch", "--restart", &id, "--swap"])
        .fails(1, &["cannot swap the changed code", "incompatible types"]);
    stage.json(&["break", "remove", "--all"]);
    assert_eq!(request(port), "third 4");

    // A method that is added is not taken: the program is launched anew, and that is said.
    let added =
        SERVER.replace("  static String answer", "  static int added() { return 1; }\n\n  static String answer");
    stage.sandbox.write("Server.java", &added.replace("\"old \"", "\"fourth \""));
    let anew = swap();
    assert!(notes(&anew).contains("a method was added") && notes(&anew).contains("launched again"), "{anew:#}");
    assert_ne!(anew["pid"], launched["pid"]);
    let output = printed(&stage, "up on ");
    let port: u16 = output.trim().rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(request(port), "fourth 1");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn the_classes_that_a_build_has_changed_are_swapped_into_a_program_that_was_attached_to() {
    let Some(stage) = ScenarioSandbox::with("java", "Server.java", SERVER) else { return };
    compile_java(&stage.sandbox.path("Server.java"));
    let (_running, line) = stage.starts(java_listening(&stage.sandbox.workspace, "Server", false), JDWP_PORT);
    let attached = stage.json(&["debug", "attach", line.strip_prefix(JDWP_PORT).unwrap(), "--language", "java"]);
    let id = attached["sessionId"].as_str().unwrap();
    stage.sandbox.write("Server.java", &SERVER.replace("\"old \"", "\"new \""));
    compile_java(&stage.sandbox.path("Server.java"));
    let swapped = stage.json(&["debug", "launch", "--restart", id, "--swap"]);
    assert!(swapped["notes"].to_string().contains("swapped into the running program: Server"), "{swapped:#}");
    // Who attaches to a program does not launch it anew.
    let added =
        SERVER.replace("  static String answer", "  static int added() { return 1; }\n\n  static String answer");
    stage.sandbox.write("Server.java", &added);
    compile_java(&stage.sandbox.path("Server.java"));
    let refused = stage.sandbox.tether(&["debug", "launch", "--restart", id, "--swap"]);
    refused.fails(1, &["cannot swap the changed code", "a method was added", "start it again"]);
    assert_eq!(stage.json(&["debug", "status"])["state"], "RUNNING");
    assert_eq!(stage.json(&["debug", "stop"])["state"], "TERMINATED");
}
