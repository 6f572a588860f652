//! Our own adapters, for Node and Java, beside the bare programs and beside their peers.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::median;
use crate::client::sandbox::Sandbox;
use crate::sides::{LINE, Side, Them, Us, compile_java};
use crate::{CALLS, sessions, tell};

/// Compares whole sessions, then single calls.
pub fn measure(us: &mut Us, them: &mut Them, sandbox: &Sandbox, runs: usize) {
    let [ours, theirs] = sessions(us, them, "app.js", runs);
    let bare = in_turns(runs, || run(Command::new("node").args(["-e", "0"])));
    tell("Node: launch → breakpoint → locals → gone", ours, "the peer's", theirs, 1.0 / 15.0);
    tell("Node: the same", ours, "`node -e 0`'s", bare, 1.4);
    report_calls("Node", us, "app.js", runs, 1.5);

    compile_java(sandbox);
    let (mut ours, mut bare, mut theirs) = (vec![], vec![], vec![]);
    for _ in 0..=runs {
        ours.push(us.session("App.java"));
        bare.push(run(Command::new("java").args(["-cp", ".", "App", "once"]).current_dir(&sandbox.workspace)));
        theirs.push(jdb_session(sandbox));
    }
    let [ours, bare, theirs] = [ours, bare, theirs].map(|mut samples| median(samples.split_off(1)));
    tell("Java: launch → breakpoint → locals → gone", ours, "`java App`'s", bare, 1.25);
    tell("Java: the same", ours, "jdb's", theirs, 0.2);
    report_calls("Java", us, "App.java", runs, 1.0);
}

fn report_calls(language: &str, us: &mut Us, program: &str, runs: usize, goal: f64) {
    us.stop_in(program);
    let samples: Vec<[Duration; 3]> = (0..runs * CALLS).map(|_| us.calls()).collect();
    us.end();
    let names = ["evaluate", "locals", "step → stopped"];
    for (kind, name) in names.into_iter().enumerate() {
        let p50 = median(samples.iter().map(|sample| sample[kind]).collect());
        println!("{language}: {name} over MCP: p50 {p50:.2?} (goal ≤ {goal} ms)");
    }
}

fn in_turns(runs: usize, mut sample: impl FnMut() -> Duration) -> Duration {
    sample();
    median((0..runs).map(|_| sample()).collect())
}

fn run(command: &mut Command) -> Duration {
    let begun = Instant::now();
    assert!(command.stdout(Stdio::null()).status().unwrap().success(), "{command:?}");
    begun.elapsed()
}

/// The same with the debugger of the JDK, each of whose answers is waited for.
fn jdb_session(sandbox: &Sandbox) -> Duration {
    let begun = Instant::now();
    let mut command = Command::new("jdb");
    command.args(["-classpath", ".", "App"]).current_dir(&sandbox.workspace);
    let mut jdb = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (jdb.stdin.take().unwrap(), BufReader::new(jdb.stdout.take().unwrap()));
    let steps = [("", "Initializing"), ("run", "Breakpoint hit"), ("locals", "order = 1"), ("quit", "")];
    writeln!(input, "stop at App:{LINE}").unwrap();
    for (request, answer) in steps {
        if !request.is_empty() {
            writeln!(input, "{request}").unwrap();
        }
        let mut line = String::new();
        while !answer.is_empty() && !line.contains(answer) {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "jdb ended before it said {answer:?}");
        }
    }
    // Whatever it says at its end.
    let _ = output.read_to_string(&mut String::new());
    assert!(jdb.wait().unwrap().success());
    begun.elapsed()
}
