//! A supervisor whose program was replaced on disk exits for the new one once nothing would be lost.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::attached_listeners::{Peer, install_delve};
use crate::support::requirements::has_program;
use crate::support::rpc_client::RpcClient;
use crate::support::{CommandOutput, Sandbox, eventually, is_alive, run_command};

/// A `tether` in the sandbox's own folder, with a Delve on PATH.
struct OwnProgram<'a> {
    sandbox: &'a Sandbox,
    program: PathBuf,
    path: OsString,
}

impl OwnProgram<'_> {
    fn install(sandbox: &Sandbox) -> OwnProgram<'_> {
        let own = OwnProgram { sandbox, program: sandbox.home().join("tether"), path: install_delve(sandbox) };
        own.replace();
        own
    }

    fn replace(&self) {
        let fresh = self.sandbox.home().join("tether.new");
        crate::support::copy_program(env!("CARGO_BIN_EXE_tether").as_ref(), &fresh);
        fs::rename(fresh, &self.program).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.sandbox.workspace).stdin(Stdio::null());
        command.envs(self.sandbox.variables()).env("PATH", &self.path);
        run_command(command)
    }

    fn status(&self) -> Value {
        self.run(&["status", "--json"]).ok().json()
    }

    fn notes_replacement(&self, status: &Value, why: &str) {
        let notes = status["notes"].to_string();
        assert!(notes.contains("tether was replaced") && notes.contains(why), "{status}");
    }
}

fn supervisors(sandbox: &Sandbox) -> Vec<u32> {
    let all = sandbox.processes().into_iter();
    all.filter(|(_, line)| line.contains(" supervise ")).map(|(pid, _)| pid).collect()
}

#[test]
fn a_supervisor_whose_program_was_replaced_exits_for_the_new_one_and_the_window_stays() {
    let sandbox = crate::support::node();
    let own = OwnProgram::install(&sandbox);
    let started = own.run(&["start", "--json"]).ok().json();
    let old = sandbox.supervisor().unwrap();
    assert!(!own.status()["notes"].to_string().contains("was replaced"));
    own.replace();
    // Neither a front end of another program ends it, nor one that would start no other.
    own.notes_replacement(&sandbox.status(), "starts the new one");
    own.run(&["doctor"]).ok();
    assert_eq!(supervisors(&sandbox), [old]);
    let status = own.status();
    assert_eq!((&status["pid"], &status["launchId"]), (&started["pid"], &started["launchId"]), "{status}");
    assert_eq!(status["reconnected"], true);
    let new = sandbox.supervisor().unwrap();
    assert!(new != old && !is_alive(old));
    // Nobody ends the new one.
    assert!(!own.status()["notes"].to_string().contains("was replaced"));
    sandbox.status();
    assert_eq!(supervisors(&sandbox), [new]);
    // A supervisor of the new program is ended by its own kind only when it was replaced, too.
    own.replace();
    let shut_down = own.run(&["shutdown", "--json"]).ok().json();
    assert_eq!((&shut_down["ended"], &shut_down["pid"]), (&json!(true), &json!(new)));
}

#[test]
fn a_stopped_session_goes_on_when_its_supervisor_exits_for_a_new_program() {
    if !has_program("node") {
        return;
    }
    let sandbox = crate::support::node();
    let own = OwnProgram::install(&sandbox);
    let peer = Peer::start_in_mode(&sandbox, rustix::process::getuid().as_raw(), "0", "stops");
    let attach = ["debug", "attach", &peer.port, "--adapter", "dlv", "--wait", "3", "--json"];
    assert_eq!(own.run(&attach).ok().json()["stopped"], true);
    let (old, hosts) = (sandbox.supervisor().unwrap(), sandbox.session_hosts());
    own.replace();
    eventually("the supervisor exits for the new program", || {
        own.status();
        (sandbox.supervisor() != Some(old)).then_some(())
    });
    assert_eq!(supervisors(&sandbox).len(), 1);
    assert_eq!(sandbox.session_hosts(), hosts, "the session is in the same host");
    assert_eq!(own.run(&["debug", "status", "d1", "--json"]).ok().json()["state"], "STOPPED");
    own.run(&["debug", "stop"]).ok();
    peer.end();
}

#[test]
fn a_supervisor_whose_program_was_replaced_stays_while_it_builds() {
    let script = "if [ -p node_modules/building ]; then echo > node_modules/building; cat node_modules/go; fi";
    let sandbox = crate::support::node_with_build(script);
    let own = OwnProgram::install(&sandbox);
    own.run(&["start"]).ok();
    let old = sandbox.supervisor().unwrap();
    fs::create_dir(sandbox.path("node_modules")).unwrap();
    let [building, go] = ["building", "go"].map(|name| sandbox.path("node_modules").join(name));
    assert!(Command::new("mkfifo").args([&building, &go]).status().unwrap().success());
    let mut client = RpcClient::connect(&sandbox);
    let restart = client.send("window/restart", json!({"rebuild": "always"}));
    fs::read(&building).unwrap();
    own.replace();
    own.notes_replacement(&own.status(), "an operation runs");
    assert_eq!(supervisors(&sandbox), [old]);
    fs::remove_file(&building).unwrap();
    fs::write(&go, "").unwrap();
    let response = client.response(restart);
    assert_eq!(response["result"]["lastBuild"]["ok"], true, "{response}");
    let status = eventually("the supervisor exits for the new program", || {
        let status = own.status();
        (sandbox.supervisor() != Some(old)).then_some(status)
    });
    assert_eq!((&status["pid"], supervisors(&sandbox).len()), (&response["result"]["pid"], 1));
}
