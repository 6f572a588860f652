// Announces code with a source map before it is compiled, where the engine does not pause by itself: CommonJS modules, and
// what `vm.compileFunction` compiles; and each module that is loaded again. The thread waits until the debugger lets it go: its
// messages are handled meanwhile. `report`: the name of the debugger's function. Returns what undoes it.
function announceMaps(require, report) {
    "use strict";
    const { Module, syncBuiltinESMExports } = require("node:module");
    const vm = require("node:vm");
    const fs = require("node:fs");

    // Modules are named over links.
    const keepsLinks = [...process.execArgv, process.env.NODE_OPTIONS ?? ""].some((words) => words.includes("--preserve-symlinks"));
    const realFile = (file) => {
        try {
            return keepsLinks ? fs.realpathSync(file) : file;
        } catch {
            return file;
        }
    };

    // Whether a module is the user's own, or of a package that is debugged.
    function isOwn(file) {
        const real = realFile(file);
        if (!real.includes("/node_modules/")) return true;
        return (globalThis[Symbol.for(`${report}.packages`)] ?? []).some((folder) => real.startsWith(folder));
    }

    // How long the debugger may take, in ms, until the thread pauses. A pause would do at once, but tells of each frame: in a module
    // that is required by forty others, for 30 ms.
    const PATIENCE = 300;
    const { load, notify, store, wait } = Atomics;
    const { now } = Date;
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const release = Symbol.for(`${report}.release`);
    const letGo = (number) => {
        store(gate, 0, number);
        notify(gate, 0);
    };
    Object.defineProperty(globalThis, release, { configurable: true, value: letGo });
    let announced = 0;
    // The debugger's function, once a wait was in vain: it has left without a word. The next debugger brings a new one.
    let abandoned;
    function waitForRelease(number) {
        try {
            const until = now() + PATIENCE;
            for (let left = PATIENCE; left > 0; left = until - now()) {
                const seen = load(gate, 0);
                if (seen === number) return;
                wait(gate, 0, seen, left);
            }
        } catch {
            // This thread must not wait.
        }
        if (load(gate, 0) === number) return;
        debugger;
        if (load(gate, 0) !== number) abandoned = globalThis[report];
    }

    const loaded = new Set();
    function announceMap(file, text) {
        const at = text.lastIndexOf("\n//# sourceMappingURL=");
        if (typeof globalThis[report] !== "function" || globalThis[report] === abandoned) return;
        const isLoadedAgain = loaded.has(file);
        loaded.add(file);
        if (at < 0 && !isLoadedAgain && realFile(file) === file) return;
        const [map] = at < 0 ? [""] : text.slice(at).trim().slice("//# sourceMappingURL=".length).split(/\s/, 1);
        announced += 1;
        globalThis[report](JSON.stringify({ script: { file, map, number: announced } }));
        waitForRelease(announced);
    }

    let compile = Module.prototype._compile;
    const standard = Module._extensions[".js"];
    const compileAnnounced = function (text, file, ...others) {
        announceMap(file, text);
        return compile.call(this, text, file, ...others);
    };
    // An accessor, since a function around the original would be a frame in each stack of the program.
    const accessor = {
        configurable: true,
        enumerable: true,
        get() {
            const file = this.filename;
            if (typeof file !== "string" || !isOwn(file)) return compile;
            // A compiler in memory: only what it returns has the map.
            if (Module._extensions[".js"] !== standard || !/\.c?js$/.test(file)) return compileAnnounced;
            let text = "";
            try {
                text = fs.readFileSync(file, "utf8");
            } catch {
                // The program will find that out itself.
            }
            announceMap(file, text);
            return compile;
        },
        set(value) {
            if (this === Module.prototype) compile = value;
            else Object.defineProperty(this, "_compile", { value, writable: true, configurable: true, enumerable: true });
        },
    };
    Object.defineProperty(Module.prototype, "_compile", accessor);

    // Test runners compile tests by it. A function around it is in no stack of these: it has returned when they run.
    const { compileFunction } = vm;
    const announcing = function (text, parameters, options) {
        const file = options?.filename;
        if (typeof text === "string" && typeof file === "string" && file.startsWith("/") && isOwn(file)) {
            announceMap(file, text);
        }
        return compileFunction.apply(this, arguments);
    };
    for (const name of ["name", "length"]) {
        Object.defineProperty(announcing, name, Object.getOwnPropertyDescriptor(compileFunction, name));
    }
    vm.compileFunction = announcing;
    syncBuiltinESMExports();
    return () => {
        delete globalThis[release];
        if (vm.compileFunction === announcing) {
            vm.compileFunction = compileFunction;
            syncBuiltinESMExports();
        }
        if (Object.getOwnPropertyDescriptor(Module.prototype, "_compile")?.get !== accessor.get) return;
        const own = { value: compile, writable: true, configurable: true, enumerable: true };
        Object.defineProperty(Module.prototype, "_compile", own);
    };
}
