/**
 * Wiring only. In a window that the supervisor has launched this extension is the window bridge, elsewhere the host.
 */
import * as vscode from "vscode";
import { startWindowBridge } from "./bridge/windowBridge";
import { registerCommands } from "./commands";
import { TetherHost } from "./host/tetherHost";

/** The supervisor gives it to every process of a window. */
const LAUNCH_ID = "DEVTETHER_LAUNCH_ID";

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("devtether", { log: true });
  context.subscriptions.push(log);
  const launchId = process.env[LAUNCH_ID];
  await vscode.commands.executeCommand("setContext", "tether.isBridge", launchId !== undefined);
  if (launchId !== undefined) {
    context.subscriptions.push(startWindowBridge(context, launchId, log));
    return;
  }
  const host = new TetherHost(context, log);
  context.subscriptions.push(host, registerCommands(host));
  void host.start();
}
