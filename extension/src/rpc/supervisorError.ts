/** An error of the supervisor: what failed, because of what, and what the reader can run. */
import { ResponseError } from "vscode-jsonrpc/node";

export class SupervisorError extends Error {
  constructor(
    message: string,
    readonly kind: string,
    readonly hints: readonly string[] = [],
  ) {
    super(message);
    this.name = "SupervisorError";
  }
}

/** The error of a request as one of ours. The `data` of the supervisor's errors has the parts of their text. */
export function toSupervisorError(error: unknown): SupervisorError {
  if (error instanceof SupervisorError) {
    return error;
  }
  const text = error instanceof Error ? error.message : String(error);
  if (!(error instanceof ResponseError) || typeof error.data !== "object" || error.data === null) {
    return new SupervisorError(text, "other");
  }
  const { kind, doing, because, hints } = error.data as Record<string, unknown>;
  const causes = stringsOf(because);
  const message = typeof doing === "string" ? [doing, ...causes].join(": ") : text;
  return new SupervisorError(message, typeof kind === "string" ? kind : "other", stringsOf(hints));
}

const stringsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((it): it is string => typeof it === "string") : [];
