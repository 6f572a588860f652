// `tether dap node` with the client that VS Code's project tests debug adapters with.
//
// Needs in the environment: TETHER, the path of the binary; TESTSUPPORT, the folder of @vscode/debugadapter-testsupport.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

import { AdapterStage, commandLines } from './adapter_stage.mjs';

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

const stage = new AdapterStage('node', 'app.js', SOURCE);

/** Launches the program, waits for the first stop, and returns the id of its only thread. */
async function stopAt(...where) {
  const threads = await stage.stopAt(...where);
  assert.equal(threads.length, 1);
  return threads[0].id;
}

test('a breakpoint is hit, and the program is stepped through', async () => {
  const threadId = await stopAt('breakpoint', 'CALL');
  await Promise.all([stage.client.stepInRequest({ threadId }), stage.client.assertStoppedLocation('step', { path: stage.program, line: 2 })]);
  await Promise.all([stage.client.nextRequest({ threadId }), stage.client.assertStoppedLocation('step', { path: stage.program, line: 3 })]);
  await Promise.all([stage.client.nextRequest({ threadId }), stage.client.assertStoppedLocation('step', stage.at('STOP'))]);
  // The engine stops at the next statement: the rest of the call's line is none.
  await Promise.all([stage.client.stepOutRequest({ threadId }), stage.client.assertStoppedLocation('step', stage.at('AFTER'))]);
});

test('variables are read and set, and expressions are evaluated', async () => {
  const threadId = await stopAt('breakpoint', 'STOP', { condition: 'order === 2' });
  const { frameId, reference, values } = await stage.locals(threadId);
  assert.deepEqual([values.order, values.total], ['2', '4']);
  const set = await stage.client.setVariableRequest({ variablesReference: reference, name: 'result', value: 'order + 40' });
  assert.equal(set.body.value, '42');
  const evaluated = await stage.client.evaluateRequest({ expression: 'result + 1', frameId });
  assert.deepEqual([evaluated.body.result, evaluated.body.type], ['43', 'number']);
  await assert.rejects(stage.client.evaluateRequest({ expression: 'nothing.here', frameId }), /nothing is not defined/);
  // Without a frame, in the global scope.
  assert.equal((await stage.client.evaluateRequest({ expression: 'typeof order + typeof process' })).body.result, "'undefinedobject'");
});

test('an exception stops with its class and message', async () => {
  const threadId = await stopAt('exception', 'THROW', { filters: ['caught'] });
  const { body } = await stage.client.exceptionInfoRequest({ threadId });
  assert.equal(body.exceptionId, 'TypeError');
  assert.equal(body.details.message, 'no 12');
});

test('the end of the program has its exit code and all of its output', async () => {
  const output = [];
  stage.client.on('output', (event) => event.body.category === 'stdout' && output.push(event.body.output));
  const [exited] = await Promise.all([
    stage.client.waitForEvent('exited'),
    stage.client.waitForEvent('terminated'),
    stage.client.configurationSequence(),
    stage.client.launch({ program: stage.program, cwd: stage.folder }),
  ]);
  assert.equal(exited.body.exitCode, 3);
  assert.equal(output.join(''), '2\n6\n12\ncaught\n');
});

test('a program is ended on request', async () => {
  const threadId = await stopAt('breakpoint', 'CALL');
  assert.ok(threadId > 0);
  await stage.client.disconnectRequest({ terminateDebuggee: true });
  stage.client = undefined;
  const lines = await commandLines();
  assert.ok(!lines.some((it) => it.endsWith(stage.program)), lines.join('\n'));
});

test('what cannot be launched says why', async () => {
  await stage.client.initializeRequest();
  await assert.rejects(stage.client.launchRequest({ cwd: stage.folder }), /there is no `program` and no `runtimeExecutable`/);
  const missing = join(stage.folder, 'missing.js');
  await assert.rejects(stage.client.launchRequest({ program: missing, cwd: stage.folder }), /no such file/);
});

