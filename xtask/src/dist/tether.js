#!/usr/bin/env node
// Starts the program of this platform's package, and ends as that does.
"use strict";
const { spawn } = require("node:child_process");

const platform = `${process.platform}-${process.arch}`;
const args = process.argv.slice(2);

function findProgram() {
  try {
    return require.resolve(`@devtether/${platform}/bin/tether`);
  } catch {
    console.error(`error: cannot start tether: the package @devtether/${platform} is not installed`);
    console.error(
      platform === "linux-x64"
        ? "  hint: install devtether again, without --omit=optional and --no-optional"
        : "  hint: tether runs on Linux; there is a package for x64",
    );
    process.exit(1);
  }
}

const program = findProgram();
if (typeof process.execve === "function") {
  // This process becomes the program. Fails where an add-on or a policy forbids that.
  try {
    process.execve(program, [program, ...args], process.env);
  } catch {
    // It is started as a child.
  }
}
const child = spawn(program, args, { stdio: "inherit" });
// A terminal sends it to the child, too.
const ignore = () => {};
process.on("SIGINT", ignore);
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (cause) => {
  console.error(`error: cannot start ${program}\n  because: ${cause.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
