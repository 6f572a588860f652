/** The timeline's webview: strict content security policy, nothing from outside, scripts only by nonce. */
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { durationText } from "./timeScale";
import type { Timeline } from "./timeline";

export interface TimelinePanelPorts {
  extensionUri: vscode.Uri;
  timeline(): Timeline;
  onDidChange: vscode.Event<void>;
  exportTrace(): void;
}

const VIEW_TYPE = "tether.timeline";
/** Changes that come together are sent together. */
const SEND_PAUSE_MS = 100;

export class TimelinePanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private timer: NodeJS.Timeout | undefined;
  private readonly subscription: vscode.Disposable;

  constructor(private readonly ports: TimelinePanelPorts) {
    this.subscription = ports.onDidChange(() => this.scheduleSend());
  }

  /** Shows the one panel. */
  show(): void {
    if (this.panel !== undefined) {
      this.panel.reveal();
      return;
    }
    const roots = ["out", "media"].map((folder) => vscode.Uri.joinPath(this.ports.extensionUri, folder));
    const options = { enableScripts: true, localResourceRoots: roots };
    const panel = vscode.window.createWebviewPanel(VIEW_TYPE, "Tether Timeline", vscode.ViewColumn.Active, options);
    const icon = (theme: string) => vscode.Uri.joinPath(this.ports.extensionUri, "media", `tether-${theme}.svg`);
    panel.iconPath = { light: icon("light"), dark: icon("dark") };
    panel.webview.onDidReceiveMessage((message: { type?: unknown }) => {
      if (message?.type === "ready") {
        this.send();
      } else if (message?.type === "export") {
        this.ports.exportTrace();
      }
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    panel.webview.html = this.page(panel.webview);
    this.panel = panel;
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscription.dispose();
    this.panel?.dispose();
  }

  private scheduleSend(): void {
    if (this.panel !== undefined && this.timer === undefined) {
      this.timer = setTimeout(() => this.send(), SEND_PAUSE_MS);
    }
  }

  private send(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { entries, dropped } = this.ports.timeline();
    void this.panel?.webview.postMessage({ type: "timeline", entries, summary: summarize(entries, dropped) });
  }

  private page(webview: vscode.Webview): string {
    const nonce = randomBytes(16).toString("base64url");
    const uri = (...path: string[]) => webview.asWebviewUri(vscode.Uri.joinPath(this.ports.extensionUri, ...path));
    // Styles in attributes, which place the tooltip, are set by script and need no exception.
    const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<link rel="stylesheet" href="${uri("media", "timeline.css")}">
<title>Tether Timeline</title>
</head>
<body>
<header>
  <h1>Timeline</h1><span id="summary"></span>
  <label><input type="checkbox" id="follow"> Follow</label>
  <button id="zoomIn" title="Zoom in (wheel)">+</button>
  <button id="zoomOut" title="Zoom out (wheel)">−</button>
  <button id="fit" title="Show everything">Fit</button>
  <button id="export" title="Save as Chrome trace JSON, for Perfetto">Export…</button>
</header>
<main><div id="labels"></div><svg id="chart" height="60"></svg></main>
<div id="empty">Nothing has happened yet. Start the window, and its launches, builds and edits appear here.</div>
<div id="tooltip" role="tooltip" hidden></div>
<script nonce="${nonce}" src="${uri("out", "timelinePage.js")}"></script>
</body>
</html>`;
  }
}

function summarize(entries: Timeline["entries"], dropped: number): string {
  if (entries.length === 0) {
    return "";
  }
  const count = (matches: (name: string, lane: string) => boolean) => entries.filter((it) => matches(it.name, it.lane)).length;
  const of = (n: number, one: string) => `${n} ${one}${n === 1 ? "" : "s"}`;
  const parts = [
    of(count((name) => name === "launch"), "launch").replace("launchs", "launches"),
    of(count((_, lane) => lane === "Builds"), "build"),
    of(count((_, lane) => lane === "Edits"), "edit"),
    `over ${durationText(Date.now() - Math.min(...entries.map((it) => it.start)))}`,
  ];
  return parts.join(" · ") + (dropped > 0 ? ` · ${dropped} older entries dropped` : "");
}
