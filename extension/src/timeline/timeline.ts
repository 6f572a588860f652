/**
 * What has happened when: launches, edits, builds, debug sessions and connections as entries on one time axis. Pure: made
 * from the successive states that the supervisor reports; times are epoch milliseconds.
 */
import type { DebugSessionStatus, WindowStatus } from "../rpc/protocol";
import { isLive } from "../rpc/states";

export type Tone = "good" | "busy" | "warning" | "bad" | "neutral" | "stopped" | "mark";

/** A span, or (`end` equals `start`) an instant. A span without end goes on. */
export interface TimelineEntry {
  id: number;
  /** Entries of one lane are drawn in one row. */
  lane: string;
  name: string;
  tone: Tone;
  start: number;
  end?: number;
  /** Why it happened, and what is known of it: plain text, one line each. */
  details: string[];
}

export interface Timeline {
  entries: readonly TimelineEntry[];
  nextId: number;
  /** How many entries were dropped to stay below the limit. */
  dropped: number;
  window?: WindowStatus;
  /** The newest change that no launch has taken up yet. */
  cause?: string;
}

export const EMPTY_TIMELINE: Timeline = { entries: [], nextId: 1, dropped: 0 };
export const MAX_ENTRIES = 3_000;
/** How many lines of a failed build are shown. */
const MAX_BUILD_LINES = 8;

export const WINDOW_LANE = "Window";
export const BUILD_LANE = "Builds";
export const EDIT_LANE = "Edits";
export const LINK_LANE = "Connection";

const WINDOW_TONES: Record<string, Tone> = {
  starting: "busy",
  ready: "good",
  stale: "warning",
  building: "busy",
  stopping: "neutral",
  exited: "bad",
  unresponsive: "bad",
  unverified: "warning",
};

export function recordWindow(timeline: Timeline, status: WindowStatus, now: number): Timeline {
  const draft = new Draft(timeline);
  const before = timeline.window;
  recordEdits(draft, status);
  recordBuild(draft, status, before);
  if (status.generation > (before?.generation ?? 0) && status.startedAt !== undefined) {
    recordLaunch(draft, status, before, timeline.cause);
  }
  if (status.state !== before?.state || status.launchId !== before.launchId) {
    draft.closeOpen(WINDOW_LANE, now);
    // A window that was there before this extension looked has begun then, and not now.
    const start = before === undefined ? draft.startAfterOthers(WINDOW_LANE, status.startedAt ?? now) : now;
    if (status.state !== "absent") {
      draft.add({ lane: WINDOW_LANE, name: status.state, tone: WINDOW_TONES[status.state] ?? "neutral", start, details: windowDetails(status) });
    }
  }
  const newest = status.changes?.[0];
  const cause = newest ? `${newest.path} was ${newest.kind}` : status.state === "ready" ? undefined : timeline.cause;
  const { cause: _, ...rest } = draft.finish();
  return { ...rest, window: status, ...(cause !== undefined && { cause }) };
}

function recordEdits(draft: Draft, status: WindowStatus): void {
  for (const { path, kind, modifiedAt } of [...(status.changes ?? [])].reverse()) {
    if (!draft.has((it) => it.lane === EDIT_LANE && it.start === modifiedAt && it.name === path)) {
      draft.add({ lane: EDIT_LANE, name: path, tone: kind === "removed" ? "bad" : "warning", start: modifiedAt, end: modifiedAt, details: [kind] });
    }
  }
}

function recordBuild(draft: Draft, status: WindowStatus, before: WindowStatus | undefined): void {
  const build = status.lastBuild;
  if (!build?.endedAt || build.endedAt === before?.lastBuild?.endedAt) {
    return;
  }
  // After a reconnect it is reported anew.
  if (draft.has((it) => it.lane === BUILD_LANE && it.end === build.endedAt)) {
    return;
  }
  const lines = build.tail.trimEnd().split("\n").filter((line) => line !== "");
  draft.add({
    lane: BUILD_LANE,
    name: build.ok ? "build" : "build failed",
    tone: build.ok ? "good" : "bad",
    start: build.endedAt - build.durationMs,
    end: build.endedAt,
    details: build.ok ? [] : lines.slice(-MAX_BUILD_LINES),
  });
}

function recordLaunch(draft: Draft, status: WindowStatus, before: WindowStatus | undefined, cause: string | undefined): void {
  const start = status.startedAt ?? 0;
  // After a reconnect it is reported anew, without what is known of its refresh.
  const isSame = (it: TimelineEntry) => it.lane === WINDOW_LANE && it.tone === "mark" && it.start === start;
  if (draft.has((it) => isSame(it) && it.name.endsWith(` ${status.generation}`))) {
    return;
  }
  const details = [...(cause !== undefined && before !== undefined ? [`because ${cause}`] : []), ...windowDetails(status)];
  draft.add({ lane: WINDOW_LANE, name: `${launchName(status)} ${status.generation}`, tone: "mark", start, end: start, details });
}

function launchName(status: WindowStatus): string {
  switch (status.refreshed?.by) {
    case "restartExtensionHost":
      return "host restart";
    case "reload":
      return "reload";
    default:
      return "launch";
  }
}

