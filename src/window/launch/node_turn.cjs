// Loaded by Node before the program of a window: says when the program has run up to its first wait, by the file `turn-over`
// beside this one. An immediate that is set here runs then, since a CommonJS program is run in the same turn.
//
// The file holds `module` where no CommonJS program has been run: ES modules are loaded in later turns.
'use strict';

const fs = require('fs');
const path = require('path');
const { isMainThread } = require('worker_threads');

if (isMainThread) {
  // What this process starts does not inherit it.
  process.execArgv = process.execArgv.filter((flag) => flag !== `--require=${__filename}`);
  const file = path.join(__dirname, 'turn-over');
  setImmediate(() => {
    fs.writeFileSync(`${file}.new`, process.mainModule ? 'commonjs' : 'module');
    fs.renameSync(`${file}.new`, file);
  });
}
