//! A story: a workspace, an agent in it, and what both have been told. Each run has a new one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};

use devtether::adapters::ADAPTERS;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::support::listening::Listening;
use crate::support::requirements::{has_program, installed_adapter};
use crate::support::{CommandOutput, Sandbox, TEST_TIMEOUT, is_alive};

/// Fields are dropped in their order: the agent leaves before the sandbox checks that nothing is left.
pub struct Story {
    pub agent: Agent,
    pub sandbox: Sandbox,
    files: BTreeMap<String, String>,
}

/// How often each story is played.
fn runs() -> u32 {
    std::env::var("DEVTETHER_STORY_RUNS").map_or(1, |count| count.parse().expect("a number of runs"))
}

/// Plays a story in a new workspace with these files, as often as `DEVTETHER_STORY_RUNS` says. It is skipped, reported,
/// where an adapter or a program that it needs is missing.
pub fn play(needs: &[&str], files: &[(&str, &str)], act: impl Fn(&mut Story)) {
    let is_adapter = |name: &str| ADAPTERS.iter().any(|row| row.name == name);
    let is_there = |name: &&str| if is_adapter(name) { installed_adapter(name).is_some() } else { has_program(name) };
    if !needs.iter().all(is_there) {
        return;
    }
    let fails = |_: &u32| catch_unwind(AssertUnwindSafe(|| act(&mut Story::begin(files)))).is_err();
    let (runs, failed) = (runs(), (0..runs()).filter(fails).count());
    assert!(failed == 0, "{failed} of {runs} runs failed");
}

impl Story {
    fn begin(files: &[(&str, &str)]) -> Story {
        let sandbox = Sandbox::with(files);
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Story { agent: Agent::start(&sandbox), sandbox, files }
    }