function windowDetails(status: WindowStatus): string[] {
  const details = status.pid !== undefined ? [`pid ${status.pid}, CDP port ${status.cdpPort ?? "none"}`] : [];
  if (status.reconnected) {
    details.push("found again after the supervisor had been restarted");
  }
  if (status.exit !== undefined) {
    details.push(status.exit.signal !== undefined ? `ended by signal ${status.exit.signal}` : `exit code ${status.exit.code ?? "unknown"}`);
  }
  return [...details, ...(status.notes ?? []).slice(0, 3)];
}

/** A session's rows: running and stopped spans, each stop with its reason and place. */
export function recordSession(timeline: Timeline, session: DebugSessionStatus, now: number): Timeline {
  const lane = `${session.sessionId} ${session.name}`;
  const draft = new Draft(timeline);
  const isNew = !draft.has((it) => it.lane === lane);
  if (!isLive(session.state)) {
    if (!isNew) {
      draft.closeOpen(lane, session.endedAt ?? now);
    }
    return draft.finish();
  }
  const isStopped = session.state === "STOPPED";
  const name = isStopped ? stopName(session) : session.state.toLowerCase();
  const open = draft.findOpen(lane);
  if (open?.name === name) {
    return timeline;
  }
  const details = [session.adapter, ...(session.stopReason?.threadName && isStopped ? [`thread ${session.stopReason.threadName}`] : [])];
  if (open !== undefined && isStopped && open.tone === "stopped") {
    // The same stop, whose place has become known.
    draft.replace({ ...open, name, details });
    return draft.finish();
  }
  draft.closeOpen(lane, now);
  draft.add({ lane, name, tone: isStopped ? "stopped" : session.state === "RUNNING" ? "good" : "busy", start: isNew ? session.startedAt : now, details });
  return draft.finish();
}

function stopName({ stopReason }: DebugSessionStatus): string {
  const reason = (stopReason?.type ?? "STOPPED").toLowerCase().replaceAll("_", " ");
  const place = stopReason?.location;
  const file = place?.sourcePath?.split(/[\\/]/).pop();
  return place === undefined ? reason : `${reason} at ${file ?? place.methodName}:${place.lineNumber}`;
}

export function recordLink(timeline: Timeline, state: "connected" | "lost" | "closed", detail: string, now: number): Timeline {
  const draft = new Draft(timeline);
  const hadOne = draft.has((it) => it.lane === LINK_LANE);
  draft.closeOpen(LINK_LANE, now);
  if (state === "connected") {
    if (hadOne) {
      draft.add({ lane: LINK_LANE, name: "reconnected", tone: "mark", start: now, end: now, details: [detail] });
    }
    draft.add({ lane: LINK_LANE, name: "connected", tone: "good", start: now, details: [detail] });
    return draft.finish();
  }
  if (state === "lost") {
    draft.add({ lane: LINK_LANE, name: "connection lost", tone: "bad", start: now, details: [detail] });
  }
  // What goes on meanwhile is not known: nothing is drawn as if it were.
  for (const open of draft.allOpen().filter((it) => it.lane !== LINK_LANE)) {
    draft.replace({ ...open, end: now });
  }
  const { window: _, ...rest } = draft.finish();
  return rest;
}

/** A timeline being changed; bounded when it is finished. */
class Draft {
  private readonly entries: TimelineEntry[];
  private nextId: number;

  constructor(private readonly from: Timeline) {
    this.entries = [...from.entries];
    this.nextId = from.nextId;
  }

  has(matches: (entry: TimelineEntry) => boolean): boolean {
    return this.entries.some(matches);
  }

  findOpen(lane: string): TimelineEntry | undefined {
    return this.entries.find((it) => it.lane === lane && it.end === undefined);
  }

  allOpen(): TimelineEntry[] {
    return this.entries.filter((it) => it.end === undefined);
  }

  /** The time, or the end of the lane's last span if that is later. */
  startAfterOthers(lane: string, time: number): number {
    return Math.max(time, ...this.entries.filter((it) => it.lane === lane).map((it) => it.end ?? it.start));
  }

  add(entry: Omit<TimelineEntry, "id">): void {
    this.entries.push({ id: this.nextId++, ...entry });
  }

  replace(entry: TimelineEntry): void {
    const at = this.entries.findIndex((it) => it.id === entry.id);
    this.entries[at] = entry;
  }

  closeOpen(lane: string, end: number): void {
    const open = this.findOpen(lane);
    if (open !== undefined) {
      this.replace({ ...open, end: Math.max(open.start, end) });
    }
  }

  finish(): Timeline {
    const over = Math.max(0, this.entries.length - MAX_ENTRIES);
    const kept = over === 0 ? this.entries : dropOldest(this.entries, over);
    return { ...this.from, entries: kept, nextId: this.nextId, dropped: this.from.dropped + this.entries.length - kept.length };
  }
}

/** Drops the oldest entries that have ended; what goes on stays. */
function dropOldest(entries: readonly TimelineEntry[], count: number): TimelineEntry[] {
  const ended = entries.filter((it) => it.end !== undefined).sort((a, b) => (a.end ?? 0) - (b.end ?? 0));
  const dropped = new Set(ended.slice(0, count));
  return entries.filter((it) => !dropped.has(it));
}
