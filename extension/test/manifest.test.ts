import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { test } from "node:test";

// Tests are run in the extension's folder.
const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const { contributes } = manifest;
const commandsSource = readFileSync("src/commands.ts", "utf8");

test("every contributed command is registered, and every registered one is contributed", () => {
  const body = /const commands[^{]*\{([^]*?)\n  \};/.exec(commandsSource)?.[1] ?? "";
  const registered = [...body.matchAll(/^    (\w+):/gm)].map((it) => `tether.${it[1]}`);
  const contributed = contributes.commands.map((it: { command: string }) => it.command);
  assert.deepEqual(registered.sort(), contributed.sort());
  const menus = Object.values<{ command: string }[]>(contributes.menus).flat().map((it) => it.command);
  const linked = JSON.stringify([contributes.viewsWelcome, contributes.walkthroughs]).matchAll(/[cC]ommand:(tether\.\w+)/g);
  for (const name of [...menus, ...[...linked].map((it) => it[1])]) {
    assert.ok(contributed.includes(name), name);
  }
});

test("every file that the manifest names exists, and is packaged", () => {
  const media = [...JSON.stringify(manifest).matchAll(/"(media\/[^"]+)"/g)].map((it) => it[1]!);
  assert.ok(media.length >= 7);
  for (const file of [...media, "README.md", "CHANGELOG.md", "LICENSE"]) {
    assert.ok(existsSync(file), file);
  }
  for (const [, file] of readFileSync("README.md", "utf8").matchAll(/\]\((media\/[^)]+)\)/g)) {
    assert.ok(statSync(file!).size < 150_000, file);
  }
});

test("every setting has a default and a description, and a folder cannot choose the program", () => {
  for (const [name, setting] of Object.entries<Record<string, unknown>>(contributes.configuration.properties)) {
    assert.ok("default" in setting && (setting["description"] ?? setting["markdownDescription"]), name);
  }
  assert.equal(contributes.configuration.properties["tether.path"].scope, "machine");
  const trust = manifest.capabilities.untrustedWorkspaces;
  assert.deepEqual([trust.supported, trust.restrictedConfigurations], ["limited", ["tether.path"]]);
  assert.ok(trust.description.length > 50);
});

test("the timeline's page allows nothing but its own script and style", () => {
  const source = readFileSync("src/timeline/timelinePanel.ts", "utf8");
  const policy = /const policy = `([^`]+)`/.exec(source)?.[1] ?? "";
  assert.match(policy, /^default-src 'none'; style-src \$\{webview\.cspSource\}; script-src 'nonce-\$\{nonce\}'; base-uri 'none'; form-action 'none'$/);
  assert.doesNotMatch(source + readFileSync("src/timeline/page/timelinePage.ts", "utf8"), /unsafe-|innerHTML|https?:\/\/(?!www\.w3\.org\/2000\/svg)/);
});

test("the lock file names no registry", () => {
  assert.doesNotMatch(readFileSync("package-lock.json", "utf8"), /"resolved"/);
});
