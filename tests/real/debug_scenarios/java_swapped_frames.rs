//! Java: frames whose method was swapped while it ran.

use serde_json::{Value, json};

use crate::support::scenario_sandbox::ScenarioSandbox;

const SWAPPED: &str = "\
public class Swapped {
  static int work(int order) {
    int total = order * 2;
    int more = total + 1; // STOP
    int most = more + 1; // NEXT
    return most;
  }

  static int caller(int order) {
    int own = order + 100;
    int result = work(order); // CALL
    return result + own;
  }

  public static void main(String[] arguments) {
    for (int order = 1; order < 100000; order++) {
      caller(order);
    }
    System.out.println(\"end\");
  }
}
";

/// The session and its first stop, at the marked line.
fn stopped_in_work(stage: &ScenarioSandbox) -> (String, Value) {
    stage.breaks("STOP");
    let stopped = stage.json(&["debug", "launch", stage.file, "--wait", "60"]);
    stage.check(&stopped, "BREAKPOINT_HIT", "STOP");
    (stopped["sessionId"].as_str().unwrap().to_owned(), stopped)
}

fn swap(stage: &ScenarioSandbox, id: &str, text: &str) {
    stage.sandbox.write(stage.file, text);
    let swapped = stage.json(&["debug", "launch", "--restart", id, "--swap"]);
    assert!(swapped["notes"].to_string().contains("swapped into the running program"), "{swapped:#}");
}

fn frames(stage: &ScenarioSandbox) -> Vec<(String, i64)> {
    let stack = stage.json(&["debug", "stack"]);
    let found = stack["frames"].as_array().unwrap_or_else(|| panic!("{stack:#}"));
    found.iter().map(|it| (it["name"].as_str().unwrap().to_owned(), it["line"].as_i64().unwrap_or(0))).collect()
}

fn value_of(variables: &Value, name: &str) -> Option<String> {
    let found = variables["variables"].as_array()?.iter().find(|it| it["name"] == name)?;
    found["value"].as_str().map(str::to_owned)
}

#[test]
fn a_method_that_is_swapped_while_it_runs_is_shown_as_old_code_and_the_program_lives() {
    let Some(stage) = ScenarioSandbox::with("java", "Swapped.java", SWAPPED) else { return };
    let (id, launched) = stopped_in_work(&stage);
    let edited = SWAPPED.replace("int total", "\n\n    int total").replace("order * 2", "order * 3");
    swap(&stage, &id, &edited.replace("order + 100", "order + 200"));
    let stop = stage.line("STOP") as i64;

    let seen = frames(&stage);
    let call = stage.line("CALL") as i64;
    assert_eq!(seen[0], ("Swapped.work [old code]".to_owned(), stop), "{seen:?}");
    assert_eq!(seen[1], ("Swapped.caller [old code]".to_owned(), call), "{seen:?}");
    assert_eq!(seen[2].0, "Swapped.main", "{seen:?}");
    // What was known of the old code before is still known: its variables, and its text.
    let variables = stage.json(&["debug", "variables"]);
    assert_eq!(value_of(&variables, "total").as_deref(), Some("2"), "{variables:#}");
    assert_eq!(stage.json(&["debug", "evaluate", "total + order"])["result"], "3");
    let source = stage.json(&["debug", "source"]);
    let marked = source["text"].as_str().unwrap().lines().find(|line| line.starts_with('→')).unwrap().to_owned();
    assert!(marked.ends_with("STOP"), "{source:#}");

    // The old code runs on to its end. The virtual machine has no lines for it: a step is one of its instructions.
    let mut line = stop;
    for _ in 0..10 {
        let stepped = stage.json(&["debug", "step", "over", "--wait", "60"]);
        line = stepped["stopReason"]["location"]["lineNumber"].as_i64().unwrap_or_else(|| panic!("{stepped:#}"));
        if line != stop {
            break;
        }
    }
    assert_eq!(line, stop + 1);
    let seen = frames(&stage);
    assert_eq!(seen[0], ("Swapped.work [old code]".to_owned(), stop + 1), "{seen:?}");
    assert_eq!(seen[1].0, "Swapped.caller [old code]", "{seen:?}");
    stage.json(&["debug", "evaluate", "more"]);

    // The next call is of the new code.
    let again = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(again["stopReason"]["location"]["lineNumber"], stop + 2, "{again:#}");
    assert_eq!(ScenarioSandbox::local(&again, "total"), "6", "{again:#}");
    let seen = frames(&stage);
    assert_eq!((seen[0].0.as_str(), seen[1].0.as_str()), ("Swapped.work", "Swapped.caller"), "{seen:?}");
    let status = stage.json(&["debug", "status"]);
    assert_eq!((&status["pid"], &status["state"]), (&launched["pid"], &json!("STOPPED")), "{status:#}");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

#[test]
fn a_program_that_is_paused_in_old_code_after_several_swaps_is_looked_at_without_harm() {
    let text = SWAPPED.replace("order < 100000", "order < 3");
    let Some(stage) = ScenarioSandbox::with("java", "Swapped.java", &text) else { return };
    let (id, _) = stopped_in_work(&stage);
    for factor in ["3", "4", "5"] {
        swap(&stage, &id, &text.replace("order * 2", &format!("order * {factor}")));
        assert_eq!(frames(&stage)[0].0, "Swapped.work [old code]");
    }
    assert_eq!(stage.json(&["debug", "evaluate", "total"])["result"], "2");
    let out = stage.json(&["debug", "step", "out", "--wait", "60"]);
    assert_eq!(out["state"], "STOPPED", "{out:#}");
    let again = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ScenarioSandbox::local(&again, "total"), "10", "{again:#}");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!((&ended["state"], &ended["exitCode"]), (&json!("TERMINATED"), &json!(0)), "{ended:#}");
    stage.nothing_is_left();
}

