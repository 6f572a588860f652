import assert from "node:assert/strict";
import { test } from "node:test";
import { ResponseError } from "vscode-jsonrpc/node";
import { SupervisorConnection } from "../src/rpc/supervisorConnection";
import { SupervisorError } from "../src/rpc/supervisorError";
import { CLIENT, SUPERVISOR, openTo, scriptedPeer, until } from "./scriptedPeer";

const kindOf = (error: unknown) => (error instanceof SupervisorError ? error.kind : String(error));

test("initialize says who connects, and gives who answers", async () => {
  let seen: unknown;
  const connection = await openTo(scriptedPeer({ initialize: (params) => ((seen = params), SUPERVISOR) }));
  assert.deepEqual(seen, CLIENT);
  assert.deepEqual(connection.supervisor, SUPERVISOR);
});

test("requests have results, also when they are answered out of order", async () => {
  let release: (value: string) => void = () => undefined;
  const slow = new Promise<string>((resolve) => (release = resolve));
  const connection = await openTo(scriptedPeer({ slow: () => slow, fast: (params) => params }));
  const first = connection.request("slow");
  assert.deepEqual(await connection.request("fast", { a: 1 }), { a: 1 });
  release("late");
  assert.equal(await first, "late");
});

test("an error of the supervisor has its causes and hints", async () => {
  const data = { kind: "notTrusted", doing: "cannot build", because: ["its commands are new"], hints: ["run `tether trust`"] };
  const connection = await openTo(
    scriptedPeer({
      "window/start": () => {
        throw new ResponseError(-32003, "cannot build", data);
      },
    }),
  );
  await assert.rejects(connection.request("window/start"), (error: SupervisorError) => {
    assert.deepEqual([error.kind, error.message, error.hints], ["notTrusted", "cannot build: its commands are new", ["run `tether trust`"]]);
    return true;
  });
});

test("a request without a response ends at its deadline, and is cancelled there", async () => {
  let cancelled = false;
  const peer = scriptedPeer();
  peer.rpc.onRequest("silent", (_, token) => new Promise(() => token.onCancellationRequested(() => (cancelled = true))));
  const connection = await openTo(peer);
  await assert.rejects(connection.request("silent", {}, { timeoutMs: 20 }), (error) => kindOf(error) === "timedOut");
  await until("the supervisor sees the cancel", () => cancelled);
  // The connection is of use afterwards.
  peer.rpc.onRequest("ping", () => "pong");
  assert.equal(await connection.request("ping"), "pong");
});

test("a cancelled token cancels the request", async () => {
  const peer = scriptedPeer();
  let cancel: () => void = () => undefined;
  peer.rpc.onRequest("build", (_, token) => {
    const cancelled = new Promise((resolve) => token.onCancellationRequested(() => resolve("cancelled")));
    cancel();
    return cancelled;
  });
  const connection = await openTo(peer);
  const token = { isCancellationRequested: false, onCancellationRequested: (listener: () => void) => ((cancel = listener), { dispose: () => undefined }) };
  assert.equal(await connection.request("build", {}, { token, timeoutMs: "none" }), "cancelled");
});

test("the end of the connection ends what is pending, and later requests", async () => {
  const peer = scriptedPeer({ silent: () => new Promise(() => undefined) });
  const connection = await openTo(peer);
  let closes = 0;
  connection.onClose(() => closes++);
  const pending = connection.request("silent", {}, { timeoutMs: "none" });
  peer.toClient.end();
  peer.toClient.destroy();
  await assert.rejects(pending, (error) => kindOf(error) === "cancelled");
  await assert.rejects(connection.request("more"), (error) => kindOf(error) === "cancelled");
  connection.dispose();
  assert.equal(closes, 1);
  connection.onClose(() => closes++);
  assert.equal(closes, 2);
});

test("the supervisor's requests are answered, errors included, also before the first of ours", async () => {
  const handlers = {
    "host/executeCommand": async (params: unknown) => ({ value: params }),
    "host/runTask": async () => {
      throw new Error("there is no task x");
    },
  };
  const peer = scriptedPeer();
  const connection = await openTo(peer, handlers);
  assert.deepEqual(await peer.rpc.sendRequest("host/executeCommand", { command: "c" }), { value: { command: "c" } });
  await assert.rejects(peer.rpc.sendRequest("host/runTask", {}), /there is no task x/);
  await assert.rejects(peer.rpc.sendRequest("host/unknown", {}), /Unhandled method/);
  connection.dispose();
});

test("notifications and progress arrive", async () => {
  const peer = scriptedPeer();
  const connection = await openTo(peer);
  const seen: unknown[] = [];
  connection.onNotification("window/didChangeState", (params) => seen.push(params));
  connection.onProgress((message) => seen.push(message));
  await peer.rpc.sendNotification("window/didChangeState", { state: "ready" });
  // As the supervisor sends it: with the id of the request.
  await peer.rpc.sendNotification("$/progress", { id: 3, value: { message: "building", elapsedMs: 5 } });
  await until("both have arrived", () => seen.length === 2);
  assert.deepEqual(seen, [{ state: "ready" }, "building"]);
});

test("a supervisor that refuses, exits, drains or is silent fails the opening", async () => {
  const check = async (peer: ReturnType<typeof scriptedPeer>, expected: RegExp, timeoutMs?: number) => {
    const opening = openTo(peer, {}, timeoutMs);
    await assert.rejects(opening, expected);
  };
  await check(scriptedPeer({ initialize: () => { throw new ResponseError(-32602, "who are you"); } }), /who are you/);
  await check(scriptedPeer({ initialize: () => ({ ...SUPERVISOR, draining: true }) }), /older than this extension/);
  await check(scriptedPeer({ initialize: () => new Promise(() => undefined) }), /no response within 0.05 s/, 50);
  const ending = scriptedPeer({ initialize: () => new Promise(() => undefined) });
  setImmediate(() => ending.toClient.destroy());
  await check(ending, /closed the connection|no response|ended/);
});

test("garbage ends the connection, and nothing else", async () => {
  const peer = scriptedPeer();
  const connection = await openTo(peer);
  const closed = new Promise<string>((resolve) => connection.onClose(resolve));
  peer.toClient.write("Content-Length: abc\r\n\r\n{}");
  assert.match(await closed, /Content-Length/i);
  await assert.rejects(connection.request("window/status"), SupervisorError);
});

test("a half frame waits for its other half", async () => {
  const peer = scriptedPeer();
  const connection = await openTo(peer);
  const seen: unknown[] = [];
  connection.onNotification("n", (params) => seen.push(params));
  const body = JSON.stringify({ jsonrpc: "2.0", method: "n", params: { text: "ü" } });
  const frame = Buffer.from(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  peer.toClient.write(frame.subarray(0, 40));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(seen.length, 0);
  peer.toClient.write(frame.subarray(40));
  await until("it has arrived", () => seen.length === 1);
  assert.deepEqual(seen, [{ text: "ü" }]);
  assert.ok(connection instanceof SupervisorConnection);
});
