/** The MCP server as VS Code knows it: its definition, and how it is stopped. */
import * as vscode from "vscode";
import { findServerProcesses, waitForNoProcess } from "./serverProcesses";
import { stopServer, type StopOutcome } from "./stopServer";

const PROVIDER_ID = "tether";
/** How long a server may take to end: VS Code closes its stdin first. */
const STOP_TIMEOUT_MS = 5_000;

export interface McpServerPorts {
  extensionId: string;
  version: string;
  /** The program and the folder; undefined: there is no server to offer. */
  resolve(): Promise<{ program: string; folder: string } | undefined>;
  log(line: string): void;
}

export class McpServer implements vscode.Disposable, vscode.McpServerDefinitionProvider<vscode.McpStdioServerDefinition> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeMcpServerDefinitions = this.changed.event;
  private readonly registration: vscode.Disposable;
  /** The command line of the definition that was given last. */
  private command: readonly string[] = [];
  private isWithdrawn = false;
  private stopping: Promise<StopOutcome> | undefined;

  constructor(private readonly ports: McpServerPorts) {
    this.registration = vscode.lm.registerMcpServerDefinitionProvider(PROVIDER_ID, this);
  }

  async provideMcpServerDefinitions(): Promise<vscode.McpStdioServerDefinition[]> {
    if (this.isWithdrawn) {
      return [];
    }
    const found = await this.ports.resolve();
    if (found === undefined) {
      return [];
    }
    const args = ["--workspace", found.folder, "mcp"];
    this.command = [found.program, ...args];
    const definition = new vscode.McpStdioServerDefinition(LABEL, found.program, args, {}, this.ports.version);
    definition.cwd = vscode.Uri.file(found.folder);
    this.ports.log(`MCP server ${this.serverIds()[0]}: ${this.command.join(" ")}`);
    return [definition];
  }

  /** Has VS Code ask for the definition again. */
  refresh(): void {
    this.changed.fire();
  }

  /** Offers the server again, if it was withdrawn. */
  restore(): void {
    if (this.isWithdrawn) {
      this.isWithdrawn = false;
      this.refresh();
    }
  }

  /** Stops VS Code's server of our definition. Never rejects; a second call joins the first. */
  stop(): Promise<StopOutcome> {
    this.stopping ??= this.runStop().finally(() => {
      this.stopping = undefined;
    });
    return this.stopping;
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }

  private runStop(): Promise<StopOutcome> {
    const command = this.command;
    const findProcesses = () => findServerProcesses(command);
    return stopServer({
      serverIds: this.serverIds(),
      stopById: async (id) => {
        await vscode.commands.executeCommand("workbench.mcp.stopServer", id);
      },
      withdrawDefinition: async () => {
        this.isWithdrawn = true;
        this.refresh();
      },
      findProcesses,
      waitUntilGone: () => waitForNoProcess(findProcesses, STOP_TIMEOUT_MS),
      terminateProcess: (pid) => {
        process.kill(pid, "SIGTERM");
      },
      log: this.ports.log,
    });
  }

  /** VS Code makes the id from the extension's, which it lower-cases, and the label. */
  private serverIds(): string[] {
    const { extensionId } = this.ports;
    return [...new Set([`${extensionId.toLowerCase()}/${LABEL}`, `${extensionId}/${LABEL}`])];
  }
}

const LABEL = "tether";
