/**
 * The script of the timeline's webview: draws the entries that the extension sends, as SVG; hover or focus shows why.
 * All text from outside is set as text, never as markup.
 */
import { orderLanes } from "../chromeTrace";
import { clockText, durationText, fitScale, panScale, ticksOf, toX, zoomScale, type TimeScale } from "../timeScale";
import type { TimelineEntry } from "../timeline";

declare function acquireVsCodeApi(): { postMessage(message: unknown): void };

const SVG = "http://www.w3.org/2000/svg";
const ROW = 34;
const BAR = 20;
const AXIS = 28;
/** A span is at least this wide, so that it can be seen and hovered. */
const MIN_BAR = 3;
const NARROW_LABEL_PX = 48;
const TICK_LABEL_PX = 70;

const vscode = acquireVsCodeApi();
const element = <T extends Element>(id: string) => document.getElementById(id) as unknown as T;
const chart = element<SVGSVGElement>("chart");
const labels = element<HTMLElement>("labels");
const tooltip = element<HTMLElement>("tooltip");
const empty = element<HTMLElement>("empty");
const summary = element<HTMLElement>("summary");
const follow = element<HTMLInputElement>("follow");

let entries: TimelineEntry[] = [];
let scale: TimeScale = { from: Date.now() - 60_000, to: Date.now(), width: 1 };
/** Fit everything until the user zooms or pans. */
let fitted = true;

function svg(name: string, attributes: Record<string, string | number>, parent: Element): SVGElement {
  const created = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    created.setAttribute(key, String(value));
  }
  parent.append(created);
  return created;
}

function draw(): void {
  const now = Date.now();
  const width = Math.max(100, chart.clientWidth);
  scale = { ...scale, width };
  if (fitted) {
    scale = fitScale(entries.flatMap((it) => [it.start, it.end ?? now]), width, now);
  } else if (follow.checked) {
    const span = scale.to - scale.from;
    scale = { from: now + span * 0.03 - span, to: now + span * 0.03, width };
  }
  const lanes = orderLanes({ entries });
  empty.hidden = entries.length > 0;
  chart.classList.toggle("hidden", entries.length === 0);
  chart.replaceChildren();
  labels.replaceChildren(...lanes.map(laneLabel));
  chart.setAttribute("height", String(AXIS + lanes.length * ROW + 4));
  lanes.forEach((_, at) => {
    if (at % 2 === 0) {
      svg("rect", { class: "stripe", x: 0, y: AXIS + at * ROW, width, height: ROW }, chart);
    }
  });
  for (const { time, label } of ticksOf(scale)) {
    const x = toX(scale, time);
    svg("line", { class: "tick", x1: x, x2: x, y1: AXIS - 6, y2: AXIS + lanes.length * ROW }, chart);
    if (x + TICK_LABEL_PX < width) {
      svg("text", { class: "tickLabel", x: x + 4, y: AXIS - 10 }, chart).textContent = label;
    }
  }
  const isInstant = (it: TimelineEntry) => it.end === it.start;
  for (const entry of [...entries.filter((it) => !isInstant(it)), ...entries.filter(isInstant)]) {
    drawEntry(entry, lanes.indexOf(entry.lane), now);
  }
  const x = toX(scale, now);
  svg("line", { class: "now", x1: x, x2: x, y1: AXIS - 6, y2: AXIS + lanes.length * ROW }, chart);
}

function laneLabel(lane: string): HTMLElement {
  const label = document.createElement("div");
  label.className = "lane";
  label.textContent = lane;
  label.title = lane;
  return label;
}

