// Loaded by each process and worker of a launched program before its own code: opens the inspector of a process, says
// where, and waits until the debugger has set its breakpoints. Without a debugger that listens, the program runs as if this
// were not here.
"use strict";
const { isMainThread } = require("node:worker_threads");
const { Module } = require("node:module");
const inspector = require("node:inspector");
const fs = require("node:fs");

const announcements = process.env.DEVTETHER_INSPECTORS;
const report = process.env.DEVTETHER_INSPECT_REPORT;

function announceInspector() {
    const text = JSON.stringify({ pid: process.pid, url: inspector.url(), program: process.argv[1] ?? "" });
    const pipe = fs.openSync(announcements, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK);
    try {
        fs.writeSync(pipe, text + "\n");
    } finally {
        fs.closeSync(pipe);
    }
}

// The engine pauses before modules with a source map, and before no CommonJS module: these are announced here.
function announceMap(file, text) {
    const at = text.lastIndexOf("\n//# sourceMappingURL=");
    if (at < 0 || typeof globalThis[report] !== "function") return;
    const [map] = text.slice(at).trim().slice("//# sourceMappingURL=".length).split(/\s/, 1);
    globalThis[report](JSON.stringify({ script: { file, map } }));
    debugger;
}

// An accessor, since a function around the original would be a frame in each stack of the program.
function announceMapsOfModules() {
    let compile = Module.prototype._compile;
    const standard = Module._extensions[".js"];
    const compileAnnounced = function (text, file, ...others) {
        announceMap(file, text);
        return compile.call(this, text, file, ...others);
    };
    Object.defineProperty(Module.prototype, "_compile", {
        configurable: true,
        enumerable: true,
        get() {
            const file = this.filename;
            if (typeof file !== "string" || file.includes("/node_modules/")) return compile;
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
    });
}

if (announcements && isMainThread && inspector.url() === undefined) {
    let isOpen = false;
    try {
        // Fails when there is no debugger any more.
        fs.closeSync(fs.openSync(announcements, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK));
        inspector.open(0, "127.0.0.1");
        isOpen = true;
        announceInspector();
        if (process.env.DEVTETHER_INSPECT_CHILDREN === "0") delete process.env.DEVTETHER_INSPECTORS;
        inspector.waitForDebugger();
        announceMapsOfModules();
    } catch {
        if (isOpen) inspector.close();
    }
} else if (announcements && !isMainThread) {
    announceMapsOfModules();
}
