//! Breakpoints with a column: on the second of two calls in a line, and in a function that is written in a line.

use devtether::debug::Resume;
use devtether::debug::breakpoints::{BindingStatus, BreakpointConditions, LinePosition};

use crate::adapter_features::project::{Language, Project, ProjectFile};
use crate::adapter_features::sessions::{FeatureSession, FeatureSessions};

const PYTHON: ProjectFile = (
    "app.py",
    r#"
calls = 0

def one():
    global calls
    calls += 1
    return 1

def two():
    return 2

def main():
    for number in range(3):
        value = one() + two()  # CALLS
    inner = lambda: value + 40; inner()  # LAMBDA
    print("up", flush=True)

main()
"#,
);

const JAVASCRIPT: ProjectFile = (
    "app.js",
    r#"
let calls = 0;

function one() {
  calls += 1;
  return 1;
}

function two() {
  return 2;
}

function main() {
  let value = 0;
  for (let number = 0; number < 3; number += 1) {
    value = one() + two(); // CALLS
  }
  [1].forEach(() => value + 40); // LAMBDA
  console.log("up");
}

main();
"#,
);

const RUBY: ProjectFile = (
    "app.rb",
    r#"
$calls = 0

def one
  $calls += 1
  1
end

def two
  2
end

def main
  value = 0
  3.times do
    value = one() + two() # CALLS
  end
  [1].each { value + 40 } # LAMBDA
  puts "up"
end

main
"#,
);

const GO: ProjectFile = (
    "app.go",
    r#"
package main

import "fmt"

var calls = 0

func one() int {
	calls += 1
	return 1
}

func two() int {
	return 2
}

func main() {
	value := 0
	for number := 0; number < 3; number++ {
		value = one() + two() // CALLS
	}
	inner := func() int { return value + 40 }; value = inner() // LAMBDA
	fmt.Println("up", value)
}
"#,
);

const CPP: ProjectFile = (
    "app.cpp",
    r#"
#include <cstdio>

int calls = 0;

int one() {
  calls += 1;
  return 1;
}

int two() {
  return 2;
}

int main() {
  int value = 0;
  for (int number = 0; number < 3; number += 1) {
    value = one() + two(); // CALLS
  }
  auto inner = [value] { return value + 40; }; value = inner(); // LAMBDA
  puts("up");
}
"#,
);

const JAVA: ProjectFile = (
    "App.java",
    r#"
public class App {
  static int calls;

  static int one() {
    calls += 1;
    return 1;
  }

  static int two() {
    return 2;
  }

  public static void main(String[] arguments) {
    int value = 0;
    for (int number = 0; number < 3; number += 1) {
      value = one() + two(); // CALLS
    }
    int all = value; java.util.function.IntSupplier inner = () -> all + 40; inner.getAsInt(); // LAMBDA
    System.out.println("up");
  }
}
"#,
);

/// What is done at a column: in the second call, and in a function in the line.
pub type ColumnResults = [Result<(), String>; 2];

pub async fn stops_at_columns(adapter: &'static str) -> ColumnResults {
    let language = Language::of(adapter);
    let (file, text) = match language {
        Language::Python => PYTHON,
        Language::JavaScript => JAVASCRIPT,
        Language::Ruby => RUBY,
        Language::Go => GO,
        Language::Cpp => CPP,
        Language::Java => JAVA,
    };
    let inner = if language == Language::Java { "all + 40" } else { "value + 40" };
    let module = ("go.mod", "module example.com/app\n\ngo 1.19\n");
    let project = Project::with_files(adapter, &[(file, text), module]);
    let program = project.program("", &[file]);
    let stage = FeatureSessions::of(&project.workspace);
    let at = |marker: &str, words: &str| {
        let line = project.line(file, marker);
        let code = text.lines().nth(line as usize - 1).unwrap();
        let column = code[..code.find(words).unwrap()].encode_utf16().count() as u32 + 1;
        LinePosition { line, column: Some(column) }
    };
    let set = async |marker: &str, words: &str| {
        let conditions = BreakpointConditions::default();
        stage.sessions.set_line_breakpoint(&project.path(file), at(marker, words), conditions).await.unwrap().spec.id
    };
    let in_line = set("CALLS", "two()").await;
    let session = stage.start(project.request(&program)).await;
    let mut outcomes = Vec::new();
    let (_, main, line) = session.stopped().await;
    assert_eq!(line, project.line(file, "CALLS"));
    let first = calls(&session, language).await;
    let (_, _, again) = session.then(Resume::Continue).await;
    let second = calls(&session, language).await;
    assert_eq!((again, second), (line, first + 1), "{adapter}: a stop in each turn");
    assert!(first <= 1, "{adapter}: {first}");
    outcomes.push(reported(&stage, in_line, first == 1).await);
    stage.sessions.remove_breakpoints(|_| true).await.unwrap();
    let in_lambda = set("LAMBDA", inner).await;
    let (_, function, line) = session.then(Resume::Continue).await;
    assert_eq!(line, project.line(file, "LAMBDA"));
    outcomes.push(reported(&stage, in_lambda, function != main).await);
    session.managed.stop(Some(false)).await;
    stage.end().await;
    outcomes.try_into().unwrap()
}

/// How often the first function of the line has been called.
async fn calls(session: &FeatureSession, language: Language) -> u32 {
    let name = match language {
        Language::Ruby => "$calls",
        Language::Java => "App.calls",
        _ => "calls",
    };
    let value = session.evaluate(name).await;
    value.trim().parse().unwrap_or_else(|_| panic!("{value}"))
}

/// Whether the column was honoured; the breakpoint says it where not.
async fn reported(stage: &FeatureSessions, id: u32, is_honoured: bool) -> Result<(), String> {
    let listed = stage.sessions.list_breakpoints().await;
    let it = listed.into_iter().find(|it| it.spec.id == id).unwrap();
    let BindingStatus::Verified { note, .. } = it.status else { panic!("{:?}", it.status) };
    let note = note.unwrap_or_default();
    assert_eq!(note.is_empty(), is_honoured, "{note}");
    let words = note.rsplit_once(": ").map_or(note.as_str(), |(_, words)| words);
    if is_honoured { Ok(()) } else { Err(words.to_owned()) }
}
