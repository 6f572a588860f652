//! `tether wrap` around servers of others: for Node, in Python, in Rust. `DEVTETHER_WRAP_RESTARTS=100` restarts each 100 times.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::requirements::{has_program, installed_tool};
use crate::support::wrap_client::WrapClient;
use crate::support::{Sandbox, TEST_TIMEOUT, eventually, is_alive, kill};

/// How many calls are on their way at each moment.
const IN_FLIGHT: usize = 8;

/// A server, and one of its tools whose result has in it what it was told.
struct Server {
    argv: Vec<String>,
    /// The call with this number, and what its result has in it.
    call: fn(u64) -> (Value, String),
}

fn echo(number: u64) -> (Value, String) {
    let message = format!("message {number}.");
    (json!({"name": "echo", "arguments": {"message": message}}), message)
}

fn convert_time(number: u64) -> (Value, String) {
    let time = format!("{:02}:{:02}", number / 60 % 24, number % 60);
    let told = format!("T{time}:00");
    let arguments = json!({"source_timezone": "UTC", "time": time, "target_timezone": "UTC"});
    (json!({"name": "convert_time", "arguments": arguments}), told)
}

fn read_file(_: u64) -> (Value, String) {
    (json!({"name": "read_text_file", "arguments": {"path": "trigger.txt"}}), "edit".to_owned())
}

