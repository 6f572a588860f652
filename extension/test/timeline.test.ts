import assert from "node:assert/strict";
import { test } from "node:test";
import type { DebugSessionStatus, WindowStatus } from "../src/rpc/protocol";
import { toChromeTrace } from "../src/timeline/chromeTrace";
import { MAX_SPAN_MS, clockText, durationText, fitScale, panScale, ticksOf, toTime, toX, zoomScale } from "../src/timeline/timeScale";
import { BUILD_LANE, EDIT_LANE, EMPTY_TIMELINE, LINK_LANE, MAX_ENTRIES, WINDOW_LANE, recordLink, recordSession, recordWindow, type Timeline } from "../src/timeline/timeline";

const status = (fields: Partial<WindowStatus>): WindowStatus => ({ state: "ready", generation: 1, reconnected: false, stale: false, changes: [], sessions: [], ...fields });
const session = (fields: Partial<DebugSessionStatus>): DebugSessionStatus => ({ sessionId: "d1", name: "app.py", adapter: "debugpy", state: "RUNNING", startedAt: 1_000, connected: true, stale: false, runningThreads: [], suspendedThreads: [], targets: [], ...fields });

/** Each entry of a lane as `name start-end`; `…` goes on. */
const lane = (timeline: Timeline, name: string) =>
  timeline.entries.filter((it) => it.lane === name).map((it) => `${it.name} ${it.start}${it.end === it.start ? "" : `-${it.end ?? "…"}`}`);

/** An edit, a build and a relaunch, as the supervisor reports them. */
function relaunchedOnce(): Timeline {
  const first = status({ launchId: "a", startedAt: 1_000, pid: 5, cdpPort: 9, lastBuild: { ok: true, endedAt: 900, durationMs: 400, tail: "" } });
  const changes = [{ path: "src/a.ts", kind: "modified" as const, modifiedAt: 5_000 }];
  let timeline = recordWindow(EMPTY_TIMELINE, first, 4_000);
  timeline = recordWindow(timeline, { ...first, state: "stale", stale: true, changes }, 5_050);
  timeline = recordWindow(timeline, { ...first, state: "building", changes }, 6_000);
  const lastBuild = { ok: true, endedAt: 8_000, durationMs: 2_000, tail: "" };
  timeline = recordWindow(timeline, status({ state: "starting", launchId: "b", generation: 2, startedAt: 8_100, lastBuild }), 8_110);
  return recordWindow(timeline, status({ launchId: "b", generation: 2, startedAt: 8_100, lastBuild, pid: 6 }), 9_500);
}

test("launches, edits and builds are on one axis, a launch with its cause", () => {
  const timeline = relaunchedOnce();
  assert.deepEqual(lane(timeline, WINDOW_LANE), [
    "launch 1 1000",
    "ready 1000-5050",
    "stale 5050-6000",
    "building 6000-8110",
    "launch 2 8100",
    "starting 8110-9500",
    "ready 9500-…",
  ]);
  assert.deepEqual(lane(timeline, BUILD_LANE), ["build 500-900", "build 6000-8000"]);
  assert.deepEqual(lane(timeline, EDIT_LANE), ["src/a.ts 5000"]);
  const launch = timeline.entries.find((it) => it.name === "launch 2");
  assert.deepEqual(launch?.details[0], "because src/a.ts was modified");
});

test("the same status again, and the same change again, add nothing", () => {
  const timeline = relaunchedOnce();
  const again = recordWindow(timeline, timeline.window!, 9_900);
  assert.deepEqual(again.entries, timeline.entries);
});

test("a launch is named by how the window was brought up to date", () => {
  const before = recordWindow(EMPTY_TIMELINE, status({ launchId: "a", startedAt: 1 }), 2);
  const after = recordWindow(before, status({ launchId: "a", generation: 2, startedAt: 1, refreshed: { by: "restartExtensionHost", tookMs: 9 } }), 11);
  assert.deepEqual(lane(after, WINDOW_LANE), ["launch 1 1", "ready 1-…", "host restart 2 1"]);
});

