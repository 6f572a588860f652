// `tether dap java` with the client that VS Code's project tests debug adapters with.
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

const SOURCE = `public class App {
  static int twice(int order) {
    int total = order * 2;
    return total; // STOP
  }

  public static void main(String[] arguments) throws Exception {
    int sum = 0;
    for (int number = 1; number <= 3; number++) {
      sum += twice(number); // CALL
      System.out.println(sum); // AFTER
    }
    try {
      throw new IllegalStateException("no " + sum); // THROW
    } catch (IllegalStateException caught) {
      System.out.println("caught");
    }
    System.exit(3);
  }
}
`;

let folder, program, adapter, port, client;

/** The line that has the marker. */
const line = (marker) => SOURCE.split('\n').findIndex((text) => text.endsWith(`// ${marker}`)) + 1;
const at = (marker) => ({ path: program, line: line(marker) });

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'java-')));
  program = join(folder, 'App.java');
  await writeFile(program, SOURCE);
  adapter = spawn(TETHER, ['dap', 'java', '--listen', '0'], { stdio: ['ignore', 'pipe', 'inherit'], cwd: folder });
  const [first] = await once(createInterface(adapter.stdout), 'line');
  port = Number(first.match(/^DAP server listening at: 127\.0\.0\.1:(\d+)$/)[1]);
});

after(async () => {
  adapter.kill('SIGTERM');
  await once(adapter, 'exit');
  await rm(folder, { recursive: true });
});

beforeEach(async () => {
  client = new DebugClient('', '', 'java');
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
  const main = threads.find((thread) => thread.name === 'main');
  return main.id;
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
  await Promise.all([client.stepInRequest({ threadId }), client.assertStoppedLocation('step', { path: program, line: 3 })]);
  await Promise.all([client.nextRequest({ threadId }), client.assertStoppedLocation('step', at('STOP'))]);
  await Promise.all([client.stepOutRequest({ threadId }), client.assertStoppedLocation('step', at('CALL'))]);
  await Promise.all([client.nextRequest({ threadId }), client.assertStoppedLocation('step', at('AFTER'))]);
  assert.equal((await locals(threadId)).values.sum, '2');
});

test('variables are read and set, and expressions are evaluated', async () => {
  const threadId = await stopAt('breakpoint', 'STOP', { condition: 'order == 2' });
  const { frameId, reference, values } = await locals(threadId);
  assert.deepEqual([values.order, values.total], ['2', '4']);
  const set = await client.setVariableRequest({ variablesReference: reference, name: 'total', value: 'order + 40' });
  assert.equal(set.body.value, '42');
  const evaluated = await client.evaluateRequest({ expression: 'twice(total) + 1', frameId });
  assert.deepEqual([evaluated.body.result, evaluated.body.type], ['85', 'int']);
  await assert.rejects(client.evaluateRequest({ expression: 'total.length()', frameId }), /int/);
});

test('an exception stops with its class and message', async () => {
  const threadId = await stopAt('exception', 'THROW', { filters: ['caught'] });
  const { body } = await client.exceptionInfoRequest({ threadId });
  assert.equal(body.exceptionId, 'java.lang.IllegalStateException');
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
  assert.ok(!stdout.split('\n').some((it) => it.includes(folder) && it.includes('jdwp')), stdout);
});

test('what cannot be launched says why', async () => {
  await client.initializeRequest();
  await assert.rejects(client.launchRequest({ cwd: folder }), /there is no `mainClass` and no `jar`/);
  const missing = join(folder, 'Missing.java');
  await assert.rejects(client.launchRequest({ program: missing, cwd: folder }), /no such file/);
});

