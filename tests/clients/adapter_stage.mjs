// One of our own debug adapters on a port, a program whose lines are found by markers, and a client for each test.
//
// Needs in the environment: TETHER, the path of the binary; TESTSUPPORT, the folder of @vscode/debugadapter-testsupport.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, afterEach, before, beforeEach } from 'node:test';
import { promisify } from 'node:util';

const { TETHER, TESTSUPPORT } = process.env;
const { DebugClient } = createRequire(import.meta.url)(TESTSUPPORT);

/** The command lines of all processes. */
export async function commandLines() {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'args']);
  return stdout.split('\n');
}

export class AdapterStage {
  /** Starts the adapter before the tests of the file, and a client before each of them. */
  constructor(adapter, file, source) {
    this.source = source;
    before(async () => {
      this.folder = await realpath(await mkdtemp(join(tmpdir(), `${adapter}-`)));
      this.program = join(this.folder, file);
      await writeFile(this.program, source);
      const listen = ['dap', adapter, '--listen', '0'];
      this.process = spawn(TETHER, listen, { stdio: ['ignore', 'pipe', 'inherit'], cwd: this.folder });
      const [first] = await once(createInterface(this.process.stdout), 'line');
      this.port = Number(first.match(/^DAP server listening at: 127\.0\.0\.1:(\d+)$/)[1]);
    });
    after(async () => {
      this.process.kill('SIGTERM');
      await once(this.process, 'exit');
      await rm(this.folder, { recursive: true });
    });
    beforeEach(async () => {
      this.client = new DebugClient('', '', adapter);
      this.client.defaultTimeout = 30_000;
      await this.client.start(this.port);
    });
    // A second `disconnect` would have no answer.
    afterEach(() => this.client?.stop());
  }

  /** The line that has the marker. */
  line(marker) {
    return this.source.split('\n').findIndex((text) => text.endsWith(`// ${marker}`)) + 1;
  }

  at(marker) {
    return { path: this.program, line: this.line(marker) };
  }

  /** Launches the program with these breakpoints, and waits for the first stop; returns the threads. */
  async stopAt(reason, marker, { filters = [], condition } = {}) {
    const { client, program, folder } = this;
    await Promise.all([
      client.waitForEvent('initialized').then(async () => {
        const breakpoints = reason === 'breakpoint' ? [{ line: this.line(marker), condition }] : [];
        await client.setBreakpointsRequest({ source: { path: program }, breakpoints });
        await client.setExceptionBreakpointsRequest({ filters });
        await client.configurationDoneRequest();
      }),
      client.launch({ program, cwd: folder }),
      client.assertStoppedLocation(reason, this.at(marker)),
    ]);
    return (await client.threadsRequest()).body.threads;
  }

  /** The locals of the innermost frame, by their names. */
  async locals(threadId) {
    const { client } = this;
    const { stackFrames } = (await client.stackTraceRequest({ threadId })).body;
    const { scopes } = (await client.scopesRequest({ frameId: stackFrames[0].id })).body;
    const reference = scopes[0].variablesReference;
    const { variables } = (await client.variablesRequest({ variablesReference: reference })).body;
    return { frameId: stackFrames[0].id, reference, values: Object.fromEntries(variables.map((it) => [it.name, it.value])) };
  }
}
