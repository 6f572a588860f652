//! With each adapter, a program that ends without a stop: each breakpoint is named, with the reason, in the result of the launch, its
//! text, the status, and the list of breakpoints.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::debug_scenarios::unreached_breakpoints::{JAVASCRIPT, PYTHON};
use crate::support::Sandbox;
use crate::support::scenario_sandbox::found;

const NATIVE: &str = "\
#include <stdio.h>
int main(void) {
  int total = 0;
  for (int i = 0; i < 3; i++) {
    total += i;
  }
  if (total > 100) {
    printf(\"%d\\n\", total);
  }
  return 0;
}
";
const JAVA: &str = "\
public class App {
  public static void main(String[] arguments) {
    int total = 0;
    for (int i = 0; i < 3; i++) {
      total += i;
    }
    if (total > 100) {
      System.out.println(total);
    }
  }
}
";
pub const GO: &str = "\
package main

func main() {
	total := 0
	for i := 0; i < 3; i++ {
		total += i
	}
	if total > 100 {
		println(total)
	}
}
";
const RUBY: &str = "\
total = 0
3.times do |i|
  total += i
end
if total > 100
  puts total
end
";

/// A program, and what is known of the breakpoints in it.
struct Case {
    adapter: &'static str,
    file: &'static str,
    text: &'static str,
    /// Makes the program of it; none: it is launched as it is.
    build: Option<&'static [&'static str]>,
    /// The line that is not reached, the one in the loop, and that of the `if`.
    lines: [u32; 3],
    /// A file that the program does not load, and why a breakpoint there was not bound.
    other: (&'static str, &'static str),
    /// Why a log point with a condition was refused; none: it was taken.
    refused_log: Option<&'static str>,
    /// What is said of the fifth of three hits.
    hits: &'static str,
}

const NEVER: &str = "it was bound, and the line was not reached";
const COUNTED: &str = "it was passed 3 times, and it stops at `5`";
const COUNTED_BY_ADAPTER: &str = "it was bound, and the line was not reached, or not while `5` held";
const CASES: &[Case] = &[
    Case {
        adapter: "debugpy",
        file: "app.py",
        text: PYTHON,
        build: None,
        lines: [5, 3, 4],
        // debugpy binds it before it is known whether the file is loaded.
        other: ("other.py", NEVER),
        refused_log: None,
        hits: COUNTED_BY_ADAPTER,
    },
    Case {
        adapter: "node",
        file: "app.js",
        text: JAVASCRIPT,
        build: None,
        lines: [6, 3, 5],
        other: ("other.js", "it was not bound: neither this file nor a script whose source map names it was loaded"),
        refused_log: None,
        hits: COUNTED_BY_ADAPTER,
    },
    Case {
        adapter: "js-debug",
        file: "app.js",
        text: JAVASCRIPT,
        build: None,
        lines: [6, 3, 5],
        other: ("other.js", "the adapter had not reported it as bound"),
        refused_log: Some("it was not bound: this adapter has no log points with conditions"),
        hits: COUNTED_BY_ADAPTER,
    },
    Case {
        adapter: "rdbg",
        file: "app.rb",
        text: RUBY,
        build: None,
        lines: [6, 3, 5],
        // rdbg, too.
        other: ("other.rb", NEVER),
        refused_log: Some("it was not bound: this adapter has no log points"),
        hits: COUNTED,
    },
    Case {
        adapter: "dlv",
        file: "main.go",
        text: GO,
        build: Some(&["go", "build", "-gcflags=all=-N -l", "-o", "app", "."]),
        lines: [9, 6, 8],
        other: ("other.txt", "it was not bound: could not find file "),
        refused_log: None,
        hits: COUNTED_BY_ADAPTER,
    },
    Case {
        adapter: "lldb-dap",
        file: "app.c",
        text: NATIVE,
        build: Some(&["cc", "-g", "-O0", "-o", "app", "app.c"]),
        lines: [8, 5, 7],
        other: ("other.c", "the adapter had not reported it as bound"),
        refused_log: None,
        hits: COUNTED,
    },
    Case {
        adapter: "codelldb",
        file: "app.c",
        text: NATIVE,
        build: Some(&["cc", "-g", "-O0", "-o", "app", "app.c"]),
        lines: [8, 5, 7],
        other: ("other.c", "it was not bound: Resolved locations: 0"),
        refused_log: None,
        hits: COUNTED_BY_ADAPTER,
    },
    Case {
        adapter: "gdb",
        file: "app.c",
        text: NATIVE,
        build: Some(&["cc", "-g", "-O0", "-o", "app", "app.c"]),
        lines: [8, 5, 7],
        other: ("other.c", "it was not bound: nothing that the program loaded has code there"),
        refused_log: Some("it was not bound: this adapter has no log points with conditions"),
        hits: COUNTED,
    },
    Case {
        adapter: "java",
        file: "App.java",
        text: JAVA,
        build: None,
        lines: [8, 5, 7],
        other: ("Other.java", "it was not bound: no loaded class has code there"),
        refused_log: None,
        hits: COUNTED_BY_ADAPTER,
    },
];

