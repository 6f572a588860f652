import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import * as path from "node:path";
import { test } from "node:test";
import { EMPTY_OVERVIEW } from "../src/host/overview";
import { MAX_CHARS, configurationText, iconText, lineText, notificationText, plainConfiguration } from "../src/surface/plainText";
import { statusText } from "../src/views/statusText";

/** The links of a notification's text, as VS Code's `parseLinkedText` finds them. */
const linksOf = (text: string) => [...text.matchAll(/\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: (["'])(.+?)(\3))?\)/gi)];
/** The icons of a label, as VS Code's `renderLabelWithIcons` finds them; a backslash escapes one. */
const iconsOf = (text: string) => [...text.matchAll(/(\\)?\$\(([A-Za-z0-9-]+(?:~[A-Za-z]+)?)\)/g)].filter((it) => it[1] === undefined).map((it) => it[2]);

test("a notification has no links, whatever the text from outside has", () => {
  const check = (text: string, expected: string) => {
    assert.equal(notificationText(text), expected);
    assert.deepEqual(linksOf(notificationText(text)), [], text);
  };
  assert.equal(linksOf("see [notes](https://example.org/a)").length, 1);
  check("see [notes](https://example.org/a)", "see [notes] (https://example.org/a)");
  check('[a](file:///b "c") [d]((e)', '[a] (file:///b "c") [d] ((e)');
  check("[[a]](https://example.org)](https://example.org)", "[[a]] (https://example.org)] (https://example.org)");
  check("[a]\r\n(https://example.org)", "[a] (https://example.org)");
  check("values[0] (of 3)", "values[0] (of 3)");
});

test("a label has the icons of its own text only", () => {
  const check = (text: string, icons: string[]) => assert.deepEqual(iconsOf(text), icons, text);
  check("$(rocket) a", ["rocket"]);
  check(iconText`$(rocket) ${"$(bug) b $(sync~spin)"}`, ["rocket"]);
  check(iconText`${"a$"}(bug) ${"\\$(bug)"} ${"$$(bug)"}`, []);
  assert.equal(iconText`${"costs $5"} ${3}`, "costs $5 3");
  const window = { state: "$(bug)" as "ready", generation: 1, reconnected: false, stale: false, changes: [], sessions: [] };
  check(statusText({ ...EMPTY_OVERVIEW, link: { kind: "connected", version: "1", pid: 1 }, window })?.text ?? "", ["question"]);
});

test("a configuration of a session names no variable, at any depth", () => {
  assert.equal(configurationText("a ${file} $(b) $"), "a $ {file} $ (b) $ ");
  const plain = plainConfiguration({ name: "${file}", list: ["${file}", 1, null], inside: { port: 3, text: "${env:A}" } });
  assert.ok(!JSON.stringify(plain).includes("${"));
  assert.deepEqual([plain.list[1], plain.list[2], plain.inside.port], [1, null, 3]);
});

test("a line from outside is one line, hides nothing and has an end", () => {
  assert.equal(lineText("a\r\nb\tc"), "a b c");
  assert.equal(lineText("a\u202eb\u200bc\u001b[1m\ufeff"), "a\\u{202e}b\\u{200b}c\\u{1b}[1m\\u{feff}");
  assert.equal(lineText("Grüße, 日本語, 🎉"), "Grüße, 日本語, 🎉");
  assert.ok(lineText("x".repeat(1_000_000)).length <= MAX_CHARS + 1);
});

/** What shows text, or resolves variables in it, and the only files that may call it. */
const SHOWING: [RegExp, string[]][] = [
  [/\bshow(Information|Warning|Error)Message\b|\bwithProgress\b|\bwithScmProgress\b/, ["surface/messages.ts"]],
  [/\b(show|create)(QuickPick|InputBox)\b|\bsetStatusBarMessage\b/, ["surface/messages.ts"]],
  [/\bdebug\.startDebugging\b|\bProcessExecution\b|\bShellExecution\b|\bnew vscode\.Task\b/, ["surface/messages.ts"]],
  [/\bcreateStatusBarItem\b/, ["surface/statusItem.ts"]],
  [/\bnew vscode\.TreeItem\b|\bcreateTreeView\b|\bregisterTreeDataProvider\b/, ["surface/overviewTree.ts"]],
  // Not called at all: they render markup, or run a shell.
  [/\bnew vscode\.(MarkdownString|Hover|TerminalLink)\b|\bcreateTerminal\b|\bas IconText\b/, ["surface/plainText.ts"]],
];

function sources(): string[] {
  return readdirSync("src", { recursive: true, encoding: "utf8" }).filter((it) => it.endsWith(".ts")).map((it) => it.split(path.sep).join("/"));
}

test("VS Code's functions that show text are called where the text is made plain, and nowhere else", () => {
  assert.ok(sources().includes("surface/messages.ts"));
  for (const file of sources()) {
    const code = readFileSync(path.join("src", file), "utf8").replace(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");
    for (const [pattern, allowed] of SHOWING) {
      assert.ok(!pattern.test(code) || allowed.includes(file), `src/${file} uses ${pattern}: call src/surface instead`);
    }
    // Under another name a function would not be found.
    const renames = /=\s*vscode(\.(window|debug|tasks))?;|(?<!\* as vscode) from "vscode"/;
    assert.ok(!renames.test(code), `src/${file} gives functions of VS Code another name`);
  }
});
