// A workspace of its own, and an editor's connection to its supervisor: JSON-RPC 2.0 with Content-Length frames, over `tether rpc`.
//
// Needs in the environment: TETHER, the path of the binary.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const { TETHER } = process.env;
const HEADER_END = '\r\n\r\n';

/** Repeats a check until it returns something true. */
export async function eventually(what, check, timeout = 60_000) {
  const until = Date.now() + timeout;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > until) throw new Error(`never: ${what}`);
    await delay(20);
  }
}

export class EditorWorkspace {
  pending = new Map();
  received = Buffer.alloc(0);

  /** Makes the workspace, connects, and initializes. */
  static async open() {
    const workspace = new EditorWorkspace();
    workspace.home = await realpath(await mkdtemp(join(tmpdir(), 'editor-')));
    workspace.folder = join(workspace.home, 'work space');
    await mkdir(workspace.folder);
    await mkdir(join(workspace.home, 'run'), { mode: 0o700 });
    workspace.environment = { ...process.env };
    const folders = { XDG_RUNTIME_DIR: 'run', XDG_STATE_HOME: 'state', XDG_CONFIG_HOME: 'config', XDG_CACHE_HOME: 'cache' };
    for (const [name, folder] of Object.entries(folders)) workspace.environment[name] = join(workspace.home, folder);
    workspace.connect();
    await workspace.call('initialize', { name: 'test' });
    return workspace;
  }

  connect() {
    const options = { cwd: this.folder, env: this.environment, stdio: ['pipe', 'pipe', 'inherit'] };
    this.editor = spawn(TETHER, ['rpc'], options);
    this.editor.stdout.on('data', (chunk) => this.receive(chunk));
  }

  /** The result of a request. Rejects with the error of its response, with `code`. */
  call(method, params) {
    const id = this.pending.size + 1;
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    this.editor.stdin.write(`Content-Length: ${Buffer.byteLength(body)}${HEADER_END}${body}`);
    return new Promise((resolve, reject) => this.pending.set(id, { resolve, reject }));
  }

  receive(chunk) {
    this.received = Buffer.concat([this.received, chunk]);
    for (;;) {
      const end = this.received.indexOf(HEADER_END);
      if (end < 0) return;
      const first = end + HEADER_END.length;
      const last = first + Number(this.received.toString('latin1', 0, end).match(/content-length: *(\d+)/i)[1]);
      if (this.received.length < last) return;
      const message = JSON.parse(this.received.toString('utf8', first, last));
      this.received = this.received.subarray(last);
      if (message.method === undefined) this.settle(message);
    }
  }

  settle({ id, result, error }) {
    const { resolve, reject } = this.pending.get(id);
    if (error) reject(Object.assign(new Error(error.message), { code: error.code }));
    else resolve(result);
  }

  /** Writes a file of the workspace; returns its path. */
  async write(file, text) {
    const path = join(this.folder, file);
    await writeFile(path, text);
    return path;
  }

  /** The command lines of the processes that were started for the workspace, without those of `tether`. */
  async programs() {
    const found = [];
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
      try {
        const environment = await readFile(`/proc/${pid}/environ`, 'utf8');
        const line = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
        // A process without a command line has exited, and waits to be reaped.
        const isMeant = environment.split('\0').includes(`XDG_STATE_HOME=${join(this.home, 'state')}`);
        if (isMeant && line[0] !== '' && line[0] !== TETHER) found.push(line.join(' '));
      } catch {
        // It has exited meanwhile.
      }
    }
    return found;
  }

  /** All files below the state folder, by their paths. */
  async stateFiles() {
    const entries = await readdir(join(this.home, 'state'), { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)).sort();
  }

  /** Disconnects, ends the supervisor, and removes the workspace. */
  async close() {
    const exited = once(this.editor, 'exit');
    this.editor.stdin.end();
    await exited;
    await promisify(execFile)(TETHER, ['shutdown', '--all'], { cwd: this.folder, env: this.environment });
    await rm(this.home, { recursive: true });
  }
}
