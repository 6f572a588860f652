/** Attaches VS Code's own JavaScript debugger to the window's extension host, once a launch. A failure is only logged. */
import * as vscode from "vscode";
import type { WindowStatus } from "../rpc/protocol";
import { startDebugging } from "../surface/messages";

export class WindowDebugger {
  private attached: string | undefined;

  constructor(
    private readonly folder: () => vscode.WorkspaceFolder | undefined,
    private readonly log: (line: string) => void,
  ) {}

  follow(window: WindowStatus | undefined): void {
    const port = window?.inspectorPort;
    const key = `${window?.launchId} ${port}`;
    const isWanted = vscode.workspace.getConfiguration("tether").get<boolean>("attachDebugger", false);
    if (!isWanted || window?.state !== "ready" || port === undefined || key === this.attached) {
      return;
    }
    this.attached = key;
    const name = `Window, launch ${window.generation}`;
    const configuration = { type: "node", request: "attach", name, address: "127.0.0.1", port, continueOnAttach: true };
    void startDebugging(this.folder(), configuration, { suppressDebugView: true }).then(
      (isStarted) => this.log(`${isStarted ? "attached" : "did not attach"} VS Code's debugger to the inspector port ${port}`),
      (error: Error) => this.log(`cannot attach VS Code's debugger to the inspector port ${port}: ${error.message}`),
    );
  }
}
