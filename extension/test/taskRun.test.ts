import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { Turns, chooseTask, runToEnd } from "../src/host/taskRun";

const task = (name: string, folder: string | undefined, fields: object = {}) => ({ name, source: "Workspace", folder, isBackground: false, ...fields });

test("a task is the folder's own, one of the workspace, and never another folder's", () => {
  const tasks = [task("build", "b"), task("build", undefined, { at: 1 }), task("build", "a"), task("lint", undefined), task("lint", "b"), task("pack", "b", { source: "npm" }), task("watch", "a", { isBackground: true })];
  assert.equal(chooseTask(tasks, "build", "a"), tasks[2]);
  assert.equal(chooseTask(tasks, "Workspace: build", "b"), tasks[0]);
  assert.equal(chooseTask(tasks, "lint", "a"), tasks[3]);
  assert.equal(chooseTask(tasks, "npm: pack", "b"), tasks[5]);
  assert.throws(() => chooseTask(tasks, "pack", "a"), /no task pack in this folder, but in another one; there are: build, watch, build, lint/);
  assert.throws(() => chooseTask(tasks, "nothing", "a"), /no task nothing in this folder; there are/);
  assert.throws(() => chooseTask([], "x", undefined), /there are: none/);
  assert.throws(() => chooseTask(tasks, "watch", "a"), /runs in the background/);
});

/** VS Code's tasks: each run is an object. */
function scriptedTasks() {
  const events = new EventEmitter();
  const listen = (name: string, listener: (run: object, exitCode: number | undefined) => void) => {
    events.on(name, listener);
    return { dispose: () => void events.off(name, listener) };
  };
  const end = (run: object, exitCode?: number) => {
    events.emit("process", run, exitCode);
    events.emit("end", run);
  };
  const ports = (start: () => Promise<object>) => ({
    onDidEndProcess: (listener: (run: object, exitCode: number | undefined) => void) => listen("process", listener),
    onDidEnd: (listener: (run: object) => void) => listen("end", listener),
    start,
  });
  return { end, ports, listeners: () => events.listenerCount("end") + events.listenerCount("process") };
}

test("a run ends with itself, and not with another run of the same task", async () => {
  const { end, ports, listeners } = scriptedTasks();
  const [first, second] = [{ name: "build" }, { name: "build" }];
  let isOver = false;
  const own = runToEnd(ports(async () => first));
  void own.then(() => (isOver = true));
  const other = runToEnd(ports(async () => second));
  end(second, 3);
  assert.equal(await other, 3);
  assert.equal(isOver, false);
  end(first, 0);
  assert.deepEqual([await own, listeners()], [0, 0]);
});

test("a run that ends before it is known to have begun, and one without a process", async () => {
  const { end, ports, listeners } = scriptedTasks();
  const quick = {};
  assert.equal(await runToEnd(ports(async () => (end(quick, 7), quick))), 7);
  const group = {};
  assert.equal(await runToEnd(ports(async () => (end({}, 1), end(group), group))), null);
  await assert.rejects(runToEnd(ports(() => Promise.reject(new Error("refused")))), /refused/);
  assert.equal(listeners(), 0);
});

test("runs with one key follow one another, also after one that failed; others do not wait", async () => {
  const turns = new Turns();
  const order: string[] = [];
  let release: () => void = () => undefined;
  const held = turns.run("a", () => new Promise<void>((resolve) => (release = resolve)).then(() => Promise.reject(new Error("it failed"))));
  const after = turns.run("a", async () => void order.push("after"));
  await turns.run("b", async () => void order.push("other"));
  release();
  await assert.rejects(held, /it failed/);
  await after;
  assert.deepEqual(order, ["other", "after"]);
});
