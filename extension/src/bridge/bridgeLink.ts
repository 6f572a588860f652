/**
 * Keeps the window bridge connected: finds the session file of this window, connects to its supervisor, and connects again
 * when the file changes, since another supervisor has then taken over. Knows nothing of VS Code.
 */
import { watch, type FSWatcher } from "node:fs";
import { connect } from "node:net";
import * as path from "node:path";
import type { ConnectingClient } from "../rpc/supervisorConnection";
import { SupervisorConnection, type RequestHandlers } from "../rpc/supervisorConnection";
import { SESSION_FILE, candidateFolders, checkSocket, readSession, type BridgeAddress } from "./sessionFile";

export interface BridgeLinkPorts {
  /** The launch id in the environment of this window. */
  launchId: string;
  /** Where the session file may be: workspace folders, folders of extensions. */
  folders: readonly string[];
  client: ConnectingClient;
  handlers: RequestHandlers;
  log(line: string): void;
}

/** A change of the file is looked at once it has been quiet for so long. */
const SETTLE_MS = 50;
/** A supervisor that was just started may not listen yet. */
const RETRY_MS = 2_000;

export class BridgeLink {
  private connection: SupervisorConnection | undefined;
  private address: BridgeAddress | undefined;
  private readonly watchers = new Map<string, FSWatcher>();
  private timer: NodeJS.Timeout | undefined;
  private isDisposed = false;
  private isUpdating = false;
  private isOutdated = false;

  constructor(private readonly ports: BridgeLinkPorts) {}

  start(): void {
    this.scheduleUpdate(0);
  }

  get isConnected(): boolean {
    return this.connection !== undefined;
  }

  dispose(): void {
    this.isDisposed = true;
    clearTimeout(this.timer);
    this.watchers.forEach((watcher) => watcher.close());
    this.connection?.dispose();
  }

  private scheduleUpdate(ms: number): void {
    if (!this.isDisposed) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.update(), ms);
    }
  }

  /** One at a time; what changes meanwhile is looked at afterwards. */
  private async update(): Promise<void> {
    if (this.isUpdating) {
      this.isOutdated = true;
      return;
    }
    this.isUpdating = true;
    do {
      this.isOutdated = false;
      await this.connectToPresentSupervisor();
    } while (this.isOutdated && !this.isDisposed);
    this.isUpdating = false;
  }

  private async connectToPresentSupervisor(): Promise<void> {
    const address = await this.findAddress();
    const isSame = address?.socket === this.address?.socket && address?.persistedAt === this.address?.persistedAt;
    if (address === undefined || this.isDisposed || (isSame && this.connection !== undefined)) {
      return;
    }
    const before = this.connection;
    this.connection = undefined;
    before?.dispose();
    try {
      const connection = await this.open(address);
      if (this.isDisposed) {
        connection.dispose();
        return;
      }
      this.address = address;
      this.connection = connection;
      this.ports.log(`connected to the supervisor, process ${connection.supervisor.pid}, of ${connection.supervisor.workspace}`);
      connection.onClose((reason) => {
        if (this.connection === connection) {
          this.connection = undefined;
          this.ports.log(`disconnected: ${reason}`);
          this.scheduleUpdate(RETRY_MS);
        }
      });
    } catch (error) {
      this.ports.log(`cannot connect to ${address.socket}: ${error instanceof Error ? error.message : String(error)}`);
      this.scheduleUpdate(RETRY_MS);
    }
  }

  private async open({ socket }: BridgeAddress): Promise<SupervisorConnection> {
    await checkSocket(socket);
    const stream = connect(socket);
    // The connection reports it.
    stream.on("error", () => undefined);
    try {
      return await SupervisorConnection.open({ reader: stream, writer: stream }, this.ports.client, this.ports.handlers);
    } catch (error) {
      stream.destroy();
      throw error;
    }
  }

  private async findAddress(): Promise<BridgeAddress | undefined> {
    for (const folder of candidateFolders(this.ports.folders)) {
      const address = await readSession(folder, this.ports.launchId);
      if (address !== undefined) {
        this.watchFolder(path.dirname(path.join(folder, SESSION_FILE)));
        return address;
      }
    }
    // The window is started before its file is written: the folder, or its parent, will change.
    for (const folder of this.ports.folders) {
      this.watchFolder(path.join(folder, path.dirname(SESSION_FILE)));
      this.watchFolder(folder);
    }
    this.scheduleUpdate(RETRY_MS);
    return undefined;
  }

  private watchFolder(folder: string): void {
    if (this.isDisposed || this.watchers.has(folder)) {
      return;
    }
    try {
      const watcher = watch(folder, { persistent: false }, () => this.scheduleUpdate(SETTLE_MS));
      const forget = () => this.watchers.delete(folder);
      watcher.on("error", forget).on("close", forget);
      this.watchers.set(folder, watcher);
    } catch {
      // It is not there (yet).
    }
  }
}
