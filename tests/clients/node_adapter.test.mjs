// `tether dap node` with the client that VS Code's project tests debug adapters with.
//
// Needs in the environment: TETHER, the path of the binary; TESTSUPPORT, the folder of @vscode/debugadapter-testsupport.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
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

test('a property is watched: a write of it stops in the function that writes', async () => {
  const text = `const order = { total: 1, list: [1], fixed: Object.freeze({ a: 1 }), get half() { return this.total / 2; } };
function write(value) {
  order.total = value; // WRITE
  return order;
}
const local = order; // READY
write(4);
write(5);
Object.create(order).total = 1;
order.total = { deep: 1 }; // SECOND
const { value } = Object.getOwnPropertyDescriptor(order, 'total'); // REMOVED
console.log(Object.keys(order).join(), value.deep, local === order); // END
`;
  const program = join(stage.folder, 'watched.js');
  await writeFile(program, text);
  const at = (marker) => ({ path: program, line: text.split('\n').findIndex((it) => it.endsWith(`// ${marker}`)) + 1 });
  const breakAt = (...lines) => stage.client.setBreakpointsRequest({ source: { path: program }, breakpoints: lines.map(({ line }) => ({ line })) });
  await Promise.all([
    stage.client.waitForEvent('initialized').then(async () => {
      await breakAt(at('READY'));
      await stage.client.configurationDoneRequest();
    }),
    stage.client.launch({ program, cwd: stage.folder }),
    stage.client.assertStoppedLocation('breakpoint', at('READY')),
  ]);
  const threadId = (await stage.client.threadsRequest()).body.threads[0].id;
  const evaluate = async (expression) => (await stage.client.evaluateRequest({ expression, frameId: (await stage.locals(threadId)).frameId })).body;
  const { frameId, reference } = await stage.locals(threadId);
  const info = async (named) => (await stage.client.send('dataBreakpointInfo', named)).body;
  const refused = async (named, reason) => {
    const { dataId, description } = await info(named);
    assert.equal(dataId ?? null, null);
    assert.match(description, reason);
  };
  await refused({ name: 'order', frameId }, /no variables/);
  await refused({ name: 'order', variablesReference: reference }, /no variables/);
  await refused({ name: 'order.half', frameId }, /accessor/);
  await refused({ name: 'order.fixed.a', frameId }, /not configurable/);
  await refused({ name: 'order.none', frameId }, /no property/);
  await refused({ name: '0', variablesReference: (await evaluate('order.list')).variablesReference }, /no elements/);
  await refused({ name: 'a', variablesReference: (await evaluate('new Proxy({ a: 1 }, {})')).variablesReference }, /Proxy/);
  const watchable = await info({ name: 'order.total', frameId });
  assert.deepEqual(watchable.accessTypes, ['write']);
  const inner = await info({ name: 'total', variablesReference: (await evaluate('order')).variablesReference });
  assert.equal(inner.dataId.replace('total', 'order.total'), watchable.dataId);

  const set = async (...breakpoints) => (await stage.client.send('setDataBreakpoints', { breakpoints })).body.breakpoints;
  const [bound] = await set({ dataId: watchable.dataId, accessType: 'write', condition: 'value !== 4' });
  assert.equal(bound.verified, true);
  const stopped = stage.client.waitForEvent('stopped');
  await Promise.all([stage.client.continueRequest({ threadId }), stage.client.assertStoppedLocation('data breakpoint', at('WRITE'))]);
  const { body } = await stopped;
  assert.deepEqual(body.hitBreakpointIds, [bound.id]);
  assert.deepEqual(body.dataChange, { name: 'order.total', oldValue: '4', newValue: '5' });
  const { stackFrames } = (await stage.client.stackTraceRequest({ threadId })).body;
  assert.equal(stackFrames[0].name, 'write');
  const { variablesReference, result } = await evaluate('order');
  assert.match(result, /^\{total: 5, .* half: \(getter\)\}$/);
  const { variables } = (await stage.client.variablesRequest({ variablesReference })).body;
  assert.equal(variables.find((it) => it.name === 'total').value, '5');

  // Steps are those of the function that writes.
  await Promise.all([stage.client.nextRequest({ threadId }), stage.client.assertStoppedLocation('step', { path: program, line: at('WRITE').line + 1 })]);
  // A write through an object that inherits the property is none of it.
  const [other] = await set({ dataId: watchable.dataId, accessType: 'write' });
  assert.notEqual(other.id, bound.id);
  await Promise.all([stage.client.continueRequest({ threadId }), stage.client.assertStoppedLocation('data breakpoint', at('SECOND'))]);
  assert.deepEqual(await set(), []);
  await breakAt(at('END'));
  await Promise.all([stage.client.continueRequest({ threadId }), stage.client.assertStoppedLocation('breakpoint', at('END'))]);
  assert.equal((await evaluate('value.deep')).result, '1');
});

