/**
 * The extension that the supervisor brings into its own windows: the window bridge alone. The whole extension, where a window
 * has that, takes its place.
 */
import * as vscode from "vscode";
import { startWindowBridge } from "./windowBridge";

export function activate(context: vscode.ExtensionContext): void {
  const launchId = process.env.DEVTETHER_LAUNCH_ID;
  if (launchId !== undefined) {
    const log = vscode.window.createOutputChannel("devtether", { log: true });
    context.subscriptions.push(log, startWindowBridge(context, launchId, log));
  }
}
