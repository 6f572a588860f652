//! A program that is attached to, stopped, and detached from runs afterwards as fast as one that never was.
//!
//! `cargo bench --bench neutral [-- RUNS] [ADAPTER…]` (11 runs and all adapters unless given). A plain harness, not criterion:
//! each run that was never attached to is followed by one that was, and what counts is the ratio of the medians. The programs
//! are in `benches/neutral`: they wait for the file `go`, work in several threads, and print the processor time in ms that it
//! took. A program has the flags of a debugger only where an attach needs them, and has them in both runs then. Needs what
//! `cargo xtask tools` installs; an adapter that is missing is skipped.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, PipeReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use client::median;
use client::sandbox::Sandbox;
use devtether::adapters::{ADAPTERS, AdapterSearch, FoundAdapter};
use tether_tools::{entry_path, find_on_path};

mod client;

const NAMES: [&str; 8] = ["gdb", "lldb-dap", "codelldb", "dlv", "debugpy", "node", "java", "rdbg"];

/// The line of each program with a breakpoint ends with this word.
const MARKER: &str = "BREAK";

fn main() {
    let runs = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(11);
    let chosen: Vec<String> = std::env::args().filter(|argument| NAMES.contains(&argument.as_str())).collect();
    for adapter in NAMES.into_iter().filter(|name| chosen.is_empty() || chosen.iter().any(|it| it == name)) {
        for interpreter in interpreters(adapter) {
            match Subject::prepare(adapter, interpreter) {
                Ok(subject) => subject.measure(runs),
                Err(missing) => println!("{adapter}: skipped: {missing}"),
            }
        }
    }
}

/// What runs the adapter's program, where there is a choice: the system's Node, and a newer one that is installed.
fn interpreters(adapter: &str) -> Vec<Option<PathBuf>> {
    if adapter != "node" {
        return vec![None];
    }
    let newer = entry_path("node24").ok().filter(|node| node.is_file());
    find_program("node").into_iter().chain(newer).map(Some).collect()
}

fn find_program(name: &str) -> Option<PathBuf> {
    find_on_path(&[name], std::env::var_os("PATH").as_deref())
}

fn find_adapter(name: &str) -> Result<FoundAdapter, String> {
    let row = ADAPTERS.iter().find(|row| row.name == name).unwrap();
    let search = AdapterSearch::for_workspace(Path::new("/nowhere"), Default::default()).unwrap();
    (row.find)(&search).map_err(|error| error.to_string())
}

/// A program with a breakpoint in the code that it works in.
struct Subject {
    title: String,
    adapter: &'static str,
    /// Starts the program.
    argv: Vec<OsString>,
    sandbox: Sandbox,
}

impl Subject {
    /// Errors: what is not installed.
    fn prepare(adapter: &'static str, interpreter: Option<PathBuf>) -> Result<Subject, String> {
        let found = find_adapter(adapter)?;
        let (file, text, build): (_, _, &[&str]) = match adapter {
            "dlv" => ("work.go", include_str!("neutral/work.go"), &["go", "build", "-gcflags=all=-N -l", "work.go"]),
            "debugpy" => ("work.py", include_str!("neutral/work.py"), &[]),
            "node" => ("work.js", include_str!("neutral/work.js"), &[]),
            "java" => ("Work.java", include_str!("neutral/Work.java"), &["javac", "-g", "Work.java"]),
            "rdbg" => ("work.rb", include_str!("neutral/work.rb"), &[]),
            _ => ("work.c", include_str!("neutral/work.c"), &["cc", "-g", "-O0", "-pthread", "-o", "work", "work.c"]),
        };
        let sandbox = Sandbox::with(&[(file, text)]);
        if let Some((program, arguments)) = build.split_first() {
            let program = find_program(program).ok_or_else(|| format!("{program} is not on PATH"))?;
            let built = Command::new(program).args(arguments).current_dir(&sandbox.workspace).status().unwrap();
            assert!(built.success(), "{build:?}");
        }
        let line = text.lines().position(|line| line.ends_with(MARKER)).unwrap() + 1;
        sandbox.json(&["break", "set", &format!("{file}:{line}")]);
        let title = interpreter.as_deref().map_or(adapter.to_owned(), |node| format!("{adapter} ({})", version(node)));
        let argv = program_argv(adapter, found, interpreter, &sandbox.workspace.join(file));
        Ok(Subject { title, adapter, argv, sandbox })
    }

