/** The status bar item. */
import * as vscode from "vscode";
import type { Overview } from "../host/overview";
import { statusText } from "../views/statusText";
import { lineText } from "./plainText";

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("tether.status", vscode.StatusBarAlignment.Left, 10);

  constructor() {
    this.item.name = "Tether";
    this.item.command = "tether.overview.focus";
  }

  show(overview: Overview): void {
    const shown = statusText(overview);
    if (shown === undefined) {
      this.item.hide();
      return;
    }
    const lines = shown.tooltip.map(lineText);
    this.item.text = shown.text;
    // A string is shown as it is. A MarkdownString makes links of addresses, whatever is escaped in it.
    this.item.tooltip = lines.join("\n");
    this.item.backgroundColor =
      shown.tone === "normal" ? undefined : new vscode.ThemeColor(`statusBarItem.${shown.tone}Background`);
    this.item.accessibilityInformation = { label: [shown.text.replace(/\$\([^)]*\)/g, "").trim(), ...lines].join(". ") };
    this.item.show();
  }

  dispose(): void {
    this.item.dispose();
  }
}
