import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import { findServerProcesses, waitForNoProcess } from "../src/mcp/serverProcesses";
import { stopServer, type StopServerPorts } from "../src/mcp/stopServer";

/** A VS Code that takes `step` for the end of the server; "never" takes none. */
function vscodeThatObeys(step: string, extra: Partial<StopServerPorts> = {}) {
  const steps: string[] = [];
  const lines: string[] = [];
  let pids = [41];
  const done = (name: string) => {
    steps.push(name);
    if (name === step) {
      pids = [];
    }
  };
  const ports: StopServerPorts = {
    serverIds: ["devtether.tether/tether", "Devtether.tether/tether"],
    stopById: async (id) => done(`stop ${id}`),
    withdrawDefinition: async () => done("withdraw"),
    findProcesses: async () => pids,
    waitUntilGone: async () => pids.length === 0,
    terminateProcess: (pid) => done(`kill ${pid}`),
    log: (line) => lines.push(line),
    ...extra,
  };
  return { ports, steps, lines };
}

const FIRST = "stop devtether.tether/tether";
const SECOND = "stop Devtether.tether/tether";

const TABLE: [step: string, outcome: string, steps: string[]][] = [
  [FIRST, "stopped", [FIRST]],
  [SECOND, "stopped", [FIRST, SECOND]],
  ["withdraw", "withdrawn", [FIRST, SECOND, "withdraw"]],
  ["kill 41", "terminated", [FIRST, SECOND, "withdraw", "kill 41"]],
  ["never", "leftRunning", [FIRST, SECOND, "withdraw", "kill 41"]],
];

for (const [step, outcome, expected] of TABLE) {
  test(`the server that ends at "${step}": ${outcome}`, async () => {
    const { ports, steps, lines } = vscodeThatObeys(step);
    assert.equal(await stopServer(ports), outcome);
    assert.deepEqual(steps, expected);
    assert.ok(lines.every((line) => line.startsWith("stop the MCP server: ")));
    assert.ok(lines.length > steps.length);
  });
}

test("where no server is seen, VS Code is told all the same, and nothing else is done", async () => {
  const { ports, steps } = vscodeThatObeys("never", { findProcesses: async () => [] });
  assert.equal(await stopServer(ports), "notRunning");
  assert.deepEqual(steps, [FIRST]);
});

test("where processes cannot be seen, the request counts and is called unverified", async () => {
  const { ports, steps } = vscodeThatObeys("never", { findProcesses: async () => undefined });
  assert.equal(await stopServer(ports), "unverified");
  assert.deepEqual(steps, [FIRST]);
});

test("every step may throw: the next is tried, and nothing is thrown on", async () => {
  const failure = () => Promise.reject(new Error("command not found"));
  const { ports, lines } = vscodeThatObeys("never", {
    stopById: failure,
    withdrawDefinition: failure,
    waitUntilGone: failure,
    terminateProcess: () => {
      throw new Error("no such process");
    },
  });
  assert.equal(await stopServer(ports), "leftRunning");
  assert.equal(lines.filter((line) => line.includes("command not found")).length >= 3, true);
  assert.ok(lines.some((line) => line.includes("no such process")));
  assert.equal(await stopServer({ ...ports, findProcesses: failure }), "unverified");
});

test("only a child of ours with the command line is the server", async () => {
  const proc = await mkdtemp(path.join(tmpdir(), "tether-proc-"));
  const add = async (pid: number, stat: string, ...words: string[]) => {
    await mkdir(path.join(proc, String(pid)));
    await writeFile(path.join(proc, String(pid), "stat"), stat);
    await writeFile(path.join(proc, String(pid), "cmdline"), words.map((it) => `${it}\0`).join(""));
  };
  const command = ["/bin/tether", "--workspace", "/w s", "mcp"];
  await add(11, "11 (tether) S 5 11 11 0", ...command);
  await add(12, "12 (a) S 5 (b) S 9 12 12 0", ...command);
  await add(13, "13 (tether) Z 5 13 13 0", ...command);
  await add(14, "14 (tether) S 5 14 14 0", ...command, "--tools");
  await add(15, "15 (tether) S 5 15 15 0", "/bin/tether", "--workspace", "/w", "mcp");
  await add(16, "16 (x) R 5) S 5 16 16 0", ...command);
  await add(18, "18 (node) S 5 18 18 0", "/bin/node", ...command);
  await mkdir(path.join(proc, "17"));
  await mkdir(path.join(proc, "self"));
  assert.deepEqual(await findServerProcesses(command, 5, proc), [11, 16, 18]);
  assert.deepEqual(await findServerProcesses(command, 99, proc), []);
  assert.equal(await findServerProcesses(command, 5, path.join(proc, "nowhere")), undefined);
});

test("a real child is found by its command line, until it has ended", { skip: process.platform !== "linux" }, async () => {
  const command = [process.execPath, "-e", "process.stdin.resume(); console.log('up')", "mcp"];
  const child = spawn(command[0]!, command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout!, "data");
  assert.deepEqual(await findServerProcesses(command), [child.pid]);
  const find = () => findServerProcesses(command);
  assert.equal(await waitForNoProcess(find, 0), false);
  child.stdin!.end();
  assert.equal(await waitForNoProcess(find, 10_000), true);
});
