/**
 * What the host knows: keeps overview and timeline up to date from a connection's notifications, and tells the close watch
 * of the supervisor's window. Knows nothing of VS Code.
 */
import { isLive, type Breakpoint, type SessionStatus, type WindowStatus } from "../rpc/protocol";
import type { SupervisorConnection } from "../rpc/supervisorConnection";
import { toSupervisorError } from "../rpc/supervisorError";
import { EMPTY_TIMELINE, recordLink, recordSession, recordWindow, type Timeline } from "../timeline/timeline";
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
  private breakpointTimer: NodeJS.Timeout | undefined;

  constructor(private readonly ports: HostStatePorts) {}

  setLink(link: LinkState): void {
    const was = this.overview.link.kind;
    if (link.kind !== "connected" && was === "connected") {
      const state = link.kind === "lost" ? "lost" : "closed";
      this.timeline = recordLink(this.timeline, state, link.kind === "lost" ? link.reason : link.kind, Date.now());
    }
    if (link.kind === "connected") {
      this.timeline = recordLink(this.timeline, "connected", `supervisor ${link.version}, process ${link.pid}`, Date.now());
    }
    this.overview = withLink(this.overview, link);
    this.ports.onDidChange();
  }

  /** Follows this connection; what an earlier one still sends does not count. */
  async follow(connection: SupervisorConnection): Promise<void> {
    this.connection = connection;
    const listen = <T>(method: string, take: (value: T) => void) =>
      connection.onNotification(method, (params) => {
        if (this.connection === connection && typeof params === "object" && params !== null) {
          take(params as T);
        }
      });
    listen<WindowStatus>("window/didChangeState", (status) => this.takeWindow(status));
    listen<SessionStatus>("debug/didChangeState", (session) => {
      this.takeSession(session);
      void this.refreshSession(session);
      this.scheduleBreakpoints();
    });
    await Promise.all([this.refreshWindow(), this.refreshSessions(), this.refreshBreakpoints()]);
  }

  async refreshBreakpoints(): Promise<void> {
    const report = await this.request<{ breakpoints?: Breakpoint[] }>("breakpoint/list");
    if (report?.breakpoints !== undefined) {
      this.overview = withBreakpoints(this.overview, report.breakpoints);
      this.ports.onDidChange();
    }
  }

  takeWindow(status: WindowStatus): void {
    const now = Date.now();
    const [before, after] = [tetheredWindowId(this.overview.window), tetheredWindowId(status)];
    this.timeline = recordWindow(this.timeline, status, now);
    this.overview = withWindow(this.overview, status, now);
    if (after !== undefined && after !== before) {
      this.ports.onWindow({ kind: "opened", id: after });
    }
    if (before !== undefined && after !== before) {
      this.ports.onWindow({ kind: status.state === "exited" ? "closed" : "released", id: before });
    }
    this.ports.onDidChange();
  }

  dispose(): void {
    clearTimeout(this.breakpointTimer);
  }

  private takeSession(session: SessionStatus): void {
    this.timeline = recordSession(this.timeline, session, Date.now());
    this.overview = withSession(this.overview, session);
    this.ports.onDidChange();
  }

  private async refreshWindow(): Promise<void> {
    const status = await this.request<WindowStatus>("window/status");
    if (status !== undefined) {
      this.takeWindow(status);
    }
  }

  private async refreshSessions(): Promise<void> {
    const status = await this.request<Partial<SessionStatus> & { sessions?: SessionStatus[] }>("debug/status");
    const sessions = status?.sessions ?? (status?.sessionId !== undefined ? [status as SessionStatus] : []);
    for (const session of sessions) {
      this.timeline = recordSession(this.timeline, session, Date.now());
    }
    this.overview = withSessions(this.overview, sessions);
    this.ports.onDidChange();
  }

  /** A notification does not have the place of a stop. */
  private async refreshSession({ sessionId, state }: SessionStatus): Promise<void> {
    if (!isLive(state)) {
      return;
    }
    const session = await this.request<SessionStatus>("debug/status", { sessionId });
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
      this.ports.log(`${method} failed: ${toSupervisorError(error).message}`);
      return undefined;
    }
  }
}
