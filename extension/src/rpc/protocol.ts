/** The supervisor's messages as this extension uses them; the source of each is `src/api/` of the supervisor. */

export type WindowStateName =
  | "absent"
  | "starting"
  | "ready"
  | "stale"
  | "building"
  | "stopping"
  | "exited"
  | "unresponsive"
  | "unverified";

export interface ChangedFile {
  path: string;
  kind: "modified" | "added" | "removed";
  modifiedAt: number;
}

export interface BuildReport {
  ok: boolean;
  endedAt: number;
  durationMs: number;
  tail: string;
}

export interface WindowExit {
  code?: number;
  signal?: number;
  at: number;
  /** What was under way, and the last lines of its console and output. */
  doing?: string[];
  console?: string[];
  output?: string;
}

/** How the window was last brought up to date, since it was started. */
export interface RefreshReport {
  by: "relaunch" | "reload" | "restartExtensionHost";
  tookMs: number;
}

/** The result of `window/status`, and the parameters of `window/didChangeState`. */
export interface WindowStatus {
  state: WindowStateName;
  pid?: number;
  cdpPort?: number;
  inspectorPort?: number;
  launchId?: string;
  startedAt?: number;
  generation: number;
  reconnected: boolean;
  stale: boolean;
  changes?: ChangedFile[];
  lastBuild?: BuildReport;
  sessions?: string[];
  exit?: WindowExit;
  refreshed?: RefreshReport;
  notes?: string[];
}

export type SessionState = "STARTING" | "RUNNING" | "STOPPED" | "TERMINATED" | "DISCONNECTED";

export interface StopReason {
  type: string;
  threadName?: string;
  location?: { methodName: string; lineNumber: number; sourcePath?: string };
}

export interface TargetStatus {
  targetId: number;
  parent?: number;
  name: string;
  state: SessionState;
  pid?: number;
  language?: string;
}

/** An entry of `debug/status`'s `sessions`, and the parameters of `debug/didChangeState`. */
export interface SessionStatus {
  sessionId: string;
  name: string;
  adapter: string;
  state: SessionState;
  stopReason?: StopReason;
  targets?: TargetStatus[];
  startedAt: number;
  endedAt?: number;
  exitCode?: number;
  message?: string;
}

export interface Breakpoint {
  breakpointId: number;
  state: "verified" | "pending" | "unbound";
  file?: string;
  line?: number;
  function?: string;
  expression?: string;
  condition?: string;
  hitCondition?: string;
  logMessage?: string;
  hitCount?: number;
  message?: string;
}

export interface InitializeResult {
  name: string;
  version: string;
  pid: number;
  workspace: string;
  draining?: boolean;
}

export type ClientRole = "host" | "windowBridge" | "editor";

export interface InitializeParams {
  name: string;
  /** Of the program that speaks to the supervisor: `tether rpc` fills in its own. */
  version?: string;
  role: ClientRole;
  capabilities: Record<string, boolean>;
  /** Of a window bridge: the launch that its window belongs to. */
  launchId?: string;
}

export const isLive = (state: SessionState): boolean => state !== "TERMINATED" && state !== "DISCONNECTED";

/** Whether there is a window to look at, restart or stop. */
export const isOpen = (state: WindowStateName): boolean => !["absent", "exited"].includes(state);
