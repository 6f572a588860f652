/** The debug type `tether`: launches a session in the supervisor, or joins one, through `tether dap`. */
import * as vscode from "vscode";
import type { DebugSessionStatus } from "../rpc/protocol";
import { configurationText, notificationText, plainConfiguration } from "../surface/plainText";
import type { RemoteSessions } from "./remoteSessions";

export const DEBUG_TYPE = "tether";

export interface TetherDebuggerPorts {
  /** The program and the folder. Rejects with what is missing. */
  resolve(): Promise<{ program: string; folder: string }>;
  remoteSessions: RemoteSessions;
  liveSessions(): readonly DebugSessionStatus[];
  /** Connects first, so that the sessions are known. Undefined: the user has chosen none. */
  pickSession(): Promise<string | undefined>;
}

export class TetherDebugger implements vscode.DebugAdapterDescriptorFactory, vscode.DebugConfigurationProvider, vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly ports: TetherDebuggerPorts) {
    const dynamic: vscode.DebugConfigurationProvider = { provideDebugConfigurations: () => this.joinConfigurations() };
    this.subscriptions = [
      vscode.debug.registerDebugAdapterDescriptorFactory(DEBUG_TYPE, this),
      vscode.debug.registerDebugConfigurationProvider(DEBUG_TYPE, this),
      vscode.debug.registerDebugConfigurationProvider(DEBUG_TYPE, dynamic, vscode.DebugConfigurationProviderTriggerKind.Dynamic),
    ];
  }

  async createDebugAdapterDescriptor(session: vscode.DebugSession): Promise<vscode.DebugAdapterDescriptor> {
    const address = this.ports.remoteSessions.addressOf(session.configuration);
    if (address !== undefined) {
      return new vscode.DebugAdapterServer(address.port, address.host);
    }
    const { program, folder } = await this.ports.resolve();
    return new vscode.DebugAdapterExecutable(program, ["--workspace", folder, "dap"], { cwd: folder });
  }

  async resolveDebugConfiguration(
    _folder: vscode.WorkspaceFolder | undefined,
    configuration: vscode.DebugConfiguration,
  ): Promise<vscode.DebugConfiguration | undefined> {
    if (!configuration.type && !configuration.request) {
      // VS Code resolves variables in what is returned: a path may look like one, so the file is named by its variable.
      const isFile = vscode.window.activeTextEditor?.document.uri.scheme === "file";
      return isFile ? { type: DEBUG_TYPE, request: "launch", name: "Tether: debug this file", program: "${file}" } : undefined;
    }
    if (configuration.request === "attach" && this.ports.remoteSessions.addressOf(configuration) === undefined && !configuration["sessionId"]) {
      const sessionId = await this.ports.pickSession();
      return sessionId === undefined ? undefined : { ...configuration, sessionId: configurationText(sessionId) };
    }
    if (configuration.request === "launch" && !configuration["program"] && !configuration["config"]) {
      throw new Error(notificationText(`the configuration "${configuration.name}" needs a program, or a config of launch.json`));
    }
    return configuration;
  }

  dispose(): void {
    this.subscriptions.forEach((it) => it.dispose());
  }

  /** Offered in the list of the Run view, without a launch.json. */
  private joinConfigurations(): vscode.DebugConfiguration[] {
    return this.ports.liveSessions().map(({ sessionId, name }) =>
      plainConfiguration({ type: DEBUG_TYPE, request: "attach", name: `Tether: join ${sessionId} ${name}`, sessionId }),
    );
  }
}
