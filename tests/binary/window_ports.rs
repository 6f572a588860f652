//! The ports of a running window that other programs have taken: nothing connects to them, and no adapter is sent there.

use std::io::ErrorKind;
use std::net::TcpListener;

use rustix::process::Signal;

use crate::support::{NODE_SERVICE, Sandbox, eventually, kill};

#[test]
fn a_port_that_a_stranger_has_taken_is_neither_connected_to_nor_given_to_an_adapter() {
    let server = format!("{NODE_SERVICE}\nprocess.on('SIGUSR2', () => require('node:inspector').close());\n");
    let toml = "[window]\nkind = \"node\"\nprogram = \"server.js\"\n";
    let sandbox = Sandbox::with(&[("server.js", &server), ("devtools.toml", toml)]);
    let window = sandbox.json(&["start"]);
    let (pid, port) = (window["pid"].as_u64().unwrap() as u32, window["cdpPort"].as_u64().unwrap() as u16);
    assert_eq!(sandbox.json(&["evaluate", "answer"])["value"], 42);
    kill(pid, Signal::USR2);
    let stranger = eventually("the window closes its port", || TcpListener::bind(("127.0.0.1", port)).ok());
    stranger.set_nonblocking(true).unwrap();
    let words = [format!("cannot use port {port} of the window"), format!("by process {}", std::process::id())];
    let words = words.each_ref().map(String::as_str);
    sandbox.tether(&["evaluate", "answer"]).fails(1, &words);
    sandbox.tether(&["debug", "attach", "--window", "extension-host"]).fails(1, &words);
    assert_eq!(sandbox.status()["state"], "unresponsive");
    let connected = stranger.accept();
    assert!(connected.as_ref().is_err_and(|cause| cause.kind() == ErrorKind::WouldBlock), "{connected:?}");
    assert!(crate::support::is_alive(pid));
}
