//! Why a breakpoint has not stopped a program, beside that its line was not reached: its source map was not read, its condition
//! failed, it was moved, its code is older than its source.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::debug_scenarios::unreached_matrix::{GO, check_reasons};
use crate::support::Sandbox;
use crate::support::scenario_sandbox::found;

/// Made of `src/app.ts`, whose third line is not reached. The map follows.
const SCRIPT: &str = "\
\"use strict\";
const total = 1;
if (total > 100) {
  console.log(total);
}
setTimeout(() => {}, 500);
//# sourceMappingURL=";
const SOURCE: &str = "const total: number = 1;\nif (total > 100) {\n  console.log(total);\n}\nexport {};\n";
/// From the second line of the script on, line by line.
const MAP: &str = r#"{"version": 3, "file": "app.js", "sources": ["../src/app.ts"], "names": [], "mappings": ";AAAA;AACA;AACA;AACA"}"#;

/// Sets breakpoints, each with the reason that is expected, and checks them after a launch.
struct Expected<'a> {
    sandbox: &'a Sandbox,
    reasons: BTreeMap<u64, String>,
}

impl<'a> Expected<'a> {
    fn of(sandbox: &'a Sandbox) -> Expected<'a> {
        Expected { sandbox, reasons: BTreeMap::new() }
    }

    fn set(mut self, arguments: &[&str], reason: &str) -> Expected<'a> {
        let set = self.sandbox.json(&[&["break", "set"], arguments].concat());
        self.reasons.insert(set["breakpointId"].as_u64().unwrap(), reason.to_owned());
        self
    }

    fn check(self, adapter: &str, what: &[&str]) {
        let launch = [&["debug", "launch"], what, &["--adapter", adapter, "--wait", "60"]].concat();
        check_reasons(self.sandbox, adapter, &launch, &self.reasons);
        let listed = self.sandbox.json(&["break", "list"])["breakpoints"].to_string();
        let is_older = self.reasons.values().any(|reason| reason.contains("is older than"));
        assert_eq!(listed.contains("is older than"), is_older, "{adapter}: {listed}");
    }
}

/// Gives a file a time: so many seconds from now.
fn date(sandbox: &Sandbox, file: &str, seconds: u64) {
    let at = SystemTime::now() + Duration::from_secs(seconds);
    std::fs::File::options().append(true).open(sandbox.path(file)).unwrap().set_modified(at).unwrap();
}

fn build(sandbox: &Sandbox, command: &[&str]) {
    let status = Command::new(command[0]).args(&command[1..]).current_dir(&sandbox.workspace).status();
    assert!(status.unwrap().success(), "{command:?}");
}

#[test]
fn a_source_map_that_is_not_read_is_named_with_the_script_and_the_cause() {
    let outside = tempfile::tempdir().unwrap();
    // One whose name says that it is a map may lie beside the folder of the program.
    std::fs::write(outside.path().join("app.json"), MAP).unwrap();
    let far = format!("file://{}", outside.path().join("app.json").display());
    for (adapter, address, map, cause) in [
        ("node", "app.js.map", None, "No such file"),
        ("node", "app.js.map", Some("{\"version\": 3,"), "bad json"),
        ("node", far.as_str(), None, "is outside of the program's folders"),
        ("js-debug", "app.js.map", None, "no such file"),
        ("js-debug", "app.js.map", Some("{\"version\": 3,"), "JSON"),
    ] {
        if found(adapter).is_none() {
            continue;
        }
        let sandbox = Sandbox::with(&[("src/app.ts", SOURCE), ("dist/app.js", &format!("{SCRIPT}{address}\n"))]);
        map.iter().for_each(|map| sandbox.write("dist/app.js.map", map));
        let script = sandbox.path("dist/app.js");
        let why = match adapter {
            "node" => "it was not bound: neither this file nor a script whose source map names it was loaded",
            _ => "the adapter had not reported it as bound",
        };
        let reason = format!("{why}; the source map of {} is not read: ", script.display());
        let expected = Expected::of(&sandbox).set(&["src/app.ts:3"], &reason);
        expected.check(adapter, &["dist/app.js"]);
        let listed = sandbox.json(&["break", "list"])["breakpoints"][0]["message"].to_string();
        assert!(listed.contains(cause), "{adapter}: {listed}");
    }
}

