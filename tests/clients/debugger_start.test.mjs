// `debugger/start` with the client that VS Code's project tests debug adapters with, over the relay to adapters of others.
//
// Needs in the environment: TETHER, the path of the binary; TESTSUPPORT, the folder of @vscode/debugadapter-testsupport.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createConnection } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import { promisify } from 'node:util';

import { EditorWorkspace, eventually } from './editor_workspace.mjs';

const { DebugClient } = createRequire(import.meta.url)(process.env.TESTSUPPORT);

/** The JSON-RPC code of an adapter that is not installed. */
const MISSING_TOOL = -32004;
/** With a port, the client itself waits without a limit. */
const LIMIT = { timeout: 70_000 };

const C = `#include <unistd.h>
int twice(int order) {
  int total = order * 2; // STOP
  return total; // NEXT
}
int main(void) {
  for (;;) {
    twice(21);
    usleep(10000);
  }
}
`;
const PYTHON = `import time
def twice(order):
    total = order * 2  # STOP
    return total  # NEXT
while True:
    twice(21)
    time.sleep(0.01)
`;
const JAVASCRIPT = `function twice(order) {
  const total = order * 2; // STOP
  return total; // NEXT
}
setInterval(() => twice(21), 10);
`;

/** A program that loops, by the adapter: its source, and what is debugged. */
const PROGRAMS = {
  'lldb-dap': { file: 'app.c', source: C, target: 'app' },
  gdb: { file: 'app.c', source: C, target: 'app' },
  debugpy: { file: 'app.py', source: PYTHON, target: 'app.py' },
  'js-debug': { file: 'app.js', source: JAVASCRIPT, target: 'app.js' },
};

let workspace;
/** The clients of the running test. */
const clients = [];

before(async () => {
  workspace = await EditorWorkspace.open();
  for (const { file, source } of Object.values(PROGRAMS)) await workspace.write(file, source);
  await promisify(execFile)('cc', ['-g', '-O0', '-o', 'app', `${workspace.folder}/app.c`], { cwd: workspace.folder });
});

afterEach(async () => {
  clients.splice(0).forEach((client) => client.stopAdapter());
  await eventually('no program is left', async () => (await workspace.programs()).length === 0);
});

after(() => workspace.close());

/** A client that accepts `startDebugging`, and keeps the configuration of the session that was requested. */
class EditorClient extends DebugClient {
  constructor(adapter) {
    super('', '', adapter);
    clients.push(this);
    this.requestedSession = new Promise((resolve) => (this.resolveSession = resolve));
  }

  dispatch(body) {
    const message = JSON.parse(body);
    if (message.type !== 'request') return super.dispatch(body);
    const success = message.command === 'startDebugging';
    const response = JSON.stringify({ seq: 0, type: 'response', request_seq: message.seq, command: message.command, success });
    this.outputStream.write(`Content-Length: ${Buffer.byteLength(response)}\r\n\r\n${response}`);
    if (success) this.resolveSession(message.arguments);
  }

  async initializeRequest() {
    const lines = { linesStartAt1: true, columnsStartAt1: true, pathFormat: 'path' };
    const response = await super.initializeRequest({ adapterID: this._debugType, ...lines, supportsStartDebuggingRequest: true });
    this.capabilities = response.body;
    return response;
  }
}

/** The port of a relay to the adapter; none, and the test is skipped, where the adapter is not installed and CI not set. */
async function startDebugger(context, adapter) {
  const { target } = PROGRAMS[adapter];
  try {
    const { success, port } = await workspace.call('debugger/start', { targetPath: target, adapter });
    assert.equal(success, true);
    return port;
  } catch (error) {
    if (error.code !== MISSING_TOOL || process.env.CI) throw error;
    context.skip(error.message);
    return undefined;
  }
}

/** What becomes of a connection to the port that requests something: `served`, `closed`, or the code of its error. */
function tryToConnect(port) {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1', () => socket.write('Content-Length: 2\r\n\r\n{}'));
    socket.on('error', (error) => resolve(error.code));
    socket.on('close', () => resolve('closed'));
    socket.on('data', () => {
      resolve('served');
      socket.destroy();
    });
  });
}

function position(adapter, marker) {
  const { file, source } = PROGRAMS[adapter];
  const line = source.split('\n').findIndex((text) => text.endsWith(marker)) + 1;
  return { path: `${workspace.folder}/${file}`, line };
}

/** Sets the breakpoint when the adapter is ready for it, and ends the configuration. */
async function configure(client, adapter) {
  await client.waitForEvent('initialized');
  const { path, line } = position(adapter, 'STOP');
  const { body } = await client.setBreakpointsRequest({ source: { path }, breakpoints: [{ line }] });
  assert.equal(body.breakpoints.length, 1);
  await client.configurationDoneRequest();
}

