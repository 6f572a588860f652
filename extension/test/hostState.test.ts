import assert from "node:assert/strict";
import { test } from "node:test";
import type { CloseWatchInput } from "../src/host/closeWatch";
import { HostState } from "../src/host/hostState";
import { EMPTY_OVERVIEW, withLink, withSession, withWindow } from "../src/host/overview";
import type { DebugSessionStatus, TimelineEvent, WindowStatus } from "../src/rpc/protocol";
import { openTo, scriptedPeer, until } from "./scriptedPeer";

const status = (fields: Partial<WindowStatus> = {}): WindowStatus => ({ state: "ready", generation: 1, reconnected: false, stale: false, changes: [], sessions: [], launchId: "a", ...fields });
const session = (fields: Partial<DebugSessionStatus> = {}): DebugSessionStatus => ({ sessionId: "d1", name: "app.py", adapter: "debugpy", state: "RUNNING", startedAt: 1, connected: true, stale: false, runningThreads: [], suspendedThreads: [], targets: [], ...fields });
const EVENTS: TimelineEvent[] = [{ number: 1, at: 5, kind: "edited", text: "x was modified" }];
const CONNECTED = { kind: "connected", version: "0.1.0", pid: 7 } as const;

function hostState() {
  const inputs: CloseWatchInput[] = [];
  const lines: string[] = [];
  const state = new HostState({ onDidChange: () => undefined, onWindow: (input) => inputs.push(input), log: (line) => lines.push(line) });
  return { state, inputs, lines };
}

test("the reason of a relaunch is the change that made the window stale", () => {
  const changes = [{ path: "a.ts", kind: "modified" as const, modifiedAt: 5 }];
  let overview = withWindow(withLink(EMPTY_OVERVIEW, CONNECTED), status(), 1);
  assert.equal(overview.lastRelaunch, undefined);
  overview = withWindow(overview, status({ state: "stale", changes }), 2);
  overview = withWindow(overview, status({ state: "building" }), 3);
  overview = withWindow(overview, status({ generation: 2, launchId: "b", startedAt: 9 }), 10);
  assert.deepEqual(overview.lastRelaunch, { because: "a.ts was modified", at: 9, generation: 2 });
  assert.equal(overview.pendingCause, undefined);
  overview = withWindow(overview, status({ generation: 3, launchId: "c", startedAt: 20 }), 21);
  assert.equal(overview.lastRelaunch?.because, "it was asked for");
});

test("the first launch is no relaunch, nor is a window that was found again", () => {
  let overview = withWindow(EMPTY_OVERVIEW, status({ state: "absent", generation: 0 }), 1);
  overview = withWindow(overview, status({ generation: 1 }), 2);
  assert.equal(overview.lastRelaunch, undefined);
  overview = withWindow(withWindow(EMPTY_OVERVIEW, status({ generation: 4 }), 1), status({ generation: 4, reconnected: true }), 2);
  assert.equal(overview.lastRelaunch, undefined);
});

test("ended sessions follow the live ones, and the oldest of them are forgotten", () => {
  let overview = EMPTY_OVERVIEW;
  for (let at = 1; at <= 9; at++) {
    overview = withSession(overview, session({ sessionId: `d${at}`, startedAt: at, state: at < 9 ? "TERMINATED" : "RUNNING" }));
  }
  assert.deepEqual(overview.sessions.map((it) => it.sessionId), ["d9", "d4", "d5", "d6", "d7", "d8"]);
});

test("without a connection nothing is shown as known, but the last relaunch", () => {
  const lastRelaunch = { because: "a.ts was modified", at: 1, generation: 2 };
  const overview = withLink({ ...EMPTY_OVERVIEW, window: status(), sessions: [session()], lastRelaunch }, { kind: "lost", reason: "it exited" });
  assert.deepEqual(overview, { link: { kind: "lost", reason: "it exited" }, sessions: [], breakpoints: [], lastRelaunch });
});

test("a connection is followed: window, sessions with the place of their stops, breakpoints", async () => {
  const { state, inputs } = hostState();
  const stopReason = { type: "BREAKPOINT_HIT" as const, location: { methodName: "f", lineNumber: 3, sourcePath: "/w/app.py" } };
  let breakpoints: object[] = [];
  const peer = scriptedPeer({
    "window/status": () => status(),
    "debug/status": (params) => ((params as { sessionId?: string }).sessionId ? session({ state: "STOPPED", stopReason }) : { sessions: [session()] }),
    "breakpoint/list": () => ({ breakpoints, exceptions: {} }),
    "timeline/read": (params) => ({ events: EVENTS.filter((it) => it.number > ((params as { since?: number }).since ?? 0)), cursor: 2 }),
  });
  const connection = await openTo(peer);
  state.setLink(CONNECTED);
  await state.follow(connection);
  assert.deepEqual([state.overview.window?.state, state.overview.sessions[0]?.state], ["ready", "RUNNING"]);
  assert.deepEqual(inputs, [{ kind: "opened", id: "launch a" }]);
  assert.deepEqual(state.timeline.entries.map((it) => it.name), ["x was modified"]);

  EVENTS.push({ number: 2, at: 6, kind: "edited", text: "y was modified" });
  await peer.rpc.sendNotification("timeline/didChange");
  await until("the new event is there", () => state.timeline.entries.length === 2);

  breakpoints = [{ breakpointId: 1, state: "verified", file: "/w/app.py", line: 3 }];
  await peer.rpc.sendNotification("debug/didChangeState", session({ state: "STOPPED", stopReason: { type: "BREAKPOINT_HIT" } }));
  await until("the place is known", () => state.overview.sessions[0]?.stopReason?.location?.lineNumber === 3);
  await until("the breakpoints are known", () => state.overview.breakpoints.length === 1);

  await peer.rpc.sendNotification("window/didChangeState", status({ state: "exited" }));
  await until("the close is seen", () => inputs.length === 2);
  assert.deepEqual(inputs[1], { kind: "closed", id: "launch a" });
  state.setLink({ kind: "idle" });
  assert.deepEqual(state.timeline.entries, [], "another folder may be next");
  connection.dispose();
  state.dispose();
});

