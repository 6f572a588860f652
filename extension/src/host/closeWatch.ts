/**
 * When the MCP server is to be stopped: the last debug window has closed, and no other has opened within the grace.
 * Pure: timers and the server belong to the caller.
 *
 *     idle ──opened──▶ open ──last closed: start grace──▶ grace ──elapsed: stop server──▶ idle
 *                       ▲                                   │
 *                       └────────opened: cancel grace───────┘
 */

export interface CloseWatchState {
  /** The ids of the windows that are open. */
  open: ReadonlySet<string>;
  /** The grace that runs; each has a number of its own. */
  grace?: number;
  /** The number of graces so far. */
  graces: number;
}

export type CloseWatchInput =
  | { kind: "opened"; id: string }
  /** Closed by its user, or by itself. */
  | { kind: "closed"; id: string }
  /** Stopped by request, or not to be seen any more: no reason to stop anything. */
  | { kind: "released"; id: string }
  | { kind: "graceElapsed"; grace: number };

export type CloseWatchEffect = { kind: "startGrace"; grace: number } | { kind: "cancelGrace" } | { kind: "stopServer" };

export const NO_WINDOWS: CloseWatchState = { open: new Set(), graces: 0 };

export function stepCloseWatch(state: CloseWatchState, input: CloseWatchInput): [CloseWatchState, CloseWatchEffect[]] {
  const { grace, ...rest } = state;
  switch (input.kind) {
    case "opened": {
      const open = new Set(state.open).add(input.id);
      return [{ ...rest, open }, grace === undefined ? [] : [{ kind: "cancelGrace" }]];
    }
    case "closed":
    case "released": {
      if (!state.open.has(input.id)) {
        return [state, []];
      }
      const open = new Set(state.open);
      open.delete(input.id);
      if (open.size > 0 || input.kind === "released") {
        return [{ ...state, open }, []];
      }
      const started = state.graces + 1;
      return [{ open, grace: started, graces: started }, [{ kind: "startGrace", grace: started }]];
    }
    case "graceElapsed":
      // The timer of a grace that was cancelled may have been on its way.
      return input.grace === grace ? [rest, [{ kind: "stopServer" }]] : [state, []];
  }
}
