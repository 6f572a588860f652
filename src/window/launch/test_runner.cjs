// The module that an extension host under test runs (`--extensionTestsPath`): `run` runs the test files with the project's
// own Mocha, or the project's own runner, and writes what becomes of each test beside this file.
//
//   run.json       what to run
//   results.jsonl  one event a line: begin, output, total, test, end
//   go             with `waits`: the tests begin when it is there, so that a debugger has set its breakpoints
'use strict';

const fs = require('fs');
const Module = require('module');
const path = require('path');
const util = require('util');

const RESULTS = path.join(__dirname, 'results.jsonl');
const GO = path.join(__dirname, 'go');
const MAX_TEXT = 8_000;
const MAX_OUTPUT = 64_000;
const MAX_TITLES = 50;

let outputLeft = MAX_OUTPUT;

function append(event) {
  fs.appendFileSync(RESULTS, `${JSON.stringify(event)}\n`);
}

const clip = (text) => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);

exports.run = async function run(testsRoot) {
  const plan = JSON.parse(fs.readFileSync(path.join(__dirname, 'run.json'), 'utf8'));
  append({ event: 'begin', pid: process.pid });
  try {
    recordConsole();
    enableSourceMaps();
    if (plan.waits) await fileAppears(GO);
    const Mocha = loadMocha(plan);
    if (Mocha) watchMocha(Mocha, plan);
    await (plan.runner ? runWithOwnRunner(plan, testsRoot) : runWithMocha(Mocha, plan));
    append({ event: 'end', ok: true, reported: Boolean(Mocha) });
  } catch (error) {
    append({ event: 'end', ok: false, error: describeError(error) });
    throw error;
  }
};

function fileAppears(file) {
  return new Promise((resolve) => {
    const look = () => {
      if (fs.existsSync(file)) {
        watcher.close();
        resolve();
      }
    };
    const watcher = fs.watch(path.dirname(file), look);
    look();
  });
}

// Of the project, not of another package that happens to bring one: what it reports is then what its runner runs.
function loadMocha({ mochaMain, runner }) {
  try {
    return require(mochaMain ?? Module.createRequire(runner).resolve('mocha'));
  } catch {
    return undefined;
  }
}

async function loadModule(file) {
  try {
    return require(file);
  } catch (error) {
    if (error?.code !== 'ERR_REQUIRE_ESM' && error?.code !== 'ERR_REQUIRE_ASYNC_MODULE') throw error;
    return import(require('url').pathToFileURL(file).href);
  }
}

async function runWithOwnRunner({ runner }, testsRoot) {
  const loaded = await loadModule(runner);
  const run = loaded.run ?? loaded.default?.run;
  if (typeof run !== 'function') throw new Error(`${runner} exports no function \`run\``);
  await new Promise((resolve, reject) => {
    const isDone = (error, failures) => {
      if (error) reject(error);
      else if (typeof failures === 'number' && failures > 0) reject(new Error(`${failures} tests failed`));
      else resolve();
    };
    const running = run.call(loaded, testsRoot, isDone);
    if (typeof running?.then === 'function') running.then(resolve, reject);
  });
}

/** Nobody reads what it would print: the results are in the events. */
class SilentReporter {}

async function runWithMocha(Mocha, { files, mocha: options, preload, waits }) {
  if (!Mocha) throw new Error('the package `mocha` is not installed: `npm install --save-dev @vscode/test-cli` brings it');
  const reporter = waits ? 'spec' : SilentReporter;
  const mocha = new Mocha({ ui: 'tdd', ...options, color: false, reporter, parallel: false });
  const loaded = [];
  for (const file of preload) loaded.push(await loadModule(file));
  for (const { mochaGlobalSetup } of loaded) await mochaGlobalSetup?.();
  for (const file of files) mocha.addFile(file);
  const needsImport = files.some((file) => file.endsWith('.mjs'));
  if (needsImport) await mocha.loadFilesAsync();
  const failures = await new Promise((resolve) => mocha.run(resolve));
  for (const { mochaGlobalTeardown } of loaded) await mochaGlobalTeardown?.();
  if (failures > 0) throw new Error(failures === 1 ? '1 test failed' : `${failures} tests failed`);
}

function watchMocha(Mocha, plan) {
  const { run } = Mocha.Runner.prototype;
  Mocha.Runner.prototype.run = function (...args) {
    selectTests(this, plan);
    reportTests(this);
    return run.apply(this, args);
  };
  if (plan.waits) {
    // A test that is stopped at a breakpoint has all the time that it takes.
    const { timeout, retries } = Mocha.Runnable.prototype;
    Mocha.Runnable.prototype.timeout = function (...args) {
      return args.length > 0 ? timeout.call(this, 0) : 0;
    };
    Mocha.Runnable.prototype.resetTimeout = () => {};
    Mocha.Runnable.prototype.retries = function (...args) {
      return args.length > 0 ? retries.call(this, 0) : 0;
    };
  }
}

