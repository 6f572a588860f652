/** The nodes of the overview: window, sessions with their targets, breakpoints. Pure; the tree view shows them as they are. */
import type { Overview } from "../host/overview";
import type { BreakpointReport, DebugSessionStatus, TargetStatus, WindowStatus } from "../rpc/protocol";
import { isLive } from "../rpc/states";

export interface OverviewNode {
  /** Stable, so that the tree keeps what is expanded. */
  id: string;
  label: string;
  description?: string;
  /** Plain text, one line each. */
  tooltip?: string[];
  /** A codicon, and a colour of the theme. */
  icon?: string;
  colour?: string;
  /** For menus. */
  kind?: "window" | "session" | "target" | "breakpoint";
  /** What a click opens. */
  open?: { file: string; line: number };
  /** Or what it runs: one of our commands. */
  run?: string;
  sessionId?: string;
  children?: OverviewNode[];
}

export interface OverviewContext {
  /** Paths below it are shown relative to it. */
  folder: string;
  /** Epoch milliseconds. */
  now: number;
}

export function overviewNodes(overview: Overview, context: OverviewContext): OverviewNode[] {
  if (overview.link.kind === "lost") {
    return [{ id: "lost", label: "Connection lost", description: overview.link.reason, tooltip: [overview.link.reason], icon: "debug-disconnect", colour: "problemsWarningIcon.foreground", run: "tether.connect" }];
  }
  if (overview.link.kind !== "connected" || overview.window === undefined) {
    return [];
  }
  return [windowNode(overview, overview.window, context), sessionsNode(overview.sessions, context), breakpointsNode(overview.breakpoints, context)];
}

const WINDOW_ICONS: Record<string, [icon: string, colour?: string]> = {
  absent: ["window"],
  starting: ["loading~spin"],
  ready: ["pass-filled", "testing.iconPassed"],
  stale: ["history", "charts.yellow"],
  building: ["loading~spin"],
  stopping: ["loading~spin"],
  exited: ["circle-slash", "problemsWarningIcon.foreground"],
  unresponsive: ["error", "problemsErrorIcon.foreground"],
  unverified: ["unverified", "problemsWarningIcon.foreground"],
};

function windowNode({ lastRelaunch }: Overview, window: WindowStatus, { now }: OverviewContext): OverviewNode {
  const [icon, colour] = WINDOW_ICONS[window.state] ?? ["window"];
  const children: OverviewNode[] = [];
  if (window.startedAt !== undefined) {
    const reconnected = window.reconnected ? ", reconnected" : "";
    children.push({ id: "window/launch", label: `Launch ${window.generation}`, description: `${agoText(now - window.startedAt)}${reconnected}`, icon: "rocket" });
  }
  if (lastRelaunch !== undefined) {
    const label = `Relaunched because ${lastRelaunch.because}`;
    children.push({ id: "window/relaunch", label, description: agoText(now - lastRelaunch.at), tooltip: [label], icon: "debug-restart" });
  }
  if (window.refreshed !== undefined) {
    children.push({ id: "window/refresh", label: `Refreshed by ${window.refreshed.by}`, description: `${window.refreshed.tookMs} ms`, icon: "refresh" });
  }
  if (window.lastBuild !== undefined) {
    const { ok, durationMs, tail } = window.lastBuild;
    children.push({
      id: "window/build",
      label: ok ? "Build succeeded" : "Build failed",
      description: `${(durationMs / 1000).toFixed(1)} s`,
      tooltip: tail.trimEnd().split("\n").slice(-20),
      icon: ok ? "tools" : "error",
      ...(!ok && { colour: "problemsErrorIcon.foreground" }),
    });
  }
  const changes = window.changes ?? [];
  if (changes.length > 0) {
    children.push({
      id: "window/changes",
      label: changes.length === 1 ? "1 change since the build" : `${changes.length}${changes.length >= 10 ? " or more" : ""} changes since the build`,
      icon: "history",
      children: changes.map((it) => ({ id: `change/${it.path}`, label: it.path, description: it.kind, icon: "file" })),
    });
  }
  const ports = [
    ...(window.pid !== undefined ? [`pid ${window.pid}`] : []),
    ...(window.cdpPort !== undefined ? [`CDP ${window.cdpPort}`] : []),
    ...(window.inspectorPort !== undefined ? [`inspector ${window.inspectorPort}`] : []),
  ];
  if (ports.length > 0) {
    children.push({ id: "window/process", label: "Process", description: ports.join(" · "), icon: "server-process" });
  }
  (window.notes ?? []).forEach((note, at) => children.push({ id: `note/${at}`, label: note, tooltip: [note], icon: "info" }));
  return { id: "window", label: "Window", description: window.state, kind: "window", icon, ...(colour && { colour }), children };
}

function sessionsNode(sessions: readonly DebugSessionStatus[], context: OverviewContext): OverviewNode {
  const live = sessions.filter((it) => isLive(it.state)).length;
  return {
    id: "sessions",
    label: "Debug Sessions",
    description: sessions.length === 0 ? "none" : `${live} live`,
    icon: "debug-alt",
    children: sessions.map((it) => sessionNode(it, context)),
  };
}

