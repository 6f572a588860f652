/**
 * The extension in the VS Code where people work: connects to the folder's supervisor, offers the MCP server, shows the
 * state, and stops the server when the last debug window has closed.
 */
import { access } from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import { watchDebugWindows } from "../debug/debugWindows";
import { RemoteSessions } from "../debug/remoteSessions";
import { TetherDebugger } from "../debug/tetherDebugger";
import { WindowDebugger } from "../debug/windowDebugger";
import { McpServer } from "../mcp/mcpServer";
import type { DebugSessionStatus } from "../rpc/protocol";
import { isLive, isOpen } from "../rpc/states";
import type { SupervisorConnection } from "../rpc/supervisorConnection";
import { chooseOne, showInformation } from "../surface/messages";
import { OverviewTree } from "../surface/overviewTree";
import { StatusItem } from "../surface/statusItem";
import { TimelinePanel } from "../timeline/timelinePanel";
import { overviewNodes } from "../views/overviewNodes";
import { CloseWatcher } from "./closeWatcher";
import { findProgram } from "./findProgram";
import { FolderChoice } from "./folderChoice";
import { hostRequests } from "./hostRequests";
import { HostState } from "./hostState";
import { connectThroughProgram } from "./rpcProcess";
import { SupervisorLink } from "./supervisorLink";

export class TetherHost implements vscode.Disposable {
  readonly state: HostState;
  readonly folder: FolderChoice;
  readonly timelinePanel: TimelinePanel;
  private readonly mcp: McpServer;
  private readonly link: SupervisorLink;
  private readonly closeWatcher: CloseWatcher;
  private readonly remoteSessions: RemoteSessions;
  private readonly tree: OverviewTree;
  private readonly status = new StatusItem();
  private readonly windowDebugger: WindowDebugger;
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscriptions: vscode.Disposable[] = [];

