//! Breakpoints lie with our state: a workspace may be read-only, or somebody else's, and what it brings along is not read.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::requirements::is_root;
use crate::support::{CommandOutput, Sandbox, copy_program, kill, run_command, wait_for_end};

/// `nobody`, on every Linux.
const NOBODY: u32 = 65534;
const CODE: &str = "one = 1\ntwo = 2\nthree = 3\n";

fn with_code() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("app.py", CODE);
    sandbox
}

/// File, line and condition of each breakpoint.
fn listed(report: &Value) -> Vec<Value> {
    let all = report["breakpoints"].as_array().unwrap();
    all.iter().map(|it| json!([it["file"], it["line"], it["condition"]])).collect()
}

#[test]
fn breakpoints_are_kept_outside_of_the_workspace() {
    let sandbox = with_code();
    fs::set_permissions(&sandbox.workspace, Permissions::from_mode(0o555)).unwrap();
    sandbox.json(&["break", "set", "app.py:2"]);
    let supervisor = sandbox.supervisor().unwrap();
    kill(supervisor, Signal::KILL);
    wait_for_end(supervisor);
    assert_eq!(listed(&sandbox.json(&["break", "list"])), [json!(["app.py", 2, null])]);
    fs::set_permissions(&sandbox.workspace, Permissions::from_mode(0o755)).unwrap();
    let names = fs::read_dir(&sandbox.workspace).unwrap().map(|it| it.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["app.py"]);
}

/// The file with the breakpoints, below our state.
fn stored_file(sandbox: &Sandbox) -> PathBuf {
    let mut states = fs::read_dir(sandbox.home().join("state/devtether")).unwrap();
    states.next().unwrap().unwrap().path().join(".devtools/breakpoints.json")
}

#[test]
fn a_breakpoint_file_that_cannot_be_read_is_reported_until_it_is_gone() {
    let sandbox = with_code();
    sandbox.json(&["break", "set", "app.py:2", "--condition", "one"]);
    sandbox.tether(&["shutdown"]).ok();
    let file = stored_file(&sandbox);
    let stored = fs::read_to_string(&file).unwrap();
    fs::write(&file, &stored[..stored.len() / 2]).unwrap();
    let words = [file.to_str().unwrap(), "cannot be read", "it is not a list of breakpoints", "sets it aside"];
    let doctor = sandbox.tether(&["doctor"]);
    assert!(words.iter().all(|word| doctor.stdout.contains(word)), "{doctor:?}");

    let aside = file.with_extension("json.stale");
    let import = format!("tether break import \"{}\"", aside.display());
    let words = ["are not set", aside.to_str().unwrap(), "it is not a list of breakpoints", &import];
    for arguments in [
        &["break", "list"][..],
        &["break", "list", "--json"],
        &["debug", "status"],
        &["debug", "status", "--json"],
        &["break", "set", "app.py:1"],
        &["break", "remove", "--all"],
        &["doctor"],
    ] {
        let output = sandbox.tether(arguments);
        let shown = if arguments.contains(&"--json") {
            output.json()["notes"][0].as_str().unwrap_or_default().to_owned()
        } else {
            output.stdout.clone()
        };
        assert!(words.iter().all(|word| shown.contains(word)), "{arguments:?}: {output:?}");
    }
    // Also by a supervisor that has not set it aside itself.
    sandbox.tether(&["shutdown"]).ok();
    assert!(sandbox.tether(&["break", "list"]).ok().stdout.contains(&import));

    fs::write(&aside, &stored).unwrap();
    sandbox.tether(&["break", "import", aside.to_str().unwrap()]).ok();
    fs::remove_file(&aside).unwrap();
    let report = sandbox.json(&["break", "list"]);
    assert_eq!((listed(&report), &report["notes"]), (vec![json!(["app.py", 2, "one"])], &Value::Null));
}

/// The sandbox of another user in the same workspace: state, settings and a copy of the program of their own.
struct OtherUser<'a> {
    sandbox: &'a Sandbox,
    home: PathBuf,
}