/// The folder that the running program's classes were compiled into.
fn compiled_folder(stage: &ScenarioSandbox) -> std::path::PathBuf {
    let lines = stage.others().into_iter().map(|(_, line)| line).collect::<Vec<_>>();
    let paths = lines.iter().find_map(|line| line.split_once("-classpath ")).unwrap_or_else(|| panic!("{lines:?}")).1;
    paths.split([':', ' ']).next().unwrap().into()
}

#[test]
fn a_swap_that_the_program_has_taken_is_answered_as_done_whatever_fails_after_it() {
    let Some(stage) = ScenarioSandbox::with("java", "Swapped.java", SWAPPED) else { return };
    let (id, _) = stopped_in_work(&stage);
    // The new class cannot be written over it.
    let class = compiled_folder(&stage).join("Swapped.class");
    std::fs::remove_file(&class).unwrap();
    std::fs::create_dir(&class).unwrap();
    swap(&stage, &id, &SWAPPED.replace("int total = order * 2;", "int total = order * 3;\n"));
    let output = stage.json(&["debug", "output"]).to_string();
    assert!(output.contains("classes that are loaded from now on may be those of before the swap"), "{output}");
    // Its breakpoint is bound to the new code.
    let again = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(again["stopReason"]["location"]["lineNumber"], stage.line("STOP") + 1, "{again:#}");
    assert_eq!(ScenarioSandbox::local(&again, "total"), "6", "{again:#}");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}

fn ticker(class: &str) -> String {
    let text = "\
public class NAME {
  static void tick() { System.out.println(\"NAME old\"); }

  public static void main(String[] arguments) throws Exception {
    for (;;) {
      tick();
      Thread.sleep(50);
    }
  }
}
";
    text.replace("NAME", class)
}

fn wait_for_output(stage: &ScenarioSandbox, words: &[&str]) {
    crate::support::eventually("output", || {
        let output = stage.json(&["debug", "output"]).to_string();
        words.iter().all(|words| output.contains(words)).then_some(())
    });
}

#[test]
fn changed_code_is_swapped_into_each_program_of_a_session() {
    let Some(stage) = ScenarioSandbox::with("java", "First.java", &ticker("First")) else { return };
    stage.sandbox.write("Second.java", &ticker("Second"));
    let launched = stage.json(&["debug", "launch", "--programs", "First.java", "Second.java"]);
    let id = launched["sessionId"].as_str().unwrap().to_owned();
    wait_for_output(&stage, &["First old", "Second old"]);
    let swap = || stage.json(&["debug", "launch", "--restart", &id, "--swap"])["notes"].to_string();
    stage.sandbox.write("First.java", &ticker("First").replace("First old", "First new"));
    stage.sandbox.write("Second.java", &ticker("Second").replace("Second old", "Second new"));
    let notes = swap();
    assert!(notes.contains("First (First.java)") && notes.contains("Second (Second.java)"), "{notes}");
    wait_for_output(&stage, &["First new", "Second new"]);
    assert_ne!(stage.json(&["debug", "status"])["stale"], true);

    // One that cannot take the change is named, and so are those that could.
    let with_method = "static int added() { return 1; }\n  static void tick";
    stage.sandbox.write("First.java", &ticker("First").replace("First old", "First third"));
    stage.sandbox.write("Second.java", &ticker("Second").replace("static void tick", with_method));
    let notes = swap();
    for words in ["Second.java: a method was added", "First.java took it", "launched again"] {
        assert!(notes.contains(words), "{notes}");
    }
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}