function drawEntry(entry: TimelineEntry, row: number, now: number): void {
  const middle = AXIS + row * ROW + ROW / 2;
  const [left, right] = [toX(scale, entry.start), toX(scale, entry.end ?? now)];
  if (right < -20 || left > scale.width + 20) {
    return;
  }
  const group = svg("g", { class: `entry ${entry.tone}`, tabindex: 0, role: "img", "aria-label": describe(entry, now).join(", ") }, chart);
  if (entry.end === entry.start) {
    const [size, x] = [7, left];
    svg("path", { class: "instant", d: `M${x} ${middle - size}L${x + size} ${middle}L${x} ${middle + size}L${x - size} ${middle}Z` }, group);
  } else {
    const [x, width] = [Math.max(-4, left), Math.max(MIN_BAR, Math.min(scale.width + 4, right) - Math.max(-4, left))];
    svg("rect", { class: "bar", x, y: middle - BAR / 2, width, height: BAR, rx: 3 }, group);
    if (width > NARROW_LABEL_PX) {
      const text = svg("text", { class: "barLabel", x: Math.max(x, 0) + 11, y: middle + 4 }, group);
      text.textContent = shorten(entry.name, Math.floor((width - 18) / 6.4));
    }
  }
  group.addEventListener("pointerenter", (event) => showTooltip(entry, event.clientX, event.clientY));
  group.addEventListener("pointermove", (event) => showTooltip(entry, event.clientX, event.clientY));
  group.addEventListener("pointerleave", hideTooltip);
  group.addEventListener("focus", () => {
    const box = group.getBoundingClientRect();
    showTooltip(entry, box.left + Math.min(box.width / 2, 120), box.bottom);
  });
  group.addEventListener("blur", hideTooltip);
}

const shorten = (text: string, most: number) => (text.length <= most ? text : most < 3 ? "" : `${text.slice(0, most - 1)}…`);

function describe(entry: TimelineEntry, now: number): string[] {
  const start = clockText(entry.start, 1);
  const time = entry.end === entry.start ? start : `${start}, ${durationText((entry.end ?? now) - entry.start)}${entry.end === undefined ? " so far" : ""}`;
  return [entry.name, time, ...entry.details];
}

function showTooltip(entry: TimelineEntry, x: number, y: number): void {
  const [name = "", ...lines] = describe(entry, Date.now());
  const title = document.createElement("strong");
  title.textContent = name;
  tooltip.replaceChildren(
    title,
    ...lines.map((line) => {
      const row = document.createElement("div");
      row.textContent = line;
      return row;
    }),
  );
  tooltip.hidden = false;
  const { width, height } = tooltip.getBoundingClientRect();
  tooltip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - width - 8))}px`;
  tooltip.style.top = `${y + 16 + height > window.innerHeight ? Math.max(4, y - height - 12) : y + 16}px`;
}

function hideTooltip(): void {
  tooltip.hidden = true;
}

chart.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    fitted = false;
    follow.checked = false;
    const isPan = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const delta = event.deltaX !== 0 && isPan ? event.deltaX : event.deltaY;
    const x = event.clientX - chart.getBoundingClientRect().left;
    scale = isPan ? panScale(scale, -delta) : zoomScale(scale, x, Math.exp(delta / 400));
    draw();
  },
  { passive: false },
);
chart.addEventListener("pointerdown", (event) => {
  chart.setPointerCapture(event.pointerId);
  let last = event.clientX;
  const move = (moved: PointerEvent) => {
    fitted = false;
    follow.checked = false;
    scale = panScale(scale, moved.clientX - last);
    last = moved.clientX;
    draw();
  };
  chart.addEventListener("pointermove", move);
  chart.addEventListener("pointerup", () => chart.removeEventListener("pointermove", move), { once: true });
});
element<HTMLElement>("fit").addEventListener("click", () => {
  fitted = true;
  draw();
});
for (const [id, factor] of [["zoomIn", 0.5], ["zoomOut", 2]] as const) {
  element<HTMLElement>(id).addEventListener("click", () => {
    fitted = false;
    scale = zoomScale(scale, follow.checked ? scale.width : scale.width / 2, factor);
    draw();
  });
}
follow.addEventListener("change", () => {
  fitted = false;
  draw();
});
element<HTMLElement>("export").addEventListener("click", () => vscode.postMessage({ type: "export" }));
window.addEventListener("resize", draw);
window.addEventListener("message", (event: MessageEvent<{ type: string; entries: TimelineEntry[]; summary: string }>) => {
  if (event.data.type === "timeline") {
    entries = event.data.entries;
    summary.textContent = event.data.summary;
    draw();
  }
});
// What goes on grows.
setInterval(() => {
  if (!document.hidden && entries.some((it) => it.end === undefined) && (fitted || follow.checked)) {
    draw();
  }
}, 1_000);
vscode.postMessage({ type: "ready" });
