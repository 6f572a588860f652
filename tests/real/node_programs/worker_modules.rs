//! Workers: how they are called, and breakpoints in the first lines of the modules that they load.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::project_commands::{Project, assert_stop, free_port, start_program};
use crate::support::requirements::{installed_nodes, installed_tool};
use crate::support::scenario_sandbox::Running;
use crate::support::{eventually, run_command};

/// Each message has the worker load a module anew.
const MAIN: &str = "\
const { Worker } = require('node:worker_threads');
const start = (name) => new Worker(`${__dirname}/out/worker.js`, { name });
const first = start('a long [name] of a worker');
setInterval(() => first.postMessage('load'), 50);
if (process.argv[2] === 'later') setTimeout(() => start('later'), 1500);
";
const WORKER: &str = "\
const begun: number = 1;
const { parentPort } = require('node:worker_threads');
parentPort.on('message', () => {
  delete require.cache[require.resolve('./module.js')];
  require('./module.js');
});
";
const MODULE: &str = "\
const early: number = 20;
module.exports = { value: early * 2 };
";

/// The project, compiled with maps. `None`: the compiler is not installed.
fn project(node: &Path) -> Option<Project> {
    let esbuild = installed_tool("template-esbuild/node_modules/@esbuild/linux-x64/bin/esbuild")?;
    let mut project = Project::new(&[("main.js", MAIN), ("src/worker.ts", WORKER), ("src/module.ts", MODULE)]);
    let mut build = Command::new(esbuild);
    build.args(["src/worker.ts", "src/module.ts", "--outdir=out", "--format=cjs", "--platform=node", "--sourcemap"]);
    build.current_dir(&project.sandbox.workspace);
    run_command(build).ok();
    project.use_node(node);
    Some(project)
}

fn thread_of(stop: &Value) -> &str {
    stop["stopReason"]["threadName"].as_str().unwrap()
}

#[test]
fn new_workers_stop_in_the_first_lines_of_their_modules_and_have_whole_names() {
    for node in installed_nodes() {
        let Some(project) = project(&node) else { return };
        project.break_at(&["src/worker.ts:1", "src/module.ts:1"]);
        let stop = project.json(&["debug", "launch", "main.js", "--adapter", "node", "--wait", "60"]);
        assert_stop(&stop, "src/worker.ts:1");
        let name = thread_of(&stop);
        assert!(name.starts_with("worker 1 (a long [name] of a worker) of main.js ["), "{name}");
        assert_stop(&project.go_on(), "src/module.ts:1");
        project.stop();
    }
}

fn start_listening(node: &Path, project: &Project, arguments: &[&str]) -> (Running, String) {
    let port = free_port();
    let mut command = Command::new(node);
    command.arg(format!("--inspect=127.0.0.1:{port}")).args(arguments).current_dir(&project.sandbox.workspace);
    let program = start_program(command);
    eventually("it listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    (program, port.to_string())
}

#[test]
fn workers_of_a_program_that_is_attached_to_stop_in_the_first_lines_of_their_modules() {
    for node in installed_nodes() {
        let Some(project) = project(&node) else { return };
        // One that is alive.
        project.break_at(&["src/module.ts:1"]);
        let (program, port) = start_listening(&node, &project, &["main.js"]);
        let stop = project.json(&["debug", "attach", &port, "--language", "node", "--wait", "60"]);
        assert_stop(&stop, "src/module.ts:1");
        assert!(thread_of(&stop).starts_with("worker 1 (a long [name] of a worker) of node at port"), "{stop:#}");
        project.json(&["debug", "stop", "--detach"]);
        drop(program);
        // One that is new.
        project.break_at(&["src/worker.ts:1"]);
        let (program, port) = start_listening(&node, &project, &["main.js", "later"]);
        let stop = project.json(&["debug", "attach", &port, "--language", "node", "--wait", "60"]);
        assert_stop(&stop, "src/worker.ts:1");
        assert!(thread_of(&stop).contains("(later)"), "{stop:#}");
        assert_eq!(stop["stopReason"]["details"]["hitCount"], json!(1), "{stop:#}");
        project.json(&["debug", "stop", "--detach"]);
        drop(program);
    }
}
