/** The time axis: which span of time is shown on which width, and the ticks on it. Pure. */

export interface TimeScale {
  /** Epoch milliseconds at the left edge. */
  from: number;
  /** At the right edge. */
  to: number;
  /** Pixels between them. */
  width: number;
}

const MIN_SPAN_MS = 50;
export const MAX_SPAN_MS = 7 * 24 * 3_600_000;
/** Of the longest span, so that the room at its sides is within it, too. */
const MAX_FIT_BEFORE_MS = 0.9 * MAX_SPAN_MS;
const MAX_FIT_AFTER_MS = 3_600_000;
/** Steps between ticks, in milliseconds. */
const STEPS = [
  10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000,
  1_800_000, 3_600_000, 7_200_000, 14_400_000, 28_800_000, 86_400_000,
];
const DAY_MS = 86_400_000;
const MIN_TICK_PX = 90;
/** On the widest screen there are fewer. */
const MAX_TICKS = 500;

export const toX = ({ from, to, width }: TimeScale, time: number): number => ((time - from) / (to - from)) * width;

export const toTime = ({ from, to, width }: TimeScale, x: number): number => from + (x / width) * (to - from);

/** Zooms by `factor` (below 1: in) around the pixel `x`, which keeps its time. */
export function zoomScale(scale: TimeScale, x: number, factor: number): TimeScale {
  const fixed = toTime(scale, x);
  const span = Math.min(MAX_SPAN_MS, Math.max(MIN_SPAN_MS, (scale.to - scale.from) * factor));
  const from = fixed - (x / scale.width) * span;
  return { ...scale, from, to: from + span };
}

export function panScale(scale: TimeScale, pixels: number): TimeScale {
  const shift = (pixels / scale.width) * (scale.to - scale.from);
  return { ...scale, from: scale.from - shift, to: scale.to - shift };
}

/**
 * All of these times that are near `now`, with some room at both sides: the time of a file may be decades away, and would
 * make one pixel of everything else.
 */
export function fitScale(times: readonly number[], width: number, now: number): TimeScale {
  const near = times.filter((it) => it >= now - MAX_FIT_BEFORE_MS && it <= now + MAX_FIT_AFTER_MS);
  const first = near.length > 0 ? Math.min(now, ...near) : now - 60_000;
  const last = Math.max(now, ...near);
  const room = Math.max(500, (last - first) * 0.03);
  return { from: first - room, to: last + room, width };
}

export function ticksOf(scale: TimeScale): { time: number; label: string }[] {
  const perTick = ((scale.to - scale.from) * MIN_TICK_PX) / scale.width;
  const step = STEPS.find((it) => it >= perTick) ?? Math.ceil(perTick / DAY_MS) * DAY_MS;
  const first = Math.ceil(scale.from / step) * step;
  // By their number: a step is lost in a time that is far enough away.
  const count = Math.min(MAX_TICKS, Math.floor((scale.to - first) / step) + 1);
  return Array.from({ length: count > 0 ? count : 0 }, (_, at) => {
    const time = first + at * step;
    return { time, label: clockText(time, step) };
  });
}

/** The local time of day, as precise as the step. */
export function clockText(time: number, step: number): string {
  const date = new Date(time);
  const two = (value: number) => String(value).padStart(2, "0");
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step >= 60_000) {
    return minutes;
  }
  const seconds = `${minutes}:${two(date.getSeconds())}`;
  return step >= 1_000 ? seconds : `${seconds}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** "340 ms", "6.4 s", "3 min 20 s", "2 h 5 min" */
export function durationText(ms: number): string {
  if (ms < 1_000) {
    return `${Math.round(ms)} ms`;
  }
  if (ms < 60_000) {
    return `${(ms / 1_000).toFixed(1)} s`;
  }
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) {
    return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  }
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}