/** The titles of the suites around a test, the outermost first, and its own. */
function titlesOf(test) {
  const titles = [];
  for (let at = test; at && !at.root; at = at.parent) titles.unshift(at.title);
  return titles;
}

const SEPARATORS = [' > ', ' ', ' › '];

/** Whether `name` is the last of these titles, or those with the suites around it. */
function isNamed(titles, name) {
  return titles.some((_, from) => SEPARATORS.some((separator) => titles.slice(from).join(separator) === name));
}

function selectTests(runner, { name, file }) {
  if (name === undefined && file === undefined) return;
  const all = [];
  runner.suite.eachTest((test) => all.push(test));
  const stem = (path_) => path.basename(path_ ?? '').replace(/\.[cm]?[jt]sx?$/, '');
  const inFile = file === undefined ? all : all.filter((test) => stem(test.file) === stem(file));
  let chosen = name === undefined ? inFile : inFile.filter((test) => isNamed(titlesOf(test), name));
  if (chosen.length === 0 && name !== undefined) {
    // All tests of a suite.
    const inSuite = (titles) => titles.some((_, end) => isNamed(titles.slice(0, end), name));
    chosen = inFile.filter((test) => inSuite(titlesOf(test)));
  }
  if (chosen.length === 0) {
    const titles = all.slice(0, MAX_TITLES).map((test) => clip(titlesOf(test).join(' > ')));
    append({ event: 'unknown', titles, total: all.length });
  }
  const names = new Set(chosen.map((test) => test.fullTitle()));
  runner.grep({ test: (title) => names.has(title) }, false);
}

function reportTests(runner) {
  append({ event: 'total', tests: runner.total });
  const report = (test, state, error) => {
    append({
      event: 'test',
      titles: titlesOf(test).map(clip),
      state,
      durationMs: test.duration ?? 0,
      file: test.file,
      error: error === undefined ? undefined : describeError(error),
    });
  };
  runner.on('pass', (test) => report(test, 'passed'));
  runner.on('fail', (test, error) => report(test, 'failed', error));
  runner.on('pending', (test) => report(test, 'pending'));
}

function describeError(error) {
  if (!(error instanceof Error) && typeof error?.message !== 'string') {
    return { message: clip(typeof error === 'string' ? error : util.inspect(error)) };
  }
  const message = String(error.message);
  const name = typeof error.name === 'string' && error.name !== 'Error' ? `${error.name}: ` : '';
  const stack = typeof error.stack === 'string' ? error.stack : '';
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line)).map((line) => mapFrame(line.trim()));
  const isOwn = (frame) => !/node_modules|node:internal|\(node:|at node:|extensionHostProcess/.test(frame) && !frame.includes(__filename);
  return { message: clip(name + message), frames: frames.filter(isOwn).slice(0, 10).map(clip) };
}

function enableSourceMaps() {
  if (Module.setSourceMapsSupport) Module.setSourceMapsSupport(true);
  else process.setSourceMapsEnabled?.(true);
}

/** The frame in the source: VS Code replaces Node's own stack traces, which would have it. */
function mapFrame(frame) {
  const place = /\((.+):(\d+):(\d+)\)$/.exec(frame) ?? /(?<=^at (?:async )?)(.+):(\d+):(\d+)$/.exec(frame);
  if (!place) return frame;
  const [whole, file, line, column] = place;
  try {
    // Mocha makes paths relative.
    const script = file.startsWith('file://') ? require('url').fileURLToPath(file) : path.resolve(file);
    const found = Module.findSourceMap(script)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (found?.originalSource === undefined) return frame;
    const { originalSource, originalLine, originalColumn } = found;
    const source = originalSource.startsWith('file://')
      ? require('url').fileURLToPath(originalSource)
      : path.resolve(path.dirname(script), originalSource);
    return frame.replace(whole, `(${source}:${originalLine + 1}:${originalColumn + 1})`);
  } catch {
    return frame;
  }
}

/** What the tests and the extension print. */
function recordConsole() {
  for (const method of ['log', 'info', 'warn', 'error', 'debug']) {
    const original = console[method];
    const recording = function (...args) {
      const text = util.format(...args);
      // VS Code's own, where a package of it has no binary for this Node.
      const isNoise = text.startsWith('Error: Could not locate the bindings file');
      if (outputLeft > 0 && !isNoise) {
        append({ event: 'output', text: text.slice(0, outputLeft) });
        outputLeft -= text.length;
      }
      // A debugger shows the arguments one by one, also those of a format.
      const isFormat = typeof args[0] === 'string' && args[0].includes('%');
      return original.apply(this, isFormat ? [text] : args);
    };
    // VS Code's own property ignores an assignment.
    Object.defineProperty(console, method, { value: recording, writable: true });
  }
}