/** Attaches to a process by its id. */
async function attach(processId) {
  const initialized = stage.client.waitForEvent('initialized');
  await stage.client.initializeRequest();
  await stage.client.attachRequest({ processId });
  await initialized;
  await stage.client.configurationDoneRequest();
}

test('a process without an inspector is attached to by its id, and runs on', async () => {
  const source = "let ticks = 0; setInterval(() => ticks++, 5); console.log('up')";
  // On any free port: the one that Node takes by itself may be taken.
  const program = spawn(process.execPath, ['--inspect-port=0', '-e', source], { stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    await once(createInterface(program.stdout), 'line');
    await attach(program.pid);
    const { threads } = (await stage.client.threadsRequest()).body;
    assert.deepEqual(threads.map((it) => it.name), [`node [${program.pid}]`]);
    const evaluated = await stage.client.evaluateRequest({ expression: '[process.pid, typeof ticks].join()' });
    assert.equal(evaluated.body.result, `'${program.pid},number'`);
    await stage.client.disconnectRequest();
    stage.client = undefined;
    assert.equal(program.exitCode ?? program.signalCode, null);
  } finally {
    program.kill();
  }
});

test('a process that the signal for an inspector would end is refused, and runs on', async () => {
  const program = spawn('sleep', ['600']);
  try {
    await stage.client.initializeRequest();
    await assert.rejects(stage.client.attachRequest({ processId: program.pid }), /it runs .*, and not Node/);
    assert.equal(program.exitCode ?? program.signalCode, null);
  } finally {
    program.kill();
  }
});

test('a port of the inspector that is taken is reported, and no signal is sent', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address();
  const source = "setInterval(() => {}, 5); console.log('up')";
  const program = spawn(process.execPath, [`--inspect-port=${port}`, '-e', source], { stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  program.stderr.on('data', (piece) => (printed += piece));
  try {
    await once(createInterface(program.stdout), 'line');
    await stage.client.initializeRequest();
    const holder = new RegExp(`on port ${port}, and tries no other; process ${process.pid} `);
    await assert.rejects(stage.client.attachRequest({ processId: program.pid }), holder);
    assert.deepEqual([program.exitCode ?? program.signalCode, printed], [null, '']);
  } finally {
    program.kill();
    taken.close();
  }
});

test('names and properties are completed, and no getter runs', async () => {
  const threadId = await stopAt('breakpoint', 'STOP', { condition: 'order === 2' });
  const { frameId } = await stage.locals(threadId);
  const complete = async (text) => (await stage.client.send('completions', { frameId, text, column: text.length + 1 })).body.targets;
  const labels = async (text) => (await complete(text)).map((it) => it.label);
  assert.deepEqual(await complete('1 + tot'), [{ label: 'total', type: 'variable', start: 5, length: 3 }]);
  const names = await labels('');
  assert.ok(names.slice(0, 3).includes('order') && names.includes('Object'), names.join());
  assert.ok((await complete('setTimeo')).some((it) => it.label === 'setTimeout' && it.type === 'function'));
  assert.deepEqual(await complete('order.toFix'), [{ label: 'toFixed', type: 'method', start: 7, length: 5 }]);
  assert.ok((await complete('process.VERS')).some((it) => it.label === 'versions' && it.type === 'property'));
  const define = 'globalThis.probe = { runs: 0, plain: { inside: 1 }, get loud() { this.runs++; return this.plain; } }';
  await stage.client.evaluateRequest({ expression: define, frameId });
  assert.deepEqual(await labels('probe.lo'), ['loud']);
  assert.deepEqual(await labels('[probe][0]?.plain.in'), ['inside']);
  assert.deepEqual(await labels('probe.loud.in'), []);
  assert.deepEqual(await labels('probe.runs++.to'), []);
  assert.deepEqual(await labels("'probe."), []);
  assert.ok((await labels('process.')).length <= 200);
  const { body } = await stage.client.evaluateRequest({ expression: 'probe.runs', frameId });
  assert.equal(body.result, '0');
});