impl OtherUser<'_> {
    fn of(sandbox: &Sandbox) -> OtherUser<'_> {
        fs::set_permissions(sandbox.home(), Permissions::from_mode(0o711)).unwrap();
        let home = sandbox.home().join("nobody");
        for folder in [home.clone(), home.join("run"), home.join("state"), home.join("config")] {
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
            chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let program = home.join("tether");
        copy_program(Path::new(env!("CARGO_BIN_EXE_tether")), &program);
        fs::set_permissions(program, Permissions::from_mode(0o755)).unwrap();
        OtherUser { sandbox, home }
    }

    fn tether(&self, arguments: &[&str]) -> CommandOutput {
        let of_ours = self.sandbox.command(arguments);
        let mut command = std::process::Command::new(self.home.join("tether"));
        command.args(arguments).current_dir(&self.sandbox.workspace).stdin(std::process::Stdio::null());
        command.envs(of_ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("HOME", &self.home).env("XDG_RUNTIME_DIR", self.home.join("run"));
        command.env("XDG_STATE_HOME", self.home.join("state")).env("XDG_CONFIG_HOME", self.home.join("config"));
        run_command_as(command, NOBODY)
    }
}

fn run_command_as(mut command: std::process::Command, user: u32) -> CommandOutput {
    command.uid(user).gid(user);
    run_command(command)
}

#[test]
fn breakpoints_work_in_a_workspace_of_somebody_else() {
    if !is_root() {
        return;
    }
    let sandbox = with_code();
    // Ours has a supervisor there, too.
    sandbox.json(&["break", "set", "app.py:1"]);
    let other = OtherUser::of(&sandbox);
    other.tether(&["break", "set", "app.py:2"]).ok();
    let theirs = other.tether(&["break", "list", "--json"]).ok().json();
    other.tether(&["shutdown"]).ok();
    let again = other.tether(&["break", "list", "--json"]).ok().json();
    other.tether(&["shutdown"]).ok();
    assert_eq!(listed(&theirs), [json!(["app.py", 2, null])]);
    assert_eq!(listed(&again), listed(&theirs));
    assert_eq!(listed(&sandbox.json(&["break", "list"])), [json!(["app.py", 1, null])]);
}

#[test]
fn breakpoints_of_the_workspace_are_read_only_when_they_are_imported() {
    let sandbox = with_code();
    sandbox.json(&["break", "set", "app.py:3", "--condition", "two > 1"]);
    sandbox.json(&["break", "export", "shared.json"]);
    let shared = fs::read_to_string(sandbox.path("shared.json")).unwrap();
    assert!(shared.contains("\"app.py\"") && !shared.contains(sandbox.workspace.to_str().unwrap()), "{shared}");
    sandbox.json(&["break", "remove", "--all"]);
    sandbox.tether(&["shutdown"]).ok();

    // As it would be committed.
    sandbox.write(".devtools/breakpoints.json", &shared);
    assert!(listed(&sandbox.json(&["break", "list"])).is_empty());
    sandbox.json(&["break", "set", "app.py:1"]);
    let both = [json!(["app.py", 1, null]), json!(["app.py", 3, "two > 1"])];
    assert_eq!(listed(&sandbox.json(&["break", "import", "shared.json"])), both);
    assert_eq!(listed(&sandbox.json(&["break", "import", "shared.json"])), both, "a second import changes nothing");

    // An earlier export is replaced, another file is not.
    sandbox.json(&["break", "export", "shared.json"]);
    let words = ["cannot export the breakpoints to", "app.py", "name a new file"];
    sandbox.tether(&["break", "export", "app.py"]).fails(2, &words);
    assert_eq!(fs::read_to_string(sandbox.path("app.py")).unwrap(), CODE);
    sandbox.tether(&["break", "import", "app.py"]).fails(2, &["cannot import breakpoints from", "app.py"]);
    sandbox.tether(&["break", "import", "/dev/zero"]).fails(2, &["cannot import", "/dev/zero", "not a regular file"]);
}
