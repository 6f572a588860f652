// Bundles the extension, the timeline's page, and with `--tests` the unit tests, which run in plain Node.
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, target: "es2022", sourcemap: true, logLevel: "warning" };
const node = { ...common, platform: "node", format: "cjs" };

if (process.argv.includes("--tests")) {
  rmSync("out/test", { recursive: true, force: true });
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
  // Nothing that a unit test loads may need VS Code: an import of it fails the test.
  await build({ ...node, entryPoints: tests.map((name) => `test/${name}`), outdir: "out/test", external: ["vscode"] });
} else {
  await build({ ...node, entryPoints: ["src/extension.ts"], outfile: "out/extension.js", external: ["vscode"], minify: true });
  await build({
    ...common,
    platform: "browser",
    format: "iife",
    entryPoints: ["src/timeline/page/timelinePage.ts"],
    outfile: "out/timelinePage.js",
    minify: true,
  });
}