  constructor(
    private readonly context: vscode.ExtensionContext,
    readonly log: vscode.LogOutputChannel,
  ) {
    const info = (line: string) => log.info(line);
    this.folder = new FolderChoice(context.workspaceState);
    this.windowDebugger = new WindowDebugger(() => this.folder.current, info);
    this.remoteSessions = new RemoteSessions(() => this.folder.current);
    this.mcp = new McpServer({
      extensionId: context.extension.id,
      version: this.version,
      resolve: () => this.resolve().catch((error: Error) => void info(`no MCP server: ${error.message}`)),
      log: info,
    });
    this.closeWatcher = new CloseWatcher({
      graceMs: () => setting("closeGraceMs", 3_000),
      stopServer: () => this.stopServerAfterClose(),
      log: info,
    });
    this.state = new HostState({
      onDidChange: () => this.show(),
      onWindow: (input) => {
        if (input.kind === "opened") {
          this.mcp.restore();
        }
        this.closeWatcher.handle(input);
      },
      log: info,
    });
    this.link = new SupervisorLink({
      open: () => this.openConnection(),
      hasWindow: () => this.hasWindow(),
      onState: (state) => this.state.setLink(state),
      onConnected: (connection) => void this.state.follow(connection),
      log: info,
    });
    this.tree = new OverviewTree(() => overviewNodes(this.state.overview, { folder: this.folder.path ?? "", now: Date.now() }));
    this.tree.onDidBecomeVisible(() => void this.state.refreshBreakpoints());
    this.timelinePanel = new TimelinePanel({
      extensionUri: context.extensionUri,
      timeline: () => this.state.timeline,
      onDidChange: this.changed.event,
      exportTrace: () => void vscode.commands.executeCommand("tether.exportTimeline"),
    });
    this.subscriptions.push(
      new TetherDebugger({
        resolve: () => this.resolve(),
        remoteSessions: this.remoteSessions,
        liveSessions: () => this.liveSessions(),
        pickSession: () => this.pickSession(),
      }),
      watchDebugWindows((input) => {
        if (input.kind === "opened") {
          this.mcp.restore();
        }
        this.closeWatcher.handle(input);
      }),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.restart()),
      vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("tether.path") && this.restart()),
      this.folder.onDidChange(() => this.restart()),
      this.watchSessionFile(),
    );
  }

  /** Shows the state, and connects where there is a reason to. */
  async start(): Promise<void> {
    this.mcp.refresh();
    const folder = this.folder.path;
    if (folder === undefined) {
      return this.state.setLink({ kind: "noFolder" });
    }
    if (!vscode.workspace.isTrusted) {
      return this.state.setLink({ kind: "untrusted" });
    }
    this.state.setLink({ kind: "idle" });
    const when = setting<string>("connect", "auto");
    const isUsed = async () => (await exists(path.join(folder, "devtools.toml"))) || (await this.hasWindow());
    if (when === "always" || (when === "auto" && (await isUsed()))) {
      // The failure is shown as the state.
      await this.connect().catch(() => undefined);
    }
  }

  /** The connection; starts the supervisor if none runs. Where none may be, the shown state stays as it is. */
  async connect(): Promise<SupervisorConnection> {
    this.requireFolder();
    return this.link.connect();
  }

  /** The program and the folder. Rejects with what is missing. */
  async resolve(): Promise<{ program: string; folder: string; workspaceFolder: vscode.WorkspaceFolder }> {
    const workspaceFolder = this.requireFolder();
    const found = await findProgram({
      setting: setting("path", ""),
      extensionFolder: this.context.extensionPath,
      searchPath: process.env["PATH"] ?? "",
      platform: process.platform,
    });
    return { program: found.path, folder: workspaceFolder.uri.fsPath, workspaceFolder };
  }

  /** The folder, which is open and trusted. Throws otherwise. */
  private requireFolder(): vscode.WorkspaceFolder {
    const folder = this.folder.current;
    if (folder === undefined) {
      throw new Error("no folder is open");
    }
    if (!vscode.workspace.isTrusted) {
      throw new Error("this folder is not trusted: nothing of it is run");
    }
    return folder;
  }

  liveSessions(): DebugSessionStatus[] {
    return this.state.overview.sessions.filter((it) => isLive(it.state));
  }

  /** Has the user choose a live session. Undefined: they chose none. */
  async pickSession(): Promise<string | undefined> {
    await this.connect();
    const sessions = this.liveSessions();
    if (sessions.length === 0) {
      showInformation("No debug session is running. An agent starts one with debug_launch, you with `tether debug launch`.");
      return undefined;
    }
    const items = sessions.map((it) => ({ label: `${it.sessionId} ${it.name}`, description: `${it.adapter}, ${it.state.toLowerCase()}`, id: it.sessionId }));
    return chooseOne("Join a debug session", items);
  }

  dispose(): void {
    for (const it of [...this.subscriptions, this.closeWatcher, this.link, this.state, this.remoteSessions, this.mcp, this.tree, this.status, this.timelinePanel, this.folder, this.changed]) {
      it.dispose();
    }
  }

  private get version(): string {
    return this.context.extension.packageJSON.version;
  }

  private restart(): void {
    this.link.disconnect();
    void this.start();
  }

  private async openConnection(): Promise<SupervisorConnection> {
    const { program, folder, workspaceFolder } = await this.resolve();
    const refreshOnSave = setting("refreshOnSave", false);
    const capabilities = { didChangeState: true, startDebugSession: true, terminateDebugSession: true, host: true, refreshOnSave };
    const handlers = {
      ...this.remoteSessions.handlers(),
      ...hostRequests({ folder: () => workspaceFolder, stopServer: (reason) => this.stopServerOnRequest(reason), log: (line) => this.log.info(line) }),
    };
    // The version is the program's: one of the extension's would make a supervisor of another version exit.
    const client = { name: "vscode", role: "host" as const, capabilities };
    return connectThroughProgram(program, folder, client, handlers, (line) => this.log.info(line));
  }

  private async stopServerAfterClose(): Promise<void> {
    if (!setting("stopServerOnClose", true)) {
      this.log.info("the MCP server stays: tether.stopServerOnClose is off");
      return;
    }
    this.log.info(`the MCP server: ${await this.mcp.stop()}`);
  }

  /** The supervisor's window is gone. Another debug window, or a grace that has begun, decides instead. */
  private async stopServerOnRequest(reason: string): Promise<{ stopped: boolean; outcome: string }> {
    this.log.info(`the supervisor wants the MCP server stopped: ${reason}`);
    if (this.closeWatcher.isWaiting) {
      return { stopped: false, outcome: "it is stopped when the grace has passed, unless another debug window opens" };
    }
    if (this.closeWatcher.openCount > 0) {
      return { stopped: false, outcome: "another debug window is open" };
    }
    if (!setting("stopServerOnClose", true)) {
      return { stopped: false, outcome: "tether.stopServerOnClose is off" };
    }
    const outcome = await this.mcp.stop();
    return { stopped: outcome !== "leftRunning", outcome };
  }

  private async hasWindow(): Promise<boolean> {
    return this.folder.path !== undefined && exists(path.join(this.folder.path, ".devtools", "session.json"));
  }

  /** A window that somebody else starts: connect to its supervisor, which runs. */
  private watchSessionFile(): vscode.Disposable {
    const watcher = vscode.workspace.createFileSystemWatcher("**/.devtools/session.json", false, true, true);
    watcher.onDidCreate((uri) => {
      const isOurs = this.folder.path !== undefined && uri.fsPath === path.join(this.folder.path, ".devtools", "session.json");
      if (isOurs && vscode.workspace.isTrusted && setting<string>("connect", "auto") !== "onDemand") {
        this.connect().catch(() => undefined);
      }
    });
    return watcher;
  }

  private show(): void {
    const { overview } = this.state;
    this.status.show(overview);
    this.tree.refresh();
    this.changed.fire();
    this.windowDebugger.follow(overview.window);
    const isWindowOpen = overview.window !== undefined && isOpen(overview.window.state);
    void vscode.commands.executeCommand("setContext", "tether.state", overview.link.kind);
    void vscode.commands.executeCommand("setContext", "tether.windowOpen", isWindowOpen);
  }
}

const setting = <T>(name: string, fallback: T): T => vscode.workspace.getConfiguration("tether").get<T>(name, fallback);

const exists = (file: string): Promise<boolean> => access(file).then(() => true, () => false);
