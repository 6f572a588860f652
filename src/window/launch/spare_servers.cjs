// Keeps the language servers of VS Code's own extensions ahead of a restart, as `spare.cjs` keeps a host: after a restart the
// extensions of a workspace wait for them. A spare host starts the servers that a host before it had started. They wait for
// the first message of their extension, and know nothing of the workspace before it.
//
// A server ends with its host, whether it was given to an extension or not: it asks every 3 s whether there is still a
// process with the PID in its arguments.
//
//   servers.json   the descriptions of the servers that the last host has started
'use strict';

const fs = require('fs');
const path = require('path');

const STARTED = path.join(__dirname, 'servers.json');
// How `vscode-languageclient` starts a server that ends with its host.
const SERVER_ARGS = ['--node-ipc', `--clientProcessId=${process.pid}`];
// Variables that VS Code sets in a host. What an extension has set beside them is not written to a file.
const OWN_VARIABLE = /^(VSCODE|ELECTRON)_/;
// Another one in each host. Terminals use it, language servers do not.
const HOST_VARIABLE = 'VSCODE_IPC_HOOK_CLI';

const environment = { ...process.env };
const spares = new Map();
const started = [];

// What two servers have in common of which one can be taken for the other; `undefined` for programs that cannot be started
// ahead.
function describeServer(file, args, options) {
  if (JSON.stringify(args) !== JSON.stringify(SERVER_ARGS)) return undefined;
  const { execArgv = [], env = process.env, ...rest } = options ?? {};
  const names = new Set([...Object.keys(environment), ...Object.keys(env)]);
  const changed = [...names].filter((name) => name !== HOST_VARIABLE && env[name] !== environment[name]).sort();
  if (!changed.every((name) => OWN_VARIABLE.test(name))) return undefined;
  // A host with an inspector gives its servers one on a port that is chosen at random.
  const flags = execArgv.map((flag) => (/^--inspect=\d+$/.test(flag) ? '--inspect=0' : flag));
  const variables = changed.map((name) => [name, env[name] ?? null]);
  return JSON.stringify({ file, flags, variables, rest });
}

// In a spare host. `fork` starts a server: (file, arguments, options) → process. What cannot be started now is started when its
// extension asks for it.
function startSpareServers(fork) {
  for (const description of readStarted()) {
    const { file, flags, variables, rest } = JSON.parse(description);
    const env = { ...environment };
    for (const [name, value] of variables) {
      if (value === null) delete env[name];
      else env[name] = value;
    }
    let child;
    try {
      child = fork(file, SERVER_ARGS, { ...rest, execArgv: flags, env });
    } catch {
      continue;
    }
    child.on('error', ignore);
    child.on('message', refuse);
    // It keeps its host from nothing.
    child.unref();
    child.channel?.unref();
    spares.set(description, child);
  }
}

function ignore() {}

// What a server says before anybody listens would be lost to its extension.
function refuse() {
  this.kill();
}

// In a host: a server that was started ahead; `undefined` where none can be taken for this one.
function takeSpareServer(file, args, options) {
  const description = describeServer(file, args, options);
  if (!description) return undefined;
  keepStarted(description);
  const child = spares.get(description);
  spares.delete(description);
  if (!child?.connected || child.killed || child.exitCode !== null || child.signalCode !== null) return undefined;
  child.off('error', ignore).off('message', refuse);
  child.ref();
  child.channel?.ref();
  return child;
}

function readStarted() {
  try {
    return JSON.parse(fs.readFileSync(STARTED, 'utf8'));
  } catch {
    return [];
  }
}

// Another host reads none or all of it. Without it, no server is started ahead.
function keepStarted(description) {
  if (started.includes(description)) return;
  started.push(description);
  try {
    const file = `${STARTED}.${process.pid}`;
    fs.writeFileSync(file, JSON.stringify(started));
    fs.renameSync(file, STARTED);
  } catch {
    return;
  }
}

module.exports = { startSpareServers, takeSpareServer };