    fn measure(&self, runs: usize) {
        let (mut alone, mut left) = (vec![], vec![]);
        // The first of each is for warmth.
        for _ in 0..=runs {
            alone.push(self.run(false));
            left.push(self.run(true));
        }
        let [alone, left] = [alone, left].map(|mut samples| median(samples.split_off(1)));
        let ratio = left.as_secs_f64() / alone.as_secs_f64();
        println!(
            "{}: after a detach {left:.1?}, never attached to {alone:.1?}, ratio {ratio:.3} (goal ≤ 1.05)",
            self.title
        );
    }

    /// The processor time that the work took.
    fn run(&self, attaches: bool) -> Duration {
        let go = self.sandbox.workspace.join("go");
        let mut program = Running::start(&self.argv, &self.sandbox.workspace);
        let port = program.wait_until_up(matches!(self.adapter, "java" | "rdbg"));
        if attaches {
            self.attach_and_detach(program.child.id(), port);
        }
        std::fs::write(&go, "").unwrap();
        let took = program.finish();
        std::fs::remove_file(go).unwrap();
        took
    }

    /// Attaches to the port where it listens on one, else by its process id.
    fn attach_and_detach(&self, pid: u32, port: Option<u16>) {
        let target = port.map_or(vec!["--pid".to_owned(), pid.to_string()], |port| vec![port.to_string()]);
        let mut attach = vec!["debug", "attach", "--adapter", self.adapter];
        attach.extend(target.iter().map(String::as_str));
        self.sandbox.json(&attach);
        // Some adapters stop where they attach.
        if self.sandbox.json(&["debug", "status"])["state"] != "STOPPED" {
            let paused = self.sandbox.json(&["debug", "pause", "--wait", "60"]);
            assert_eq!(paused["stopped"], true, "{paused:#}");
        }
        let listed = self.sandbox.json(&["break", "list"]);
        assert_eq!(listed["breakpoints"][0]["state"], "verified", "{listed:#}");
        let detached = self.sandbox.json(&["debug", "stop", "--detach"]);
        assert!(detached["message"].is_null(), "{detached:#}");
    }
}

fn program_argv(adapter: &str, found: FoundAdapter, interpreter: Option<PathBuf>, source: &Path) -> Vec<OsString> {
    let rdbg = ["--open", "--nonstop", "--host", "127.0.0.1", "--port", "0", "--"];
    let jdwp = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0";
    match adapter {
        "debugpy" => vec![found.interpreter.unwrap().into(), source.into()],
        "node" => vec![interpreter.unwrap().into(), source.into()],
        "java" => ["java", jdwp, "Work"].map(OsString::from).into(),
        "rdbg" => [found.path.into()].into_iter().chain(rdbg.map(OsString::from)).chain([source.into()]).collect(),
        _ => vec![source.with_extension("").into()],
    }
}

fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A program that runs; killed and reaped on drop.
struct Running {
    child: Child,
    /// Its output and its errors.
    lines: std::io::Lines<BufReader<PipeReader>>,
}

impl Running {
    fn start(argv: &[OsString], folder: &Path) -> Running {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).current_dir(folder).stdin(Stdio::null());
        // debugpy prints warnings about frozen modules into the program that it attaches to.
        command.env("PYDEVD_DISABLE_FILE_VALIDATION", "1");
        let child = command.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap();
        Running { child, lines: BufReader::new(reader).lines() }
    }

    fn next_line(&mut self) -> String {
        self.lines.next().expect("it has ended").unwrap()
    }

    /// Returns the port of one that `listens`; that it does may be printed after the program's first line.
    fn wait_until_up(&mut self, listens: bool) -> Option<u16> {
        let (mut is_up, mut port) = (false, None);
        while !is_up || (listens && port.is_none()) {
            let line = self.next_line();
            is_up |= line == "up";
            port = port.or_else(|| line.rsplit(':').next()?.trim_matches([' ', ')']).parse().ok());
        }
        port
    }

    /// Waits for its end. Returns what it has measured.
    fn finish(mut self) -> Duration {
        let took: f64 = loop {
            if let Ok(ms) = self.next_line().parse() {
                break ms;
            }
        };
        assert!(self.child.wait().unwrap().success());
        Duration::from_secs_f64(took / 1e3)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
