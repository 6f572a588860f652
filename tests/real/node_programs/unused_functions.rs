//! Breakpoints in functions that nothing names: V8 has no code for them, and would stop at the next statement behind them.

use crate::support::Sandbox;
use crate::support::requirements::{has_program, installed_tool};
use crate::support::run_command;

const PROGRAM: &str = "\
function never(total) {
  total++;
  // nothing
  return total;
}
function used() {
  // nothing
  return 2;
}
console.log('one', used());
";

const LEFT_OUT: &str = "nothing in the program names the function there";
const NOT_REACHED: &str = "the line was not reached";

#[test]
fn a_function_that_nothing_names_stops_nowhere_and_the_end_says_why() {
    if !has_program("node") {
        return;
    }
    // The engine keeps the functions of a module, which nothing reaches.
    let files =
        [("app.js", PROGRAM.to_owned(), LEFT_OUT), ("app.mjs", format!("{PROGRAM}export {{}};\n"), NOT_REACHED)];
    for (file, text, reason) in files {
        let sandbox = Sandbox::new();
        sandbox.write(file, &text);
        for line in 1..=4 {
            sandbox.json(&["break", "remove", "--all"]);
            let at = format!("{file}:{line}");
            let ended = sandbox.json(&["debug", "launch", file, "--adapter", "node", "--break", &at, "--wait", "60"]);
            let reasons = ended["notReached"].to_string();
            assert!(ended["state"] == "TERMINATED" && reasons.contains(reason), "{at}: {ended:#}");
        }
        // Of one that is used, the next statement within it.
        sandbox.json(&["break", "remove", "--all"]);
        let at = format!("{file}:7");
        let stop = sandbox.json(&["debug", "launch", file, "--adapter", "node", "--break", &at, "--wait", "60"]);
        assert_eq!(stop["stopReason"]["location"]["lineNumber"], 8, "{at}: {stop:#}");
        sandbox.json(&["debug", "stop"]);
    }
}

#[test]
fn a_compiled_function_that_nothing_names_stops_nowhere() {
    let Some(esbuild) = installed_tool("template-esbuild/node_modules/@esbuild/linux-x64/bin/esbuild") else { return };
    let sandbox = Sandbox::new();
    sandbox.write("src/app.ts", &PROGRAM.replace("(total)", "(total: number)"));
    let mut build = std::process::Command::new(&esbuild);
    build.args(["src/app.ts", "--outfile=dist/app.js", "--sourcemap", "--format=cjs"]);
    build.current_dir(&sandbox.workspace);
    run_command(build).ok();
    for line in [2, 4] {
        sandbox.json(&["break", "remove", "--all"]);
        let at = format!("src/app.ts:{line}");
        let ended =
            sandbox.json(&["debug", "launch", "dist/app.js", "--adapter", "node", "--break", &at, "--wait", "60"]);
        assert_eq!(ended["state"], "TERMINATED", "{at}: {ended:#}");
    }
}