test('a call on a line is chosen and stepped into', async () => {
  const text = `public class Chain {
  static int inner(int value) {
    return value + 1; // INNER
  }

  static int outer(int one, int other) {
    return one * other; // OUTER
  }

  public static void main(String[] arguments) {
    int result = outer(inner(1), inner(2)); // CALLS
    System.out.println(result); // AFTER
  }
}
`;
  const chain = join(folder, 'Chain.java');
  await writeFile(chain, text);
  const markerLine = (marker) => text.split('\n').findIndex((it) => it.endsWith(`// ${marker}`)) + 1;
  const place = (marker) => ({ path: chain, line: markerLine(marker) });
  await Promise.all([
    client.waitForEvent('initialized').then(async () => {
      await client.setBreakpointsRequest({ source: { path: chain }, breakpoints: [{ line: markerLine('CALLS') }] });
      await client.configurationDoneRequest();
    }),
    client.launch({ program: chain, cwd: folder }),
    client.assertStoppedLocation('breakpoint', place('CALLS')),
  ]);
  const { threads } = (await client.threadsRequest()).body;
  const threadId = threads.find((thread) => thread.name === 'main').id;
  const { stackFrames } = (await client.stackTraceRequest({ threadId })).body;
  const { targets } = (await client.send('stepInTargets', { frameId: stackFrames[0].id })).body;
  assert.deepEqual(targets.map((it) => it.label), ['inner', 'outer']);
  // Through both calls of `inner`, which are done first.
  await Promise.all([
    client.stepInRequest({ threadId, targetId: targets[1].id }),
    client.assertStoppedLocation('step', place('OUTER')),
  ]);
  assert.deepEqual((await locals(threadId)).values, { one: '2', other: '3' });

  // The method returns at once what the console says.
  const { frameId } = await locals(threadId);
  const refused = client.evaluateRequest({ expression: 'return "text"', frameId, context: 'repl' });
  await assert.rejects(refused, /a text is no number/);
  const forced = await client.evaluateRequest({ expression: 'return one + 40;', frameId, context: 'repl' });
  assert.match(forced.body.result, /Chain.outer returns 42/);
  await Promise.all([client.nextRequest({ threadId }), client.waitForEvent('stopped')]);
  await Promise.all([client.nextRequest({ threadId }), client.assertStoppedLocation('step', place('AFTER'))]);
  assert.equal((await locals(threadId)).values.result, '42');
});

test('a frame is restarted, and names are completed', async () => {
  const threadId = await stopAt('breakpoint', 'STOP', { condition: 'order == 2' });
  const { frameId } = await locals(threadId);
  const complete = async (text) => {
    const { targets } = (await client.send('completions', { frameId, text, column: text.length + 1 })).body;
    return targets.map((it) => it.label);
  };
  assert.deepEqual(await complete('1 + tot'), ['total']);
  assert.ok((await complete('twi')).includes('twice(int)'));
  assert.ok((await complete('"a" + String.value')).some((label) => label.startsWith('valueOf(')));
  await client.setVariableRequest({
    variablesReference: (await locals(threadId)).reference, name: 'total', value: '7',
  });
  await Promise.all([
    client.send('restartFrame', { frameId }),
    client.assertStoppedLocation('step', { path: program, line: line('STOP') - 1 }),
  ]);
  assert.equal((await locals(threadId)).values.order, '2');
});

test('a monitor is named by the thread that holds it and by the one that waits for it', async () => {
  const text = `public class Locks {
  static final Object gate = new Object();

  public static void main(String[] arguments) throws Exception {
    Thread waits = new Thread(() -> {
      synchronized (gate) {
        System.out.println("late");
      }
    }, "waits");
    synchronized (gate) {
      waits.start();
      while (waits.getState() != Thread.State.BLOCKED) Thread.onSpinWait();
      System.out.println("up"); // HELD
    }
  }
}
`;
  const locks = join(folder, 'Locks.java');
  await writeFile(locks, text);
  const held = text.split('\n').findIndex((it) => it.endsWith('// HELD')) + 1;
  await Promise.all([
    client.waitForEvent('initialized').then(async () => {
      await client.setBreakpointsRequest({ source: { path: locks }, breakpoints: [{ line: held }] });
      await client.configurationDoneRequest();
    }),
    client.launch({ program: locks, cwd: folder }),
    client.assertStoppedLocation('breakpoint', { path: locks, line: held }),
  ]);
  const threads = async () => Object.fromEntries((await client.threadsRequest()).body.threads.map((it) => [it.name, it]));
  const stopped = (await threads()).main;
  assert.equal(stopped.holds.length, 1);
  assert.equal((await threads()).waits.state, 'blocked');
  await Promise.all([client.pauseRequest({ threadId: stopped.id }), client.waitForEvent('stopped')]);
  assert.deepEqual((await threads()).waits.waitsFor, stopped.holds[0]);
});
