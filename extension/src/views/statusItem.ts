/** The status bar item. */
import * as vscode from "vscode";
import type { Overview } from "../host/overview";
import { statusText } from "./statusText";

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
    const tooltip = new vscode.MarkdownString();
    shown.tooltip.forEach((line, at) => tooltip.appendText(at === 0 ? line : `\n${line}`));
    this.item.text = shown.text;
    this.item.tooltip = tooltip;
    this.item.backgroundColor =
      shown.tone === "normal" ? undefined : new vscode.ThemeColor(`statusBarItem.${shown.tone}Background`);
    this.item.accessibilityInformation = { label: [shown.text.replace(/\$\([^)]*\)/g, "").trim(), ...shown.tooltip].join(". ") };
    this.item.show();
  }

  dispose(): void {
    this.item.dispose();
  }
}
