/** The text of the status bar item. Pure. */
import type { Overview } from "../host/overview";
import { isLive } from "../rpc/states";
import { iconText, type IconText } from "../surface/plainText";

export interface StatusText {
  text: IconText;
  /** One line each; plain text. */
  tooltip: string[];
  tone: "normal" | "warning" | "error";
}

export function statusText(overview: Overview): StatusText | undefined {
  const { link, window } = overview;
  switch (link.kind) {
    case "noFolder":
    case "untrusted":
      return undefined;
    case "missing":
      return { text: iconText`$(debug-disconnect) tether: not found`, tooltip: [link.reason], tone: "warning" };
    case "idle":
      return { text: iconText`$(debug-disconnect) tether`, tooltip: ["Not connected: no window has been started here."], tone: "normal" };
    case "connecting":
      return { text: iconText`$(sync~spin) tether: connecting`, tooltip: ["Connecting to the supervisor."], tone: "normal" };
    case "lost":
      return { text: iconText`$(debug-disconnect) tether: connection lost`, tooltip: [link.reason], tone: "warning" };
    case "connected":
      break;
  }
  const stopped = overview.sessions.filter((it) => it.state === "STOPPED");
  const live = overview.sessions.filter((it) => isLive(it.state));
  const tooltip = [
    `Window: ${window?.state ?? "unknown"}${window?.generation ? `, launch ${window.generation}` : ""}`,
    ...(window?.changes ?? []).slice(0, 3).map((it) => `${it.path} was ${it.kind}`),
    ...(overview.lastRelaunch ? [`Relaunched because ${overview.lastRelaunch.because}`] : []),
    ...(live.length > 0 ? [`Debug sessions: ${live.map((it) => `${it.sessionId} ${it.state.toLowerCase()}`).join(", ")}`] : []),
    `Supervisor ${link.version}, process ${link.pid}`,
  ];
  const [icon, label, tone] = WINDOW_TEXT[window?.state ?? "absent"] ?? ["question", window?.state ?? "", "warning"];
  const ids = stopped.map((it) => it.sessionId).join(", ");
  const text = stopped.length > 0 ? iconText`$(${icon}) tether: ${label} $(debug-pause) ${ids}` : iconText`$(${icon}) tether: ${label}`;
  return { text, tooltip, tone };
}

const WINDOW_TEXT: Record<string, [icon: string, label: string, tone: StatusText["tone"]]> = {
  absent: ["plug", "no window", "normal"],
  starting: ["loading~spin", "starting", "normal"],
  ready: ["pass-filled", "ready", "normal"],
  stale: ["history", "stale", "normal"],
  building: ["loading~spin", "building", "normal"],
  stopping: ["loading~spin", "stopping", "normal"],
  exited: ["circle-slash", "window closed", "warning"],
  unresponsive: ["error", "window does not respond", "error"],
  unverified: ["unverified", "window not verified", "warning"],
};