/** Connects, launches with an empty request, and waits for the stop; returns the first client, and that of the stopped program. */
async function launchUntilStop(adapter, port) {
  const parent = new EditorClient(adapter);
  await parent.start(port);
  // The kernel takes it until the supervisor has accepted the first, and then resets it.
  assert.match(await tryToConnect(port), /^(ECONNREFUSED|ECONNRESET|closed)$/, 'a second connection');
  const stop = (client) => client.assertStoppedLocation('breakpoint', position(adapter, 'STOP'));
  if (adapter !== 'js-debug') {
    await Promise.all([configure(parent, adapter), parent.launch({}), stop(parent)]);
    return { root: parent, client: parent };
  }
  const launched = Promise.all([configure(parent, adapter), parent.launch({})]);
  const { request, configuration } = await parent.requestedSession;
  const child = new EditorClient(adapter);
  await child.start(port);
  const started = child.initializeRequest().then(() => child.send(request, configuration));
  await Promise.all([launched, configure(child, adapter), started, stop(child)]);
  return { root: parent, client: child };
}

/** The id of the stopped thread: of these programs' only one. */
async function stoppedThread(client) {
  const { threads } = (await client.threadsRequest()).body;
  assert.equal(threads.length, 1);
  return threads[0].id;
}

/** The variables of all scopes of a frame, by their names. */
async function readVariables(client, frameId) {
  const { scopes } = (await client.scopesRequest({ frameId })).body;
  const values = {};
  for (const { variablesReference, expensive } of scopes) {
    if (expensive) continue;
    const { variables } = (await client.variablesRequest({ variablesReference })).body;
    for (const { name, value } of variables) values[name] = value;
  }
  return values;
}

/** Ends the program in the way that the adapter offers. */
async function terminate(client) {
  if (client.capabilities.supportsTerminateRequest) {
    await Promise.all([client.waitForEvent('terminated'), client.terminateRequest({})]);
  } else {
    await client.disconnectRequest({ terminateDebuggee: true });
  }
}

/** The command lines that name a program of ours, without those of the adapters. */
async function debuggedPrograms() {
  return (await workspace.programs()).filter((line) => /[ /]app(\.py|\.js)?( |$)/.test(line));
}

for (const adapter of Object.keys(PROGRAMS)) {
  test(`${adapter}: launch, breakpoint, variables, evaluate, step, terminate`, LIMIT, async (context) => {
    const port = await startDebugger(context, adapter);
    if (port === undefined) return;
    assert.deepEqual(await workspace.programs(), [], 'the adapter is started by the connection');
    const { root, client } = await launchUntilStop(adapter, port);
    assert.equal(await tryToConnect(port), 'ECONNREFUSED', 'a further connection');
    const threadId = await stoppedThread(client);
    const step = client.assertStoppedLocation('step', position(adapter, 'NEXT'));
    const [, { body: stack }] = await Promise.all([client.nextRequest({ threadId }), step]);
    const frameId = stack.stackFrames[0].id;
    const { order, total } = await readVariables(client, frameId);
    assert.deepEqual([order, total], ['21', '42']);
    const evaluated = await client.evaluateRequest({ expression: 'total + order', frameId, context: 'watch' });
    assert.equal(evaluated.body.result, '63');
    assert.notEqual((await debuggedPrograms()).length, 0);
    await terminate(client);
    // js-debug ends the program with its first session.
    if (root !== client) root.stopAdapter();
    await eventually('the program has exited', async () => (await debuggedPrograms()).length === 0);
  });
}

/** The ports of these that are listened on; looking must not connect. */
async function listeningPorts(ports) {
  const table = (await readFile('/proc/net/tcp', 'utf8')).split('\n').slice(1).map((row) => row.trim().split(/\s+/));
  const LISTEN = '0A';
  const found = table.filter((row) => row[3] === LISTEN).map((row) => parseInt(row[1].split(':')[1], 16));
  return ports.filter((port) => found.includes(port));
}

test('nobody connects: after 30 seconds there is no process, no port and no state', LIMIT, async (context) => {
  const before = await workspace.stateFiles();
  const began = Date.now();
  const ports = [];
  for (const adapter of Object.keys(PROGRAMS)) {
    const port = await startDebugger(context, adapter);
    if (port !== undefined) ports.push(port);
  }
  assert.deepEqual(await listeningPorts(ports), ports);
  await eventually('the ports are closed', async () => {
    assert.deepEqual(await workspace.programs(), []);
    return (await listeningPorts(ports)).length === 0;
  });
  const waited = Date.now() - began;
  assert.ok(waited > 29_000 && waited < 45_000, `${waited} ms`);
  for (const port of ports) assert.equal(await tryToConnect(port), 'ECONNREFUSED');
  assert.deepEqual(await workspace.programs(), []);
  assert.deepEqual((await workspace.stateFiles()).filter((file) => !before.includes(file)), []);
  assert.deepEqual((await workspace.call('debug/status', {})).sessions ?? [], []);
});