#[test]
fn code_that_is_older_than_its_source_is_said() {
    const C: &str = "int main(void) {\n  int total = 0;\n  if (total > 100) {\n    total++;\n  }\n  return 0;\n}\n";
    const NEVER: &str = "it was bound, and the line was not reached";
    for adapter in ["lldb-dap", "codelldb", "gdb"].into_iter().filter(|adapter| found(adapter).is_some()) {
        let sandbox = Sandbox::with(&[("app.c", C)]);
        build(&sandbox, &["cc", "-g", "-O0", "-o", "app", "app.c"]);
        Expected::of(&sandbox).set(&["app.c:4"], NEVER).check(adapter, &["app"]);
        date(&sandbox, "app.c", 60);
        let reason = format!("{NEVER}; app is older than app.c");
        Expected::of(&sandbox).set(&["app.c:4"], &reason).check(adapter, &["app"]);
        // It is said where the program stops, too.
        let stop =
            sandbox.json(&["debug", "launch", "app", "--adapter", adapter, "--break", "app.c:3", "--wait", "60"]);
        let note = "app is older than app.c: what runs may be an earlier text of it";
        assert!(stop["stopped"] == true && stop["notes"].to_string().contains(note), "{adapter}: {stop:#}");
        sandbox.json(&["debug", "stop"]);
    }
    if found("node").is_some() {
        let script = format!("{SCRIPT}app.js.map\n");
        let sandbox = Sandbox::with(&[("src/app.ts", SOURCE), ("dist/app.js", &script), ("dist/app.js.map", MAP)]);
        date(&sandbox, "src/app.ts", 60);
        let reason = format!("{NEVER}; dist/app.js is older than src/app.ts");
        Expected::of(&sandbox).set(&["src/app.ts:3"], &reason).check("node", &["dist/app.js"]);
        // The map has the very text of the file.
        let text = json!({"sourcesContent": [SOURCE]}).to_string();
        sandbox.write("dist/app.js.map", &MAP.replacen('{', &format!("{},", text.trim_end_matches('}')), 1));
        Expected::of(&sandbox).set(&["src/app.ts:3"], NEVER).check("node", &["dist/app.js"]);
    }
    if found("java").is_some() {
        let text = "public class App {\n  public static void main(String[] arguments) {\n    int total = 0;\n    \
                    if (total > 100) {\n      total++;\n    }\n  }\n}\n";
        let sandbox = Sandbox::with(&[("src/App.java", text)]);
        build(&sandbox, &["javac", "-g", "-d", "out", "src/App.java"]);
        date(&sandbox, "src/App.java", 60);
        let configuration = json!({"name": "app", "type": "java", "request": "launch", "mainClass": "App",
            "classPaths": ["${workspaceFolder}/out"], "cwd": "${workspaceFolder}"});
        let launch = json!({"version": "0.2.0", "configurations": [configuration]});
        sandbox.write(".vscode/launch.json", &launch.to_string());
        sandbox.tether(&["trust", "--yes", "--config", "app"]).ok();
        let reason = format!("{NEVER}; out/App.class is older than src/App.java");
        Expected::of(&sandbox).set(&["src/App.java:5"], &reason).check("java", &["--config", "app"]);
    }
    if found("dlv").is_some() {
        let sandbox = Sandbox::with(&[("main.go", GO), ("go.mod", "module example.com/app\n\ngo 1.19\n")]);
        build(&sandbox, &["go", "build", "-gcflags=all=-N -l", "-o", "app", "."]);
        date(&sandbox, "main.go", 60);
        let reason = format!("{NEVER}; app is older than main.go");
        Expected::of(&sandbox).set(&["main.go:9"], &reason).check("dlv", &["app"]);
    }
}

