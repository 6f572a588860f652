// Loaded by js-debug's server, which is the parent of the program that it launches: appends how that exits to a file
// beside this one, since the server itself reports no more than that it has ended.
"use strict";

const childProcess = require("node:child_process");
const { appendFileSync } = require("node:fs");
const { constants } = require("node:os");
const { join } = require("node:path");

const report = join(__dirname, "exits.jsonl");
const spawn = childProcess.spawn;

childProcess.spawn = function (...args) {
  const child = spawn.apply(this, args);
  // Only a program that is to be debugged has this variable, and not a helper of the server.
  if (args.some((argument) => argument?.env?.VSCODE_INSPECTOR_OPTIONS !== undefined)) {
    child.once("exit", (code, signal) => {
      const number = signal === null ? null : constants.signals[signal];
      appendFileSync(report, `${JSON.stringify({ code, signal: number })}\n`);
    });
  }
  return child;
};