/** A state that follows a scripted supervisor, whose window has this status at first. */
async function followed(first: WindowStatus, known = hostState()) {
  const answers = { status: () => Promise.resolve(first) };
  const peer = scriptedPeer({ "window/status": () => answers.status(), "debug/status": () => ({ sessions: [] }), "breakpoint/list": () => ({ breakpoints: [] }), "timeline/read": () => ({ events: [], cursor: 0 }) });
  const connection = await openTo(peer);
  known.state.setLink(CONNECTED);
  await known.state.follow(connection);
  /** Resolves when the notification has been taken up. */
  const notify = async (next: WindowStatus) => {
    await peer.rpc.sendNotification("window/didChangeState", next);
    // Answered after the notification before it.
    await connection.request("debug/status");
  };
  const heard = () => known.inputs.map((it) => ("id" in it ? `${it.kind} ${it.id}` : it.kind));
  return { ...known, peer, connection, notify, answers, heard };
}

const ABSENT: WindowStatus = { state: "absent", generation: 2, reconnected: false, stale: false, changes: [], sessions: [] };

test("a window that is stopped by request, or replaced, is released and not closed", async () => {
  const { notify, heard, connection } = await followed(status());
  await notify(status({ launchId: "b", generation: 2 }));
  await notify(status({ state: "stopping", launchId: "b", generation: 2 }));
  await notify(ABSENT);
  assert.deepEqual(heard(), ["opened launch a", "opened launch b", "released launch a", "released launch b"]);
  connection.dispose();
});

test("a window is released when its folder is left, and when its connection is given up", async () => {
  const first = await followed(status());
  first.connection.dispose();
  first.state.setLink({ kind: "idle" });
  const second = await followed(status({ launchId: "b" }), first);
  await second.notify(status({ state: "exited", launchId: "b" }));
  assert.deepEqual(second.heard(), ["opened launch a", "released launch a", "opened launch b", "closed launch b"]);
  const third = await followed(status({ launchId: "c" }), first);
  third.state.setLink({ kind: "lost", reason: "it exited", retryAt: 1 });
  assert.equal(third.heard().at(-1), "opened launch c");
  third.state.setLink({ kind: "lost", reason: "it exited" });
  assert.equal(third.heard().at(-1), "released launch c");
  [second, third].forEach((it) => it.connection.dispose());
});

test("a window that is found again stays open, and one that has closed meanwhile is closed", async () => {
  const first = await followed(status());
  const lose = () => {
    first.state.setLink({ kind: "lost", reason: "it exited", retryAt: 1 });
    first.state.setLink({ kind: "connecting" });
  };
  lose();
  const second = await followed(status({ reconnected: true }), first);
  assert.deepEqual(second.heard(), ["opened launch a"]);
  lose();
  const third = await followed(status({ state: "exited" }), first);
  assert.deepEqual(third.heard(), ["opened launch a", "closed launch a"]);
  [first, second, third].forEach((it) => it.connection.dispose());
});

test("a status that is older than what is shown is dropped", async () => {
  const { state, notify, answers, connection, heard } = await followed(status());
  let respond: (status: WindowStatus) => void = () => undefined;
  answers.status = () => new Promise((resolve) => (respond = resolve));
  const overtaken = state.requestWindow(connection, "window/status");
  await until("it was asked", () => respond.length === 1);
  await notify(status({ state: "building" }));
  respond(status({ state: "stale" }));
  assert.equal((await overtaken).state, "stale");
  assert.equal(state.overview.window?.state, "building");
  await notify(status({ launchId: "b", generation: 2 }));
  await notify(status({ state: "stale", generation: 1 }));
  assert.deepEqual([state.overview.window?.generation, heard()], [2, ["opened launch a", "opened launch b", "released launch a"]]);
  // One that nothing has overtaken is taken up, and so is that of a later launch.
  answers.status = async () => status({ state: "stale", launchId: "b", generation: 2 });
  await state.requestWindow(connection, "window/status");
  assert.equal(state.overview.window?.state, "stale");
  // That of another folder's supervisor is not.
  const other = await followed(status({ launchId: "c", generation: 7 }), { ...hostState(), state });
  await state.requestWindow(connection, "window/status");
  assert.equal(state.overview.window?.launchId, "c");
  [connection, other.connection].forEach((it) => it.dispose());
});

test("a session that is the only one comes without a list, and a failed request is logged", async () => {
  const { state, lines } = hostState();
  const connection = await openTo(scriptedPeer({ "window/status": () => status(), "debug/status": () => session(), "breakpoint/list": () => { throw new Error("no"); } }));
  await state.follow(connection);
  assert.deepEqual(state.overview.sessions.map((it) => it.sessionId), ["d1"]);
  assert.match(lines.join("\n"), /breakpoint\/list failed: .*no/);
  connection.dispose();
});
