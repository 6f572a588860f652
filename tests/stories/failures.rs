//! What an agent is told of a program that fails, of its secrets, and of the environment that it runs with.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::story::{Story, has_ended, play, session_of};

const PYTHON: &str = "\
import sys

def divide(total, count):
    return total / count  # FAILS

try:
    int('x')
except ValueError:
    print('caught', flush=True)
if len(sys.argv) > 1:
    sys.exit(3)
divide(4, 0)
";
const NODE: &str = "\
function divide(order, count) {
  return order.lines[count].total; // FAILS
}
try {
  null.x;
} catch {
  console.log('caught');
}
async function later() {
  await null;
  throw new Error('handled');
}
later().catch(() => divide({ lines: [] }, 2));
";
const JAVA: &str = "\
public class App {
  static int divide(int total, int count) {
    return total / count; // FAILS
  }
  public static void main(String[] arguments) {
    try {
      Integer.parseInt(\"x\");
    } catch (NumberFormatException caught) {
      System.out.println(\"caught\");
    }
    divide(4, 0);
  }
}
";

/// Stops where nothing catches the exception, and nowhere before; not where it is switched off, nor from the command line.
fn stops_where_it_fails(story: &mut Story, file: &str, (exception, count): (&str, &str)) {
    let stop = story.call("debug_launch", json!({"program": file, "wait": 60}));
    story.is_at(&stop, file, "FAILS");
    assert_eq!(stop["stopReason"]["type"], "EXCEPTION", "{stop:#}");
    assert!(stop["stopReason"].to_string().contains(exception), "{stop:#}");
    assert_eq!(story.evaluate("count"), count);
    assert!(story.printed().contains("caught"), "{}", story.printed());
    let ended = story.resume();
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(1)), "{ended:#}");
    let ended = story.call("debug_launch", json!({"program": file, "wait": 60, "stopOnUncaught": false}));
    has_ended(&ended, 1);
    let ended = story.cli(&["debug", "launch", file, "--wait", "60"]);
    has_ended(&ended, 1);
    // A choice holds for all launches.
    story.call("breakpoint_exceptions", json!({"uncaught": false}));
    has_ended(&story.call("debug_launch", json!({"program": file, "wait": 60})), 1);
}

#[test]
fn told_nothing_of_exceptions_an_agent_is_shown_where_a_python_program_fails() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        stops_where_it_fails(story, "app.py", ("ZeroDivisionError", "0"))
    });
}

#[test]
fn told_nothing_of_exceptions_an_agent_is_shown_where_a_node_program_fails() {
    play(&["node"], &[("app.js", NODE)], |story| stops_where_it_fails(story, "app.js", ("TypeError", "2")));
}

#[test]
fn told_nothing_of_exceptions_an_agent_is_shown_where_a_java_program_fails() {
    play(&["java"], &[("App.java", JAVA)], |story| {
        stops_where_it_fails(story, "App.java", ("ArithmeticException", "0"))
    });
}

#[test]
fn a_python_program_that_exits_has_not_failed() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        let ended = story.call("debug_launch", json!({"program": "app.py", "args": ["exit"], "wait": 60}));
        has_ended(&ended, 3);
    });
}

#[test]
fn told_that_secrets_are_masked_an_agent_sees_the_one_that_it_names() {
    let program = "\
user = 'ann'
password = 'hunter' + '2'
settings = {'api_key': 'abc' + 'def', 'port': 80}
print(user)  # STOP
";
    play(&["debugpy"], &[("app.py", program)], |story| {
        story.breaks("app.py", "STOP");
        let stop = story.launch_to("app.py", "STOP");
        let all = stop["snapshot"].to_string() + &story.call("debug_variables", json!({})).to_string();
        assert!(!all.contains("hunter2") && !all.contains("abcdef"), "{all}");
        assert!(all.contains("'ann'") && all.contains("80"), "{all}");
        assert!(stop["snapshot"]["cut"].to_string().contains("masked secrets"), "{stop:#}");
        let named = story.call("debug_variables", json!({"names": ["password"]}));
        assert_eq!(named["variables"][0]["value"], "'hunter2'", "{named:#}");
        assert_eq!(story.evaluate("password"), "'hunter2'");
    });
}

#[test]
fn a_program_runs_with_the_environment_of_the_front_end_that_launches_it() {
    let program = "import os\nprint(os.environ.get('MY_OWN'), flush=True)\n";
    play(&["debugpy"], &[("app.py", program)], |story| {
        let first = story.call("debug_launch", json!({"program": "app.py", "wait": 60}));
        assert!(!first["notes"].to_string().contains("environment"), "{first:#}");
        let other = story.sandbox.command(["debug", "launch", "app.py", "--wait", "60", "--json"]);
        let output = { other }.env("MY_OWN", "a value").output().unwrap();
        let launched: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(launched["notes"].to_string().contains("MY_OWN"), "{launched:#}");
        assert!(!launched.to_string().contains("a value"), "{launched:#}");
        let session = session_of(&launched);
        let printed = story.cli(&["debug", "output", "--session", &session]);
        assert!(printed.to_string().contains("a value"), "{printed:#}");
    });
}

#[test]
fn told_a_line_by_its_text_a_breakpoint_is_on_it_and_refused_where_the_line_is_another() {
    play(&["debugpy"], &[("app.py", PYTHON)], |story| {
        let set = story.call("breakpoint_set", json!({"file": "app.py", "text": "return total / count"}));
        assert_eq!(set["line"], story.line("app.py", "FAILS"), "{set:#}");
        story.refused("breakpoint_set", json!({"file": "app.py:1", "expect": "divide(4"}), "it is `import sys`");
        story.refused("breakpoint_set", json!({"file": "app.py", "text": "divide("}), "give the line");
        assert_eq!(story.call("breakpoint_list", json!({}))["breakpoints"].as_array().unwrap().len(), 1);
        // Objects and words that agents write.
        story.call("breakpoint_remove", json!({"all": true}));
        let breakpoints = json!([{"file": "app.py", "text": "return total", "condition": "count == 0"}]);
        let stop = story.call("debug_launch", json!({"program": "app.py", "breakpoints": breakpoints, "wait": true}));
        story.is_at(&stop, "app.py", "FAILS");
        assert_eq!(stop["stopReason"]["type"], "BREAKPOINT_HIT", "{stop:#}");
        let step = story.call("debug_step", json!({"kind": "in", "wait": "60"}));
        assert_eq!(step["stopReason"]["type"], "STEP_COMPLETE", "{step:#}");
        let both = json!(["app.py:1", {"file": "app.py", "text": "nothing has this"}]);
        let mut other = Agent::start(&story.sandbox);
        other.refused("debug_launch", json!({"program": "app.py", "breakpoints": both}));
        let left = story.call("breakpoint_list", json!({}));
        assert_eq!(left["breakpoints"].as_array().unwrap().len(), 1, "all or none: {left:#}");
    });
}
