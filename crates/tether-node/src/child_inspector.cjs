// Loaded by each process and worker of a launched program before its own code: opens the inspector of a process, says
// where, and waits until the debugger has set its breakpoints. Without a debugger that listens, the program runs as if this
// were not here.
"use strict";
const { isMainThread } = require("node:worker_threads");
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

if (announcements && isMainThread) {
    let isOpen = false;
    try {
        // Fails when there is no debugger any more.
        fs.closeSync(fs.openSync(announcements, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK));
        // `node --inspect` has opened it.
        if (inspector.url() === undefined) {
            inspector.open(0, "127.0.0.1");
            isOpen = true;
        }
        announceInspector();
        if (process.env.DEVTETHER_INSPECT_CHILDREN === "0") delete process.env.DEVTETHER_INSPECTORS;
        inspector.waitForDebugger();
        announceMaps(require, report);
        announceWorkerEnds(require, report);
    } catch {
        if (isOpen) inspector.close();
    }
} else if (announcements && !isMainThread) {
    announceMaps(require, report);
}
