// Loaded by Node before the program of a window: waits as long as the file `held` lies beside this one, then makes the file
// `turn-over` when the program has run up to its first wait. Without the supervisor, whose PID is in `held`, the program is
// not run.
//
// A CommonJS program is run in the same turn as this script, and an immediate that is set here runs at the end of it. ES
// modules are read in later turns. Node has a listener of its own on `exit` until the program's module has been run to its
// end. A top-level `await` may keep it from there for ever: so the program also waits once Node reads no file any more.
'use strict';

const fs = require('fs');
const path = require('path');
const { isMainThread } = require('worker_threads');

const PAUSE_MS = 2;

if (isMainThread) {
  // What this process starts does not inherit it.
  process.execArgv = process.execArgv.filter((flag) => flag !== `--require=${__filename}`);

  waitWhileHeld();

  const loadsModule = () => process.listeners('exit').some((listener) => listener.name === 'handleProcessExit');
  const readsFile = () => process.getActiveResourcesInfo().some((name) => /^(FSReq|CloseReq)/.test(name));
  // Such flags may replace how modules are read, by a thread for example: then only the end of the program's module counts.
  const flags = [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(/\s+/)];
  const hasLoader = flags.some((flag) => /^(-r|--(require|import|loader|experimental-loader))($|=)/.test(flag));

  const file = path.join(__dirname, 'turn-over');
  const report = () => {
    try {
      fs.writeFileSync(file, '');
    } catch {
      // No reason to end the program, which may have changed its user or have filled the disk: the launch has a time limit.
    }
  };
  // Where the program ends, this does not keep Node from exiting; an event of what is read wakes it.
  const check = () => (loadsModule() && (hasLoader || readsFile()) ? setImmediate(check).unref() : report());
  setImmediate(check);
}

function waitWhileHeld() {
  const pauses = new Int32Array(new SharedArrayBuffer(4));
  for (let supervisor = readHolder(); supervisor > 1; supervisor = readHolder()) {
    try {
      process.kill(supervisor, 0);
    } catch {
      process.exit(1);
    }
    Atomics.wait(pauses, 0, 0, PAUSE_MS);
  }
}

// The PID of the supervisor; 0 when the program may run.
function readHolder() {
  try {
    return Number(fs.readFileSync(path.join(__dirname, 'held'), 'utf8'));
  } catch {
    return 0;
  }
}