/// The reasons in a list of reports, by the breakpoint's id.
fn reasons(reports: &Value, field: &str) -> BTreeMap<u64, String> {
    let reports = reports.as_array().into_iter().flatten();
    let all = reports.filter_map(|it| Some((it["breakpointId"].as_u64()?, it[field].as_str()?.to_owned())));
    all.collect()
}

fn check(case: &Case, is_counted: bool) {
    let Case { adapter, file, text, lines: [never, looped, tested], .. } = case;
    if found(adapter).is_none() {
        return;
    }
    let other = text.replace("class App", "class Other");
    let mut files = vec![(*file, *text), (case.other.0, other.as_str())];
    if file.ends_with(".go") {
        files.push(("go.mod", "module example.com/app\n\ngo 1.19\n"));
    }
    let sandbox = Sandbox::with(&files);
    let program = match case.build {
        Some(build) => {
            let status = Command::new(build[0]).args(&build[1..]).current_dir(&sandbox.workspace).status();
            assert!(status.unwrap().success());
            "app"
        }
        None => file,
    };
    let mut expected = BTreeMap::new();
    let mut set = |place: String, more: &[&str], reason: Option<&str>| {
        let set = sandbox.json(&[&["break", "set", &place], more].concat());
        let id = set["breakpointId"].as_u64().unwrap();
        expected.extend(reason.map(|reason| (id, reason.to_owned())));
    };
    set(format!("{file}:{never}"), &[], Some(NEVER));
    match is_counted {
        true => set(format!("{file}:{looped}"), &["--hits", "5"], Some(case.hits)),
        false => {
            let held = format!("{NEVER}, or not while `total > 100` held");
            set(format!("{file}:{looped}"), &["--condition", "total > 100"], Some(&held));
        }
    }
    set(format!("{}:{never}", case.other.0), &[], Some(case.other.1));
    set(format!("{file}:{tested}"), &["--log", "never", "--condition", "total > 100"], case.refused_log);
    check_reasons(&sandbox, adapter, &["debug", "launch", program, "--adapter", adapter, "--wait", "60"], &expected);
}

/// Launches a program that ends without a stop, and checks how the reason of each breakpoint begins: in the result, its text, the
/// status, and the list of breakpoints.
pub fn check_reasons(sandbox: &Sandbox, adapter: &str, launch: &[&str], expected: &BTreeMap<u64, String>) {
    let ended = sandbox.json(launch);
    assert_eq!(
        (ended["stopped"].as_bool(), &ended["state"]),
        (Some(false), &"TERMINATED".into()),
        "{adapter}: {ended}"
    );
    let holds = |found: &BTreeMap<u64, String>| {
        let is_same = |id: &u64, reason: &String| found.get(id).is_some_and(|it| it.starts_with(reason));
        found.len() == expected.len() && expected.iter().all(|(id, reason)| is_same(id, reason))
    };
    let told = reasons(&ended["notReached"], "reason");
    assert!(holds(&told), "{adapter}: {told:#?} is not {expected:#?}");
    let status = sandbox.json(&["debug", "status", ended["sessionId"].as_str().unwrap()]);
    assert_eq!(reasons(&status["notReached"], "reason"), told, "{adapter}: {status}");
    let listed = reasons(&sandbox.json(&["break", "list"])["breakpoints"], "message");
    for (id, reason) in &told {
        assert!(listed.get(id).is_some_and(|it| it.ends_with(reason.as_str())), "{adapter}: {id}: {listed:#?}");
    }
    let printed = sandbox.tether(launch).ok().stdout;
    assert!(told.values().all(|reason| printed.contains(reason.as_str())), "{adapter}: {printed}");
}

#[test]
fn each_adapter_names_what_has_not_stopped_its_program() {
    CASES.iter().for_each(|case| check(case, false));
}

#[test]
fn each_adapter_names_breakpoints_with_too_few_hits() {
    CASES.iter().for_each(|case| check(case, true));
}
