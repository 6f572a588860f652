// The MCP Inspector's command line, in both eras of the protocol, against `tether mcp` and a real Node window.
//
// Needs in the environment: TETHER, the path of the binary; INSPECTOR, that of the Inspector's launcher.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);
const { TETHER, INSPECTOR } = process.env;

let workspace;

const tether = (...args) => run(TETHER, ['--workspace', workspace, ...args]);

before(async () => {
  workspace = await mkdtemp(join(tmpdir(), 'ws-'));
  await writeFile(join(workspace, 'server.js'), 'globalThis.answer = 42; setInterval(() => {}, 1 << 30);\n');
  await writeFile(join(workspace, 'devtools.toml'), '[window]\nkind = "node"\nprogram = "server.js"\n');
  await tether('trust', '--yes');
});

after(async () => {
  await tether('stop');
  await tether('shutdown', '--all');
  await rm(workspace, { recursive: true });
});

/** Runs the Inspector once; its exit code, and what it printed on stdout as an object. */
async function inspect(era, ...args) {
  // The Inspector passes on only a few variables of its environment; a user's session has these as well.
  const session = ['DEVTETHER_TEST_RUN', 'DEVTETHER_DATA_DIR', 'TMPDIR', 'XDG_RUNTIME_DIR', 'XDG_STATE_HOME']
    .filter((name) => process.env[name])
    .flatMap((name) => ['-e', `${name}=${process.env[name]}`]);
  const options = ['--cli', '--protocol-era', era, '--format', 'json', '--quiet', ...session];
  const command = [INSPECTOR, ...options, TETHER, '--workspace', workspace, 'mcp', ...args];
  try {
    const { stdout } = await run(process.execPath, command, { timeout: 60_000 });
    return { code: 0, said: JSON.parse(stdout) };
  } catch (error) {
    if (typeof error.code !== 'number') throw error;
    return { code: error.code, said: error.stdout ? JSON.parse(error.stdout) : undefined, complaint: error.stderr };
  }
}

const call = (era, tool, args = {}) =>
  inspect(era, '--method', 'tools/call', '--tool-name', tool, '--tool-args-json', JSON.stringify(args));

for (const era of ['legacy', 'modern']) {
  describe(`in the ${era} era`, () => {
    test('the tools are listed, and their schemas are portable', async () => {
      const { code, said, complaint } = await inspect(era, '--method', 'tools/list', '--strict');
      assert.equal(code, 0, complaint);
      const names = said.result.tools.map((tool) => tool.name);
      for (const verb of ['status', 'start', 'stop', 'restart', 'changes', 'evaluate']) {
        assert.ok(names.includes(`window_${verb}`), `window_${verb} is not among ${names}`);
      }
    });

    test('each call comes from another process, and finds the same window', async () => {
      const started = (await call(era, 'window_start')).said.result.structuredContent;
      assert.equal(started.state, 'ready');
      process.kill(started.pid, 0);
      const status = (await call(era, 'window_status')).said.result.structuredContent;
      assert.equal(status.pid, started.pid);
      const { value } = (await call(era, 'window_evaluate', { expression: 'answer' })).said.result.structuredContent;
      assert.equal(value, 42);
    });

    test('the resources are listed and read', async () => {
      const { said: listed } = await inspect(era, '--method', 'resources/list');
      const uris = listed.result.resources.map((resource) => resource.uri);
      assert.ok(uris.includes('tether://window/state'), uris.join());
      const { said: read } = await inspect(era, '--method', 'resources/read', '--uri', 'tether://window/state');
      const status = (await call(era, 'window_status')).said.result.structuredContent;
      assert.equal(JSON.parse(read.result.contents[0].text).generation, status.generation);
    });

    test('wrong arguments are an error', async () => {
      const { code, said } = await call(era, 'window_evaluate', { expression: 7 });
      assert.notEqual(code, 0);
      assert.equal(said.result.isError, true);
      assert.match(said.result.content[0].text, /expression|string/);
    });
  });
}
