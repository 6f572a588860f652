// Evaluated in VS Code's extension host, over its inspector: `(paths, bridge, report) => …`. Reports each change of how far
// the extensions under development in `paths` are loaded, until all of them are and the workbench shows what they have done;
// then also that the host has no extension with the id `bridge`, if it has none.
//
// The host gives its API to whoever loads the module `vscode`; before it has started, there is no such module. There is
// no event for the end of an activation, so the registry is looked at repeatedly, less often as time passes.
((paths, bridge, report) => {
  const nodeModule = process.getBuiltinModule('module');
  const { realpathSync } = process.getBuiltinModule('fs');
  const timer = Symbol.for('devtether.extensionRegistration');
  clearTimeout(globalThis[timer]);

  const hasEvent = ({ main, activationEvents }, fits) => typeof main === 'string'
    && Array.isArray(activationEvents) && activationEvents.some((event) => fits(String(event)));
  const waitsForOthers = (manifest) => hasEvent(manifest, (event) => event === 'onStartupFinished');
  const activatesItself = (manifest) => waitsForOthers(manifest) || hasEvent(manifest, (event) => event === '*');
  const looksForFiles = (manifest) => hasEvent(manifest, (event) => event.startsWith('workspaceContains:'));

  // VS Code activates those with `onStartupFinished` when it has found the files that others look for, and these are
  // activated; or after 10 s. It has such extensions of its own.
  function hasFoundFiles(all) {
    const last = all.filter(({ packageJSON }) => waitsForOthers(packageJSON));
    return !last.length || last.some(({ isActive }) => isActive);
  }

  // Several extensions under development are links in one folder. Each path is resolved once: the host waits meanwhile.
  const realPaths = new Map();
  function realPathOf(path) {
    if (!realPaths.has(path)) {
      try {
        realPaths.set(path, realpathSync(path));
      } catch {
        realPaths.set(path, path); // removed meanwhile
      }
    }
    return realPaths.get(path);
  }

  function stateOf(path, all) {
    const found = all.find(({ extensionPath }) => extensionPath === path)
      ?? all.find(({ extensionPath }) => realPathOf(extensionPath) === path);
    if (!found) return { name: path, state: 'unregistered' };
    // `isActive` is true after a failed activation too: it has ended.
    const { isActive, packageJSON } = found;
    const loaded = isActive || !activatesItself(packageJSON) && (!looksForFiles(packageJSON) || hasFoundFiles(all));
    return { name: found.id, state: loaded ? 'loaded' : 'activating' };
  }

  function loadApi() {
    try {
      const api = nodeModule._load('vscode', { filename: `${paths[0]}/package.json` });
      return { api, all: api.extensions.all };
    } catch {
      return { all: null }; // not started yet
    }
  }

  // Calls `done` when the workbench has processed what the host has sent so far, part of which it sends in the next turn:
  // the workbench may still show what the host before had sent.
  function whenProcessed(api, done) {
    setTimeout(() => {
      const limit = new Promise((resolve) => setTimeout(resolve, ANSWER_MS).unref());
      Promise.race([api.commands.getCommands(true), limit]).then(done, done);
    }, 1);
  }

  const ANSWER_MS = 3000;
  let last = '', delay = 20;
  (function look() {
    const { api, all } = loadApi();
    const states = all ? paths.map((path) => stateOf(path, all)) : [];
    const text = JSON.stringify(states);
    if (states.length && states.every(({ state }) => state === 'loaded')) {
      const hasBridge = all.some(({ id }) => id.toLowerCase() === bridge);
      const final = hasBridge ? states : [...states, { name: bridge, state: 'absent' }];
      return whenProcessed(api, () => report(JSON.stringify(final)));
    }
    if (text !== last) report(last = text);
    delay = Math.min(delay * 1.02, 1000);
    globalThis[timer] = setTimeout(look, delay);
    globalThis[timer].unref();
  })();
})
