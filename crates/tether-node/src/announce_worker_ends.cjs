// Announces that a worker, or a process with all its workers, is about to end: one that has stopped would never end, and its
// process waits for it. The thread pauses until the debugger has let it go. `report`: the name of the debugger's function.
// Returns what undoes it.
function announceWorkerEnds(require, report) {
    "use strict";
    const { Worker } = require("node:worker_threads");

    function announce(workerEnds) {
        if (typeof globalThis[report] !== "function") return;
        globalThis[report](JSON.stringify({ workerEnds }));
        debugger;
    }

    const { terminate } = Worker.prototype;
    // Announced after it: from then on the worker runs no code.
    const announcing = function () {
        const thread = this.threadId;
        const ended = terminate.apply(this, arguments);
        announce({ thread });
        return ended;
    };
    Object.defineProperty(announcing, "name", { value: "terminate", configurable: true });
    Worker.prototype.terminate = announcing;
    const announceAll = () => announce({ thread: null });
    process.on("exit", announceAll);
    return () => {
        if (Worker.prototype.terminate === announcing) Worker.prototype.terminate = terminate;
        process.off("exit", announceAll);
    };
}