test("a launch and its build count once, however often the connection is lost", () => {
  let timeline = relaunchedOnce();
  const counts = () => ["launch ", "build"].map((name) => timeline.entries.filter((it) => it.name.startsWith(name)).length);
  assert.deepEqual(counts(), [2, 2 + 1]);
  const last = timeline.window!;
  for (let at = 20_000; at < 50_000; at += 10_000) {
    timeline = recordLink(timeline, "lost", "it exited", at);
    timeline = recordLink(timeline, "connected", "supervisor", at + 100);
    timeline = recordWindow(timeline, { ...last, reconnected: true }, at + 200);
  }
  assert.deepEqual(counts(), [2, 2 + 1]);
});

test("a failed build has its last lines, and a window that closed its exit", () => {
  const failed = status({ launchId: "a", startedAt: 1, lastBuild: { ok: false, endedAt: 50, durationMs: 20, tail: `${"x\n".repeat(20)}error TS1\n` } });
  let timeline = recordWindow(EMPTY_TIMELINE, failed, 60);
  timeline = recordWindow(timeline, status({ state: "exited", exit: { signal: 9, at: 70 } }), 70);
  const build = timeline.entries.find((it) => it.lane === BUILD_LANE);
  assert.equal(build?.details.length, 8);
  assert.equal(build?.details.at(-1), "error TS1");
  assert.deepEqual(lane(timeline, WINDOW_LANE), ["launch 1 1", "ready 1-70", "exited 70-…"]);
  assert.deepEqual(timeline.entries.at(-1)?.details, ["ended by signal 9"]);
  timeline = recordWindow(timeline, status({ state: "absent" }), 80);
  assert.deepEqual(lane(timeline, WINDOW_LANE).at(-1), "exited 70-80");
});

test("a session is running, stopped at a place, running, ended", () => {
  const stopped = session({ state: "STOPPED" });
  const stopReason = { type: "BREAKPOINT_HIT" as const, threadName: "MainThread", location: { methodName: "f", lineNumber: 3, sourcePath: "/w/app.py" } };
  let timeline = recordSession(EMPTY_TIMELINE, session({}), 1_200);
  timeline = recordSession(timeline, stopped, 2_000);
  // The place comes by another request, a little later.
  timeline = recordSession(timeline, { ...stopped, stopReason }, 2_100);
  timeline = recordSession(timeline, { ...stopped, stopReason }, 2_200);
  timeline = recordSession(timeline, session({}), 3_000);
  timeline = recordSession(timeline, session({ state: "TERMINATED", endedAt: 4_000 }), 4_100);
  assert.deepEqual(lane(timeline, "d1 app.py"), ["running 1000-2000", "breakpoint hit at app.py:3 2000-3000", "running 3000-4000"]);
  assert.ok(timeline.entries[1]?.details.includes("thread MainThread"));
});

test("a session that had ended before it was seen is not drawn", () => {
  assert.deepEqual(recordSession(EMPTY_TIMELINE, session({ state: "TERMINATED", endedAt: 5 }), 9).entries, []);
});

test("a lost connection closes what was open, and a reconnect is a mark", () => {
  let timeline = recordLink(EMPTY_TIMELINE, "connected", "supervisor", 1);
  timeline = recordWindow(timeline, status({ launchId: "a", startedAt: 2 }), 3);
  timeline = recordLink(timeline, "lost", "it exited", 10);
  timeline = recordLink(timeline, "connected", "supervisor", 20);
  assert.deepEqual(lane(timeline, LINK_LANE), ["connected 1-10", "connection lost 10-20", "reconnected 20", "connected 20-…"]);
  assert.deepEqual(lane(timeline, WINDOW_LANE), ["launch 1 2", "ready 2-10"]);
});

test("the timeline is bounded: the oldest that have ended go, what goes on stays", () => {
  let timeline = recordWindow(EMPTY_TIMELINE, status({ launchId: "a", startedAt: 1 }), 1);
  for (let at = 0; at < MAX_ENTRIES + 50; at++) {
    timeline = recordWindow(timeline, { ...timeline.window!, changes: [{ path: `f${at}`, kind: "added", modifiedAt: at + 10 }] }, at + 10);
  }
  assert.equal(timeline.entries.length, MAX_ENTRIES);
  assert.equal(timeline.dropped, 52);
  assert.ok(timeline.entries.some((it) => it.name === "ready" && it.end === undefined));
  assert.ok(!timeline.entries.some((it) => it.name === "launch 1"));
});

