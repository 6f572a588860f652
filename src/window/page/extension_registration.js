// Evaluated in VS Code's extension host, over its inspector: `(paths, report) => …`. Reports each change of how far the
// extensions under development in `paths` are loaded, until all of them are.
//
// The host gives its API to whoever loads the module `vscode`; before it has started, there is no such module. There is
// no event for the end of an activation, so the registry is looked at repeatedly, less often as time passes.
((paths, report) => {
  const nodeModule = process.getBuiltinModule('module');
  const timer = Symbol.for('devtether.extensionRegistration');
  clearTimeout(globalThis[timer]);

  const activatesItself = ({ main, activationEvents }) => typeof main === 'string'
    && Array.isArray(activationEvents) && activationEvents.some((event) => event === '*' || event === 'onStartupFinished');

  function stateOf(path, all) {
    const found = all.find((extension) => extension.extensionPath === path);
    if (!found) return { name: path, state: 'unregistered' };
    // `isActive` is true after a failed activation too: it has ended.
    const loaded = found.isActive || !activatesItself(found.packageJSON);
    return { name: found.id, state: loaded ? 'loaded' : 'activating' };
  }

  function readStates() {
    let all;
    try {
      all = nodeModule._load('vscode', { filename: `${paths[0]}/package.json` }).extensions.all;
    } catch {
      return []; // not started yet
    }
    return paths.map((path) => stateOf(path, all));
  }

  let last = '', delay = 20;
  (function look() {
    const states = readStates();
    const text = JSON.stringify(states);
    if (text !== last) report(last = text);
    if (states.length && states.every(({ state }) => state === 'loaded')) return;
    delay = Math.min(delay * 1.02, 1000);
    globalThis[timer] = setTimeout(look, delay);
    globalThis[timer].unref();
  })();
})
