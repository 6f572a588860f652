// `tether dap node` with the client that VS Code's project tests debug adapters with.
//
// Needs in the environment: TETHER, the path of the binary; TESTSUPPORT, the folder of @vscode/debugadapter-testsupport.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';

const { TETHER, TESTSUPPORT } = process.env;
const { DebugClient } = createRequire(import.meta.url)(TESTSUPPORT);
const run = promisify(execFile);

const SOURCE = `function twice(order) {
  const total = order * 2;
  let result = total;
  return result; // STOP
}

let sum = 0;
for (let number = 1; number <= 3; number++) {
  sum += twice(number); // CALL
  console.log(sum); // AFTER
}
try {
  throw new TypeError('no ' + sum); // THROW
} catch {
  console.log('caught');
}
process.exitCode = 3;
`;

let folder, program, adapter, port, client;

/** The line that has the marker. */
const line = (marker) => SOURCE.split('\n').findIndex((text) => text.endsWith(`// ${marker}`)) + 1;
const at = (marker) => ({ path: program, line: line(marker) });

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'node-')));
  program = join(folder, 'app.js');
  await writeFile(program, SOURCE);
  adapter = spawn(TETHER, ['dap', 'node', '--listen', '0'], { stdio: ['ignore', 'pipe', 'inherit'], cwd: folder });
  const [first] = await once(createInterface(adapter.stdout), 'line');
  port = Number(first.match(/^DAP server listening at: 127\.0\.0\.1:(\d+)$/)[1]);
});

after(async () => {
  adapter.kill('SIGTERM');
  await once(adapter, 'exit');
  await rm(folder, { recursive: true });
});

beforeEach(async () => {
  client = new DebugClient('', '', 'node');
  client.defaultTimeout = 30_000;
  await client.start(port);
});

// A second `disconnect` would have no answer.
afterEach(() => client?.stop());

/** Launches the program with these breakpoints, and waits for the first stop. */
async function stopAt(reason, marker, { filters = [], condition } = {}) {
  await Promise.all([
    client.waitForEvent('initialized').then(async () => {
      const breakpoints = reason === 'breakpoint' ? [{ line: line(marker), condition }] : [];
      await client.setBreakpointsRequest({ source: { path: program }, breakpoints });
      await client.setExceptionBreakpointsRequest({ filters });
      await client.configurationDoneRequest();
    }),
    client.launch({ program, cwd: folder }),
    client.assertStoppedLocation(reason, at(marker)),
  ]);
  const { threads } = (await client.threadsRequest()).body;
  assert.equal(threads.length, 1);
  return threads[0].id;
}

/** The locals of the innermost frame, by their names. */
async function locals(threadId) {
  const { stackFrames } = (await client.stackTraceRequest({ threadId })).body;
  const { scopes } = (await client.scopesRequest({ frameId: stackFrames[0].id })).body;
  const reference = scopes[0].variablesReference;
  const { variables } = (await client.variablesRequest({ variablesReference: reference })).body;
  return { frameId: stackFrames[0].id, reference, values: Object.fromEntries(variables.map((it) => [it.name, it.value])) };
}

test('a breakpoint is hit, and the program is stepped through', async () => {
  const threadId = await stopAt('breakpoint', 'CALL');
  await Promise.all([client.stepInRequest({ threadId }), client.assertStoppedLocation('step', { path: program, line: 2 })]);
  await Promise.all([client.nextRequest({ threadId }), client.assertStoppedLocation('step', { path: program, line: 3 })]);
  await Promise.all([client.nextRequest({ threadId }), client.assertStoppedLocation('step', at('STOP'))]);
  // The engine stops at the next statement: the rest of the call's line is none.
  await Promise.all([client.stepOutRequest({ threadId }), client.assertStoppedLocation('step', at('AFTER'))]);
});

test('variables are read and set, and expressions are evaluated', async () => {
  const threadId = await stopAt('breakpoint', 'STOP', { condition: 'order === 2' });
  const { frameId, reference, values } = await locals(threadId);
  assert.deepEqual([values.order, values.total], ['2', '4']);
  const set = await client.setVariableRequest({ variablesReference: reference, name: 'result', value: 'order + 40' });
  assert.equal(set.body.value, '42');
  const evaluated = await client.evaluateRequest({ expression: 'result + 1', frameId });
  assert.deepEqual([evaluated.body.result, evaluated.body.type], ['43', 'number']);
  await assert.rejects(client.evaluateRequest({ expression: 'nothing.here', frameId }), /nothing is not defined/);
});

test('an exception stops with its class and message', async () => {
  const threadId = await stopAt('exception', 'THROW', { filters: ['caught'] });
  const { body } = await client.exceptionInfoRequest({ threadId });
  assert.equal(body.exceptionId, 'TypeError');
  assert.equal(body.details.message, 'no 12');
});

test('the end of the program has its exit code and all of its output', async () => {
  const output = [];
  client.on('output', (event) => event.body.category === 'stdout' && output.push(event.body.output));
  const [exited] = await Promise.all([
    client.waitForEvent('exited'),
    client.waitForEvent('terminated'),
    client.configurationSequence(),
    client.launch({ program, cwd: folder }),
  ]);
  assert.equal(exited.body.exitCode, 3);
  assert.equal(output.join(''), '2\n6\n12\ncaught\n');
});

test('a program is ended on request', async () => {
  const threadId = await stopAt('breakpoint', 'CALL');
  assert.ok(threadId > 0);
  await client.disconnectRequest({ terminateDebuggee: true });
  client = undefined;
  const { stdout } = await run('ps', ['-eo', 'args']);
  assert.ok(!stdout.split('\n').some((it) => it.endsWith(program)), stdout);
});

test('what cannot be launched says why', async () => {
  await client.initializeRequest();
  await assert.rejects(client.launchRequest({ cwd: folder }), /there is no `program` and no `runtimeExecutable`/);
  const missing = join(folder, 'missing.js');
  await assert.rejects(client.launchRequest({ program: missing, cwd: folder }), /no such file/);
});