/// In a function that is not called, on a line without code between two others.
#[test]
fn a_breakpoint_on_a_line_without_code_is_moved_and_says_so_or_is_not_bound() {
    const C: &str =
        "int never(int total) {\n  total++;\n  // nothing\n  return total;\n}\nint main(void) {\n  return 0;\n}\n";
    const JAVASCRIPT: &str =
        "function never() {\n  // nothing\n  return 1;\n}\nsetTimeout(() => {}, 800);\nif (process.pid < 0) never();\n";
    let moved = |line: u32| format!("it was moved to line {line}; it was bound, and the line was not reached");
    let cases: &[(&str, &str, &str, &[&str], String)] = &[
        ("debugpy", "app.py", "def never(total):\n    total += 1\n    # nothing\n    return total\n", &[], moved(2)),
        ("node", "app.js", JAVASCRIPT, &[], moved(3)),
        ("js-debug", "app.js", JAVASCRIPT, &[], moved(3)),
        ("lldb-dap", "app.c", C, &["cc", "-g", "-O0", "-o", "app", "app.c"], moved(4)),
        ("codelldb", "app.c", C, &["cc", "-g", "-O0", "-o", "app", "app.c"], moved(4)),
        ("gdb", "app.c", C, &["cc", "-g", "-O0", "-o", "app", "app.c"], moved(4)),
        (
            "java",
            "App.java",
            "public class App {\n  static int never(int total) {\n    total++;\n    // nothing\n    return total;\n  }\n  \
             public static void main(String[] arguments) {\n  }\n}\n",
            &[],
            moved(5),
        ),
        (
            "dlv",
            "main.go",
            "package main\n\nfunc never(total int) int {\n\ttotal++\n\t// nothing\n\treturn total\n}\n\nfunc main() {\n\tif len(\"\") > 0 \
             {\n\t\tnever(1)\n\t}\n}\n",
            &["go", "build", "-gcflags=all=-N -l", "-o", "app", "."],
            "it was not bound: could not find statement at ".to_owned(),
        ),
    ];
    for (adapter, file, text, command, reason) in cases.iter().filter(|case| found(case.0).is_some()) {
        let sandbox = Sandbox::with(&[(file, text), ("go.mod", "module example.com/app\n\ngo 1.19\n")]);
        let line = text.lines().position(|line| line.contains("nothing")).unwrap() + 1;
        let program = if command.is_empty() { *file } else { "app" };
        if !command.is_empty() {
            build(&sandbox, command);
        }
        Expected::of(&sandbox).set(&[&format!("{file}:{line}")], reason).check(adapter, &[program]);
    }
}

/// Of those that count it as false and say so: gdb disables the breakpoint in silence, the others stop there, and say so.
#[test]
fn a_condition_that_cannot_be_evaluated_is_said_with_its_failure() {
    const JAVASCRIPT: &str =
        "let total = 0;\nfor (let i = 0; i < 3; i++) {\n  total += i;\n}\nsetTimeout(() => {}, 800);\n";
    let failed = "its condition cannot be evaluated, and counts as false: ";
    let unnamed = "it was bound, and the line was not reached, or not while `nosuch > 1` held; \
                   a condition, which the adapter does not name, cannot be evaluated: ";
    for (adapter, file, text, line, reason) in [
        ("debugpy", "app.py", "total = 0\nfor i in range(3):\n    total += i\n", 3, failed),
        ("node", "app.js", JAVASCRIPT, 3, failed),
        ("js-debug", "app.js", JAVASCRIPT, 3, unnamed),
    ] {
        if found(adapter).is_none() {
            continue;
        }
        let sandbox = Sandbox::with(&[(file, text)]);
        let set = [&format!("{file}:{line}"), "--condition", "nosuch > 1"];
        Expected::of(&sandbox).set(&set, reason).check(adapter, &[file]);
        let listed = sandbox.json(&["break", "list"])["breakpoints"][0]["message"].to_string();
        assert!(listed.contains("nosuch"), "{adapter}: {listed}");
    }
}
