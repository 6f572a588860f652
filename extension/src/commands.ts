/** The commands of the palette and of the view. */
import * as vscode from "vscode";
import { DEBUG_TYPE } from "./debug/tetherDebugger";
import type { TetherHost } from "./host/tetherHost";
import type { WindowStatus } from "./rpc/protocol";
import { toSupervisorError } from "./rpc/supervisorError";
import { toChromeTrace } from "./timeline/chromeTrace";
import { runInTerminal, showError, showInformation, showProgress, startDebugging } from "./surface/messages";
import type { OverviewNode } from "./views/overviewNodes";

const REVIEW = "Review Commands";
const SHOW_LOG = "Show Log";

export function registerCommands(host: TetherHost): vscode.Disposable {
  const commands: Record<string, (node?: OverviewNode) => unknown> = {
    startWindow: () => runWindowOperation(host, "window/start", "Starting the window"),
    restartWindow: () => runWindowOperation(host, "window/restart", "Building and restarting the window"),
    stopWindow: () => runWindowOperation(host, "window/stop", "Stopping the window"),
    joinSession: (node) => joinSession(host, node?.sessionId),
    showTimeline: () => host.timelinePanel.show(),
    exportTimeline: () => exportTimeline(host),
    runDoctor: () => runTether(host, "Doctor", ["doctor"]),
    reviewCommands: () => runTether(host, "Review Commands", ["trust"]),
    selectFolder: () => host.folder.choose(),
    connect: () => host.connect(),
    showLog: () => host.log.show(),
  };
  const registered = Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(`tether.${name}`, async (node?: OverviewNode) => {
      try {
        return await run(node);
      } catch (error) {
        await reportError(host, error);
        return undefined;
      }
    }),
  );
  return vscode.Disposable.from(...registered);
}

/** Runs it with its progress shown; cancelling it there ends the build. Returns the window's status. */
async function runWindowOperation(host: TetherHost, method: string, title: string): Promise<WindowStatus | undefined> {
  const connection = await host.connect();
  return showProgress(`Tether: ${title}`, async (report, token) => {
    const listener = connection.onProgress(report);
    try {
      return await host.state.requestWindow(connection, method, { timeoutMs: "none", token });
    } catch (error) {
      if (token.isCancellationRequested) {
        return undefined;
      }
      throw error;
    } finally {
      listener.dispose();
    }
  });
}

async function joinSession(host: TetherHost, given: string | undefined): Promise<void> {
  const sessionId = given ?? (await host.pickSession());
  if (sessionId !== undefined) {
    const configuration = { type: DEBUG_TYPE, request: "attach", name: `Tether: ${sessionId}`, sessionId };
    await startDebugging(host.folder.current, configuration);
  }
}

async function exportTimeline(host: TetherHost): Promise<void> {
  const folder = host.folder.current;
  const name = `tether-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.trace.json`;
  const defaultUri = folder && vscode.Uri.joinPath(folder.uri, name);
  const uri = await vscode.window.showSaveDialog({ ...(defaultUri && { defaultUri }), filters: { "Chrome trace": ["json"] } });
  if (uri !== undefined) {
    const trace = toChromeTrace(host.state.timeline, folder?.name ?? "", Date.now());
    await vscode.workspace.fs.writeFile(uri, Buffer.from(JSON.stringify(trace)));
    showInformation(`Saved ${trace.traceEvents.length} events. Open the file in Perfetto (ui.perfetto.dev) or chrome://tracing.`);
  }
}

/** `tether` with these arguments as a task, so that its output stays on the screen, and it can ask. */
async function runTether(host: TetherHost, name: string, args: string[]): Promise<void> {
  const { program, workspaceFolder } = await host.resolve();
  await runInTerminal(workspaceFolder, name, program, args);
}

async function reportError(host: TetherHost, cause: unknown): Promise<void> {
  const error = toSupervisorError(cause);
  host.log.error([error.message, ...error.hints.map((hint) => `  hint: ${hint}`)].join("\n"));
  if (error.kind === "cancelled") {
    return;
  }
  const buttons = error.kind === "notTrusted" ? [REVIEW, SHOW_LOG] : [SHOW_LOG];
  const hint = error.hints[0] === undefined || error.kind === "notTrusted" ? "" : ` Hint: ${error.hints[0]}`;
  const chosen = await showError(`Tether: ${error.message}.${hint}`, ...buttons);
  if (chosen === REVIEW) {
    await vscode.commands.executeCommand("tether.reviewCommands");
  } else if (chosen === SHOW_LOG) {
    host.log.show();
  }
}
