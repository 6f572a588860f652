//! What the relay of an editor's debug conversation costs: the round trip of a message, and bulk output, each beside a bare
//! copy between the same pipes and a socket, interleaved.
//!
//! `cargo bench --bench relay [-- RUNS]`. Goals: at most 150 µs more for each round trip (p50); 500 MB/s of bulk output, or 0.8
//! of the bare copy. The adapter is a shell script in netcoredbg's place.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

/// Of one message, and of one bulk output.
const MESSAGE_BYTES: usize = 400;
const BULK_BYTES: u64 = 1 << 30;
const BULK_RUNS: usize = 5;

fn main() {
    let runs = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(3000);
    let mut sandbox = RelaySandbox::new();
    round_trips(&mut sandbox, runs);
    bulk_output(&mut sandbox);
}

fn round_trips(sandbox: &mut RelaySandbox, runs: usize) {
    sandbox.write_adapter("exec cat");
    let message = vec![b'x'; MESSAGE_BYTES];
    let (mut relayed, mut bare) = (sandbox.connect(), copy_bare(&sandbox.adapter()));
    let once = |stream: &mut TcpStream| {
        let (begun, mut read) = (Instant::now(), vec![0; MESSAGE_BYTES]);
        stream.write_all(&message).unwrap();
        stream.read_exact(&mut read).unwrap();
        begun.elapsed()
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        ours.push(once(&mut relayed));
        theirs.push(once(&mut bare));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let more = ours.saturating_sub(theirs);
    println!("round trip p50: relay {ours:.1?}, bare copy {theirs:.1?}, {more:.1?} more (goal ≤ 150 µs)");
}

fn bulk_output(sandbox: &mut RelaySandbox) {
    sandbox.write_adapter(&format!("exec head -c {BULK_BYTES} /dev/zero"));
    let rate = |mut stream: TcpStream| {
        let (mut buffer, mut count) = (vec![0; 1 << 20], 0);
        let first = stream.read(&mut buffer).unwrap() as u64;
        let begun = Instant::now();
        count += first;
        while count < BULK_BYTES {
            let read = stream.read(&mut buffer).unwrap() as u64;
            assert!(read > 0, "it ended after {count} bytes");
            count += read;
        }
        (BULK_BYTES - first) as f64 / begun.elapsed().as_secs_f64() / 1e6
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..BULK_RUNS {
        ours.push(rate(sandbox.connect()));
        theirs.push(rate(copy_bare(&sandbox.adapter())));
    }
    print_rates("median", median(ours.clone()), median(theirs.clone()));
    print_rates("best", best(ours), best(theirs));
}

fn print_rates(which: &str, ours: f64, theirs: f64) {
    let ratio = ours / theirs;
    println!(
        "bulk output, {which} of {BULK_RUNS}: relay {ours:.0} MB/s, bare copy {theirs:.0} MB/s, ratio {ratio:.2} \
         (goal ≥ 500 MB/s or ≥ 0.8)"
    );
}

fn best(rates: Vec<f64>) -> f64 {
    rates.into_iter().fold(0.0, f64::max)
}

fn median<T: Copy + PartialOrd>(mut samples: Vec<T>) -> T {
    samples.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
    samples[samples.len() / 2]
}

/// A connection whose other end is copied to and from a process by two threads.
fn copy_bare(adapter: &Path) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    accepted.set_nodelay(true).unwrap();
    let mut child = Command::new(adapter).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let reader = accepted.try_clone().unwrap();
    std::thread::spawn(move || copy_all(reader, input));
    std::thread::spawn(move || {
        copy_all(output, accepted);
        child.wait().unwrap();
    });
    stream
}

/// Not `std::io::copy`, which would splice the pages: the relay's adapter may be a socket.
fn copy_all(mut read: impl Read, mut write: impl Write) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = read.read(&mut buffer) {
        if write.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// A workspace of its own with an editor's connection to its supervisor.
struct RelaySandbox {
    home: tempfile::TempDir,
    rpc: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    id: u64,
}

impl RelaySandbox {
    fn new() -> RelaySandbox {
        let home = tempfile::Builder::new().prefix("tether-bench-").tempdir().unwrap();
        for folder in ["adapters", "ws", "run"] {
            std::fs::create_dir(home.path().join(folder)).unwrap();
        }
        std::fs::set_permissions(home.path().join("run"), std::fs::Permissions::from_mode(0o700)).unwrap();
        std::fs::write(home.path().join("ws/app.dll"), "").unwrap();
        let mut rpc = tether(home.path(), "rpc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (rpc.stdin.take().unwrap(), BufReader::new(rpc.stdout.take().unwrap()));
        let mut sandbox = RelaySandbox { home, rpc, stdin, stdout, id: 0 };
        sandbox.call("initialize", json!({"name": "bench"}));
        sandbox
    }

    fn adapter(&self) -> PathBuf {
        self.home.path().join("adapters/netcoredbg")
    }

    fn write_adapter(&self, script: &str) {
        std::fs::write(self.adapter(), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(self.adapter(), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn connect(&mut self) -> TcpStream {
        let port = self.call("debugger/start", json!({"targetPath": "app.dll"}))["port"].as_u64().unwrap();
        let stream = TcpStream::connect(("127.0.0.1", port as u16)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let body = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}).to_string();
        self.stdin.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
        loop {
            let (mut header, mut empty) = (String::new(), String::new());
            self.stdout.read_line(&mut header).unwrap();
            self.stdout.read_line(&mut empty).unwrap();
            let length = header.trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
            let mut body = vec![0; length];
            self.stdout.read_exact(&mut body).unwrap();
            let message: Value = serde_json::from_slice(&body).unwrap();
            if message["id"] == self.id {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].clone();
            }
        }
    }
}

impl Drop for RelaySandbox {
    fn drop(&mut self) {
        let _ = tether(self.home.path(), "shutdown").status();
        let _ = self.rpc.wait();
    }
}

fn tether(home: &Path, word: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tether"));
    let path = format!("{}:{}", home.join("adapters").display(), std::env::var("PATH").unwrap_or_default());
    command.arg(word).current_dir(home.join("ws")).env("PATH", path).stderr(Stdio::null());
    for (name, folder) in [("XDG_RUNTIME_DIR", "run"), ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config")] {
        command.env(name, home.join(folder));
    }
    command
}
