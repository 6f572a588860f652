//! Isolates that do not answer, and workers that end while they are stopped: neither holds up an answer or the program.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::conversation::NodeConversation;
use crate::support::requirements::installed_nodes;

/// The worker is blocked for longer than any deadline.
const BLOCKED: &str = "\
const { Worker } = require('node:worker_threads');
const block = `
require('node:worker_threads').parentPort.postMessage('up');
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600_000);
`;
let count = 0;
const tick = () => {
  count += 1; // STOP
};
new Worker(block, { eval: true }).once('message', () => {
  console.log('blocked');
  setInterval(tick, 50);
});
";
/// Far less than the deadline of a command to an isolate, which is 10 s; more than a busy machine takes.
const PROMPT: Duration = Duration::from_secs(6);

#[tokio::test]
async fn a_blocked_worker_delays_neither_breakpoints_nor_stops_of_other_threads() {
    for node in installed_nodes() {
        let mut program = launch(&node, BLOCKED).await;
        program.conversation.configure().await;
        program.prints("blocked").await;
        let NodeProgram { conversation, folder } = &mut program;
        let file = folder.path().join("app.js");
        let set = timeout(PROMPT, conversation.set_breakpoints(&file, "STOP")).await.expect("breakpoints are set");
        assert_eq!(set[0]["verified"], true, "{set}");
        let stopped = timeout(PROMPT, conversation.event("stopped")).await.expect("it stops");
        let threads = conversation.request("threads", json!({})).await;
        let named = threads["threads"].as_array().unwrap();
        assert_eq!(named.len(), 2, "{threads}");
        let worker = named.iter().find(|thread| thread["id"] != stopped["threadId"]).unwrap();
        let pause = conversation.request("pause", json!({"threadId": worker["id"]}));
        timeout(PROMPT, pause).await.expect("`pause` is answered");
        let next = conversation.request("next", json!({"threadId": stopped["threadId"]}));
        timeout(PROMPT, next).await.expect("`next` is answered");
        timeout(PROMPT, conversation.event("stopped")).await.expect("the step ends");
        let leave = conversation.request("disconnect", json!({"terminateDebuggee": true}));
        timeout(PROMPT, leave).await.expect("`disconnect` is answered");
    }
}

/// The worker stops again and again; the program ends it once there is a line on its input.
const STOPPING: &str = "\
const { Worker } = require('node:worker_threads');
const worker = new Worker(`
let count = 0;
setInterval(() => {
  count += 1; debugger;
}, 1);
`, { eval: true });
worker.on('exit', (code) => console.log('worker exits', code));
";
/// The program ends its worker, or itself, half a second later; each with its exit code.
const ENDS: [(&str, i64); 4] = [
    ("setTimeout(async () => console.log('terminated', await worker.terminate()), 500);", 0),
    ("setTimeout(() => process.exit(3), 500);", 3),
    ("setTimeout(() => worker.unref(), 500);", 0),
    ("setTimeout(() => { throw new Error('too far'); }, 500);", 1),
];

#[tokio::test]
async fn a_worker_that_is_ended_while_it_is_stopped_ends_and_so_does_its_program() {
    for node in installed_nodes() {
        for (end, exit_code) in ENDS {
            let mut program = launch(&node, &format!("{STOPPING}{end}")).await;
            program.conversation.configure().await;
            let stopped = program.conversation.event("stopped").await;
            // Nobody continues it.
            let (ended, output) = program.conversation.ends().await;
            assert_eq!(ended, Some(exit_code), "{end} under {}, stopped {stopped}: {output}", node.display());
            assert_eq!(output.contains("terminated 1"), end.contains("terminate"), "{output}");
        }
    }
}

#[tokio::test]
async fn a_worker_that_stops_while_another_is_ended_stays_stopped() {
    let program = "\
const { Worker } = require('node:worker_threads');
const other = new Worker('setInterval(() => {}, 1000)', { eval: true });
const stopping = new Worker('let count = 0; debugger; count += 1;', { eval: true });
stopping.on('exit', () => console.log('it ran on'));
other.on('exit', () => console.log('other ends'));
setTimeout(() => other.terminate(), 500);
";
    for node in installed_nodes() {
        let mut program = launch(&node, program).await;
        program.conversation.configure().await;
        let thread = program.conversation.event("stopped").await["threadId"].clone();
        program.prints("other ends").await;
        let stack = program.conversation.request("stackTrace", json!({"threadId": thread})).await;
        assert!(stack["totalFrames"].as_i64().unwrap() > 0, "{stack}");
        program.conversation.request("continue", json!({"threadId": thread})).await;
        let (exit_code, output) = program.conversation.ends().await;
        assert!(exit_code == Some(0) && output.contains("it ran on"), "{output}");
    }
}

struct NodeProgram {
    conversation: NodeConversation,
    folder: tempfile::TempDir,
}

async fn launch(node: &std::path::Path, text: &str) -> NodeProgram {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("app.js"), text).unwrap();
    let arguments: Value = json!({"runtimeExecutable": node, "program": "app.js", "cwd": folder.path()});
    NodeProgram { conversation: NodeConversation::begin("launch", arguments).await, folder }
}

impl NodeProgram {
    /// Waits until it has printed a text.
    async fn prints(&mut self, text: &str) {
        while !self.conversation.output.contains(text) {
            self.conversation.event("output").await;
        }
    }
}
