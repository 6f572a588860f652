// Evaluated in each new document of a window that shows VS Code's workbench, before the workbench's own scripts: keeps its
// extension service when the workbench registers it. There is no other way to it from outside: the service restarts the
// extension hosts, for which the workbench in a browser has no command.
//
// Makes the service start its web worker host only for extensions that run there, as a desktop VS Code does: the workbench
// in a browser starts it with each window and each restart, mostly for no extension at all.
//
// The workbench keeps its services in a `Map` whose keys are functions that are named after the service. The page's own
// `Map` is restored as soon as the service is found.
(() => {
  // Of VS Code's `ExtensionHostKind` and `ExtensionHostStartup`.
  const LOCAL_WEB_WORKER = 2;
  const LAZY_AUTO_START = 3;
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
      deferWebWorkerHost(value);
      if (Map.prototype.set === set) Map.prototype.set = original;
    }
    return original.call(this, key, value);
  }
  Map.prototype.set = set;

  function deferWebWorkerHost(service) {
    const factory = service._extensionHostFactory;
    if (typeof factory?.createExtensionHost !== 'function') return;
    const create = factory.createExtensionHost;
    factory.createExtensionHost = function (locations, location) {
      if (location?.kind !== LOCAL_WEB_WORKER) return create.apply(this, arguments);
      // Not the initial start: a host that is started later takes the extensions that are known by then.
      const host = create.call(this, locations, location, false);
      if (host) host.startup = LAZY_AUTO_START;
      return host;
    };
  }

  // Returns why the hosts were not restarted; null when they were.
  workbench.restartExtensionHosts = async (reason) => {
    const service = workbench.extensionService;
    if (!service) return 'the workbench has not started';
    if (!await service.stopExtensionHosts(reason)) return 'an extension or editor in the window prevents it';
    await service.startExtensionHosts();
    return null;
  };
})()
