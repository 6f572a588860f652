import assert from "node:assert/strict";
import { appendFile, mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import { StreamMessageReader, StreamMessageWriter, createMessageConnection, type MessageConnection } from "vscode-jsonrpc/node";
import { BridgeLink } from "../src/bridge/bridgeLink";
import { MAX_DEPTH, MAX_NODES, MAX_RESULT_CHARS, reviveArguments, toJson } from "../src/bridge/commandValues";
import { channelName, findChannel, listOutputFiles, readOutput } from "../src/bridge/outputFiles";
import { SESSION_FILE, candidateFolders, checkSocket, parseSession, readSession } from "../src/bridge/sessionFile";
import { SUPERVISOR, until } from "./scriptedPeer";

const LAUNCH = "launch-1";
const folderOf = async () => realpath(await mkdtemp(path.join(tmpdir(), "tb-")));
const sessionText = (fields: object = {}) => JSON.stringify({ version: 1, launchId: LAUNCH, hostBridgePath: "/run/a.sock", persistedAt: 5, ...fields });

/** As the supervisor does: a new file that is renamed. */
async function writeSession(folder: string, text: string): Promise<void> {
  const file = path.join(folder, SESSION_FILE);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

test("only a session file of this window counts", () => {
  const check = (fields: object, expected: unknown) => assert.deepEqual(parseSession(sessionText(fields), LAUNCH), expected, JSON.stringify(fields));
  check({}, { socket: "/run/a.sock", persistedAt: 5 });
  check({ launchId: "another" }, undefined);
  check({ version: 2 }, undefined);
  check({ hostBridgePath: "a.sock" }, undefined);
  check({ hostBridgePath: 5 }, undefined);
  for (const text of ["", "null", "[]", "{", '"x"']) {
    assert.equal(parseSession(text, LAUNCH), undefined, text);
  }
});

test("a hostile session file is not read: a link, a folder, a huge one", async () => {
  const folder = await folderOf();
  assert.equal(await readSession(folder, LAUNCH), undefined);
  await writeSession(folder, sessionText());
  assert.deepEqual(await readSession(folder, LAUNCH), { socket: "/run/a.sock", persistedAt: 5 });
  const file = path.join(folder, SESSION_FILE);
  await rename(file, `${file}.real`);
  await symlink(`${file}.real`, file);
  assert.equal(await readSession(folder, LAUNCH), undefined);
  await rm(file);
  await mkdir(file);
  assert.equal(await readSession(folder, LAUNCH), undefined);
  await rm(file, { recursive: true });
  await writeSession(folder, sessionText({ more: "x".repeat(70_000) }));
  assert.equal(await readSession(folder, LAUNCH), undefined);
  await assert.rejects(checkSocket(`${file}.real`), /is not a socket/);
});

test("the session file is looked for upwards", () => {
  assert.deepEqual(candidateFolders(["/a/b/c", "/a/d"]), ["/a/b/c", "/a/b", "/a", "/", "/a/d"]);
});

/** A supervisor's socket; each connection that has been initialized is in `peers`. */
async function listen(socket: string, pid: number): Promise<{ server: Server; peers: MessageConnection[]; streams: Socket[]; clients: unknown[] }> {
  const seen = { peers: [] as MessageConnection[], streams: [] as Socket[], clients: [] as unknown[] };
  const server = createServer((stream) => {
    stream.on("error", () => undefined);
    const rpc = createMessageConnection(new StreamMessageReader(stream), new StreamMessageWriter(stream));
    rpc.onRequest("initialize", (params: unknown) => {
      seen.clients.push(params);
      seen.peers.push(rpc);
      seen.streams.push(stream);
      return { ...SUPERVISOR, pid };
    });
    rpc.listen();
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return { server, ...seen };
}

test("the bridge connects when the file appears, answers, and follows the file to another supervisor", async () => {
  const folder = await folderOf();
  const [first, second] = [await listen(path.join(folder, "1.sock"), 1), await listen(path.join(folder, "2.sock"), 2)];
  const lines: string[] = [];
  const link = new BridgeLink({
    launchId: LAUNCH,
    folders: [folder],
    client: { name: "vscode-window", version: "0.1.0", role: "windowBridge", capabilities: {}, launchId: LAUNCH },
    handlers: { "window/command": async (params) => ({ value: params }) },
    log: (line) => lines.push(line),
  });
  link.start();
  await writeSession(folder, sessionText({ launchId: "somebody else's", hostBridgePath: path.join(folder, "2.sock") }));
  await writeSession(folder, sessionText({ hostBridgePath: path.join(folder, "1.sock"), persistedAt: 1 }));
  await until("the first has it", () => first.peers.length === 1);
  assert.deepEqual([(first.clients[0] as { role: string }).role, (first.clients[0] as { launchId: string }).launchId, second.peers.length], ["windowBridge", LAUNCH, 0]);
  assert.deepEqual(await first.peers[0]!.sendRequest("window/command", { command: "c" }), { value: { command: "c" } });

  // Another supervisor has reconnected to the window.
  await writeSession(folder, sessionText({ hostBridgePath: path.join(folder, "2.sock"), persistedAt: 2 }));
  await until("the second has it", () => second.peers.length === 1 && link.isConnected);
  assert.deepEqual(await second.peers[0]!.sendRequest("window/command", { command: "d" }), { value: { command: "d" } });

  // It comes back on the same path: a connection that was closed is opened again.
  second.streams[0]!.destroy();
  await until("it is connected again", () => second.peers.length === 2 && link.isConnected);
  assert.match(lines.join("\n"), /process 1,[^]*process 2,[^]*disconnected[^]*process 2,/);
  link.dispose();
  first.server.close();
  second.server.close();
  second.streams.forEach((it) => it.destroy());
  first.streams.forEach((it) => it.destroy());
});

test("a socket path that is no socket is not connected to", async () => {
  const folder = await folderOf();
  await writeFile(path.join(folder, "plain"), "");
  await writeSession(folder, sessionText({ hostBridgePath: path.join(folder, "plain") }));
  const lines: string[] = [];
  const link = new BridgeLink({ launchId: LAUNCH, folders: [folder], client: { name: "w", role: "windowBridge", capabilities: {} }, handlers: {}, log: (line) => lines.push(line) });
  link.start();
  await until("it says why", () => lines.length > 0);
  assert.match(lines[0]!, /cannot connect to .*plain is not a socket/);
  link.dispose();
});

test("output channels are found by name and read by cursor", async () => {
  const logs = await folderOf();
  await mkdir(path.join(logs, "output_logging_1"));
  await mkdir(path.join(logs, "pub.ext"));
  const file = path.join(logs, "output_logging_1", "3-My Channel.log");
  await writeFile(file, "one\ntwo\n");
  await writeFile(path.join(logs, "pub.ext", "Log.log"), "x");
  await writeFile(path.join(logs, "remoteexthost.log"), "host");
  await writeFile(path.join(logs, "notes.txt"), "no");
  const files = await listOutputFiles(logs);
  assert.deepEqual(files.map((it) => it.channel).sort(), ["Log", "My Channel", "remoteexthost"]);
  const found = findChannel(files, "my channel")!;
  const all = await readOutput(found, undefined);
  assert.deepEqual(all, { channel: "My Channel", text: "one\ntwo\n", cursor: 8, dropped: 0 });
  await appendFile(file, "three\n");
  assert.deepEqual(await readOutput(found, all.cursor), { channel: "My Channel", text: "three\n", cursor: 14, dropped: 0 });
  // The last lines that fit; a file that was begun anew is read from its start.
  assert.deepEqual(await readOutput(found, undefined, 8), { channel: "My Channel", text: "three\n", cursor: 14, dropped: 8 });
  assert.deepEqual(await readOutput(found, 0, 3), { channel: "My Channel", text: "one", cursor: 3, dropped: 0 });
  // A character of several bytes is read when all of them are there: a cursor is never within one.
  await writeFile(file, "ä€𝄞\n");
  const parts: string[] = [];
  for (let cursor = 0; parts.length < 20; ) {
    const read = await readOutput(found, cursor, 5);
    if (read.text === "") {
      break;
    }
    parts.push(read.text);
    cursor = read.cursor;
  }
  assert.deepEqual(parts, ["ä€", "𝄞\n"]);
  assert.deepEqual((await readOutput(found, 0, 1)).text, "ä");
  assert.deepEqual((await readOutput(found, 2, 2)).text, "€");
  assert.equal((await readOutput(found, undefined, 6)).text, "𝄞\n");
  await writeFile(file, Buffer.from("a€").subarray(0, 3));
  assert.deepEqual(await readOutput(found, 0), { channel: "My Channel", text: "a", cursor: 1, dropped: 0 });
  await writeFile(file, Buffer.from([0x61, 0xff, 0xe2, 0x62]));
  assert.deepEqual(await readOutput(found, 0), { channel: "My Channel", text: "a\ufffd\ufffdb", cursor: 4, dropped: 0 });
  await writeFile(file, "new\n");
  assert.deepEqual(await readOutput(found, 14), { channel: "My Channel", text: "new\n", cursor: 4, dropped: 0 });
  assert.equal(findChannel(files, "none"), undefined);
  assert.equal(channelName("12-a-1.log"), "a-1");
});

test("arguments may name URIs, at any depth", () => {
  const parse = (text: string) => `<${text}>`;
  assert.deepEqual(reviveArguments([{ $uri: "file:///a" }, { at: { $uri: "b" }, $uri: 1 }], parse), ["<file:///a>", { at: "<b>", $uri: 1 }]);
  assert.deepEqual(reviveArguments(null, parse), null);
});

test("any result becomes JSON within bounds", () => {
  const circular: Record<string, unknown> = { a: 1 };
  circular["self"] = circular;
  const check = (value: unknown, expected: unknown) => assert.deepEqual(toJson(value), expected);
  check(undefined, null);
  check(circular, { a: 1, self: "(circular)" });
  check({ f: () => 1, n: NaN, b: 5n, u: undefined, d: new Date(0) }, { f: "(function)", n: "NaN", b: "(bigint)", u: undefined, d: "1970-01-01T00:00:00.000Z" });
  check([undefined, 1], [null, 1]);
  check({ get bad() { throw new Error("no"); } }, "(unreadable: no)");
  const deep = Array.from({ length: 30 }).reduce<unknown>((inner) => ({ inner }), 1);
  assert.match(JSON.stringify(toJson(deep)), /deeper values were left out/);
  const shared = { x: 1 };
  check([shared, shared], [{ x: 1 }, { x: 1 }]);
  assert.equal((toJson(Array(5_000).fill(0)) as unknown[]).length, 1_001);
  check(new Uint8Array(500_000_000), "(500000000 bytes)");
});

/** A value in which the same object is reached by many ways, counting each visit. */
function sharedValue(width: number, levels: number): { value: object; visits: () => number } {
  let visits = 0;
  const leaf = { toJSON: () => ++visits };
  let value: object = leaf;
  for (let level = 0; level < levels; level++) {
    value = Array(width).fill(value);
  }
  return { value, visits: () => visits };
}

test("a result is bounded as a whole, however its objects are shared", () => {
  const wide = sharedValue(1_000, 10);
  const text = JSON.stringify(toJson(wide.value));
  assert.ok(wide.visits() <= MAX_NODES, `${wide.visits()} visits`);
  assert.ok(text.length <= MAX_RESULT_CHARS + 20 && text.includes("left out"), text.slice(-200));
  const deep = sharedValue(2, 60);
  toJson(deep.value);
  assert.ok(deep.visits() <= 2 ** MAX_DEPTH);
  // A tree whose nodes know their parents.
  const parent: { name: string; children: object[] } = { name: "p", children: [] };
  parent.children = Array.from({ length: 500 }, (_, at) => ({ at, parent, siblings: parent.children }));
  assert.ok(JSON.stringify(toJson(parent)).length <= MAX_RESULT_CHARS + 20);
});

test("long texts, long names and wide objects are cut", () => {
  const isBounded = (value: unknown) => assert.ok(JSON.stringify(toJson(value)).length <= 2 * MAX_RESULT_CHARS);
  isBounded({ text: "x".repeat(2 * MAX_RESULT_CHARS) });
  isBounded(Array(1_000).fill("y".repeat(10_000)));
  isBounded({ ["n".repeat(2 * MAX_RESULT_CHARS)]: 1 });
  isBounded("\u0000".repeat(MAX_RESULT_CHARS));
  const huge = Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`k${at}`, at]));
  isBounded(Array(1_000).fill(huge));
});
