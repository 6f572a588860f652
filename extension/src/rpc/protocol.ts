/**
 * The messages of the supervisor that this extension uses, written from its own types (`src/api`):
 * `UPDATE_PROTOCOL=1 cargo test --lib editor` writes this file again.
 */

/** How an edit of its file affected a breakpoint. */
export type BreakpointDrift = "moved" | "ambiguous" | "lost";

/** A breakpoint or a watchpoint, and its state. */
export interface BreakpointReport {
  access?: DataAccess;
  breakpointId: number;
  className?: string;
  /** If one was asked for: where it is bound, or is to be. */
  column?: number;
  condition?: string;
  drift?: BreakpointDrift;
  /** What a watchpoint watches: an expression, or `Class.field`. */
  expression?: string;
  file?: string;
  function?: string;
  hitCondition?: string;
  hitCount?: number;
  /** Where it is; an adapter may have moved it to the next line with code. */
  line?: number;
  logMessage?: string;
  /** Why it is not verified, not where it was, or not at its column. */
  message?: string;
  notes?: string[];
  /** The joined editor that has set it; it goes when the editor does. */
  owner?: string;
  /** Where `file` leads to over a link, if it does. */
  realPath?: string;
  state: BreakpointState;
}

/** Whether a breakpoint is set in a target. */
export type BreakpointState = "verified" | "pending" | "unbound";

/** How the last build went. */
export interface BuildReport {
  durationMs: number;
  endedAt: number;
  ok: boolean;
  /** The last lines of its output. */
  tail: string;
}

/** One changed file. */
export interface ChangedFile {
  kind: ChangedFileKind;
  /** The file's mtime; for a removed file the one that it had. */
  modifiedAt: number;
  /** Relative to the workspace. */
  path: string;
}

/** How a tracked file differs from what the window was built from. */
export type ChangedFileKind = "modified" | "added" | "removed";

/** What the supervisor may send to a front end. */
export interface ClientCapabilities {
  /** Receives `WINDOW_DID_CHANGE_STATE`, `DEBUG_DID_CHANGE_STATE` and `WINDOW_DID_CHANGE_CONSOLE`; an `editor` and a `host` always receive the first two. */
  didChangeState?: boolean;
  /** Answers `HOST_RUN_TASK`, `HOST_STOP_SERVER` and `HOST_EXECUTE_COMMAND`, as the role `host` does. */
  host?: boolean;
  /** Starts no supervisor: one whose program was replaced stays for it. */
  keepsSupervisor?: boolean;
  /** As long as it is connected, the window is built and refreshed after each save. */
  refreshOnSave?: boolean;
  /** Answers `START_DEBUG_SESSION`. */
  startDebugSession?: boolean;
  /** Answers `TERMINATE_DEBUG_SESSION`. */
  terminateDebugSession?: boolean;
}

/** What a connection is for. */
export type ClientRole = "client" | "editor" | "windowBridge" | "host";

/** The accesses at which a data breakpoint stops. */
export type DataAccess = "read" | "write" | "readWrite";

/** The status of one session. */
export interface DebugSessionStatus {
  /** As `tether adapters` lists it. */
  adapter: string;
  /** The adapter's process, where one was started. */
  adapterPid?: number;
  /** Whether the adapter is connected. */
  connected: boolean;
  /** The editors that have joined it. */
  editors?: string[];
  endedAt?: number;
  /** The one that stopped it. */
  exception?: ExceptionReport;
  exitCode?: number;
  /** How it ended, or what is wrong with it. */
  message?: string;
  /** What is debugged: a program, a configuration, a test. */
  name: string;
  /** Once it has ended: the breakpoints that have not stopped it, and why. */
  notReached?: UnreachedReport[];
  /** The program's process, where it is known. */
  pid?: number;
  /** Who has resumed the program last, and how. */
  resumedBy?: string;
  runningThreads: ThreadStatus[];
  sessionId: string;
  /** A source file has changed since the session began. */
  stale: boolean;
  startedAt: number;
  state: RunState;
  /** Of the first thread that stopped. */
  stopReason?: StopReason;
  suspendedThreads: ThreadStatus[];
  targets: TargetStatus[];
  /** Of Java: how many threads there are beside these, most of them virtual ones. */
  unlistedThreads?: number;
  vmName?: string;
}

/** The exception that stopped a thread. */
export interface ExceptionReport {
  class: string;
  message: string;
  stack?: string;
}

/** The parameters of `INITIALIZE`: the front end that connects. */
export interface InitializeParams {
  capabilities?: ClientCapabilities;
  /** The environment of the front end, as far as it is UTF-8: what it launches runs with it. */
  environment?: Record<string, string>;
  /** Of a window bridge: the launch id in the environment of its window, by which the window is recognised. */
  launchId?: string;
  name: string;
  role?: ClientRole;
  /** The version of the front end's program: an older supervisor exits for a newer one. That of a window bridge is only logged. */
  version: string;
  /** Of `tether wrap --debug`: the name of its server, whose session ends with the connection. */
  wraps?: string;
}

/** The result of `INITIALIZE`: the supervisor. */
export interface InitializeResult {
  /** The supervisor is older than the front end, or the front end's program has replaced its own: it exits now, and the window stays. Connect again. */
  draining: boolean;
  name: string;
  pid: number;
  version: string;
  workspace: string;
}

/** How a running window was last brought up to date. */
export interface RefreshReport {
  by: RefreshRung;
  /** Without the build. */
  tookMs: number;
}

/** How a window was made to run the new code, from the cheapest to the dearest. */
export type RefreshRung = "restartExtensionHost" | "reload" | "relaunch";

