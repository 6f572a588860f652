import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY_OVERVIEW, type Overview } from "../src/host/overview";
import { agoText, overviewNodes, type OverviewNode } from "../src/views/overviewNodes";
import { statusText } from "../src/views/statusText";

const CONTEXT = { folder: "/w", now: 100_000 };
const OVERVIEW: Overview = {
  link: { kind: "connected", version: "0.1.0", pid: 7 },
  window: {
    state: "stale",
    generation: 2,
    reconnected: true,
    stale: true,
    launchId: "a",
    startedAt: 40_000,
    pid: 5,
    cdpPort: 6,
    inspectorPort: 8,
    changes: [{ path: "src/a.ts", kind: "modified", modifiedAt: 1 }],
    lastBuild: { ok: false, endedAt: 1, durationMs: 6_400, tail: "error TS1\n" },
    notes: ["a note"],
    sessions: [],
  },
  lastRelaunch: { because: "src/b.ts was added", at: 40_000, generation: 2 },
  sessions: [
    {
      sessionId: "d1",
      name: "server.js",
      adapter: "js-debug",
      state: "STOPPED",
      connected: true,
      stale: false,
      runningThreads: [],
      suspendedThreads: [],
      startedAt: 1,
      stopReason: { type: "BREAKPOINT_HIT", location: { methodName: "f", lineNumber: 3, sourcePath: "/w/server.js" } },
      targets: [
        { targetId: 0, name: "server.js", state: "STOPPED", threadIds: [], pid: 9 },
        { targetId: 1, parent: 0, name: "worker", state: "RUNNING", threadIds: [] },
        { targetId: 2, parent: 7, name: "orphan", state: "RUNNING", threadIds: [] },
        { targetId: 3, parent: 3, name: "itself", state: "RUNNING", threadIds: [] },
      ],
    },
    { sessionId: "d2", name: "app.py", adapter: "debugpy", state: "TERMINATED", connected: false, stale: false, runningThreads: [], suspendedThreads: [], targets: [], startedAt: 2, exitCode: 1 },
  ],
  breakpoints: [
    { breakpointId: 1, state: "verified", file: "/w/server.js", line: 3, condition: "x > 1", hitCount: 2 },
    { breakpointId: 2, state: "pending", file: "app.py", line: 7, logMessage: "at {x}" },
    { breakpointId: 3, state: "unbound", expression: "total", message: "no hardware left" },
  ],
};

/** The tree as indented lines of label and description. */
const lines = (nodes: OverviewNode[], depth = 0): string[] =>
  nodes.flatMap((it) => [`${"  ".repeat(depth)}${it.label}${it.description ? ` | ${it.description}` : ""}`, ...lines(it.children ?? [], depth + 1)]);

test("the overview shows window, sessions with their targets, and breakpoints with their state", () => {
  assert.deepEqual(lines(overviewNodes(OVERVIEW, CONTEXT)), [
    "Window | stale",
    "  Launch 2 | 1 min ago, reconnected",
    "  Relaunched because src/b.ts was added | 1 min ago",
    "  Build failed | 6.4 s",
    "  1 change since the build",
    "    src/a.ts | modified",
    "  Process | pid 5 · CDP 6 · inspector 8",
    "  a note",
    "Debug Sessions | 1 live",
    "  d1 server.js | stopped breakpoint hit at server.js:3",
    "    server.js | stopped · pid 9",
    "      worker | running",
    "    orphan | running",
    "  d2 app.py | terminated exit code 1",
    "Breakpoints | 3",
    "  server.js:3 | verified · if x > 1 · hit 2×",
    "  app.py:7 | pending · logs",
    "  total | unbound",
  ]);
});

test("nodes have ids of their own, and open what they name", () => {
  const all = (nodes: OverviewNode[]): OverviewNode[] => nodes.flatMap((it) => [it, ...all(it.children ?? [])]);
  const nodes = all(overviewNodes(OVERVIEW, CONTEXT));
  assert.equal(new Set(nodes.map((it) => it.id)).size, nodes.length);
  const find = (label: string) => nodes.find((it) => it.label === label);
  assert.deepEqual(find("app.py:7")?.open, { file: "/w/app.py", line: 7 });
  assert.deepEqual(find("d1 server.js")?.open, { file: "/w/server.js", line: 3 });
  assert.deepEqual([find("d1 server.js")?.kind, find("d2 app.py")?.kind], ["session", undefined]);
  assert.ok(find("total")?.tooltip?.includes("no hardware left"));
});

test("without a connection the tree is empty, so that the welcome text shows", () => {
  assert.deepEqual(overviewNodes(EMPTY_OVERVIEW, CONTEXT), []);
  assert.deepEqual(lines(overviewNodes({ ...EMPTY_OVERVIEW, link: { kind: "lost", reason: "it exited" } }, CONTEXT)), ["Connection lost | it exited"]);
});

test("the status bar has the state, and who is stopped", () => {
  const shown = statusText(OVERVIEW);
  assert.equal(shown?.text, "$(history) tether: stale $(debug-pause) d1");
  assert.deepEqual(shown?.tooltip, [
    "Window: stale, launch 2",
    "src/a.ts was modified",
    "Relaunched because src/b.ts was added",
    "Debug sessions: d1 stopped",
    "Supervisor 0.1.0, process 7",
  ]);
  const text = (overview: Partial<Overview>) => statusText({ ...EMPTY_OVERVIEW, ...overview })?.text;
  assert.equal(text({ link: { kind: "noFolder" } }), undefined);
  assert.equal(text({ link: { kind: "missing", reason: "x" } }), "$(debug-disconnect) tether: not found");
  assert.equal(text({ link: OVERVIEW.link }), "$(plug) tether: no window");
  assert.equal(statusText({ ...EMPTY_OVERVIEW, link: { kind: "lost", reason: "x" } })?.tone, "warning");
});

test("ages are short", () => {
  assert.deepEqual([0, 12_000, 300_000, 7_200_000].map(agoText), ["just now", "12 s ago", "5 min ago", "2 h ago"]);
});
