/**
 * What has happened when: launches, edits, builds, debug sessions and calls as entries on one time axis. Pure: made from the
 * events that the supervisor has recorded, which outlive this window; times are epoch milliseconds.
 */
import type { TimelineEvent, TimelineKind } from "../rpc/protocol";

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
  /** The number of the last event. */
  cursor: number;
}

export const EMPTY_TIMELINE: Timeline = { entries: [], nextId: 1, dropped: 0, cursor: 0 };
export const MAX_ENTRIES = 3_000;

export const WINDOW_LANE = "Window";
export const BUILD_LANE = "Builds";
export const EDIT_LANE = "Edits";
export const CONSOLE_LANE = "Console";
export const SUPERVISOR_LANE = "Supervisor";

/** Adds events, which are in the order of their numbers; those that are there already are left out. */
export function addEvents(timeline: Timeline, events: readonly TimelineEvent[]): Timeline {
  const draft = new Draft(timeline);
  for (const event of events) {
    if (event.number > draft.cursor) {
      draft.cursor = event.number;
      addEvent(draft, event);
    }
  }
  return draft.finish();
}

function addEvent(draft: Draft, event: TimelineEvent): void {
  const { at, text } = event;
  const name = KIND_NAMES[event.kind] ?? text;
  const details = [text, ...(event.place !== undefined ? [`at ${event.place}`] : []), ...(event.by !== undefined ? [`by ${event.by}`] : [])];
  const span = (lane: string, tone: Tone, as = name) => {
    draft.closeOpen(lane, at);
    draft.add({ lane, name: as, tone, start: at, details });
  };
  const took = (lane: string, tone: Tone) => draft.add({ lane, name, tone, start: at - (event.tookMs ?? 0), end: at, details });
  const session = event.sessionId ?? "";
  switch (event.kind) {
    case "supervisorStarted":
      return span(SUPERVISOR_LANE, "good");
    case "supervisorEnded":
      return draft.closeOpen(SUPERVISOR_LANE, at);
    case "windowLaunched":
    case "windowFound":
    case "windowRefreshed":
      return span(WINDOW_LANE, "good");
    case "checked":
    case "refreshHeld":
      return draft.add({ lane: WINDOW_LANE, name, tone: "warning", start: at, end: at, details });
    case "windowEnded":
      draft.closeOpen(WINDOW_LANE, at);
      return draft.add({ lane: WINDOW_LANE, name, tone: event.failed ? "bad" : "mark", start: at, end: at, details });
    case "built":
      return took(BUILD_LANE, event.failed ? "bad" : "good");
    case "edited":
      return draft.add({ lane: EDIT_LANE, name: text, tone: "warning", start: at, end: at, details });
    case "consoleError":
      return draft.add({ lane: CONSOLE_LANE, name: text, tone: "bad", start: at, end: at, details });
    case "sessionStarted":
      return span(session, "good", text);
    case "resumed":
      return span(session, "good", text);
    case "stopped":
      return span(session, "stopped", event.place === undefined ? text : `${text} at ${event.place}`);
    case "sessionEnded":
      draft.closeOpen(session, at);
      return draft.add({ lane: session, name, tone: event.failed ? "bad" : "mark", start: at, end: at, details });
    case "called":
      return took(event.by ?? "", event.failed ? "bad" : "neutral");
  }
}

/** What an entry is called whose text only explains it. */
const KIND_NAMES: Partial<Record<TimelineKind, string>> = {
  supervisorStarted: "supervisor",
  windowLaunched: "launch",
  windowFound: "found again",
  windowRefreshed: "refresh",
  checked: "checked",
  refreshHeld: "not refreshed",
  windowEnded: "ended",
  built: "build",
  sessionEnded: "ended",
};

/** A timeline being changed; bounded when it is finished. */
class Draft {
  cursor: number;
  private readonly entries: TimelineEntry[];
  private nextId: number;

  constructor(private readonly from: Timeline) {
    this.entries = [...from.entries];
    this.nextId = from.nextId;
    this.cursor = from.cursor;
  }

  add(entry: Omit<TimelineEntry, "id">): void {
    this.entries.push({ id: this.nextId++, ...entry });
  }

  closeOpen(lane: string, end: number): void {
    const at = this.entries.findIndex((it) => it.lane === lane && it.end === undefined);
    const open = this.entries[at];
    if (open !== undefined) {
      this.entries[at] = { ...open, end: Math.max(open.start, end) };
    }
  }

  finish(): Timeline {
    const over = Math.max(0, this.entries.length - MAX_ENTRIES);
    const entries = over === 0 ? this.entries : dropOldest(this.entries, over);
    return { entries, nextId: this.nextId, dropped: this.from.dropped + this.entries.length - entries.length, cursor: this.cursor };
  }
}

/** Drops the oldest entries that have ended; what goes on stays. */
function dropOldest(entries: readonly TimelineEntry[], count: number): TimelineEntry[] {
  const ended = entries.filter((it) => it.end !== undefined).sort((a, b) => (a.end ?? 0) - (b.end ?? 0));
  const dropped = new Set(ended.slice(0, count));
  return entries.filter((it) => !dropped.has(it));
}
