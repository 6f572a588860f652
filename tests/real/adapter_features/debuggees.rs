//! One program in every language: it calls a function in a loop, throws, and then runs for ever. Its lines are found by
//! the markers at their ends.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use devtether::adapters::FoundAdapter;

use crate::adapter_features::project::run;

const PYTHON: &str = r#"
import time

def total(order):
    result = order * 2  # STOP
    return result  # LOG

def main():
    number = 0
    while number < 5:
        value = total(number)  # CALL
        number += 1  # AFTER
    try:
        raise ValueError("no")  # THROW
    except ValueError:
        print("up", flush=True)
    while True:
        time.sleep(0.01)  # SPIN

main()
"#;

const JAVASCRIPT: &str = r#"
const state = { shared: 0 };

function total(order) {
  const result = order * 2; // STOP
  state.shared = result;
  return result; // LOG
}

function main() {
  let number = 0, value = 0;
  while (number < 5) {
    value = total(number); // CALL
    number += 1; // AFTER
  }
  try {
    throw new TypeError("no"); // THROW
  } catch {
    console.log("up");
  }
}

main();
setInterval(() => {
  Math.sqrt(2); // SPIN
}, 10);
"#;

const RUBY: &str = r#"
def total(order)
  result = order * 2 # STOP
  result # LOG
end

def main
  number = 0
  value = 0
  while number < 5
    value = total(number) # CALL
    number += 1 # AFTER
  end
  begin
    raise ArgumentError, "no" # THROW
  rescue ArgumentError
    puts "up"
  end
  while true
    sleep 0.01 # SPIN
  end
end

main
"#;

const GO: &str = r#"
package main

import (
	"fmt"
	"time"
)

func total(order int) int {
	result := order * 2 // STOP
	return result // LOG
}

func main() {
	number, value := 0, 0
	for number < 5 {
		value = total(number) // CALL
		number += 1 // AFTER
	}
	fmt.Println("up", value)
	for tick := 0; tick < 100000; tick++ {
		time.Sleep(10 * time.Millisecond) // SPIN
	}
	panic("no") // THROW
}
"#;

const CPP: &str = r#"
#include <cstdio>
#include <stdexcept>
#include <sys/prctl.h>
#include <unistd.h>

int shared = 0;

int total(int order) {
  int result = order * 2; // STOP
  shared = result;
  return result; // LOG
}

int main() {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  int number = 0, value = 0;
  while (number < 5) {
    value = total(number); // CALL
    number += 1; // AFTER
  }
  try {
    throw std::runtime_error("no"); // THROW
  } catch (const std::exception &) {
    puts("up");
    fflush(stdout);
  }
  for (;;) {
    usleep(10000); // SPIN
  }
}
"#;

const RUST: &str = r#"
fn total(order: i32) -> i32 {
    let result = order * 2; // STOP
    result // LOG
}

fn main() {
    let mut number = 0;
    let mut value = 0;
    while number < 5 {
        value = total(number); // CALL
        number += 1; // AFTER
    }
    println!("up {value}");
    loop {
        std::thread::sleep(std::time::Duration::from_millis(10)); // SPIN
    }
}
"#;

const JAVA: &str = r#"
public class App {
  static int shared;

  static int total(int order) {
    int result = order * 2; // STOP
    shared = result;
    return result; // LOG
  }

  public static void main(String[] arguments) throws InterruptedException {
    int number = 0, value = 0;
    while (number < 5) {
      value = total(number); // CALL
      number += 1; // AFTER
    }
    try {
      throw new IllegalStateException("no"); // THROW
    } catch (IllegalStateException caught) {
      System.out.println("up");
    }
    while (true) {
      Thread.sleep(10); // SPIN
    }
  }
}
"#;

/// The program that the script runs, with what it expects of the adapter.
pub struct Subject {
    pub adapter: &'static str,
    pub found: FoundAdapter,
    pub folder: tempfile::TempDir,
    pub source: PathBuf,
    /// The file to launch.
    pub program: PathBuf,
    lines: BTreeMap<String, u32>,
    /// The class of the thrown exception, where the adapter reports it.
    pub class: Option<&'static str>,
    /// A variable or a property that can be watched.
    pub data: Option<&'static str>,
}

impl Subject {
    pub fn line(&self, marker: &str) -> u32 {
        self.lines[marker]
    }

    pub fn workspace(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }
}

/// The program in an adapter's language. `None`, reported, when the adapter is not installed.
pub fn of(adapter: &'static str) -> Option<Subject> {
    let (_, found) = crate::support::requirements::installed_adapter(adapter)?;
    let (name, text, class) = match adapter {
        "debugpy" => ("äpp one.py", PYTHON, Some("ValueError")),
        "js-debug" | "node" => ("äpp one.js", JAVASCRIPT, Some("TypeError")),
        "rdbg" => ("äpp one.rb", RUBY, Some("ArgumentError")),
        "dlv" => ("main.go", GO, None),
        "java" => ("App.java", JAVA, Some("java.lang.IllegalStateException")),
        _ => ("äpp one.cpp", CPP, None),
    };
    Some(written(adapter, found, (name, text, class)))
}

/// The same for a native debugger, in Rust.
pub fn in_rust(adapter: &'static str) -> Option<Subject> {
    let (_, found) = crate::support::requirements::installed_adapter(adapter)?;
    Some(written(adapter, found, ("main.rs", RUST, None)))
}

fn written(
    adapter: &'static str,
    found: FoundAdapter,
    (name, text, class): (&str, &str, Option<&'static str>),
) -> Subject {
    let folder = tempfile::Builder::new().prefix("tether äbilities ").tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    let source = workspace.join(name);
    std::fs::write(&source, text).unwrap();
    let program = match adapter {
        "dlv" => {
            std::fs::write(workspace.join("go.mod"), "module example.com/app\n\ngo 1.19\n").unwrap();
            let program = workspace.join("built app");
            // As Delve needs it: without optimizations and inlining.
            run(Command::new("go").args(["build", "-gcflags=all=-N -l", "-o"]).arg(&program).current_dir(&workspace));
            program
        }
        _ if text == CPP => {
            let program = workspace.join("built app");
            run(Command::new("c++").args(["-g", "-O0", "-o"]).arg(&program).arg(&source));
            program
        }
        _ if text == RUST => {
            let program = workspace.join("built app");
            run(Command::new("rustc").args(["-g", "-o"]).arg(&program).arg(&source));
            program
        }
        _ => source.clone(),
    };
    let lines = (1..).zip(text.lines()).filter_map(|(number, line)| Some((marker(line)?.to_owned(), number))).collect();
    let data = match text {
        JAVASCRIPT => Some("state.shared"),
        CPP | JAVA => Some("shared"),
        _ => None,
    };
    Subject { adapter, found, folder, source, program, lines, class, data }
}

/// The upper-case word that ends a line.
fn marker(line: &str) -> Option<&str> {
    line.rsplit(' ').next().filter(|word| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase()))
}
