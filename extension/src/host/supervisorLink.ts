/**
 * Keeps the host connected to the folder's supervisor: connects when it is asked to, and again when the supervisor has been
 * replaced. Knows nothing of VS Code, nor of what is sent over a connection.
 *
 *     idle ──connect──▶ connecting ──▶ connected ──closed──▶ lost ──retry──▶ connecting
 *      ▲                                  │                    │
 *      └──────── nothing to keep ◀────────┴──── attempts used up: until asked again
 */
import type { SupervisorConnection } from "../rpc/supervisorConnection";
import { SupervisorError, toSupervisorError } from "../rpc/supervisorError";
import { MISSING_PROGRAM } from "./findProgram";
import type { LinkState } from "./overview";

export interface SupervisorLinkPorts {
  /** Starts the supervisor on demand. */
  open(): Promise<SupervisorConnection>;
  /** Whether a window is worth connecting again without being asked: a supervisor is started for it. */
  hasWindow(): Promise<boolean>;
  onState(state: LinkState): void;
  onConnected(connection: SupervisorConnection): void;
  log(line: string): void;
}

export const RETRY_DELAYS_MS = [200, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];

export class SupervisorLink {
  private connection: SupervisorConnection | undefined;
  private opening: Promise<SupervisorConnection> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private isDisposed = false;
  /** Rises when the link is given up: what was begun before, for another folder or program perhaps, does not count. */
  private epoch = 0;

  constructor(private readonly ports: SupervisorLinkPorts) {}

  get current(): SupervisorConnection | undefined {
    return this.connection;
  }

  /** The connection; opens it if there is none. A second caller joins the first. */
  async connect(): Promise<SupervisorConnection> {
    if (this.isDisposed) {
      throw new SupervisorError("the extension is being deactivated", "cancelled");
    }
    if (this.connection !== undefined) {
      return this.connection;
    }
    return this.joinOpening("report");
  }

  /** Closes the connection, also one that is being opened, and does not connect again by itself. */
  disconnect(): void {
    clearTimeout(this.timer);
    this.epoch++;
    this.opening = undefined;
    const connection = this.connection;
    this.connection = undefined;
    connection?.dispose();
  }

  dispose(): void {
    this.isDisposed = true;
    this.disconnect();
  }

  private joinOpening(failures: "report" | "retry"): Promise<SupervisorConnection> {
    if (this.opening !== undefined) {
      return this.opening;
    }
    const opening = this.open(failures).finally(() => {
      if (this.opening === opening) {
        this.opening = undefined;
      }
    });
    this.opening = opening;
    return opening;
  }

  private async open(failures: "report" | "retry"): Promise<SupervisorConnection> {
    clearTimeout(this.timer);
    const { epoch } = this;
    this.ports.onState({ kind: "connecting" });
    let connection: SupervisorConnection;
    try {
      connection = await this.ports.open();
    } catch (error) {
      const { message: reason, kind } = toSupervisorError(error);
      this.ports.log(`cannot connect to the supervisor: ${reason}`);
      if (this.epoch === epoch && (failures === "report" || kind === MISSING_PROGRAM)) {
        this.ports.onState({ kind: kind === MISSING_PROGRAM ? "missing" : "lost", reason });
      }
      throw error;
    }
    if (this.epoch !== epoch) {
      connection.dispose();
      const why = this.isDisposed ? "the extension is being deactivated" : "another folder or program was chosen meanwhile";
      throw new SupervisorError(why, "cancelled");
    }
    const { version, pid, workspace } = connection.supervisor;
    this.ports.log(`connected to the supervisor ${version}, process ${pid}, of ${workspace}`);
    this.connection = connection;
    this.ports.onState({ kind: "connected", version, pid });
    this.ports.onConnected(connection);
    connection.onClose((reason) => {
      if (this.connection === connection) {
        this.connection = undefined;
        this.ports.log(`disconnected: ${reason}`);
        void this.reconnect(reason, 0, this.epoch);
      }
    });
    return connection;
  }

  private async reconnect(reason: string, attempt: number, epoch: number): Promise<void> {
    const hasWindow = await this.ports.hasWindow();
    // It was given up, or connected on request, while this was found out.
    if (this.epoch !== epoch || this.connection !== undefined || this.opening !== undefined) {
      return;
    }
    if (!hasWindow) {
      this.ports.onState({ kind: "idle" });
      return;
    }
    const delay = RETRY_DELAYS_MS[attempt];
    this.ports.onState({ kind: "lost", reason, ...(delay !== undefined && { retryAt: Date.now() + delay }) });
    if (delay === undefined) {
      return;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.joinOpening("retry").catch((error) => this.reconnect(toSupervisorError(error).message, attempt + 1, epoch));
    }, delay);
  }
}
