import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import { MISSING_PROGRAM, findProgram } from "../src/host/findProgram";
import type { LinkState } from "../src/host/overview";
import { connectThroughProgram } from "../src/host/rpcProcess";
import { SupervisorLink, type SupervisorLinkPorts } from "../src/host/supervisorLink";
import type { SupervisorConnection } from "../src/rpc/supervisorConnection";
import { SupervisorError } from "../src/rpc/supervisorError";
import { CLIENT, openTo, scriptedPeer, until, type ScriptedPeer } from "./scriptedPeer";

const folderOf = async () => realpath(await mkdtemp(path.join(tmpdir(), "tether-link-")));

async function writeProgram(file: string, script: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, `#!${process.execPath}\n${script}`);
  await chmod(file, 0o755);
  return file;
}

function linkTo(open: SupervisorLinkPorts["open"], hasWindow = true) {
  const states: LinkState[] = [];
  let connected = 0;
  const link = new SupervisorLink({ open, hasWindow: async () => hasWindow, onState: (state) => states.push(state), onConnected: () => connected++, log: () => undefined });
  return { link, kinds: () => states.map((it) => it.kind), count: () => connected, states };
}

test("callers share one connection", async () => {
  let opened = 0;
  const { link, kinds } = linkTo(() => (opened++, openTo(scriptedPeer())));
  const [a, b] = await Promise.all([link.connect(), link.connect()]);
  assert.equal(a, b);
  assert.equal(await link.connect(), a);
  assert.deepEqual([opened, kinds()], [1, ["connecting", "connected"]]);
  link.dispose();
  await assert.rejects(link.connect(), /deactivated/);
});

test("a supervisor that was replaced is connected to again while there is a window", async () => {
  const peers: ScriptedPeer[] = [];
  let failures = 2;
  const { link, kinds, count } = linkTo(async () => {
    if (peers.length === 1 && failures-- > 0) {
      throw new SupervisorError("it starts", "other");
    }
    const peer = scriptedPeer();
    peers.push(peer);
    return openTo(peer);
  });
  await link.connect();
  peers[0]!.toClient.destroy();
  await until("it is connected again", () => count() === 2);
  assert.deepEqual(kinds(), ["connecting", "connected", "lost", "connecting", "lost", "connecting", "lost", "connecting", "connected"]);
  link.dispose();
});

test("without a window no supervisor is started again", async () => {
  const peer = scriptedPeer();
  const { link, kinds } = linkTo(() => openTo(peer), false);
  await link.connect();
  peer.toClient.destroy();
  await until("it is idle", () => kinds().at(-1) === "idle");
  assert.deepEqual(kinds(), ["connecting", "connected", "idle"]);
});

test("a link that is disconnected on purpose stays so", async () => {
  const { link, kinds } = linkTo(() => openTo(scriptedPeer()));
  await link.connect();
  link.disconnect();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([kinds(), link.current], [["connecting", "connected"], undefined]);
});

test("a connection that was being opened for the former folder is closed, and not joined", async () => {
  const opened: { resolve: (connection: SupervisorConnection) => void; reject: (error: Error) => void }[] = [];
  const { link, states, count } = linkTo(() => new Promise((resolve, reject) => opened.push({ resolve, reject })));
  const former = link.connect();
  former.catch(() => undefined);
  link.disconnect();
  const present = link.connect();
  const [old, own] = [await openTo(scriptedPeer()), await openTo(scriptedPeer())];
  opened[1]!.resolve(own);
  assert.equal(await present, own);
  opened[0]!.resolve(old);
  await assert.rejects(former, /another folder or program was chosen meanwhile/);
  let isClosed = false;
  old.onClose(() => (isClosed = true));
  assert.deepEqual([isClosed, link.current, count(), states.at(-1)?.kind], [true, own, 1, "connected"]);
  link.dispose();
});

test("what fails for the former folder is not shown as the state of the present one", async () => {
  let reject: (error: Error) => void = () => undefined;
  const { link, kinds } = linkTo(() => new Promise((_, no) => (reject = no)));
  const former = link.connect();
  former.catch(() => undefined);
  link.disconnect();
  reject(new Error("refused"));
  await assert.rejects(former, /refused/);
  assert.deepEqual(kinds(), ["connecting"]);
});

