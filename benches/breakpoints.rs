//! What breakpoints cost that do not stop: a line for each goal, with the figure and whether it is met.
//!
//! `cargo bench --bench breakpoints [-- RUNS]` (20 runs unless given). With the path of another `tether` in `DEVTETHER_BASE`, the
//! first goal is measured against it, sample by sample; with one in `DEVTETHER_BUILD`, that one is measured instead of this build.
//! Needs what `cargo xtask tools` installs, and a C compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use client::sandbox::Sandbox;
use client::{Client, median};

mod client;

/// How many breakpoints are set.
const UNBOUND: usize = 50;
const RELOADED: usize = 20;
/// How often the line is passed.
const PASSES: u32 = 10_000;

fn main() {
    let runs = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(20);
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let new = path("DEVTETHER_BUILD").unwrap_or_else(|| env!("CARGO_BIN_EXE_tether").into());
    match path("DEVTETHER_BASE") {
        Some(base) => unbound(&new, &base, runs),
        None => println!("a session with {UNBOUND} unbound breakpoints: needs `DEVTETHER_BASE`"),
    }
    for adapter in ["lldb-dap", "gdb"] {
        counted(&new, adapter);
    }
    reloaded(&new);
}

fn tell(what: &str, figure: &str, goal: &str, is_met: bool) {
    println!("{what}: {figure}, goal {goal}: {}", if is_met { "met" } else { "NOT met" });
}

fn start(tether: &Path, files: &[(&str, &str)]) -> (Sandbox, Client) {
    let sandbox = Sandbox::of(tether, files);
    assert!(sandbox.command(&["trust", "--programs", "--yes"]).output().unwrap().status.success());
    let client = Client::start(&mut sandbox.command(&["mcp"]));
    (sandbox, client)
}

fn ends(client: &mut Client, launch: &Value) -> (Duration, Value) {
    let begun = Instant::now();
    let (_, result) = client.call("debug_launch", launch.clone());
    let took = begun.elapsed();
    let ended = result["structuredContent"].clone();
    assert_eq!(ended["state"], "TERMINATED", "{ended:#}");
    (took, ended)
}

/// Launch → end, with the reason of each breakpoint.
fn unbound(new: &Path, base: &Path, runs: usize) {
    let lines: String = (0..UNBOUND).map(|line| format!("f({line});\n")).collect();
    let files = [("app.js", "console.log('end');\n"), ("other.js", lines.as_str())];
    let mut sides = [start(new, &files), start(base, &files)];
    let breakpoints: Vec<String> = (1..=UNBOUND).map(|line| format!("other.js:{line}")).collect();
    let launch = json!({"program": "app.js", "adapter": "node", "wait": 60, "breakpoints": breakpoints});
    let mut took = [vec![], vec![]];
    for _ in 0..=runs {
        for ((_, client), took) in sides.iter_mut().zip(&mut took) {
            let (one, ended) = ends(client, &launch);
            assert_eq!(ended["notReached"].as_array().map(Vec::len), Some(UNBOUND), "{ended:#}");
            took.push(one);
        }
    }
    let [new, base] = took.map(|mut took| median(took.split_off(1)));
    let ratio = new.as_secs_f64() / base.as_secs_f64();
    let figure = format!("{ratio:.2} ({new:.2?} to {base:.2?})");
    tell(&format!("a session with {UNBOUND} unbound breakpoints, to the base"), &figure, "≤ 1.05", ratio <= 1.05);
}

/// Passes of a hit condition that is counted here, beside a condition that the adapter itself evaluates at each pass.
fn counted(tether: &Path, adapter: &str) {
    let text = format!(
        "int main(void) {{\n  int sum = 0;\n  for (int i = 0; i < {PASSES}; i++)\n    sum += i;\n  return sum == 1;\n}}\n"
    );
    let (sandbox, mut client) = start(tether, &[("app.c", &text)]);
    let compiled =
        Command::new("cc").args(["-g", "-O0", "-o", "app", "app.c"]).current_dir(&sandbox.workspace).status();
    assert!(compiled.unwrap().success());
    let mut run = |condition: Value| {
        client.call("breakpoint_remove", json!({"all": true}));
        let mut breakpoint = json!({"file": "app.c:4"});
        breakpoint.as_object_mut().unwrap().extend(condition.as_object().unwrap().clone());
        client.call("breakpoint_set", breakpoint);
        ends(&mut client, &json!({"program": "app", "adapter": adapter, "wait": 300})).0
    };
    let none = run(json!({"condition": "i < 0"}));
    let counted = run(json!({"hitCondition": format!("{}", PASSES + 1)}));
    let ratio = counted.as_secs_f64() / none.as_secs_f64();
    let figure = format!("{ratio:.2} ({counted:.2?} to {none:.2?})");
    tell(&format!("{adapter}: {PASSES} counted passes, to its own condition"), &figure, "≤ 1.50", ratio <= 1.5);
}

/// A module that is edited and required anew, with breakpoints in functions that are not called: how much longer that takes with breakpoints, as the program itself measures it.
fn reloaded(tether: &Path) {
    let module: String =
        (0..RELOADED).map(|line| format!("exports.f{line} = () => {{\n  return {line};\n}};\n")).collect();
    // As people edit: the next one comes when the last is over.
    let program = "\
const fs = require('node:fs');
const file = require.resolve('./orders.js');
const text = fs.readFileSync(file, 'utf8');
const took = [];
const reload = (edit) => {
  fs.writeFileSync(file, `${'debug: 0;\\n'.repeat(edit)}${text}`);
  delete require.cache[file];
  const begun = performance.now();
  require(file);
  took.push(performance.now() - begun);
  if (edit < 30) return setTimeout(reload, 200, edit + 1);
  took.sort((a, b) => a - b);
  fs.writeFileSync(file, text);
  fs.writeFileSync('took', String(took[15]));
};
reload(0);
";
    let (sandbox, mut client) = start(tether, &[("orders.js", &module), ("app.js", program)]);
    let mut run = |breakpoints: usize| -> f64 {
        let breakpoints: Vec<String> =
            (0..breakpoints).map(|function| format!("orders.js:{}", 3 * function + 2)).collect();
        let launch = json!({"program": "app.js", "adapter": "node", "wait": 60, "breakpoints": breakpoints});
        ends(&mut client, &launch);
        std::fs::read_to_string(sandbox.workspace.join("took")).unwrap().parse().unwrap()
    };
    let (without, with) = (run(0), run(RELOADED));
    let more = with - without;
    let figure = format!("{more:.2} ms more ({with:.2} ms, without breakpoints {without:.2} ms)");
    tell(&format!("a module with {RELOADED} breakpoints is loaded again"), &figure, "≤ 5 ms", more <= 5.0);
}
