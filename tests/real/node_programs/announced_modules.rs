//! Modules that are announced before they are compiled: how their program waits, and that it does not wait for a debugger that has gone.

use std::process::Command;

use crate::support::requirements::installed_nodes;
use crate::support::{Sandbox, run_command};

const ANNOUNCE: &str = include_str!("../../../crates/tether-node/src/announce_maps.cjs");

/// Runs the script that announces, with a function for the debugger's, and returns what the program prints.
fn run_announcing(node: &std::path::Path, program: &str) -> String {
    let sandbox = Sandbox::new();
    for module in ["a", "b", "c", "d"] {
        sandbox.write(&format!("{module}.js"), &format!("exports.name = 0;\n//# sourceMappingURL={module}.js.map\n"));
    }
    sandbox.write("main.js", &format!("{ANNOUNCE}\n{program}"));
    let mut command = Command::new(node);
    command.arg("main.js").current_dir(sandbox.path("."));
    run_command(command).ok().stdout.trim().to_owned()
}

#[test]
fn a_debugger_that_lets_a_module_go_is_asked_for_each() {
    let program = "
let asked = '';
globalThis.debugged = (text) => {
    const { file, number } = JSON.parse(text).script;
    asked += `${require('node:path').basename(file)} `;
    globalThis[Symbol.for('debugged.release')](number);
};
const undo = announceMaps(require, 'debugged');
require('./a.js');
require('./b.js');
undo();
require('./c.js');
console.log(asked.trim(), Symbol.for('debugged.release') in globalThis);
";
    for node in installed_nodes() {
        assert_eq!(run_announcing(&node, program), "a.js b.js false", "{}", node.display());
    }
}

/// One that was killed leaves its function behind.
#[test]
fn a_debugger_that_has_gone_is_waited_for_once() {
    let program = "
let asked = '';
globalThis.debugged = () => { asked += 'first '; };
announceMaps(require, 'debugged');
require('./a.js');
require('./b.js');
globalThis.debugged = () => { asked += 'next '; };
require('./c.js');
require('./d.js');
console.log(asked.trim());
";
    for node in installed_nodes() {
        assert_eq!(run_announcing(&node, program), "first next", "{}", node.display());
    }
}
