/** The workspace folder that is tethered: the only one, or the one that the user has chosen. */
import * as vscode from "vscode";

const KEY = "tether.folder";

export class FolderChoice implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly subscription: vscode.Disposable;
  private last: string | undefined;

  constructor(private readonly memory: vscode.Memento) {
    this.last = this.path;
    this.subscription = vscode.workspace.onDidChangeWorkspaceFolders(() => this.announce());
  }

  get current(): vscode.WorkspaceFolder | undefined {
    const folders = (vscode.workspace.workspaceFolders ?? []).filter((it) => it.uri.scheme === "file");
    return folders.find((it) => it.uri.toString() === this.memory.get<string>(KEY)) ?? folders[0];
  }

  get path(): string | undefined {
    return this.current?.uri.fsPath;
  }

  async choose(): Promise<void> {
    const folder = await vscode.window.showWorkspaceFolderPick({ placeHolder: "The folder whose window and sessions are shown" });
    if (folder !== undefined) {
      await this.memory.update(KEY, folder.uri.toString());
      this.announce();
    }
  }

  dispose(): void {
    this.subscription.dispose();
    this.changed.dispose();
  }

  private announce(): void {
    if (this.path !== this.last) {
      this.last = this.path;
      this.changed.fire();
    }
  }
}
