// Evaluated in each new document of a window that shows VS Code's workbench, before the workbench's own scripts: keeps its
// extension service when the workbench registers it. There is no other way to it from outside: the service restarts the
// extension hosts, for which the workbench in a browser has no command.
//
// The workbench keeps its services in a `Map` whose keys are functions that are named after the service. The page's own
// `Map` is restored as soon as the service is found.
(() => {
  const name = Symbol.for('devtether.workbench');
  if (globalThis[name] || window !== window.top) return;
  const original = Map.prototype.set;
  const workbench = globalThis[name] = { extensionService: null };
  const isExtensionService = (key, value) => typeof key === 'function' && typeof value === 'object' && value !== null
    && String(key) === 'extensionService'
    && typeof value.stopExtensionHosts === 'function' && typeof value.startExtensionHosts === 'function';
  function set(key, value) {
    if (isExtensionService(key, value)) {
      workbench.extensionService = value;
      if (Map.prototype.set === set) Map.prototype.set = original;
    }
    return original.call(this, key, value);
  }
  Map.prototype.set = set;

  // Returns why the hosts were not restarted; null when they were.
  workbench.restartExtensionHosts = async (reason) => {
    const service = workbench.extensionService;
    if (!service) return 'the workbench has not started';
    if (!await service.stopExtensionHosts(reason)) return 'an extension or editor in the window prevents it';
    await service.startExtensionHosts();
    return null;
  };
})()
