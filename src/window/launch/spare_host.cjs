// Keeps an extension host ahead of a restart: started, its code loaded, waiting for the connection of a workbench. It has run
// nothing of an extension yet, because only the connection says which ones there are.
//
// In the VS Code server, `takeSpareHost` gives it in place of a new host that would be started in the same way, and
// `startSpareHostLater` starts the next one. In the host, `waitAsSpareHost` waits until it is taken.
//
//   spare-<pid>   a host that waits
//   taken-<pid>   when a host that has waited was taken: clock ticks since boot, 100 in a second
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');

// The last argument of a spare host.
const SPARE_FLAG = '--devtether-spare';
// From the start of a host, which keeps the machine busy, until the next one is started.
const DELAY_MS = 3_000;
// With less memory available, in bytes, there is no spare host.
const MIN_MEMORY = 1 << 30;
// A host that has got no connection for that long ends.
const CONNECTION_MS = 60_000;
// The message by which a host asks for its connection, and the one by which it is taken.
const READY = 'VSCODE_EXTHOST_IPC_READY';
const TAKE = 'devtether.take';

let spare;
let timer;

// What two hosts have in common of which one can be taken for the other; `undefined` for hosts that cannot be started ahead.
function describeHost(file, args, { execArgv = [], env = {} } = {}) {
  const isPossible = env.VSCODE_EXTHOST_WILL_SEND_SOCKET && !execArgv.some((flag) => flag.startsWith('--inspect-brk'));
  // Files of the workspace that Node loads at the start would be those of before an edit.
  const isFresh = !/-r\b|--(require|import|loader|experimental-loader)\b/.test(env.NODE_OPTIONS ?? '');
  return isPossible && isFresh ? JSON.stringify([file, args, withoutInspector(execArgv), env]) : undefined;
}

function withoutInspector(execArgv) {
  return execArgv.filter((flag) => !flag.startsWith('--inspect='));
}

// A spare host that differs from what is to be started is ended.
function takeSpareHost(file, args, options) {
  const taken = spare;
  spare = undefined;
  if (!taken) return undefined;
  if (!taken.child.connected || taken.description !== describeHost(file, args, options)) {
    taken.child.kill();
    return undefined;
  }
  taken.child.send({ type: TAKE, execArgv: options.execArgv ?? [] });
  // Asked before anybody listened.
  if (taken.isReady) setImmediate(() => taken.child.emit('message', { type: READY }));
  return taken.child;
}

// `start` starts a host: (arguments, flags of Node) → process.
function startSpareHostLater(file, args, options, start) {
  clearTimeout(timer);
  const description = describeHost(file, args, options);
  if (!description) return;
  timer = setTimeout(() => {
    const memory = process.availableMemory?.() ?? os.freemem();
    if (spare || memory < MIN_MEMORY) return;
    const child = start([...args, SPARE_FLAG], withoutInspector(options.execArgv ?? []));
    const started = spare = { child, description, isReady: false };
    child.on('message', (message) => { started.isReady ||= message?.type === READY; });
    child.on('error', () => {});
    child.once('exit', () => {
      if (spare === started) spare = undefined;
      for (const state of ['spare', 'taken']) fs.rmSync(fileOf(state, child.pid), { force: true });
    });
  }, DELAY_MS).unref();
}

// Whether this process is a spare host; its arguments are then those of a host that is none.
function isSpareHost() {
  if (process.argv.at(-1) !== SPARE_FLAG) return false;
  process.argv.pop();
  return true;
}

// `onTaken` is called with the flags of Node that the host would have been started with.
function waitAsSpareHost(onTaken) {
  const { setTimeout } = globalThis;
  const deadlines = [];
  const keepDeadline = (target, self, parameters) => {
    const timer = Reflect.apply(target, self, parameters);
    if (parameters[1] === CONNECTION_MS) deadlines.push(timer);
    return timer;
  };
  globalThis.setTimeout = new Proxy(setTimeout, { apply: keepDeadline });
  const postpone = () => deadlines.forEach((deadline) => deadline.refresh());
  const postponing = setInterval(postpone, CONNECTION_MS / 2);
  const end = () => process.exit();
  process.once('disconnect', end);
  process.on('message', function wait(message) {
    if (message?.type !== TAKE) return;
    process.off('message', wait).off('disconnect', end);
    clearInterval(postponing);
    postpone();
    globalThis.setTimeout = setTimeout;
    try {
      fs.writeFileSync(fileOf('taken', process.pid), String(Math.round(os.uptime() * 100)));
      fs.rmSync(fileOf('spare', process.pid), { force: true });
    } finally {
      onTaken(message.execArgv);
    }
  });
  fs.writeFileSync(fileOf('spare', process.pid), '');
}

function fileOf(state, pid) {
  return path.join(__dirname, `${state}-${pid}`);
}

module.exports = { isSpareHost, startSpareHostLater, takeSpareHost, waitAsSpareHost };