const SESSION_ICONS: Record<string, [icon: string, colour?: string]> = {
  STARTING: ["loading~spin"],
  RUNNING: ["debug-start", "debugIcon.startForeground"],
  STOPPED: ["debug-pause", "debugIcon.pauseForeground"],
  TERMINATED: ["debug-stop"],
  DISCONNECTED: ["debug-disconnect"],
};

function sessionNode(session: DebugSessionStatus, { folder }: OverviewContext): OverviewNode {
  const [icon, colour] = SESSION_ICONS[session.state] ?? ["question"];
  const place = session.stopReason?.location;
  const isStopped = session.state === "STOPPED";
  const reason = isStopped && session.stopReason ? session.stopReason.type.toLowerCase().replaceAll("_", " ") : undefined;
  const where = isStopped && place?.sourcePath !== undefined ? `${relativePath(place.sourcePath, folder)}:${place.lineNumber}` : undefined;
  const targets = session.targets ?? [];
  const hasTree = targets.length > 1;
  return {
    id: `session/${session.sessionId}`,
    label: `${session.sessionId} ${session.name}`,
    description: [session.state.toLowerCase(), reason, where && `at ${where}`, session.exitCode !== undefined ? `exit code ${session.exitCode}` : undefined]
      .filter((it) => it !== undefined)
      .join(" "),
    tooltip: [`${session.name} (${session.adapter})`, ...(session.message ? [session.message] : [])],
    icon,
    ...(colour && { colour }),
    ...(isLive(session.state) && { kind: "session" as const }),
    sessionId: session.sessionId,
    ...(isStopped && place?.sourcePath !== undefined && { open: { file: place.sourcePath, line: place.lineNumber } }),
    ...(hasTree && { children: targetNodes(session.sessionId, targets, undefined) }),
  };
}

function targetNodes(sessionId: string, targets: readonly TargetStatus[], parent: number | undefined): OverviewNode[] {
  const known = new Set(targets.map((it) => it.targetId));
  // A parent that has ended is not listed: its children are shown at the top. A target is never its own ancestor.
  const isHere = (it: TargetStatus) => (parent === undefined ? it.parent === undefined || !known.has(it.parent) : it.parent === parent);
  return targets
    .filter((it) => isHere(it) && it.targetId !== parent)
    .map((target) => {
      const [icon, colour] = SESSION_ICONS[target.state] ?? ["question"];
      const rest = targets.filter((it) => it.targetId !== target.targetId);
      const children = rest.some((it) => it.parent === target.targetId) ? targetNodes(sessionId, rest, target.targetId) : [];
      return {
        id: `target/${sessionId}/${target.targetId}`,
        label: target.name,
        description: [target.state.toLowerCase(), target.pid !== undefined ? `pid ${target.pid}` : undefined].filter((it) => it !== undefined).join(" · "),
        icon,
        kind: "target" as const,
        ...(colour && { colour }),
        ...(children.length > 0 && { children }),
      };
    });
}

function breakpointsNode(breakpoints: readonly BreakpointReport[], { folder }: OverviewContext): OverviewNode {
  return {
    id: "breakpoints",
    label: "Breakpoints",
    description: breakpoints.length === 0 ? "none" : String(breakpoints.length),
    icon: "circle-filled",
    children: breakpoints.map((it) => breakpointNode(it, folder)),
  };
}

function breakpointNode(breakpoint: BreakpointReport, folder: string): OverviewNode {
  const { file, line, state, condition, hitCondition, logMessage, hitCount, message } = breakpoint;
  const place = file !== undefined ? `${relativePath(file, folder)}:${line ?? "?"}` : (breakpoint.function ?? breakpoint.expression ?? `breakpoint ${breakpoint.breakpointId}`);
  const details = [
    state,
    condition !== undefined ? `if ${condition}` : undefined,
    hitCondition !== undefined ? `hits ${hitCondition}` : undefined,
    logMessage !== undefined ? "logs" : undefined,
    hitCount ? `hit ${hitCount}×` : undefined,
  ].filter((it) => it !== undefined);
  const kind = breakpoint.expression !== undefined ? "debug-breakpoint-data" : logMessage !== undefined ? "debug-breakpoint-log" : "debug-breakpoint";
  return {
    id: `breakpoint/${breakpoint.breakpointId}`,
    label: place,
    description: details.join(" · "),
    tooltip: [place, ...details, ...(message ? [message] : [])],
    icon: state === "verified" ? kind : `${kind}-unverified`,
    colour: state === "verified" ? "debugIcon.breakpointForeground" : "debugIcon.breakpointUnverifiedForeground",
    kind: "breakpoint",
    ...(file !== undefined && line !== undefined && { open: { file: absolutePath(file, folder), line } }),
  };
}

const separated = (folder: string) => (folder.endsWith("/") ? folder : `${folder}/`);

const relativePath = (file: string, folder: string): string =>
  file.startsWith(separated(folder)) ? file.slice(separated(folder).length) : file;

const absolutePath = (file: string, folder: string): string =>
  /^([/\\]|[A-Za-z]:)/.test(file) ? file : separated(folder) + file;

/** "just now", "12 s ago", "5 min ago", "3 h ago" */
export function agoText(ms: number): string {
  if (ms < 2_000) {
    return "just now";
  }
  const [value, unit] = ms < 60_000 ? [ms / 1_000, "s"] : ms < 3_600_000 ? [ms / 60_000, "min"] : [ms / 3_600_000, "h"];
  return `${Math.floor(value)} ${unit} ago`;
}
