/** What the states of windows and sessions mean for what can be done with them. */

import type { RunState, ReportedWindowState } from "./protocol";

export const isLive = (state: RunState): boolean => state !== "TERMINATED" && state !== "DISCONNECTED";

/** Whether there is a window to look at, restart or stop. */
export const isOpen = (state: ReportedWindowState): boolean => !["absent", "exited"].includes(state);
