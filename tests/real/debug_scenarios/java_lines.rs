//! Java: one stop for each pass of a line, and lambdas that are written in one line.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::requirements::installed_jdk;
use crate::support::scenario_sandbox::ScenarioSandbox;

/// The system's JDK, and those that are installed for tests.
fn jdks() -> Vec<Option<PathBuf>> {
    std::iter::once(None).chain([21, 25].into_iter().filter_map(installed_jdk).map(Some)).collect()
}

/// A sandbox whose programs run on that JDK.
fn sandbox_on(jdk: Option<PathBuf>, file: &'static str, text: &str) -> Option<ScenarioSandbox> {
    let mut stage = ScenarioSandbox::with("java", file, text)?;
    stage.sandbox.more_variables.extend(jdk.map(|jdk| ("JAVA_HOME", jdk.into_os_string())));
    Some(stage)
}

/// Runs the program to its end; returns how often each of these markers is passed, by log points.
fn passes(stage: &ScenarioSandbox, markers: &[&str]) -> Vec<(String, usize)> {
    for marker in markers {
        stage.json(&["break", "set", &stage.at(marker), "--log", &format!("passed {marker};")]);
    }
    let ended = stage.json(&["debug", "launch", stage.file, "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    let output = stage.json(&["debug", "output", "--limit", "1000"])["entries"].to_string();
    let count = |marker: &&str| ((*marker).to_owned(), output.matches(&format!("passed {marker};")).count());
    markers.iter().map(count).collect()
}

const LINES: &str = "\
public class Lines {
  static int twice(int number) { return number * 2; }

  static int loops(int turns) {
    int sum = 0;
    for (int at = 0; at < turns; at++) // FOR
      sum += at;
    for (int at = 0; at < turns; at++) { sum += at; } // ONE_LINE
    return sum;
  }

  static int leave(int how) {
    int left = 0;
    try {
      if (how == 0) return 1;
      if (how == 1) throw new IllegalStateException();
      left = 5;
    } catch (IllegalStateException thrown) { // CATCH
      left = 6;
    } finally {
      left = twice(left); // FINALLY
    }
    return left;
  }

  static String join(String one, String other) {
    return String.join(one, // CALL
        other.trim(), // ARGUMENT
        one.trim());
  }

  int field = 5; // FIELD
  Lines() {}
  Lines(int number) { field = number; }

  public static void main(String[] arguments) {
    loops(3);
    for (int how = 0; how < 3; how++) leave(how);
    join(\"a\", \"b\");
    new Lines();
    new Lines(2);
  }
}
";

#[test]
fn a_line_stops_once_for_each_pass_and_on_each_way_out_of_a_try() {
    for jdk in jdks() {
        let Some(stage) = sandbox_on(jdk, "Lines.java", LINES) else { return };
        let expected = [
            // Before the loop, and after each turn.
            ("FOR", 4),
            ("ONE_LINE", 1),
            ("CATCH", 1),
            ("FINALLY", 3),
            ("CALL", 1),
            ("ARGUMENT", 1),
            // In each constructor.
            ("FIELD", 2),
        ];
        let found = passes(&stage, &expected.map(|(marker, _)| marker));
        assert_eq!(found, expected.map(|(marker, count)| (marker.to_owned(), count)));
        stage.nothing_is_left();
    }
}

const CASES: &str = "\
public class Cases {
  sealed interface Shape permits Circle, Square, Pair {}
  record Circle(int radius) implements Shape {}
  record Square(int side) implements Shape {}
  record Pair(Shape one, Shape other) implements Shape {}

  static int size(Shape shape) {
    return switch (shape) { // SWITCH
      case Circle(int radius) when radius > 10 -> radius * 3; // BIG
      case Circle(int radius) -> radius; // SMALL
      case Square square when square.side() > 1 -> square.side(); // SQUARE
      case Square square -> 0; // POINT
      case Pair(Circle(int radius), Square(int side)) -> radius + side; // NESTED
      case Pair pair -> -1; // LAST
    };
  }

  public static void main(String[] arguments) {
    size(new Circle(11));
    size(new Circle(1));
    size(new Square(3));
    size(new Square(1));
    size(new Pair(new Circle(1), new Square(2)));
    size(new Pair(new Square(1), new Square(2)));
  }
}
";

#[test]
fn a_case_stops_once_for_each_value_that_is_matched_with_it_and_the_last_one_not_for_others() {
    for jdk in jdks().into_iter().filter(Option::is_some) {
        let Some(stage) = sandbox_on(jdk, "Cases.java", CASES) else { return };
        let expected =
            [("SWITCH", 6), ("BIG", 2), ("SMALL", 1), ("SQUARE", 2), ("POINT", 1), ("NESTED", 2), ("LAST", 1)];
        let found = passes(&stage, &expected.map(|(marker, _)| marker));
        assert_eq!(found, expected.map(|(marker, count)| (marker.to_owned(), count)));
        stage.nothing_is_left();
    }
}

const LAMBDAS: &str = "\
import java.util.List;
import java.util.function.Function;

public class Lambdas {
  public static void main(String[] arguments) {
    int sum = List.of(1, 2, 3).stream().map(one -> one + 1).filter(two -> two > 2).mapToInt(three -> three).sum(); // CHAIN
    Function<Integer, Function<Integer, Integer>> add = outer -> inner -> outer + inner; add.apply(1).apply(2); // NESTED
    System.out.println(sum);
  }
}
";

/// Sets a breakpoint at words of a line, and runs on with it alone: the functions in which it stops, as often as it does.
fn stops_at(stage: &ScenarioSandbox, marker: &str, words: &str, more: &[&str]) -> Vec<Value> {
    stage.json(&["break", "remove", "--all"]);
    let code = LAMBDAS.lines().nth(stage.line(marker) as usize - 1).unwrap();
    let column = code.find(words).unwrap() + 1;
    stage.json(&[&["break", "set", &format!("{}:{column}", stage.at(marker))][..], more].concat());
    let mut stopped = stage.json(&["debug", "launch", "Lambdas.java", "--wait", "60"]);
    let mut found = Vec::new();
    while stopped["state"] == "STOPPED" {
        let locals = stopped["snapshot"]["locals"].as_array().cloned().unwrap_or_default();
        let names =
            locals.iter().map(|it| format!("{} = {}", it["name"].as_str().unwrap(), it["value"].as_str().unwrap()));
        found.push(json!(names.collect::<Vec<_>>().join(", ")));
        let listed = stage.json(&["break", "list"]);
        assert_eq!(listed["breakpoints"][0]["message"], Value::Null, "{listed:#}");
        stopped = stage.json(&["debug", "continue", "--wait", "60"]);
    }
    found
}

#[test]
fn a_column_chooses_the_lambda_or_the_code_around_it_and_conditions_and_counts_are_of_that() {
    for jdk in jdks() {
        let Some(stage) = sandbox_on(jdk, "Lambdas.java", LAMBDAS) else { return };
        let check = |words: &str, more: &[&str], expected: &[&str]| {
            let marker = if ["add", "outer"].iter().any(|name| words.starts_with(name)) { "NESTED" } else { "CHAIN" };
            assert_eq!(stops_at(&stage, marker, words, more), expected, "{words}");
        };
        check("one + 1", &[], &["one = 1", "one = 2", "one = 3"]);
        check("two > 2", &["--condition", "two == 3"], &["two = 3"]);
        check("three)", &["--hits", "2"], &["three = 4"]);
        check("sum = ", &[], &["arguments = String[0]"]);
        check("outer + inner", &[], &["outer = 1, inner = 2"]);
        check("outer ->", &[], &["outer = 1"]);
        check("add.apply", &[], &["arguments = String[0], sum = 7"]);
        stage.nothing_is_left();
    }
}

#[test]
fn a_condition_is_evaluated_where_its_names_are() {
    let Some(stage) = sandbox_on(None, "Lambdas.java", LAMBDAS) else { return };
    stage.json(&["break", "set", &stage.at("CHAIN"), "--condition", "two == 4"]);
    let stopped = stage.json(&["debug", "launch", "Lambdas.java", "--wait", "60"]);
    assert_eq!(ScenarioSandbox::local(&stopped, "two"), "4", "{stopped:#}");
    let ended = stage.json(&["debug", "continue", "--wait", "60"]);
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    // A name that nothing on the line has is an error, and said.
    stage.json(&["break", "remove", "--all"]);
    stage.json(&["break", "set", &stage.at("CHAIN"), "--condition", "nowhere == 4"]);
    let stopped = stage.json(&["debug", "launch", "Lambdas.java", "--wait", "60"]);
    assert_eq!(stopped["state"], "STOPPED", "{stopped:#}");
    stage.json(&["debug", "stop"]);
    stage.nothing_is_left();
}
