// Loaded by Node before the VS Code server's main script, and, by that, before the main script of each extension host.
// While the file `armed` lies beside this one, a new host waits before its first line: a debugger that is attached in the
// meantime has set its breakpoints before an extension is activated.
//
// The wait is a loop with short pauses, because Node serves its inspector between two turns of running code. It ends when
// the file `held-<pid>` or `armed` is removed, when the supervisor that is named in `armed` is gone, or after a time limit:
// a host is never held for ever.
//
// A host whose inspector port is in use gets another one: Node would go on without an inspector. The server chooses a port
// on which nothing listens, but it may be the local port of a connection, also of one that was closed a minute ago.
'use strict';

const childProcess = require('child_process');
const fs = require('fs');
const inspector = require('inspector');
const path = require('path');
const { isMainThread } = require('worker_threads');

const HOST_FLAG = '--type=extensionHost';
const MAX_MS = 20_000;
const PAUSE_MS = 4;
const COMPILE_CACHE = path.join(__dirname, 'compile-cache');

// Not there where no host is started ahead.
const SPARE_HOST = path.join(__dirname, 'spare.cjs');
const spareHost = fs.existsSync(SPARE_HOST) ? require(SPARE_HOST) : undefined;

// What this process starts does not inherit it.
process.execArgv = process.execArgv.filter((flag) => flag !== `--require=${__filename}`);
if (isMainThread) {
  // Compiled code is kept from launch to launch. A Node before 22.1 cannot keep it.
  require('module').enableCompileCache?.(COMPILE_CACHE);
  if (!process.argv.includes(HOST_FLAG)) {
    skipLoginShell();
    addToHosts();
  } else {
    keepCodeOfChildren();
    startAsHost();
  }
}

function startAsHost() {
  if (spareHost?.isSpareHost()) {
    spareHost.waitAsSpareHost((execArgv) => {
      process.execArgv = execArgv;
      openInspector(findInspectorPort());
      openInspector(0);
      holdHost();
    });
  } else {
    openInspector(0);
    holdHost();
  }
}

// Where a shell has set up this environment, VS Code is to start no other one for that: neither before the first extension
// host nor for the profiles of terminals.
function skipLoginShell() {
  if (process.env.SHLVL) process.env.VSCODE_CLI = '1';
}

// The server starts its hosts with `fork`, and chooses their flags itself.
function addToHosts() {
  const { fork } = childProcess;
  childProcess.fork = function (file, args, options) {
    const isHost = Array.isArray(args) && args.includes(HOST_FLAG);
    if (!isHost) return fork.apply(this, arguments);
    const start = (args, flags) => {
      const execArgv = [...flags, `--require=${__filename}`];
      return fork.call(this, file, args, { ...options, execArgv });
    };
    const spare = spareHost?.takeSpareHost(file, args, options);
    spareHost?.startSpareHostLater(file, args, options, start);
    return spare ?? start(args, options?.execArgv ?? []);
  };
  require('module').syncBuiltinESMExports();
}

// The language servers of VS Code's own extensions, for which the activation of others waits, keep their compiled code too.
// What other extensions start has the environment that they choose.
function keepCodeOfChildren() {
  const { fork } = childProcess;
  // The main script of a host is `<VS Code>/out/bootstrap-fork.js`.
  const ownExtensions = path.join(path.dirname(process.argv[1]), '..', 'extensions', path.sep);
  childProcess.fork = function (file, args, options) {
    if (!Array.isArray(args) || !String(file).startsWith(ownExtensions)) return fork.apply(this, arguments);
    const env = { NODE_COMPILE_CACHE: COMPILE_CACHE, ...(options?.env ?? process.env) };
    return fork.call(this, file, args, { ...options, env });
  };
  require('module').syncBuiltinESMExports();
}

// Where a host is to have an inspector and has none.
function openInspector(port) {
  if (findInspectorPort() !== undefined && !inspector.url()) inspector.open(port, '127.0.0.1');
}

function findInspectorPort() {
  const flag = process.execArgv.find((flag) => /^--inspect(-brk)?=/.test(flag));
  return flag && Number(/\d+$/.exec(flag)?.[0] ?? 0);
}

// An error here would end the host, so there is none: the files may be removed at any time. 0: no host is to wait.
function readSupervisor(armed) {
  if (!fs.existsSync(armed)) return 0;
  try {
    return Number(fs.readFileSync(armed, 'utf8'));
  } catch {
    return 0;
  }
}

function createFile(file) {
  try {
    fs.writeFileSync(file, '');
    return true;
  } catch {
    return false;
  }
}

// Uses no call that throws while it waits: a debugger may stop at each exception.
function holdHost() {
  const armed = path.join(__dirname, 'armed');
  const held = path.join(__dirname, `held-${process.pid}`);
  const supervisor = readSupervisor(armed);
  if (!(supervisor > 1) || !createFile(held)) return;
  const isSupervised = () => {
    try {
      return process.kill(supervisor, 0);
    } catch {
      return false;
    }
  };
  const end = performance.now() + MAX_MS;
  const cell = new Int32Array(new SharedArrayBuffer(4));
  while (fs.existsSync(held) && fs.existsSync(armed) && performance.now() < end && isSupervised()) {
    Atomics.wait(cell, 0, 0, PAUSE_MS);
  }
  try {
    fs.rmSync(held, { force: true });
  } catch {
    // Its folder is removed with the launch.
  }
}
