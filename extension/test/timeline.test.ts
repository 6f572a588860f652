import assert from "node:assert/strict";
import { test } from "node:test";
import type { TimelineEvent } from "../src/rpc/protocol";
import { toChromeTrace } from "../src/timeline/chromeTrace";
import { MAX_SPAN_MS, clockText, durationText, fitScale, panScale, ticksOf, toTime, toX, zoomScale } from "../src/timeline/timeScale";
import { BUILD_LANE, EDIT_LANE, EMPTY_TIMELINE, MAX_ENTRIES, SUPERVISOR_LANE, WINDOW_LANE, addEvents, type Timeline } from "../src/timeline/timeline";

/** Events with their numbers. */
const events = (...all: Omit<TimelineEvent, "number">[]): TimelineEvent[] => all.map((event, at) => ({ number: at + 1, ...event }));

/** Each entry of a lane as `name start-end`; `…` goes on. */
const lane = (timeline: Timeline, name: string) =>
  timeline.entries.filter((it) => it.lane === name).map((it) => `${it.name} ${it.start}${it.end === it.start ? "" : `-${it.end ?? "…"}`}`);

/** An edit, a build and a relaunch, as the supervisor records them. */
const RELAUNCH = events(
  { at: 500, kind: "supervisorStarted", text: "0.1.0, process 7" },
  { at: 900, kind: "built", text: "", tookMs: 400, failed: false },
  { at: 1_000, kind: "windowLaunched", text: "window 1, process 5: launched" },
  { at: 5_000, kind: "edited", text: "src/a.ts was modified" },
  { at: 8_000, kind: "built", text: "", tookMs: 2_000, failed: false },
  { at: 8_100, kind: "windowLaunched", text: "window 2, process 6: relaunched, because src/a.ts was modified" },
);

test("launches, edits and builds are on one axis, a launch with its cause", () => {
  const timeline = addEvents(EMPTY_TIMELINE, RELAUNCH);
  assert.deepEqual(lane(timeline, WINDOW_LANE), ["launch 1000-8100", "launch 8100-…"]);
  assert.deepEqual(lane(timeline, BUILD_LANE), ["build 500-900", "build 6000-8000"]);
  assert.deepEqual(lane(timeline, EDIT_LANE), ["src/a.ts was modified 5000"]);
  assert.deepEqual(lane(timeline, SUPERVISOR_LANE), ["supervisor 500-…"]);
  assert.match(timeline.entries.at(-1)?.details[0] ?? "", /because src\/a.ts was modified/);
});

test("events that are read again add nothing", () => {
  const timeline = addEvents(EMPTY_TIMELINE, RELAUNCH);
  assert.deepEqual(addEvents(timeline, RELAUNCH), timeline);
  assert.equal(timeline.cursor, RELAUNCH.length);
});

test("a session is running, stopped at a place, running for somebody, ended", () => {
  const timeline = addEvents(EMPTY_TIMELINE, events(
    { at: 1_000, kind: "sessionStarted", sessionId: "d1", text: "app.py, with debugpy" },
    { at: 2_000, kind: "stopped", sessionId: "d1", text: "breakpoint", place: "app.py:3" },
    { at: 3_000, kind: "resumed", sessionId: "d1", text: "continue", by: "neovim" },
    { at: 4_000, kind: "sessionEnded", sessionId: "d1", text: "with code 3", failed: true },
  ));
  assert.deepEqual(lane(timeline, "d1"), ["app.py, with debugpy 1000-2000", "breakpoint at app.py:3 2000-3000", "continue 3000-4000", "ended 4000"]);
  assert.ok(timeline.entries[2]?.details.includes("by neovim"));
  assert.deepEqual([timeline.entries[3]?.tone, timeline.entries[3]?.details[0]], ["bad", "with code 3"]);
});

test("calls are in the row of who made them, and a window that crashed is bad", () => {
  const timeline = addEvents(EMPTY_TIMELINE, events(
    { at: 1_000, kind: "windowFound", text: "window 1, process 5: found again" },
    { at: 2_000, kind: "called", text: "debug/evaluate x", by: "tether mcp", tookMs: 10, failed: false },
    { at: 3_000, kind: "windowEnded", text: "by itself: signal 9", failed: true },
  ));
  assert.deepEqual(lane(timeline, "tether mcp"), ["debug/evaluate x 1990-2000"]);
  assert.deepEqual(lane(timeline, WINDOW_LANE), ["found again 1000-3000", "ended 3000"]);
  assert.equal(timeline.entries.at(-1)?.tone, "bad");
});

test("the timeline is bounded: the oldest that have ended go, what goes on stays", () => {
  const edits = Array.from({ length: MAX_ENTRIES + 50 }, (_, at) => ({ number: at + 100, at: at + 9_000, kind: "edited" as const, text: `f${at}` }));
  const timeline = addEvents(addEvents(EMPTY_TIMELINE, RELAUNCH), edits);
  assert.equal(timeline.entries.length, MAX_ENTRIES);
  assert.equal(timeline.dropped, RELAUNCH.length + 50);
  assert.ok(timeline.entries.some((it) => it.name === "launch" && it.end === undefined));
});

test("a Chrome trace has a named thread per lane, and microseconds", () => {
  const started = [{ number: 50, at: 9_000, kind: "sessionStarted" as const, sessionId: "d1", text: "app.py" }];
  const trace = toChromeTrace(addEvents(addEvents(EMPTY_TIMELINE, RELAUNCH), started), "hello", 10_000);
  const names = trace.traceEvents.filter((it) => it.name === "thread_name").map((it) => it.args?.["name"]);
  assert.deepEqual(names, [WINDOW_LANE, BUILD_LANE, EDIT_LANE, "d1", SUPERVISOR_LANE]);
  const spans = trace.traceEvents.filter((it) => it.ph === "X");
  assert.ok(spans.every((it) => Number.isInteger(it.ts) && Number.isInteger(it.dur) && it.tid >= 1 && it.tid <= 5));
  const build = trace.traceEvents.filter((it) => it.name === "build")[1];
  assert.deepEqual([build?.ts, build?.dur, build?.tid], [6_000_000, 2_000_000, 2]);
  assert.equal(spans.find((it) => it.name === "app.py")?.dur, 1_000_000);
  const edit = trace.traceEvents.find((it) => it.name === "src/a.ts was modified");
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
