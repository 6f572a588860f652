/**
 * What the extension knows of a folder: the connection, the window, debug sessions, breakpoints. Pure: each message gives
 * a new state. Status item and tree are made from it.
 */
import type { BreakpointReport, DebugSessionStatus, WindowStatus } from "../rpc/protocol";
import { isLive, isOpen } from "../rpc/states";

export type LinkState =
  | { kind: "noFolder" }
  | { kind: "untrusted" }
  | { kind: "missing"; reason: string }
  | { kind: "idle" }
  | { kind: "connecting" }
  | { kind: "connected"; version: string; pid: number }
  | { kind: "lost"; reason: string; retryAt?: number };

/** Why the window was replaced the last time. */
export interface LastRelaunch {
  because: string;
  at: number;
  generation: number;
}

export interface Overview {
  link: LinkState;
  window?: WindowStatus;
  sessions: readonly DebugSessionStatus[];
  breakpoints: readonly BreakpointReport[];
  lastRelaunch?: LastRelaunch;
  /** The newest change seen while the window was stale or built: the cause of the next launch. */
  pendingCause?: string;
}

export const EMPTY_OVERVIEW: Overview = { link: { kind: "idle" }, sessions: [], breakpoints: [] };

/** How many ended sessions are shown. */
const MAX_ENDED = 5;

/** A change of the connection. Without one, nothing of what was known is certain. */
export function withLink(overview: Overview, link: LinkState): Overview {
  if (link.kind === "connected") {
    return { ...overview, link };
  }
  return { link, sessions: [], breakpoints: [], ...(overview.lastRelaunch && { lastRelaunch: overview.lastRelaunch }) };
}

export function withWindow(overview: Overview, window: WindowStatus, now: number): Overview {
  const before = overview.window;
  const replaced = before !== undefined && window.generation > before.generation && before.generation > 0;
  const newest = (window.changes ?? []).reduce<string | undefined>(
    (cause, change) => cause ?? `${change.path} was ${change.kind}`,
    undefined,
  );
  const next: Overview = { ...overview, window };
  if (replaced) {
    const because = overview.pendingCause ?? "it was asked for";
    next.lastRelaunch = { because, at: window.startedAt ?? now, generation: window.generation };
    delete next.pendingCause;
  } else if (newest !== undefined) {
    next.pendingCause = newest;
  } else if (window.state === "ready") {
    delete next.pendingCause;
  }
  return next;
}

/** A session that is new or has changed; ended ones are kept for a while, the oldest go first. */
export function withSession(overview: Overview, session: DebugSessionStatus): Overview {
  const others = overview.sessions.filter((it) => it.sessionId !== session.sessionId);
  return withSessions(overview, [...others, session]);
}

export function withSessions(overview: Overview, all: readonly DebugSessionStatus[]): Overview {
  const byStart = [...all].sort((a, b) => a.startedAt - b.startedAt);
  const ended = byStart.filter((it) => !isLive(it.state)).slice(-MAX_ENDED);
  return { ...overview, sessions: [...byStart.filter((it) => isLive(it.state)), ...ended] };
}

export function withBreakpoints(overview: Overview, breakpoints: readonly BreakpointReport[]): Overview {
  return { ...overview, breakpoints };
}

/** The id under which a window of the supervisor counts as a debug window that is open. */
export const tetheredWindowId = (window: WindowStatus | undefined): string | undefined =>
  window?.launchId !== undefined && isOpen(window.state) && window.state !== "stopping" ? `launch ${window.launchId}` : undefined;