/** The state of the window. */
export type ReportedWindowState = "stopping" | "absent" | "starting" | "ready" | "stale" | "building" | "exited" | "unresponsive" | "unverified";

/** What a session is doing: of its targets' states the greatest, in this order. */
export type RunState = "STARTING" | "RUNNING" | "TERMINATED" | "DISCONNECTED" | "STOPPED";

/** Details of a stop, by its type. */
export interface StopDetails {
  breakpointId?: number;
  exceptionMessage?: string;
  exceptionType?: string;
  /** What a watchpoint watches. */
  fieldName?: string;
  hitCount?: number;
  newValue?: string;
  oldValue?: string;
  /** The adapter's own description. */
  text?: string;
}

/** Why a thread stopped. */
export type StopKind = "BREAKPOINT_HIT" | "STEP_COMPLETE" | "EXCEPTION" | "WATCHPOINT_ACCESS" | "WATCHPOINT_MODIFY" | "METHOD_ENTRY" | "METHOD_EXIT" | "VM_START" | "VM_DEATH" | "USER_SUSPEND" | "ENTRY";

/** Where a thread stopped. */
export interface StopLocation {
  className?: string;
  lineNumber: number;
  methodName: string;
  /** Where `sourcePath` leads to over a link, if it does. */
  realPath?: string;
  /** None for code without a file. */
  sourcePath?: string;
}

/** One stop of one thread. */
export interface StopReason {
  details?: StopDetails;
  location?: StopLocation;
  threadId?: number;
  threadName?: string;
  type: StopKind;
}

/** One program of a session: its first, a worker, a forked child. */
export interface TargetStatus {
  language?: string;
  name: string;
  /** The target that has started it. */
  parent?: number;
  /** Its process, where it is known. */
  pid?: number;
  state: RunState;
  /** Its number in the session, from 0. */
  targetId: number;
  threadIds: number[];
}

/** One thread. */
export interface ThreadStatus {
  /** Of Java: the monitors that a suspended thread holds. */
  holds?: string[];
  name: string;
  /** Of Java: `running`, `sleeping`, `waiting`, `blocked`. */
  state?: string;
  /** When it has stopped by itself. */
  stopReason?: StopReason;
  threadId: number;
  /** Of Java: the monitor that a suspended thread waits for. */
  waitsFor?: string;
}

/** Something that has happened in the workspace, as the timeline records it. */
export interface TimelineEvent {
  /** When it happened, or ended, in epoch ms. */
  at: number;
  /** Who has done it: a front end, or a joined editor. */
  by?: string;
  /** Whether it failed; absent where it cannot. */
  failed?: boolean;
  /** What kind of thing. */
  kind: TimelineKind;
  /** Its number in the timeline of the workspace, which rises. */
  number: number;
  /** Where: `app.py:12`. */
  place?: string;
  /** The debug session that it is of. */
  sessionId?: string;
  /** What has happened, and why, in one line. */
  text: string;
  /** How long it took. */
  tookMs?: number;
}

/** Events, the oldest first. */
export interface TimelineEvents {
  /** For the next `since`. */
  cursor: number;
  /** Events after `since` that are no longer kept. */
  dropped: number;
  events: TimelineEvent[];
  /** Events that the limit has left out: newer ones with `since`, older ones without. */
  more: number;
}

/** What kind of thing a timeline event is. */
export type TimelineKind = "supervisorStarted" | "supervisorEnded" | "edited" | "built" | "checked" | "windowLaunched" | "windowFound" | "windowRefreshed" | "refreshHeld" | "windowEnded" | "consoleError" | "sessionStarted" | "stopped" | "resumed" | "sessionEnded" | "called";

/** A breakpoint that has not stopped a session. */
export interface UnreachedReport {
  breakpointId: number;
  /** `app.py:12`, a function, or what it watches. */
  place: string;
  /** Where the file leads to over a link, if it does. */
  realPath?: string;
  /** In one sentence. */
  reason: string;
}

/** How a window exited by itself. */
export interface WindowExitReport {
  at: number;
  /** Unknown when the window was not a child of this supervisor. */
  code?: number;
  /** The last entries of its console. */
  console?: string[];
  /** The calls that were under way. */
  doing?: string[];
  /** The last lines that it printed. */
  output?: string;
  signal?: number;
}

/** What the processes of a window use. */
export interface WindowResources {
  /** Of one core, so two busy cores are 200: the average since the previous status, at first since the processes started. */
  cpuPercent: number;
  /** The sum of their resident memory; shared memory counts for each process. */
  memoryBytes: number;
  processes: number;
}

/** The status of the window. */
export interface WindowStatus {
  cdpPort?: number;
  /** At most 10. */
  changes: ChangedFile[];
  /** When state is `exited`. */
  exit?: WindowExitReport;
  /** Rises with every launch; a window that is found again keeps its own. */
  generation: number;
  /** Of the extension host, or of Node. */
  inspectorPort?: number;
  lastBuild?: BuildReport;
  launchId?: string;
  /** What is in progress, and remarks for the reader. */
  notes?: string[];
  pid?: number;
  /** The window was started by an earlier supervisor. */
  reconnected: boolean;
  /** How it was last brought up to date, if it was since it was started. */
  refreshed?: RefreshReport;
  /** What the window's processes use. Only in the result of `window/status`, while a window runs. */
  resources?: WindowResources;
  /** The ids of the active debug sessions. */
  sessions: string[];
  stale: boolean;
  startedAt?: number;
  state: ReportedWindowState;
}
