/** A timeline in Chrome's trace event format, which Perfetto and chrome://tracing open. Pure. */
import { BUILD_LANE, CONSOLE_LANE, EDIT_LANE, SUPERVISOR_LANE, WINDOW_LANE, type Timeline } from "./timeline";

interface TraceEvent {
  name: string;
  ph: "X" | "i" | "M";
  pid: number;
  tid: number;
  /** Microseconds. */
  ts?: number;
  dur?: number;
  s?: "t";
  cat?: string;
  args?: Record<string, unknown>;
}

const PID = 1;

/** The fixed lanes first, then those of sessions and callers in the order in which they began. */
export function orderLanes(timeline: Pick<Timeline, "entries">): string[] {
  const fixed = [WINDOW_LANE, BUILD_LANE, EDIT_LANE, CONSOLE_LANE];
  const found = new Set(timeline.entries.map((it) => it.lane));
  const others = [...found].filter((lane) => !fixed.includes(lane) && lane !== SUPERVISOR_LANE);
  return [...fixed, ...others, SUPERVISOR_LANE].filter((lane) => found.has(lane));
}

/** What goes on is drawn until `now`. */
export function toChromeTrace(timeline: Timeline, folder: string, now: number): { traceEvents: TraceEvent[]; metadata: object } {
  const lanes = orderLanes(timeline);
  const events: TraceEvent[] = [{ name: "process_name", ph: "M", pid: PID, tid: 0, args: { name: `tether: ${folder}` } }];
  lanes.forEach((lane, at) => {
    events.push({ name: "thread_name", ph: "M", pid: PID, tid: at + 1, args: { name: lane } });
    events.push({ name: "thread_sort_index", ph: "M", pid: PID, tid: at + 1, args: { sort_index: at } });
  });
  for (const entry of [...timeline.entries].sort((a, b) => a.start - b.start)) {
    const common = {
      name: entry.name,
      cat: entry.tone,
      pid: PID,
      tid: lanes.indexOf(entry.lane) + 1,
      ts: Math.round(entry.start * 1000),
      args: { details: entry.details },
    };
    const end = entry.end ?? now;
    events.push(end === entry.start ? { ...common, ph: "i", s: "t" } : { ...common, ph: "X", dur: Math.round((end - entry.start) * 1000) });
  }
  return { traceEvents: events, metadata: { source: "tether", folder, dropped: timeline.dropped } };
}