    /// The agent calls a tool, which must succeed.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.agent.call(tool, arguments)
    }

    /// The agent calls a tool, which must fail with these words. Returns the error's text.
    pub fn refused(&mut self, tool: &str, arguments: Value, words: &str) -> String {
        let text = self.agent.refused(tool, arguments);
        assert!(text.contains(words), "{words:?} is not in {text}");
        text
    }

    /// The command line, a front end beside the agent. It must succeed.
    pub fn cli(&self, arguments: &[&str]) -> Value {
        self.sandbox.json(arguments)
    }

    /// A program of Node that runs already, and listens for a debugger.
    pub fn listening_node(&self, file: &str) -> Listening {
        Listening::node(&self.sandbox, Path::new("node"), file)
    }

    /// As [`Story::listening_node`], of Python.
    pub fn listening_python(&self, file: &str) -> Listening {
        let (_, debugpy) = installed_adapter("debugpy").expect("the story needs it");
        Listening::python(&self.sandbox, &debugpy, file)
    }

    /// The agent is killed, as by a user who closes it; the next one takes its place.
    pub fn replace_agent(&mut self) {
        let next = Agent::start(&self.sandbox);
        std::mem::replace(&mut self.agent, next).killed();
    }

    /// Runs a hint as it was printed, through a shell whose `tether` is ours.
    pub fn runs_hint(&self, hint: &str) -> CommandOutput {
        let tether = Path::new(env!("CARGO_BIN_EXE_tether")).parent().unwrap();
        let path = std::env::join_paths(
            [tether.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", hint]).current_dir(&self.sandbox.workspace).envs(self.sandbox.variables());
        shell.env("PATH", path.unwrap()).stdin(Stdio::null());
        crate::support::run_command(shell)
    }

    /// Runs a program of the machine in the workspace; it must succeed.
    pub fn runs(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        crate::support::run_command({
            command.args(arguments).current_dir(&self.sandbox.workspace).envs(self.sandbox.variables());
            command
        })
        .ok();
    }

    /// `file:line` of the line that ends with the marker.
    pub fn at(&self, file: &str, marker: &str) -> String {
        format!("{file}:{}", self.line(file, marker))
    }

    pub fn line(&self, file: &str, marker: &str) -> u64 {
        let found = self.files[file].lines().position(|line| line.ends_with(marker));
        found.unwrap_or_else(|| panic!("{marker} is not in {file}")) as u64 + 1
    }

    /// Sets a breakpoint at a marker. Returns what was told.
    pub fn breaks(&mut self, file: &str, marker: &str) -> Value {
        let place = self.at(file, marker);
        self.call("breakpoint_set", json!({"file": place}))
    }

    /// Launches a program, and waits for its first stop.
    pub fn launch(&mut self, program: &str) -> Value {
        self.call("debug_launch", json!({"program": program, "wait": 60}))
    }

    pub fn resume(&mut self) -> Value {
        self.call("debug_continue", json!({"wait": 60}))
    }

    /// Launches a source, whose first stop must be at the marker.
    pub fn launch_to(&mut self, file: &str, marker: &str) -> Value {
        let stop = self.launch(file);
        self.is_at(&stop, file, marker);
        stop
    }

    /// Continues to the next stop, which must be at the marker.
    pub fn resume_to(&mut self, file: &str, marker: &str) -> Value {
        let stop = self.resume();
        self.is_at(&stop, file, marker);
        stop
    }

    pub fn evaluate(&mut self, expression: &str) -> String {
        let value = self.call("debug_evaluate", json!({"expression": expression}));
        value["result"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
    }

    /// What a session has in its output of this category, as one text: read from its beginning, page by page.
    pub fn output(&mut self, category: &str) -> String {
        let (mut since, mut text) = (json!(0), String::new());
        loop {
            let page = self.call("debug_output", json!({"since": since, "limit": 1000}));
            assert_eq!(page["dropped"], 0, "{page}");
            let entries = page["entries"].as_array().unwrap().iter().filter(|it| it["category"] == category);
            text.extend(entries.map(|it| it["text"].as_str().unwrap()));
            if page["more"] == 0 {
                return text;
            }
            since = page["cursor"].clone();
        }
    }

    pub fn printed(&mut self) -> String {
        self.output("stdout")
    }

    /// Asserts that a stop is at the marker.
    pub fn is_at(&self, stop: &Value, file: &str, marker: &str) {
        let found = (&stop["state"], stop_line(stop));
        assert_eq!(found, (&json!("STOPPED"), Some(self.line(file, marker))), "{stop:#}");
    }

    /// Asserts that none of its processes is left but its supervisor, the hosts of its sessions, and the agent.
    pub fn nothing_runs(&self) {
        let mut others = self.sandbox.others();
        others.retain(|(_, line)| !line.ends_with("tether mcp"));
        assert!(others.is_empty(), "{others:#?}");
    }
}

/// The line of a stop.
pub fn stop_line(stop: &Value) -> Option<u64> {
    stop["stopReason"]["location"]["lineNumber"].as_u64()
}

/// The process that an answer names.
pub fn pid(answer: &Value) -> u32 {
    answer["pid"].as_u64().unwrap_or_else(|| panic!("no pid: {answer:#}")) as u32
}

/// The CDP port that an answer names.
pub fn cdp_port(answer: &Value) -> u16 {
    answer["cdpPort"].as_u64().unwrap_or_else(|| panic!("no port: {answer:#}")) as u16
}

pub fn session_of(answer: &Value) -> String {
    answer["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {answer:#}")).to_owned()
}

/// Asserts that a session has ended by itself with this code.
pub fn has_ended(answer: &Value, code: i64) {
    assert_eq!((&answer["state"], &answer["exitCode"]), (&json!("TERMINATED"), &json!(code)), "{answer:#}");
}

pub fn is_gone(pid: u32) -> bool {
    !is_alive(pid)
}

/// Whether nobody listens on a port of this machine.
pub fn refuses(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_err()
}

/// Whether a port of this machine can be listened on.
pub fn can_be_bound(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// The body that an HTTP server answers, at the first try.
pub fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").unwrap();
    let (mut stream, mut length) = (BufReader::new(stream), 0);
    let mut lines = (&mut stream).lines().map(Result::unwrap).take_while(|line| !line.is_empty());
    let status = lines.next().unwrap_or_default();
    assert!(status.contains(" 200 "), "{status}");
    for header in lines {
        // DevTools servers keep the connection, also where they are told not to.
        let value = header.to_lowercase().strip_prefix("content-length:").map(|it| it.trim().parse().unwrap());
        length = value.unwrap_or(length);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}
