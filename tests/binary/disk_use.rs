//! How much we leave on the disk: the output of a window, the state of workspaces that are gone.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::support::{NODE_SERVICE, Sandbox, eventually, run_command};

const LIMIT: u64 = 64 << 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A Node service that prints so many MiB when it is told to.
const FLOOD: &str = "
    const chunk = 'x'.repeat((1 << 20) - 1) + '\\n';
    globalThis.flood = (count) => { while (count-- > 0) require('fs').writeSync(1, chunk); return 'done'; };";

fn output_of(sandbox: &Sandbox) -> PathBuf {
    let state = fs::read_dir(sandbox.home().join("state/devtether")).unwrap().next().unwrap().unwrap().path();
    let name = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("output-");
    fs::read_dir(state).unwrap().flatten().find(name).unwrap().path()
}

#[test]
fn the_output_of_a_window_is_capped_while_nobody_looks() {
    let sandbox = crate::support::node();
    sandbox.write("server.js", &format!("{NODE_SERVICE}{FLOOD}"));
    sandbox.json(&["start"]);
    let output = output_of(&sandbox);
    for _ in 0..2 {
        assert_eq!(sandbox.json(&["evaluate", "flood(40)"])["value"], "done");
    }
    // Nothing is requested meanwhile.
    eventually("the output is trimmed", || (fs::metadata(&output).unwrap().len() < LIMIT).then_some(()));
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 42);
}

/// The state of a workspace, last used so many days ago.
fn make_state(sandbox: &Sandbox, name: &str, workspace: &str, days: u32) -> PathBuf {
    let state = sandbox.home().join("state/devtether").join(name);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&state).unwrap();
    let holder = json!({"pid": 1, "version": "0", "socket": "/none", "workspace": workspace});
    for (file, text) in [("supervisor.lock", holder.to_string()), ("supervisor.log", "old".to_owned())] {
        fs::write(state.join(file), text).unwrap();
        File::options()
            .write(true)
            .open(state.join(file))
            .unwrap()
            .set_modified(SystemTime::now() - days * DAY)
            .unwrap();
    }
    state
}

#[test]
fn the_state_of_a_workspace_that_is_gone_is_shown_and_removed_after_thirty_days() {
    let sandbox = crate::support::node();
    let living = sandbox.home().to_str().unwrap();
    let old = make_state(&sandbox, "00000000000000a1", "/no/such/old workspace", 31);
    let young = make_state(&sandbox, "00000000000000a2", "/no/such/young workspace", 29);
    let alive = make_state(&sandbox, "00000000000000a3", living, 400);
    let unknown = make_state(&sandbox, "00000000000000a4", "", 400);
    let shown = run_command(sandbox.command(["doctor"])).stdout;
    for words in ["/no/such/old workspace is gone", "last used 31 days ago", "/no/such/young workspace is gone"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains(&format!("{living} is gone")), "{shown}");
    assert!(old.exists(), "the doctor removes nothing");
    sandbox.status();
    eventually("the old state is removed", || (!old.exists()).then_some(()));
    assert!(young.exists() && alive.exists() && unknown.exists());
    // A fresh supervisor is the first of the state folder for the sandbox.
    for state in [young, alive, unknown] {
        fs::remove_dir_all(state).unwrap();
    }
}
