//! Programs that loop: the `STOP` line is hit repeatedly, and stepping stays in the loop.

use crate::support::scenario_sandbox::ScenarioSandbox;

pub const PYTHON: &str = "\
import time
total = 0
while True:
    total += 1
    word = 'hello'  # WORD
    time.sleep(0.01)  # STOP
    word = word.upper()  # NEXT
";

pub const JAVASCRIPT: &str = "\
let total = 0;
setInterval(() => {
  total += 1;
  let word = 'hello'; // WORD
  globalThis.word = word; // STOP
  globalThis.word = word.toUpperCase(); // NEXT
}, 10);
";

pub const GO: &str = "\
package main

import \"time\"

func main() {
\ttotal := 0
\tfor {
\t\ttotal++
\t\tword := \"hello\" // WORD
\t\ttime.Sleep(10 * time.Millisecond) // STOP
\t\t_ = word + \"!\" // NEXT
\t}
}
";

pub const JAVA: &str = "\
public class Loops {
  public static void main(String[] arguments) throws InterruptedException {
    int total = 0;
    while (true) {
      total++;
      String word = \"hello\"; // WORD
      Thread.sleep(10); // STOP
      word = word.toUpperCase(); // NEXT
    }
  }
}
";

/// A sandbox with one of them; `None`, reported, when its adapter is not installed.
pub fn looping_program(adapter: &str) -> Option<ScenarioSandbox> {
    let (file, text) = match adapter {
        "debugpy" => ("äpp.py", PYTHON),
        "js-debug" | "node" => ("app.js", JAVASCRIPT),
        "java" => ("Loops.java", JAVA),
        _ => ("main.go", GO),
    };
    let stage = ScenarioSandbox::with(adapter, file, text)?;
    stage.sandbox.write("go.mod", "module example.com/loops\n\ngo 1.19\n");
    Some(stage)
}
