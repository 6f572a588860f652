/** Runs the close watch: its timer, its log lines, and the stop of the server. */
import { NO_WINDOWS, stepCloseWatch, type CloseWatchInput } from "./closeWatch";

export interface CloseWatcherPorts {
  /** How long a closed window may be replaced, in milliseconds. */
  graceMs(): number;
  /** Never rejects. */
  stopServer(): Promise<void>;
  log(line: string): void;
}

export class CloseWatcher {
  private state = NO_WINDOWS;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly ports: CloseWatcherPorts) {}

  handle(input: CloseWatchInput): void {
    const [state, effects] = stepCloseWatch(this.state, input);
    if (state !== this.state && input.kind !== "graceElapsed") {
      this.ports.log(`debug window ${input.id} ${input.kind}; ${state.open.size} open`);
    }
    this.state = state;
    for (const effect of effects) {
      switch (effect.kind) {
        case "startGrace": {
          const ms = this.ports.graceMs();
          this.ports.log(`the last debug window has closed: the MCP server is stopped in ${ms} ms, unless another opens`);
          this.timer = setTimeout(() => this.handle({ kind: "graceElapsed", grace: effect.grace }), ms);
          break;
        }
        case "cancelGrace":
          clearTimeout(this.timer);
          this.ports.log("another debug window has opened within the grace: the MCP server stays");
          break;
        case "stopServer":
          this.ports.log("no other debug window has opened: stopping the MCP server");
          void this.ports.stopServer();
          break;
      }
    }
  }

  /** Whether a closed window may still be replaced. */
  get isWaiting(): boolean {
    return this.state.grace !== undefined;
  }

  get openCount(): number {
    return this.state.open.size;
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}
