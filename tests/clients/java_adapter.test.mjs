// `tether dap java` with the client that VS Code's project tests debug adapters with.
//
// Needs in the environment: TETHER, the path of the binary; TESTSUPPORT, the folder of @vscode/debugadapter-testsupport.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { AdapterStage, commandLines } from './adapter_stage.mjs';

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

const stage = new AdapterStage('java', 'App.java', SOURCE);

/** Launches the program, waits for the first stop, and returns the id of its main thread. */
async function stopAt(...where) {
  return (await stage.stopAt(...where)).find((thread) => thread.name === 'main').id;
}

test('a breakpoint is hit, and the program is stepped through', async () => {
  const threadId = await stopAt('breakpoint', 'CALL');
  await Promise.all([stage.client.stepInRequest({ threadId }), stage.client.assertStoppedLocation('step', { path: stage.program, line: 3 })]);
  await Promise.all([stage.client.nextRequest({ threadId }), stage.client.assertStoppedLocation('step', stage.at('STOP'))]);
  await Promise.all([stage.client.stepOutRequest({ threadId }), stage.client.assertStoppedLocation('step', stage.at('CALL'))]);
  await Promise.all([stage.client.nextRequest({ threadId }), stage.client.assertStoppedLocation('step', stage.at('AFTER'))]);
  assert.equal((await stage.locals(threadId)).values.sum, '2');
});

test('variables are read and set, and expressions are evaluated', async () => {
  const threadId = await stopAt('breakpoint', 'STOP', { condition: 'order == 2' });
  const { frameId, reference, values } = await stage.locals(threadId);
  assert.deepEqual([values.order, values.total], ['2', '4']);
  const set = await stage.client.setVariableRequest({ variablesReference: reference, name: 'total', value: 'order + 40' });
  assert.equal(set.body.value, '42');
  const evaluated = await stage.client.evaluateRequest({ expression: 'twice(total) + 1', frameId });
  assert.deepEqual([evaluated.body.result, evaluated.body.type], ['85', 'int']);
  await assert.rejects(stage.client.evaluateRequest({ expression: 'total.length()', frameId }), /int/);
});

test('an exception stops with its class and message', async () => {
  const threadId = await stopAt('exception', 'THROW', { filters: ['caught'] });
  const { body } = await stage.client.exceptionInfoRequest({ threadId });
  assert.equal(body.exceptionId, 'java.lang.IllegalStateException');
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
  assert.ok(!lines.some((it) => it.includes(stage.folder) && it.includes('jdwp')), lines.join('\n'));
});

test('what cannot be launched says why', async () => {
  await stage.client.initializeRequest();
  await assert.rejects(stage.client.launchRequest({ cwd: stage.folder }), /there is no `mainClass` and no `jar`/);
  const missing = join(stage.folder, 'Missing.java');
  await assert.rejects(stage.client.launchRequest({ program: missing, cwd: stage.folder }), /no such file/);
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
  const chain = join(stage.folder, 'Chain.java');
  await writeFile(chain, text);
  const markerLine = (marker) => text.split('\n').findIndex((it) => it.endsWith(`// ${marker}`)) + 1;
  const place = (marker) => ({ path: chain, line: markerLine(marker) });
  await Promise.all([
    stage.client.waitForEvent('initialized').then(async () => {
      await stage.client.setBreakpointsRequest({ source: { path: chain }, breakpoints: [{ line: markerLine('CALLS') }] });
      await stage.client.configurationDoneRequest();
    }),
    stage.client.launch({ program: chain, cwd: stage.folder }),
    stage.client.assertStoppedLocation('breakpoint', place('CALLS')),
  ]);
  const { threads } = (await stage.client.threadsRequest()).body;
  const threadId = threads.find((thread) => thread.name === 'main').id;
  const { stackFrames } = (await stage.client.stackTraceRequest({ threadId })).body;
  const { targets } = (await stage.client.send('stepInTargets', { frameId: stackFrames[0].id })).body;
  assert.deepEqual(targets.map((it) => it.label), ['inner', 'outer']);
  // Through both calls of `inner`, which are done first.
  await Promise.all([
    stage.client.stepInRequest({ threadId, targetId: targets[1].id }),
    stage.client.assertStoppedLocation('step', place('OUTER')),
  ]);
  assert.deepEqual((await stage.locals(threadId)).values, { one: '2', other: '3' });

  // The method returns at once what the console says.
  const { frameId } = await stage.locals(threadId);
  const refused = stage.client.evaluateRequest({ expression: 'return "text"', frameId, context: 'repl' });
  await assert.rejects(refused, /a text is not a number/);
  const forced = await stage.client.evaluateRequest({ expression: 'return one + 40;', frameId, context: 'repl' });
  assert.match(forced.body.result, /Chain.outer returns 42/);
  await Promise.all([stage.client.nextRequest({ threadId }), stage.client.waitForEvent('stopped')]);
  await Promise.all([stage.client.nextRequest({ threadId }), stage.client.assertStoppedLocation('step', place('AFTER'))]);
  assert.equal((await stage.locals(threadId)).values.result, '42');
});

test('a frame is restarted, and names are completed', async () => {
  const threadId = await stopAt('breakpoint', 'STOP', { condition: 'order == 2' });
  const { frameId } = await stage.locals(threadId);
  const complete = async (text) => {
    const { targets } = (await stage.client.send('completions', { frameId, text, column: text.length + 1 })).body;
    return targets.map((it) => it.label);
  };
  assert.deepEqual(await complete('1 + tot'), ['total']);
  assert.ok((await complete('twi')).includes('twice(int)'));
  assert.ok((await complete('"a" + String.value')).some((label) => label.startsWith('valueOf(')));
  await stage.client.setVariableRequest({
    variablesReference: (await stage.locals(threadId)).reference, name: 'total', value: '7',
  });
  await Promise.all([
    stage.client.send('restartFrame', { frameId }),
    stage.client.assertStoppedLocation('step', { path: stage.program, line: stage.line('STOP') - 1 }),
  ]);
  assert.equal((await stage.locals(threadId)).values.order, '2');
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
  const locks = join(stage.folder, 'Locks.java');
  await writeFile(locks, text);
  const held = text.split('\n').findIndex((it) => it.endsWith('// HELD')) + 1;
  await Promise.all([
    stage.client.waitForEvent('initialized').then(async () => {
      await stage.client.setBreakpointsRequest({ source: { path: locks }, breakpoints: [{ line: held }] });
      await stage.client.configurationDoneRequest();
    }),
    stage.client.launch({ program: locks, cwd: stage.folder }),
    stage.client.assertStoppedLocation('breakpoint', { path: locks, line: held }),
  ]);
  const threads = async () => Object.fromEntries((await stage.client.threadsRequest()).body.threads.map((it) => [it.name, it]));
  const stopped = (await threads()).main;
  assert.equal(stopped.holds.length, 1);
  assert.equal((await threads()).waits.state, 'blocked');
  await Promise.all([stage.client.pauseRequest({ threadId: stopped.id }), stage.client.waitForEvent('stopped')]);
  assert.deepEqual((await threads()).waits.waitsFor, stopped.holds[0]);
});