test('a step out of a watched write leaves the function that writes', async () => {
  const text = `const order = { total: 1 };
function write(value) {
  order.total = value; // WRITE
  return order;
}
write(5); // READY
write(6); // NEXT
`;
  const program = join(stage.folder, 'left.js');
  await writeFile(program, text);
  const at = (marker) => ({ path: program, line: text.split('\n').findIndex((it) => it.endsWith(`// ${marker}`)) + 1 });
  await Promise.all([
    stage.client.waitForEvent('initialized').then(async () => {
      await stage.client.setBreakpointsRequest({ source: { path: program }, breakpoints: [{ line: at('READY').line }] });
      await stage.client.configurationDoneRequest();
    }),
    stage.client.launch({ program, cwd: stage.folder }),
    stage.client.assertStoppedLocation('breakpoint', at('READY')),
  ]);
  const threadId = (await stage.client.threadsRequest()).body.threads[0].id;
  const { frameId } = await stage.locals(threadId);
  const { dataId } = (await stage.client.send('dataBreakpointInfo', { name: 'order.total', frameId })).body;
  const refused = (await stage.client.send('setDataBreakpoints', { breakpoints: [{ dataId, accessType: 'read' }] })).body;
  assert.match(refused.breakpoints[0].message, /only writes/);
  await stage.client.send('setDataBreakpoints', { breakpoints: [{ dataId, hitCondition: '1' }] });
  await Promise.all([stage.client.continueRequest({ threadId }), stage.client.assertStoppedLocation('data breakpoint', at('WRITE'))]);
  await Promise.all([stage.client.stepOutRequest({ threadId }), stage.client.assertStoppedLocation('step', at('NEXT'))]);
  // Over a write that does not stop.
  await Promise.all([stage.client.stepInRequest({ threadId }), stage.client.assertStoppedLocation('step', at('WRITE'))]);
  await Promise.all([stage.client.nextRequest({ threadId }), stage.client.assertStoppedLocation('step', { path: program, line: at('WRITE').line + 1 })]);
});

test('a property that was watched has its value again when the session leaves', async () => {
  const source = `globalThis.order = { total: 1 };
    setInterval(() => console.log(JSON.stringify(Object.getOwnPropertyDescriptor(order, 'total'))), 5);`;
  const program = spawn(process.execPath, ['--inspect-port=0', '-e', source], { stdio: ['ignore', 'pipe', 'ignore'] });
  const printed = createInterface(program.stdout)[Symbol.asyncIterator]();
  const prints = async (isExpected) => {
    for (;;) if (isExpected(JSON.parse((await printed.next()).value))) return;
  };
  try {
    await prints((it) => it.value === 1);
    await attach(program.pid);
    const { dataId } = (await stage.client.send('dataBreakpointInfo', { name: 'order.total' })).body;
    const { breakpoints } = (await stage.client.send('setDataBreakpoints', { breakpoints: [{ dataId, hitCondition: '9' }] })).body;
    assert.equal(breakpoints[0].verified, true);
    // An accessor has no value of its own.
    await prints((it) => !('value' in it));
    await stage.client.evaluateRequest({ expression: 'order.total = 2' });
    await stage.client.disconnectRequest();
    stage.client = undefined;
    await prints((it) => it.value === 2 && it.writable && it.enumerable && it.configurable);
  } finally {
    program.kill();
  }
});
