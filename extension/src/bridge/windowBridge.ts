/** The extension inside a window of the supervisor: runs VS Code's commands for it, and reads output channels. */
import * as path from "node:path";
import * as vscode from "vscode";
import { BridgeLink } from "./bridgeLink";
import { reviveArguments, toJson } from "./commandValues";
import { DEFAULT_LIMIT, findChannel, listOutputFiles, readOutput } from "./outputFiles";

/** These end the extension host, and with it the connection: they are answered first. */
const ENDING_COMMANDS = new Set(["workbench.action.restartExtensionHost", "workbench.action.reloadWindow", "workbench.action.closeWindow", "workbench.action.quit"]);
const MAX_EDITORS = 200;

/** Starts the bridge of the window with this launch id. */
export function startWindowBridge(context: vscode.ExtensionContext, launchId: string, log: vscode.LogOutputChannel): BridgeLink {
  const version: string = context.extension.packageJSON.version;
  const link = new BridgeLink({
    launchId,
    folders: searchFolders(),
    client: { name: "vscode-window", version, role: "windowBridge", capabilities: { keepsSupervisor: true }, launchId },
    handlers: {
      "window/command": (params) => runCommand(params),
      "window/output": (params) => readOutputOf(path.dirname(context.logUri.fsPath), params),
    },
    log: (line) => log.info(`window bridge: ${line}`),
  });
  link.start();
  return link;
}

/** The workspace of the window's supervisor holds the opened folder, or the extension under development. */
function searchFolders(): string[] {
  const opened = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri).filter((uri) => uri.scheme === "file");
  const builtin = vscode.env.appRoot;
  const extensions = vscode.extensions.all.map((it) => it.extensionPath).filter((it) => !it.startsWith(builtin));
  return [...new Set([...opened.map((uri) => uri.fsPath), ...extensions])];
}

/** `window/command {command, args}` → `{value}` */
async function runCommand(params: unknown): Promise<{ value: unknown }> {
  const { command, args } = (params ?? {}) as { command?: unknown; args?: unknown };
  if (typeof command !== "string") {
    throw new Error("`command` must be the id of a command");
  }
  const given = args === undefined || args === null ? [] : Array.isArray(args) ? args : [args];
  const revived = given.map((it) => reviveArguments(it, (text) => vscode.Uri.parse(text, true)));
  if (ENDING_COMMANDS.has(command)) {
    setTimeout(() => void vscode.commands.executeCommand(command, ...revived), 50);
    return { value: null };
  }
  const known = await vscode.commands.getCommands();
  // An extension that is not active yet registers its commands when one of them is run.
  if (!known.includes(command) && !isContributed(command)) {
    const [, last = command] = /([^.]+)$/.exec(command) ?? [];
    const similar = known.filter((it) => it.toLowerCase().includes(last.toLowerCase())).slice(0, 5);
    throw new Error(`no command ${command} in the window${similar.length > 0 ? `; similar: ${similar.join(", ")}` : ""}`);
  }
  return { value: toJson(await vscode.commands.executeCommand(command, ...revived)) };
}

/** Whether an installed extension lists the command in its manifest. */
function isContributed(command: string): boolean {
  return vscode.extensions.all.some((it) => {
    const commands: unknown = it.packageJSON?.contributes?.commands;
    return Array.isArray(commands) && commands.some((contributed: { command?: unknown } | null) => contributed?.command === command);
  });
}

/** `window/output {channel?, since?, limit?}` → the channel's text; without a channel, all channels and the open editors. */
async function readOutputOf(logFolder: string, params: unknown): Promise<object> {
  const { channel, since, limit } = (params ?? {}) as { channel?: unknown; since?: unknown; limit?: unknown };
  const files = await listOutputFiles(logFolder);
  if (typeof channel !== "string") {
    const channels = files.map((it) => ({ name: it.channel, bytes: it.bytes, modifiedAt: it.modifiedAt }));
    return { channels, editors: openEditors() };
  }
  const found = findChannel(files, channel);
  if (found === undefined) {
    throw new Error(`no output channel ${channel} in the window; there are: ${files.map((it) => it.channel).slice(0, 20).join(", ")}`);
  }
  return readOutput(found, typeof since === "number" ? since : undefined, typeof limit === "number" ? limit : DEFAULT_LIMIT);
}

function openEditors(): object[] {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
  return tabs.slice(0, MAX_EDITORS).map((tab) => {
    const input = tab.input as { uri?: vscode.Uri; modified?: vscode.Uri } | undefined;
    const uri = input?.uri ?? input?.modified;
    return { label: tab.label, isActive: tab.isActive, isDirty: tab.isDirty, ...(uri !== undefined && { uri: uri.toString() }) };
  });
}
