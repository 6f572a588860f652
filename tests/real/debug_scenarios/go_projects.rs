//! Go: a step at a call of C, and a project that is opened through a link.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::requirements::has_program;
use crate::support::run_command;
use crate::support::scenario_sandbox::ScenarioSandbox;

const CALLS_C: &str = "\
package main

/*
static int twice(int order) {
  return order * 2;
}
*/
import \"C\"
import \"fmt\"

func add(order int) int {
\treturn order + 1 // ADD
}

func main() {
\torder := 21
\ttotal := int(C.twice(C.int(order))) // CALL
\ttotal = add(total) // AFTER
\tfmt.Println(total)
}
";

#[test]
fn a_step_into_a_call_of_c_goes_over_it_and_one_into_a_call_of_go_into_it() {
    let Some(stage) = ScenarioSandbox::with("dlv", "main.go", CALLS_C) else { return };
    if !has_program("cc") {
        return;
    }
    stage.breaks("CALL");
    let stopped = stage.json(&["debug", "launch", "main.go", "--wait", "120"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "CALL");
    let stepped = stage.json(&["debug", "step", "into", "--wait", "60"]);
    stage.check(&stepped, "STEP_COMPLETE", "AFTER");
    assert_eq!(ScenarioSandbox::local(&stepped, "total"), "42");
    let stepped = stage.json(&["debug", "step", "into", "--wait", "60"]);
    assert_eq!(stepped["stopReason"]["location"]["methodName"], "main.add", "{stepped:#}");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    stage.nothing_is_left();
}

const MAIN: &str = "\
package main

import (
\t\"example.org/shop/price\"
\t\"fmt\"
)

func main() {
\tfmt.Println(price.Total(3)) // CALL
}
";

const PRICE: &str = "package price\n\nfunc Total(order int) int {\n\ttotal := order * 2\n\treturn total\n}\n";

#[test]
fn a_project_that_is_opened_through_a_link_stops_in_its_packages_and_names_them_as_the_user_does() {
    let Some(stage) = ScenarioSandbox::with("dlv", "real/main.go", MAIN) else { return };
    stage.sandbox.write("real/go.mod", "module example.org/shop\n\ngo 1.19\n");
    stage.sandbox.write("real/price/price.go", PRICE);
    symlink("real", stage.sandbox.path("linked")).unwrap();
    let linked = stage.sandbox.path("linked");
    let tether = |arguments: &[&str]| {
        let mut command =
            stage.sandbox.command([&["--json", "--workspace", linked.to_str().unwrap()], arguments].concat());
        command.current_dir(&linked);
        run_command(command).ok().json()
    };
    tether(&["break", "set", "price/price.go:5"]);
    let stopped = tether(&["debug", "launch", "main.go", "--wait", "120"]);
    let location = &stopped["stopReason"]["location"];
    assert_eq!(
        (&location["sourcePath"], &location["lineNumber"]),
        (&json!("price/price.go"), &json!(5)),
        "{stopped:#}"
    );
    assert_eq!(ScenarioSandbox::local(&stopped, "total"), "6");
    let ended = tether(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    // The supervisor of a workspace that the sandbox does not know.
    tether(&["shutdown"]);
    stage.nothing_is_left();
}
