/** Tells the close watch of the debug windows that VS Code itself opens (F5 on an extension). */
import * as vscode from "vscode";
import type { CloseWatchInput } from "../host/closeWatch";

const WINDOW_TYPES = ["extensionHost", "pwa-extensionHost"];

export function watchDebugWindows(handle: (input: CloseWatchInput) => void): vscode.Disposable {
  const isWindow = (session: vscode.DebugSession) => WINDOW_TYPES.includes(session.type);
  const open = (session: vscode.DebugSession | undefined) => session && isWindow(session) && handle({ kind: "opened", id: idOf(session) });
  // One that runs already when this extension is activated.
  open(vscode.debug.activeDebugSession);
  return vscode.Disposable.from(
    vscode.debug.onDidStartDebugSession(open),
    vscode.debug.onDidTerminateDebugSession((session) => isWindow(session) && handle({ kind: "closed", id: idOf(session) })),
  );
}

const idOf = (session: vscode.DebugSession): string => `${session.type} ${session.id}`;
