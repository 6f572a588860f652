/**
 * What the host knows: keeps overview and timeline up to date from a connection's notifications, and tells the close watch
 * of the supervisor's window. Knows nothing of VS Code.
 */
import type { BreakpointReport, DebugSessionStatus, TimelineEvents, WindowStatus } from "../rpc/protocol";
import { isLive } from "../rpc/states";
import type { RequestOptions, SupervisorConnection } from "../rpc/supervisorConnection";
import { toSupervisorError } from "../rpc/supervisorError";
import { EMPTY_TIMELINE, MAX_ENTRIES, addEvents, type Timeline } from "../timeline/timeline";
import type { CloseWatchInput } from "./closeWatch";
import {
  EMPTY_OVERVIEW,
  tetheredWindowId,
  withBreakpoints,
  withLink,
  withSession,
  withSessions,
  withWindow,
  type LinkState,
  type Overview,
} from "./overview";

export interface HostStatePorts {
  onDidChange(): void;
  /** A window that the supervisor started has opened, closed, or was stopped. */
  onWindow(input: CloseWatchInput): void;
  log(line: string): void;
}

/** Several changes of sessions are followed by one request for the breakpoints. */
const BREAKPOINTS_PAUSE_MS = 150;

export class HostState {
  overview: Overview = EMPTY_OVERVIEW;
  timeline: Timeline = EMPTY_TIMELINE;
  private connection: SupervisorConnection | undefined;
  /** The window that the close watch counts as open. */
  private openWindow: string | undefined;
  /** How many notifications of the window's state this connection has sent. */
  private windowNotifications = 0;
  private breakpointTimer: NodeJS.Timeout | undefined;

  constructor(private readonly ports: HostStatePorts) {}

  setLink(link: LinkState): void {
    if (link.kind === "idle" || link.kind === "noFolder") {
      // Perhaps of another folder.
      this.timeline = EMPTY_TIMELINE;
    }
    this.overview = withLink(this.overview, link);
    // A lost connection is opened again, and its window found, or found to have closed. Otherwise nobody looks any more.
    const isFollowed = link.kind === "connected" || link.kind === "connecting" || (link.kind === "lost" && link.retryAt !== undefined);
    if (!isFollowed) {
      this.connection = undefined;
      this.setOpenWindow(undefined, "released");
    }
    this.ports.onDidChange();
  }

  /** Follows this connection; what an earlier one still sends does not count. */
  async follow(connection: SupervisorConnection): Promise<void> {
    this.connection = connection;
    this.windowNotifications = 0;
    const listen = <T>(method: string, take: (value: T) => void) =>
      connection.onNotification(method, (params) => {
        if (this.connection === connection && typeof params === "object" && params !== null) {
          take(params as T);
        }
      });
    listen<WindowStatus>("window/didChangeState", (status) => {
      this.windowNotifications++;
      this.takeWindow(status);
    });
    listen<DebugSessionStatus>("debug/didChangeState", (session) => {
      this.takeSession(session);
      void this.refreshSession(session);
      this.scheduleBreakpoints();
    });
    connection.onNotification("timeline/didChange", () => this.connection === connection && void this.refreshTimeline());
    await Promise.all([this.refreshWindow(), this.refreshSessions(), this.refreshBreakpoints(), this.refreshTimeline()]);
  }

  private async refreshTimeline(): Promise<void> {
    const since = this.timeline.cursor;
    const read = await this.request<TimelineEvents>("timeline/read", since === 0 ? { limit: MAX_ENTRIES } : { since, limit: MAX_ENTRIES });
    if (read !== undefined) {
      this.timeline = addEvents(this.timeline, read.events);
      this.ports.onDidChange();
    }
  }

  async refreshBreakpoints(): Promise<void> {
    const report = await this.request<{ breakpoints?: BreakpointReport[] }>("breakpoint/list");
    if (report?.breakpoints !== undefined) {
      this.overview = withBreakpoints(this.overview, report.breakpoints);
      this.ports.onDidChange();
    }
  }

  /**
   * Sends a request whose result is the window's status, and takes the status up. It was read before it is sent: one that
   * a notification has overtaken is older than what is shown, and so is one of a former connection.
   */
  async requestWindow(connection: SupervisorConnection, method: string, options?: RequestOptions): Promise<WindowStatus> {
    const before = this.windowNotifications;
    const status = await connection.request<WindowStatus>(method, {}, options);
    const isOvertaken = this.windowNotifications !== before && status.generation <= (this.overview.window?.generation ?? 0);
    if (this.connection === connection && !isOvertaken) {
      this.takeWindow(status);
    }
    return status;
  }

  private takeWindow(status: WindowStatus): void {
    if (status.generation < (this.overview.window?.generation ?? 0)) {
      return;
    }
    const now = Date.now();
    this.overview = withWindow(this.overview, status, now);
    this.setOpenWindow(tetheredWindowId(status), status.state === "exited" ? "closed" : "released");
    this.ports.onDidChange();
  }

  /** `end`: what has become of the window that was open. */
  private setOpenWindow(id: string | undefined, end: "closed" | "released"): void {
    const before = this.openWindow;
    if (id === before) {
      return;
    }
    this.openWindow = id;
    if (id !== undefined) {
      this.ports.onWindow({ kind: "opened", id });
    }
    if (before !== undefined) {
      this.ports.onWindow({ kind: end, id: before });
    }
  }

  dispose(): void {
    clearTimeout(this.breakpointTimer);
  }

  private takeSession(session: DebugSessionStatus): void {
    this.overview = withSession(this.overview, session);
    this.ports.onDidChange();
  }

  private async refreshWindow(): Promise<void> {
    const { connection } = this;
    if (connection !== undefined) {
      await this.requestWindow(connection, "window/status").catch((error) => this.logFailure("window/status", error));
    }
  }

  private async refreshSessions(): Promise<void> {
    const status = await this.request<Partial<DebugSessionStatus> & { sessions?: DebugSessionStatus[] }>("debug/status");
    const sessions = status?.sessions ?? (status?.sessionId !== undefined ? [status as DebugSessionStatus] : []);
    this.overview = withSessions(this.overview, sessions);
    this.ports.onDidChange();
  }

  /** A notification does not have the place of a stop. */
  private async refreshSession({ sessionId, state }: DebugSessionStatus): Promise<void> {
    if (!isLive(state)) {
      return;
    }
    const session = await this.request<DebugSessionStatus>("debug/status", { sessionId });
    // It may have changed again meanwhile; the notification of that is on its way.
    const now = this.overview.sessions.find((it) => it.sessionId === sessionId);
    if (session?.sessionId === sessionId && session.state === now?.state) {
      this.takeSession(session);
    }
  }

  private scheduleBreakpoints(): void {
    clearTimeout(this.breakpointTimer);
    this.breakpointTimer = setTimeout(() => void this.refreshBreakpoints(), BREAKPOINTS_PAUSE_MS);
  }

  private async request<T>(method: string, params: object = {}): Promise<T | undefined> {
    const connection = this.connection;
    try {
      const result = await connection?.request<T>(method, params);
      return this.connection === connection ? result : undefined;
    } catch (error) {
      this.logFailure(method, error);
      return undefined;
    }
  }

  private logFailure(method: string, error: unknown): void {
    this.ports.log(`${method} failed: ${toSupervisorError(error).message}`);
  }
}
