import assert from "node:assert/strict";
import { test } from "node:test";
import { CloseWatcher } from "../src/host/closeWatcher";
import { NO_WINDOWS, stepCloseWatch, type CloseWatchInput } from "../src/host/closeWatch";
import { until } from "./scriptedPeer";

const opened = (id: string): CloseWatchInput => ({ kind: "opened", id });
const closed = (id: string): CloseWatchInput => ({ kind: "closed", id });
const released = (id: string): CloseWatchInput => ({ kind: "released", id });
const elapsed = (grace: number): CloseWatchInput => ({ kind: "graceElapsed", grace });

const TABLE: [name: string, inputs: CloseWatchInput[], effects: string][] = [
  ["a closed window starts the grace, which stops the server", [opened("a"), closed("a"), elapsed(1)], "startGrace stopServer"],
  ["a window that opens within the grace keeps the server", [opened("a"), closed("a"), opened("b"), elapsed(1)], "startGrace cancelGrace"],
  ["the same session again is a reload", [opened("a"), closed("a"), opened("a")], "startGrace cancelGrace"],
  ["one of two windows is not the last", [opened("a"), opened("b"), closed("a")], ""],
  ["the last of two windows is", [opened("a"), opened("b"), closed("a"), closed("b")], "startGrace"],
  ["a parent and its child are two, closed in either order", [opened("p"), opened("c"), closed("p"), closed("c")], "startGrace"],
  ["a window that was stopped by request stops nothing", [opened("a"), released("a")], ""],
  ["a window that is stopped after another was closed stops nothing", [opened("a"), opened("b"), closed("a"), released("b")], ""],
  ["a window that was never open is ignored", [closed("x"), released("y"), elapsed(1)], ""],
  ["a window is opened twice and closed once", [opened("a"), opened("a"), closed("a")], "startGrace"],
  ["a window is closed twice", [opened("a"), closed("a"), closed("a")], "startGrace"],
  ["an old timer stops nothing", [opened("a"), closed("a"), opened("b"), closed("b"), elapsed(1)], "startGrace cancelGrace startGrace"],
  ["the new timer does", [opened("a"), closed("a"), opened("b"), closed("b"), elapsed(2)], "startGrace cancelGrace startGrace stopServer"],
  ["the server is stopped once", [opened("a"), closed("a"), elapsed(1), elapsed(1)], "startGrace stopServer"],
];

for (const [name, inputs, expected] of TABLE) {
  test(name, () => {
    let state = NO_WINDOWS;
    const effects: string[] = [];
    for (const input of inputs) {
      const [next, caused] = stepCloseWatch(state, input);
      state = next;
      effects.push(...caused.map((it) => it.kind));
    }
    assert.equal(effects.join(" "), expected);
  });
}

test("the watcher stops the server after the grace, and logs each step", async () => {
  const lines: string[] = [];
  let stops = 0;
  const watcher = new CloseWatcher({ graceMs: () => 20, stopServer: async () => void stops++, log: (line) => lines.push(line) });
  watcher.handle(opened("a"));
  assert.deepEqual([watcher.openCount, watcher.isWaiting], [1, false]);
  watcher.handle(closed("a"));
  assert.deepEqual([watcher.openCount, watcher.isWaiting, stops], [0, true, 0]);
  await until("the server is stopped", () => stops === 1);
  assert.equal(watcher.isWaiting, false);
  assert.match(lines.join("\n"), /a opened; 1 open\n.*a closed; 0 open\n.*in 20 ms, unless another opens\n.*stopping the MCP server/);
});

test("a replacement within the grace keeps the server", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let stops = 0;
  const watcher = new CloseWatcher({ graceMs: () => 3_000, stopServer: async () => void stops++, log: () => undefined });
  watcher.handle(opened("a"));
  watcher.handle(closed("a"));
  context.mock.timers.tick(2_999);
  watcher.handle(opened("b"));
  context.mock.timers.tick(60_000);
  assert.equal(stops, 0);
  watcher.handle(closed("b"));
  context.mock.timers.tick(3_000);
  assert.equal(stops, 1);
});

test("a disposed watcher stops nothing", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  let stops = 0;
  const watcher = new CloseWatcher({ graceMs: () => 3_000, stopServer: async () => void stops++, log: () => undefined });
  watcher.handle(opened("a"));
  watcher.handle(closed("a"));
  watcher.dispose();
  context.mock.timers.tick(60_000);
  assert.equal(stops, 0);
});