test("a Chrome trace has a named thread per lane, and microseconds", () => {
  const timeline = recordSession(relaunchedOnce(), session({ startedAt: 9_000 }), 9_600);
  const trace = toChromeTrace(timeline, "hello", 10_000);
  const names = trace.traceEvents.filter((it) => it.name === "thread_name").map((it) => it.args?.["name"]);
  assert.deepEqual(names, [WINDOW_LANE, BUILD_LANE, EDIT_LANE, "d1 app.py"]);
  const spans = trace.traceEvents.filter((it) => it.ph === "X");
  assert.ok(spans.every((it) => Number.isInteger(it.ts) && Number.isInteger(it.dur) && it.tid >= 1 && it.tid <= 4));
  const build = trace.traceEvents.filter((it) => it.name === "build")[1];
  assert.deepEqual([build?.ts, build?.dur, build?.tid], [6_000_000, 2_000_000, 2]);
  const open = spans.find((it) => it.name === "ready" && it.ts === 9_500_000);
  assert.equal(open?.dur, 500_000);
  const edit = trace.traceEvents.find((it) => it.name === "src/a.ts");
  assert.deepEqual([edit?.ph, edit?.s, edit?.dur], ["i", "t", undefined]);
  assert.deepEqual(JSON.parse(JSON.stringify(trace)), trace);
});

test("zooming keeps the time under the pointer, and has limits", () => {
  const scale = { from: 0, to: 1_000, width: 500 };
  const zoomed = zoomScale(scale, 250, 0.5);
  assert.deepEqual([zoomed.from, zoomed.to], [250, 750]);
  assert.equal(toTime(zoomed, 250), toTime(scale, 250));
  assert.equal(toX(panScale(scale, 50), 500), 300);
  let deep = scale;
  for (let at = 0; at < 200; at++) {
    deep = zoomScale(deep, 10, 0.5);
  }
  assert.equal(Math.round(deep.to - deep.from), 50);
  assert.ok(ticksOf(deep).length > 0);
});

test("ticks are round and do not overlap, whatever the span", () => {
  for (const span of [50, 1_000, 60_000, 3_600_000, 86_400_000, 7 * 86_400_000]) {
    const scale = { from: 1_700_000_000_000, to: 1_700_000_000_000 + span, width: 800 };
    const ticks = ticksOf(scale);
    assert.ok(ticks.length >= 1 && ticks.length <= 10, `${span}: ${ticks.length}`);
  }
  const fitted = fitScale([], 100, 5_000);
  assert.ok(fitted.from < 5_000 && fitted.to > 5_000);
});

test("a file of another decade neither stretches the axis nor fills it with ticks", () => {
  const now = Date.UTC(2026, 0, 1);
  for (const far of [Date.UTC(1970, 0, 1), Date.UTC(1985, 9, 26), Date.UTC(2262, 0, 1), -8.64e15, 8.64e15, 1e300]) {
    const scale = fitScale([far, now - 1_000, now], 800, now);
    assert.ok(scale.from < now - 1_000 && scale.to > now && scale.to - scale.from < 60_000, String(far));
  }
  const week = fitScale([now - 6.2 * 86_400_000, now + 3_000_000], 800, now);
  assert.ok(week.to - week.from <= MAX_SPAN_MS);
  for (const span of [30 * 86_400_000, 41 * 365 * 86_400_000, 1e300]) {
    assert.ok(ticksOf({ from: now - span, to: now, width: 800 }).length <= 10, String(span));
  }
  assert.ok(ticksOf({ from: 1e300, to: 1e300 + 50, width: 800 }).length <= 500);
});

test("durations and times are written for people", () => {
  assert.deepEqual([340, 6_400, 200_000, 7_500_000].map(durationText), ["340 ms", "6.4 s", "3 min 20 s", "2 h 5 min"]);
  const noon = new Date(2026, 0, 1, 12, 3, 4, 5).getTime();
  assert.deepEqual([1, 1_000, 60_000].map((step) => clockText(noon, step)), ["12:03:04.005", "12:03:04", "12:03"]);
});
