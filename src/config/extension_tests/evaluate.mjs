// Run by Node with the path of a `.vscode-test.*` file and that of a file for the result: evaluates the configurations as
// @vscode/test-cli does, and writes them as JSON. Paths are absolute in the result, and `files` are those that exist.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [configFile, resultFile] = process.argv.slice(-2);
const folder = path.dirname(configFile);
const requireHere = createRequire(configFile);

const asList = (value) => (value === undefined || value === null ? [] : Array.isArray(value) ? value : [value]);
const absolute = (file) => path.resolve(folder, String(file));

function resolveFrom(requiring, name) {
  try {
    return requiring.resolve(name);
  } catch {
    return undefined;
  }
}

async function load() {
  if (configFile.endsWith('.json')) return JSON.parse(fs.readFileSync(configFile, 'utf8'));
  let loaded = await import(pathToFileURL(configFile).href);
  if ('default' in loaded) loaded = loaded.default;
  // That of a CommonJS module which TypeScript has compiled.
  if (loaded?.__esModule && 'default' in loaded) loaded = loaded.default;
  return loaded;
}

// The packages of @vscode/test-cli: its Mocha runs the tests, its glob finds them.
const cli = resolveFrom(requireHere, '@vscode/test-cli');
const requireCli = cli ? createRequire(fs.realpathSync(cli)) : requireHere;

async function findFiles(patterns) {
  const found = new Set();
  const globModule = resolveFrom(requireCli, 'glob');
  const glob = globModule ? (await import(pathToFileURL(globModule).href)).glob : undefined;
  for (const pattern of asList(patterns).map(String)) {
    if (path.isAbsolute(pattern)) {
      found.add(pattern);
    } else if (glob) {
      for (const file of await glob(pattern, { cwd: folder })) found.add(path.join(folder, file));
    } else if (fs.globSync) {
      for (const file of fs.globSync(pattern, { cwd: folder })) found.add(path.join(folder, file));
    } else {
      throw new Error('neither the package `glob` nor `fs.globSync` is there to find the test files');
    }
  }
  return [...found].sort();
}

const mochaMain = resolveFrom(requireCli, 'mocha') ?? resolveFrom(requireHere, 'mocha');

async function describe(test) {
  if (typeof test !== 'object' || test === null) throw new Error('a configuration is not an object');
  const { require: required, preload, reporter, ...mocha } = test.mocha ?? {};
  // Mocha reads `/source/flags`.
  if (mocha.grep instanceof RegExp) mocha.grep = String(mocha.grep);
  const variables = Object.entries(test.env ?? {}).filter(([, value]) => value !== undefined);
  return {
    label: test.label === undefined ? undefined : String(test.label),
    platform: test.platform,
    files: await findFiles(test.files),
    patterns: asList(test.files).map(String),
    extensions: (test.extensionDevelopmentPath ? asList(test.extensionDevelopmentPath) : ['.']).map(absolute),
    workspaceFolder: test.workspaceFolder === undefined ? undefined : absolute(test.workspaceFolder),
    launchArgs: asList(test.launchArgs).map(String),
    env: Object.fromEntries(variables.map(([name, value]) => [name, String(value)])),
    mocha,
    preload: [...asList(preload), ...asList(required)].map((name) => requireHere.resolve(String(name))),
    mochaMain,
    installExtensions: asList(test.installExtensions).map(String),
  };
}

const loaded = await (await load());
const tests = typeof loaded === 'object' && loaded !== null && 'tests' in loaded ? loaded.tests : asList(loaded);
const described = [];
for (const test of tests) described.push(await describe(test));
fs.writeFileSync(resultFile, JSON.stringify(described));
