//! Another user's socket at our path, and another user at our socket: refused, without sending or removing anything.
//!
//! Running as another user takes root; without it these tests skip.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::support::other_user::{NOBODY, spawn_node_as_nobody};
use crate::support::requirements::is_root;
use crate::support::{Sandbox, node, run_command};
use serde_json::Value;

fn socket_of(sandbox: &Sandbox) -> PathBuf {
    let report = run_command(sandbox.command(["doctor", "--json"])).json();
    let reported = report["findings"].as_array().unwrap().iter().filter_map(|it| it["what"].as_str());
    reported.filter_map(|what| what.strip_prefix("its socket is ")).next().unwrap().into()
}

/// Another user's server at our socket path; it prints what it receives.
struct Impostor(Child);

impl Impostor {
    fn at(sandbox: &Sandbox, socket: &Path) -> Impostor {
        let folder = sandbox.home().join("nobodys");
        fs::create_dir(&folder).unwrap();
        chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(sandbox.home(), Permissions::from_mode(0o711)).unwrap();
        let script = "require('net').createServer(it => it.on('data', data => console.log('heard ' + data)))
            .listen(process.argv[1], () => console.log('up')); process.stdin.resume().on('end', () => process.exit())";
        let theirs = folder.join("s");
        let mut child = spawn_node_as_nobody(script, [&theirs]);
        let mut line = String::new();
        BufReader::with_capacity(1, child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        fs::rename(theirs, socket).unwrap();
        Impostor(child)
    }

    /// Stops it and returns what it received.
    fn end(mut self) -> String {
        drop(self.0.stdin.take());
        let mut heard = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut heard).unwrap();
        self.0.wait().unwrap();
        heard
    }
}

#[test]
fn a_socket_of_another_user_at_our_path_is_neither_used_nor_removed() {
    if !is_root() {
        return;
    }
    let sandbox = node();
    let socket = socket_of(&sandbox);
    let impostor = Impostor::at(&sandbox, &socket);
    let words = ["cannot use the socket", "it belongs to user 65534, not to user 0", "`ls -l"];
    sandbox.tether(&["status"]).fails(1, &words);
    sandbox.tether(&["supervise"]).fails(1, &words);
    sandbox.tether(&["shutdown"]).fails(1, &words);
    assert!(socket.exists() && sandbox.supervisor().is_none());

    // The file is ours now, its listener is not.
    chown(&socket, Some(0), Some(0)).unwrap();
    sandbox.tether(&["status"]).fails(1, &["its socket is served by user 65534, not by user 0"]);
    assert_eq!(impostor.end(), "", "not a word is said to it");
    fs::remove_file(&socket).unwrap();
    assert_eq!(sandbox.status()["state"], "absent");
}

#[test]
fn another_user_at_our_socket_is_refused_with_the_reason() {
    if !is_root() {
        return;
    }
    let sandbox = node();
    sandbox.json(&["start"]);
    let socket = socket_of(&sandbox);
    let folders = [sandbox.home().to_owned(), sandbox.home().join("run"), socket.parent().unwrap().to_owned()];
    let modes = |folder_mode: u32, socket_mode: u32| {
        folders.iter().for_each(|folder| fs::set_permissions(folder, Permissions::from_mode(folder_mode)).unwrap());
        fs::set_permissions(&socket, Permissions::from_mode(socket_mode)).unwrap();
    };
    modes(0o711, 0o666);
    let script = r#"const it = require("net").connect(process.argv[1]);
        const body = JSON.stringify({jsonrpc: "2.0", id: 1, method: "initialize", params: {name: "x", version: "0"}});
        it.on("error", error => process.stdout.write(`${error}`)).on("data", data => process.stdout.write(data));
        it.write(`Content-Length: ${body.length}\r\n\r\n${body}`);"#;
    let client = spawn_node_as_nobody(script, [&socket]).wait_with_output().unwrap();
    modes(0o700, 0o600);
    let output = String::from_utf8(client.stdout).unwrap();
    let (_, body) = output.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {output:?}"));
    let answer: Value = serde_json::from_str(body).unwrap();
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("rejects other users") && text.contains("belongs to user 0"), "{text}");
    assert_eq!(answer["result"], Value::Null);
    assert_eq!(sandbox.once_it_answers(sandbox.status())["state"], "ready");
}

#[test]
fn another_users_runtime_folder_is_refused() {
    if !is_root() {
        return;
    }
    let sandbox = node();
    sandbox.status();
    sandbox.tether(&["shutdown"]).ok();
    chown(sandbox.home().join("run/devtether"), Some(NOBODY), None).unwrap();
    sandbox.tether(&["status"]).fails(1, &["cannot use the folder", "it belongs to user 65534, not to user 0"]);
    let report = run_command(sandbox.command(["doctor", "--json"]));
    assert!(report.code == 1 && report.stdout.contains("it belongs to user 65534"), "{report:?}");
    chown(sandbox.home().join("run/devtether"), Some(0), None).unwrap();
}
