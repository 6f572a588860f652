/** The tree view "Overview". */
import * as vscode from "vscode";
import type { OverviewNode } from "../views/overviewNodes";
import { lineText } from "./plainText";

/** "12 s ago" grows old. */
const REFRESH_MS = 10_000;

export class OverviewTree implements vscode.TreeDataProvider<OverviewNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<OverviewNode>;
  private readonly timer: NodeJS.Timeout;

  constructor(private readonly nodes: () => OverviewNode[]) {
    this.view = vscode.window.createTreeView("tether.overview", { treeDataProvider: this });
    this.timer = setInterval(() => this.view.visible && this.refresh(), REFRESH_MS);
  }

  onDidBecomeVisible(listener: () => void): void {
    this.view.onDidChangeVisibility(({ visible }) => visible && listener());
  }

  refresh(): void {
    this.changed.fire();
  }

  getChildren(node?: OverviewNode): OverviewNode[] {
    return node === undefined ? this.nodes() : (node.children ?? []);
  }

  getTreeItem(node: OverviewNode): vscode.TreeItem {
    const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const hasChildren = (node.children?.length ?? 0) > 0;
    const isTop = ["window", "sessions", "breakpoints"].includes(node.id) || node.kind === "session";
    const item = new vscode.TreeItem(lineText(node.label), !hasChildren ? None : isTop ? Expanded : Collapsed);
    // VS Code keeps how a node was shown: what had no children would stay collapsed when it gets some.
    item.id = hasChildren ? node.id : `${node.id}:leaf`;
    if (node.description !== undefined) {
      item.description = lineText(node.description);
    }
    if (node.tooltip !== undefined) {
      // A string, which VS Code shows as it is.
      item.tooltip = node.tooltip.map(lineText).join("\n");
    }
    if (node.icon !== undefined) {
      item.iconPath = new vscode.ThemeIcon(node.icon, node.colour === undefined ? undefined : new vscode.ThemeColor(node.colour));
    }
    if (node.kind !== undefined) {
      item.contextValue = node.kind;
    }
    if (node.open !== undefined) {
      const { file, line } = node.open;
      const at = new vscode.Position(Math.max(0, line - 1), 0);
      item.command = {
        command: "vscode.open",
        title: "Open",
        arguments: [vscode.Uri.file(file), { selection: new vscode.Range(at, at) } satisfies vscode.TextDocumentShowOptions],
      };
    }
    if (node.run !== undefined) {
      item.command = { command: node.run, title: "Connect" };
    }
    return item;
  }

  dispose(): void {
    clearInterval(this.timer);
    this.view.dispose();
    this.changed.dispose();
  }
}
