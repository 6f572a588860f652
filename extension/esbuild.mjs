// Bundles the extension, its bridge for `tether`, the timeline's page, and with `--tests` the unit tests, which run in plain Node.
import { readFileSync, readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, target: "es2022", sourcemap: true, logLevel: "warning" };
const node = { ...common, platform: "node", format: "cjs" };
/** What `tether` has in it, and brings into its windows. */
const windowBridge = {
  ...node,
  entryPoints: ["src/bridge/bridgeOnly.ts"],
  external: ["vscode"],
  minify: true,
  sourcemap: false,
  banner: { js: "/*! tether (MIT OR Apache-2.0), with vscode-jsonrpc (Copyright (c) Microsoft Corporation, MIT) */" },
};
const WINDOW_BRIDGE = "../src/window/launch/window_bridge.js";

if (process.argv.includes("--tests")) {
  rmSync("out/test", { recursive: true, force: true });
  const built = await build({ ...windowBridge, write: false });
  if (built.outputFiles[0].text !== readFileSync(WINDOW_BRIDGE, "utf8")) {
    throw new Error(`${WINDOW_BRIDGE} is older than its sources: \`npm run compile\` writes it`);
  }
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
  // Nothing that a unit test loads may need VS Code: an import of it fails the test.
  await build({ ...node, entryPoints: tests.map((name) => `test/${name}`), outdir: "out/test", external: ["vscode"] });
} else {
  await build({ ...node, entryPoints: ["src/extension.ts"], outfile: "out/extension.js", external: ["vscode"], minify: true });
  await build({ ...windowBridge, outfile: WINDOW_BRIDGE });
  await build({
    ...common,
    platform: "browser",
    format: "iife",
    entryPoints: ["src/timeline/page/timelinePage.ts"],
    outfile: "out/timelinePage.js",
    minify: true,
  });
}