fn restarts() -> usize {
    std::env::var("DEVTETHER_WRAP_RESTARTS").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

/// A server in a workspace of its own, its starts counted, broken on demand.
struct Stage {
    sandbox: Sandbox,
    client: WrapClient,
    call: fn(u64) -> (Value, String),
    /// What the result of each call on its way must have in it.
    open: BTreeMap<u64, String>,
    edits: usize,
    answered: usize,
    /// How often the list of tools was said to have changed.
    list_changes: usize,
}

impl Stage {
    fn start(server: &Server) -> Stage {
        let sandbox = Sandbox::with(&[("trigger.txt", "edit 0")]);
        let quoted = server.argv.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let starts = sandbox.home().join("starts");
        let script = format!(
            "echo $$ >> '{}'; if [ -e broken ]; then echo 'broken on purpose' >&2; exit 7; fi; exec {quoted}",
            starts.display()
        );
        let client = WrapClient::ready(&sandbox, &["sh", "-c", &script]);
        Stage { sandbox, client, call: server.call, open: BTreeMap::new(), edits: 0, answered: 0, list_changes: 0 }
    }

    /// The processes that were started, in their order.
    fn starts(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.sandbox.home().join("starts")).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    fn edit(&mut self) {
        self.edits += 1;
        self.sandbox.write("trigger.txt", &format!("edit {}", self.edits));
    }

    fn send(&mut self) {
        let (call, told) = (self.call)(self.client.last + 1);
        let id = self.client.send("tools/call", call);
        self.open.insert(id, told);
    }

    /// The next answer, which must be the first one of its call.
    fn answer(&mut self) -> Value {
        let answer = loop {
            let message = self.client.messages.recv_timeout(TEST_TIMEOUT).expect("an answer");
            // Servers ask for the roots, and say things.
            match (message.get("method"), message.get("id")) {
                (None, Some(_)) => break message,
                (Some(method), Some(id)) if method == "roots/list" => {
                    let roots =
                        json!([{"uri": format!("file://{}", self.sandbox.workspace.display()).replace(' ', "%20")}]);
                    self.client.write(&json!({"jsonrpc": "2.0", "id": id, "result": {"roots": roots}}));
                }
                (Some(method), None) => self.list_changes += usize::from(method == "notifications/tools/list_changed"),
                _ => panic!("{message}"),
            }
        };
        let told = self.open.remove(&answer["id"].as_u64().unwrap()).unwrap_or_else(|| panic!("twice: {answer}"));
        if answer.get("error").is_none() {
            let result = answer["result"].to_string();
            assert!(result.contains(&told) && answer["result"]["isError"] != true, "{told}: {answer}");
        }
        self.answered += 1;
        answer
    }

    fn call(&mut self) -> Value {
        self.send();
        self.answer()
    }

    /// Restarts it over and over, with calls on their way all the time: each must be answered, once.
    fn restart_under_calls(&mut self, restarts: usize) {
        let first = self.starts().len();
        while self.open.len() < IN_FLIGHT {
            self.send();
        }
        self.edit();
        loop {
            let answer = self.answer();
            assert!(answer.get("error").is_none(), "{answer}");
            let done = self.starts().len() - first;
            if done == restarts {
                break;
            }
            if self.edits == done {
                self.edit();
            }
            self.send();
        }
        while !self.open.is_empty() {
            let answer = self.answer();
            assert!(answer.get("error").is_none(), "{answer}");
        }
        eprintln!("{restarts} restarts under {} calls, each answered once", self.answered);
    }

    fn note(answer: &Value) -> &str {
        answer["result"]["_meta"]["tether/note"].as_str().unwrap_or_default()
    }

    /// A new server that does not come up leaves the old one.
    fn break_and_mend(&mut self) {
        let good = *self.starts().last().unwrap();
        self.sandbox.write("broken", "");
        let kept = self.call();
        assert!(Stage::note(&kept).contains("broken on purpose"), "{kept}");
        assert!(Stage::note(&kept).contains("exited with code 7"), "{kept}");
        let tried = self.starts().len();
        let again = self.call();
        assert!(Stage::note(&again).is_empty() && self.starts().len() == tried && is_alive(good), "{again}");
        fs::remove_file(self.sandbox.path("broken")).unwrap();
        self.edit();
        let mended = self.call();
        assert!(Stage::note(&mended).is_empty() && *self.starts().last().unwrap() != good, "{mended}");
    }

    /// A crash is an error for each call on its way, and cured by the next.
    fn crash(&mut self) {
        // What was edited last may be noticed only now.
        self.call();
        let server = *self.starts().last().unwrap();
        kill(server, Signal::STOP);
        let state = || procfs::process::Process::new(server as i32).unwrap().stat().unwrap().state;
        eventually("it is stopped", || (state() == 'T').then_some(()));
        (0..3).for_each(|_| self.send());
        kill(server, Signal::KILL);
        for _ in 0..3 {
            let answer = self.answer();
            let error = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
            assert!(error.contains("was ended by signal 9 during `tools/call`"), "{error}");
        }
        let cured = self.call();
        assert!(cured.get("error").is_none(), "{cured}");
    }

    fn leave(self) {
        self.client.leave();
        let sandbox = self.sandbox;
        eventually("nothing is left of the servers", || {
            sandbox.processes().iter().all(|(_, line)| line.contains(" supervise ")).then_some(())
        });
    }
}

/// Returns how often the list of tools was said to have changed.
fn check(argv: Vec<String>, call: fn(u64) -> (Value, String)) -> usize {
    let mut stage = Stage::start(&Server { argv, call });
    stage.restart_under_calls(restarts());
    stage.break_and_mend();
    stage.crash();
    let list_changes = stage.list_changes;
    stage.leave();
    list_changes
}

fn text(path: PathBuf) -> String {
    path.into_os_string().into_string().unwrap()
}

fn node_server(name: &str) -> Option<Vec<String>> {
    let entry = installed_tool(&format!("mcp-{name}/node_modules/@modelcontextprotocol/{name}/dist/index.js"))?;
    has_program("node").then(|| vec!["node".to_owned(), text(entry)])
}

#[test]
fn server_everything_loses_no_call() {
    let Some(argv) = node_server("server-everything") else { return };
    // It adds tools once it knows its client, and says so itself.
    check([argv, vec!["stdio".to_owned()]].concat(), echo);
}

#[test]
fn server_filesystem_loses_no_call() {
    let Some(argv) = node_server("server-filesystem") else { return };
    assert_eq!(check([argv, vec![".".to_owned()]].concat(), read_file), 0);
}

#[test]
fn server_time_in_python_loses_no_call() {
    let Some(python) = installed_tool("mcp-server-time/bin/python") else { return };
    assert_eq!(check([text(python), "-m".to_owned(), "mcp_server_time".to_owned()].to_vec(), convert_time), 0);
}

/// `cargo test` builds it, but not with `--test`.
#[test]
fn a_server_of_the_rust_sdk_loses_no_call() {
    let server = PathBuf::from(env!("CARGO_BIN_EXE_tether")).with_file_name("examples").join("mcp_server");
    assert!(server.exists(), "`cargo build --example mcp_server` builds the server that this test starts");
    assert_eq!(check(vec![text(server)], echo), 0);
}

/// A server in a compiled language: each edit is compiled before it answers, and what does not compile leaves the old one.
#[test]
fn each_edit_of_a_server_in_rust_is_compiled_first() {
    if !has_program("rustc") {
        return;
    }
    let source = include_str!("../fixtures/compiled_server.rs");
    let build = "[build]\ncommand = ['rustc', '--edition=2024', '-Copt-level=0', '-o', 'dist/server', 'server.rs']\n";
    let sandbox = Sandbox::with(&[("server.rs", source), ("devtools.toml", build), ("dist/.keep", "")]);
    let mut client = WrapClient::ready(&sandbox, &["dist/server"]);
    assert_eq!(client.text("version"), "1");
    let version = |version: u32| source.replace("VERSION: u32 = 1", &format!("VERSION: u32 = {version}"));
    for edit in 2..=6 {
        sandbox.write("server.rs", &version(edit));
        assert_eq!(client.text("version"), edit.to_string());
        sandbox.write("server.rs", &source.replace("VERSION: u32 = 1", "VERSION: u32 = \"one\""));
        let kept = client.tool("version");
        assert_eq!(kept["result"]["content"][0]["text"], edit.to_string(), "{kept}");
        assert!(Stage::note(&kept).contains("mismatched types"), "{kept}");
    }
    client.leave();
}
