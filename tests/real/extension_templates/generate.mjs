// Generates a VS Code extension, as `yo code` does, without a prompt: the answers are given through yeoman's own API.
// usage: node generate.mjs <tools folder> <folder of the extension> <extension type> [<bundler>]
import path from "node:path";
import { pathToFileURL } from "node:url";

const [tools, folder, extensionType, bundler] = process.argv.slice(2);
const yeoman = path.join(tools, "yeoman-environment/node_modules");
const { createEnv } = await import(pathToFileURL(path.join(yeoman, "yeoman-environment/dist/index.js")));
const { TestAdapter } = await import(pathToFileURL(path.join(yeoman, "@yeoman/adapter/dist/testing/index.js")));

// The generator asks the registry for the newest VS Code; a closed port makes it take its own, so that what is generated
// does not change from one day to the next.
process.env.HTTPS_PROXY = "http://127.0.0.1:9";

const env = createEnv({ cwd: folder, skipInstall: true, skipCache: true, adapter: new TestAdapter() });
env.register(path.join(tools, "generator-code/node_modules/generator-code/generators/app/index.js"), {
  namespace: "code:app",
});
await env.run(["code:app", folder], {
  quick: true,
  extensionType,
  bundler,
  extensionDisplayName: "Hello Tether",
  pkgManager: "npm",
  gitInit: false,
  skipOpen: true,
  skipInstall: true,
  force: true,
});