test("a link that is given up while it looks for a window does not connect again", async () => {
  let answer: (hasWindow: boolean) => void = () => undefined;
  const states: LinkState[] = [];
  const peer = scriptedPeer();
  const link = new SupervisorLink({
    open: () => openTo(peer),
    hasWindow: () => new Promise((resolve) => (answer = resolve)),
    onState: (state) => states.push(state),
    onConnected: () => undefined,
    log: () => undefined,
  });
  await link.connect();
  peer.toClient.destroy();
  await until("it looks for a window", () => answer.length === 1);
  link.disconnect();
  answer(true);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(states.map((it) => it.kind), ["connecting", "connected"]);
});

test("a missing program is told apart from a lost connection", async () => {
  const missing = linkTo(() => Promise.reject(new SupervisorError("not on PATH", MISSING_PROGRAM)));
  await assert.rejects(missing.link.connect());
  const refused = linkTo(() => Promise.reject(new Error("refused")));
  await assert.rejects(refused.link.connect());
  assert.deepEqual([missing.kinds().at(-1), refused.kinds().at(-1)], ["missing", "lost"]);
});

test("the program is the setting's, the bundled one, or the first on PATH", async () => {
  const folder = await folderOf();
  const [extension, first, second] = ["extension", "first", "second"].map((name) => path.join(folder, name)) as [string, string, string];
  await mkdir(path.join(first, "tether"), { recursive: true });
  await writeProgram(path.join(second, "tether"), "");
  await mkdir(path.join(folder, "relative"));
  const search = { setting: "", extensionFolder: extension, searchPath: ["relative", ".", "", first, second].join(path.delimiter), platform: "linux" as const };
  // A folder of that name is no program.
  assert.deepEqual(await findProgram(search), { path: path.join(second, "tether"), from: "PATH" });
  const bundled = await writeProgram(path.join(extension, "bin", "tether"), "");
  assert.deepEqual(await findProgram(search), { path: bundled, from: "bundled" });
  const chosen = await writeProgram(path.join(folder, "my tether"), "");
  assert.deepEqual(await findProgram({ ...search, setting: chosen }), { path: chosen, from: "setting" });
  const check = (setting: string, expected: RegExp) => assert.rejects(findProgram({ ...search, setting }), expected);
  await check("tether", /must be an absolute path/);
  await check(path.join(folder, "nowhere"), /is not a program/);
  await chmod(chosen, 0o644);
  await check(chosen, /is not a program/);
  await assert.rejects(findProgram({ ...search, extensionFolder: folder, searchPath: "" }), /is not on PATH/);
});

/** A `tether` that answers `initialize` with its own arguments, and then runs until its stdin ends. */
const ECHO = `
let text = "";
process.stdin.on("data", (data) => {
  text += data;
  const found = /"id":(\\d+),"method":"initialize"/.exec(text);
  if (found) {
    text = "";
    const result = { name: "devtether", version: "0.1.0", pid: process.pid, workspace: process.argv.slice(2).join(" ") };
    const body = JSON.stringify({ jsonrpc: "2.0", id: Number(found[1]), result });
    process.stdout.write("Content-Length: " + Buffer.byteLength(body) + "\\r\\n\\r\\n" + body);
  }
});
process.stdin.on("end", () => process.exit(0));
`;

test("`tether rpc` is started in the folder, and ends with the connection", async () => {
  const folder = await folderOf();
  const program = await writeProgram(path.join(folder, "bin", "tether"), ECHO);
  const connection = await connectThroughProgram(program, folder, CLIENT, {}, () => undefined);
  assert.equal(connection.supervisor.workspace, `--workspace ${folder} rpc`);
  const isAlive = () => {
    try {
      return process.kill(connection.supervisor.pid, 0);
    } catch {
      return false;
    }
  };
  assert.ok(isAlive());
  connection.dispose();
  await until("the process has ended", () => !isAlive());
});

test("what `tether rpc` writes to stderr is the reason", async () => {
  const folder = await folderOf();
  const lines: string[] = [];
  const failing = await writeProgram(path.join(folder, "bin", "tether"), `console.error("the state folder is not writable"); process.exit(1);`);
  await assert.rejects(connectThroughProgram(failing, folder, CLIENT, {}, (line) => lines.push(line)), /the state folder is not writable/);
  assert.match(lines.join("\n"), /tether rpc: the state folder is not writable/);
  await assert.rejects(connectThroughProgram(path.join(folder, "nowhere"), folder, CLIENT, {}, () => undefined), /ENOENT/);
});
