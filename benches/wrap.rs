//! What `tether wrap` adds: to a call, beside the bare server and mcpmon, interleaved; to many pipelined calls, with the memory that it
//! takes; and to the start of a Python server that was edited.
//!
//! `cargo bench --bench wrap [-- RUNS]`. Goals: at most 60 µs more for a call (p50), and 0.2 of what mcpmon adds; 10,000 calls in 16
//! MiB; an edit is answered 30 ms after the server's own bare start. `MCPMON` names mcpmon's program (PyPI `mcpmon`), and is left out
//! otherwise. Needs rustc, and for Python what `cargo xtask tools` installs.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const PIPELINED: usize = 10_000;

const PYTHON_SERVER: &str = "\
from mcp.server import MCPServer

server = MCPServer('wrapped')

@server.tool()
def version() -> str:
    return 'VERSION'

server.run()
";

fn main() {
    let runs = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(3000);
    let home = tempfile::Builder::new().prefix("tether-bench-").tempdir().unwrap();
    for folder in ["ws", "run"] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
    }
    std::fs::set_permissions(home.path().join("run"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    measure_calls(home.path(), runs);
    measure_restarts(home.path(), (runs / 100).clamp(3, 30));
}

/// An MCP client on the stdio of a process.
struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: String,
}

impl Client {
    fn start(mut command: Command) -> Client {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Client { child, stdin, stdout, line: String::new() };
        client.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#);
        client.answer();
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    fn send(&mut self, line: &str) {
        self.stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next answer, past notifications.
    fn answer(&mut self) -> &str {
        loop {
            self.line.clear();
            assert!(self.stdout.read_line(&mut self.line).unwrap() > 0, "it has ended");
            if self.line.contains("\"result\"") {
                return &self.line;
            }
        }
    }

    fn call(&mut self) -> Duration {
        let begun = Instant::now();
        self.send(&call(1));
        self.answer();
        begun.elapsed()
    }

    fn end(self) {
        let Client { mut child, stdin, .. } = self;
        drop(stdin);
        child.wait().unwrap();
    }

    /// mcpmon runs on when its client has left.
    fn kill(self) {
        let Client { mut child, .. } = self;
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

fn call(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"version","arguments":{{}}}}}}"#)
}

/// `tether wrap` in a workspace of its own.
fn wrapped(home: &Path, server: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tether"));
    command.args(["wrap", "--"]).args(server).current_dir(home.join("ws"));
    command.env("XDG_RUNTIME_DIR", home.join("run")).env("XDG_STATE_HOME", home.join("state"));
    command.env("XDG_CONFIG_HOME", home.join("config")).env("XDG_CACHE_HOME", home.join("cache"));
    command
}

fn bare(home: &Path, server: &[&str]) -> Command {
    let mut command = Command::new(server[0]);
    command.args(&server[1..]).current_dir(home.join("ws"));
    command
}

fn measure_calls(home: &Path, runs: usize) {
    let source = home.join("server.rs");
    std::fs::write(&source, include_str!("../tests/fixtures/compiled_server.rs")).unwrap();
    let server = home.join("server");
    let compiled = Command::new("rustc").args(["--edition=2024", "-O", "-o"]).arg(&server).arg(&source).status();
    assert!(compiled.is_ok_and(|status| status.success()), "rustc");
    let server = [server.to_str().unwrap()];
    let mut clients =
        vec![("bare", Client::start(bare(home, &server))), ("tether wrap", Client::start(wrapped(home, &server)))];
    if let Some(mcpmon) = std::env::var_os("MCPMON") {
        let mut command = Command::new(mcpmon);
        command.args(["--quiet", "--watch", ".", "--"]).args(server).current_dir(home.join("ws"));
        clients.push(("mcpmon", Client::start(command)));
    }
    let mut samples = vec![Vec::new(); clients.len()];
    for _ in 0..runs {
        for (of, (_, client)) in samples.iter_mut().zip(&mut clients) {
            of.push(client.call());
        }
    }
    let medians: Vec<Duration> = samples.into_iter().map(median).collect();
    let added = |at: usize| medians[at].saturating_sub(medians[0]);
    for (at, (name, _)) in clients.iter().enumerate() {
        println!("call p50, {name}: {:.1?}, {:.1?} more", medians[at], added(at));
    }
    println!("`tether wrap` adds {:.1?} (goal ≤ 60 µs)", added(1));
    if medians.len() > 2 {
        let ratio = added(1).as_secs_f64() / added(2).as_secs_f64();
        println!("  that is {ratio:.3} of what mcpmon adds (goal ≤ 0.2)");
    }
    pipeline(&mut clients[1].1);
    for (name, client) in clients {
        if name == "mcpmon" { client.kill() } else { client.end() }
    }
}

fn pipeline(client: &mut Client) {
    let begun = Instant::now();
    let lines: String = (0..PIPELINED).map(|id| call(id) + "\n").collect();
    std::thread::scope(|scope| {
        let (stdin, stdout, line) = (&mut client.stdin, &mut client.stdout, &mut client.line);
        scope.spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
        for _ in 0..PIPELINED {
            line.clear();
            stdout.read_line(line).unwrap();
            assert!(line.contains("\"result\""), "{line}");
        }
    });
    let took = begun.elapsed();
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.child.id())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!(
        "{PIPELINED} pipelined calls: {took:.1?}; peak {} (goal ≤ 16 MiB)",
        peak.trim_start_matches("VmHWM:").trim()
    );
}

fn measure_restarts(home: &Path, runs: usize) {
    let Some(python) = installed_python() else { return println!("the restart of a Python server: skipped") };
    let edit = |version: usize| {
        std::fs::write(home.join("ws/server.py"), PYTHON_SERVER.replace("VERSION", &format!("v{version}."))).unwrap();
    };
    edit(0);
    let server = [python.to_str().unwrap(), "server.py"];
    let mut client = Client::start(wrapped(home, &server));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for version in 1..=runs {
        let begun = Instant::now();
        let mut once = Client::start(bare(home, &server));
        once.call();
        theirs.push(begun.elapsed());
        once.end();
        edit(version);
        let begun = Instant::now();
        client.call();
        ours.push(begun.elapsed());
        assert!(client.line.contains(&format!("v{version}.")), "{}", client.line);
    }
    client.end();
    let (ours, theirs) = (median(ours), median(theirs));
    let more = ours.as_secs_f64() * 1e3 - theirs.as_secs_f64() * 1e3;
    println!(
        "Python server, edit to answer p50: {ours:.1?}; its bare start to an answer: {theirs:.1?}; {more:+.1} ms (goal ≤ 30 ms)"
    );
}

fn installed_python() -> Option<PathBuf> {
    let python = tether_base::xdg::data_dir().ok()?.join("tools/python/bin/python");
    python.exists().then_some(python)
}

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort_unstable();
    samples[samples.len() / 2]
}
