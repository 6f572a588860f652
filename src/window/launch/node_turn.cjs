// Loaded by Node before the program of a window: makes the file `turn-over`, beside this one, when the program has run up to
// its first wait.
//
// A CommonJS program is run in the same turn as this script, and an immediate that is set here runs at the end of it. ES
// modules are read in later turns. Node has a listener of its own on `exit` until the program's module has been run to its
// end. A top-level `await` may keep it from there for ever: so the program also waits once Node reads no file any more.
'use strict';

const fs = require('fs');
const path = require('path');
const { isMainThread } = require('worker_threads');

if (isMainThread) {
  // What this process starts does not inherit it.
  process.execArgv = process.execArgv.filter((flag) => flag !== `--require=${__filename}`);

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
