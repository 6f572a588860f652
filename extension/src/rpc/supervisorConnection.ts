/**
 * One JSON-RPC connection to the supervisor: initialize, requests with deadlines, notifications, and the supervisor's own
 * requests. The framing is vscode-jsonrpc's. Does not know how the streams were made.
 */
import type { Readable, Writable } from "node:stream";
import {
  CancellationTokenSource,
  ErrorCodes,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
  createMessageConnection,
  type MessageConnection,
} from "vscode-jsonrpc/node";
import type { InitializeParams, InitializeResult } from "./protocol";
import { SupervisorError, toSupervisorError } from "./supervisorError";

/** Whoever connects; `tether rpc` fills in the version of its program. */
export type ConnectingClient = Omit<InitializeParams, "version"> & { version?: string };

/** Answers the supervisor's requests, by method. */
export type RequestHandlers = Record<string, (params: unknown) => Promise<unknown>>;

/** A request that shall end early; VS Code's tokens have this shape. */
export interface CancelToken {
  readonly isCancellationRequested: boolean;
  onCancellationRequested(listener: () => void): { dispose(): void };
}

export interface RequestOptions {
  /** Default: 30 s. Launches and builds have none. */
  timeoutMs?: number | "none";
  token?: CancelToken;
}

const DEFAULT_TIMEOUT_MS = 30_000;

export class SupervisorConnection {
  private closed = false;
  private readonly closeListeners: ((reason: string) => void)[] = [];

  private constructor(
    private readonly rpc: MessageConnection,
    readonly supervisor: InitializeResult,
  ) {}

  /** Opens the connection. Rejects when the supervisor refuses it, or does not respond within `timeoutMs`. */
  static async open(
    streams: { reader: Readable; writer: Writable },
    client: ConnectingClient,
    handlers: RequestHandlers,
    timeoutMs = DEFAULT_TIMEOUT_MS,
  ): Promise<SupervisorConnection> {
    const rpc = createMessageConnection(new StreamMessageReader(streams.reader), new StreamMessageWriter(streams.writer));
    // Before the first message is read: a request that comes with the first response is answered, too.
    for (const [method, handle] of Object.entries(handlers)) {
      rpc.onRequest(method, (params: unknown) => handle(params).catch((error) => Promise.reject(toResponseError(error))));
    }
    const ended = new Promise<never>((_, reject) => {
      rpc.onClose(() => reject(new SupervisorError("the supervisor closed the connection", "cancelled")));
      rpc.onError(([error]) => reject(toSupervisorError(error)));
    });
    // It is awaited only while initializing.
    ended.catch(() => undefined);
    rpc.listen();
    try {
      const answer = sendRequest<InitializeResult>(rpc, "initialize", client, { timeoutMs });
      const supervisor = await Promise.race([answer, ended]);
      if (supervisor.draining) {
        throw new SupervisorError("the supervisor is older than this extension, and exits", "draining");
      }
      const connection = new SupervisorConnection(rpc, supervisor);
      rpc.onClose(() => connection.end("the supervisor closed the connection"));
      rpc.onError(([error]) => connection.end(error.message));
      return connection;
    } catch (error) {
      rpc.dispose();
      throw toSupervisorError(error);
    }
  }

  /** Sends a request. Rejects with a {@link SupervisorError}; a request that is given up is cancelled there. */
  async request<T>(method: string, params: object = {}, options: RequestOptions = {}): Promise<T> {
    if (this.closed) {
      throw new SupervisorError(`cannot send ${method}: the connection is closed`, "cancelled");
    }
    // What is pending when the connection ends is rejected, because it is disposed of then.
    return sendRequest<T>(this.rpc, method, params, options);
  }

  onNotification(method: string, listener: (params: unknown) => void): void {
    this.rpc.onNotification(method, listener);
  }

  /** Progress of whatever request is in flight. */
  onProgress(listener: (message: string) => void): { dispose(): void } {
    return this.rpc.onUnhandledProgress(({ value }) => {
      const message = (value as { message?: unknown } | null)?.message;
      if (typeof message === "string") {
        listener(message);
      }
    });
  }

  /** Calls `listener` once, at the end of the connection; at once if it has ended. */
  onClose(listener: (reason: string) => void): void {
    if (this.closed) {
      listener("the connection is closed");
    } else {
      this.closeListeners.push(listener);
    }
  }

  /** Closes the connection, and with it all that waits for a response. */
  dispose(): void {
    this.end("closed by this extension");
  }

  private end(reason: string): void {
    if (this.closed) {
      return;
    }
    this.closed = true;
    this.rpc.end();
    this.rpc.dispose();
    for (const listener of this.closeListeners.splice(0)) {
      listener(reason);
    }
  }
}

async function sendRequest<T>(
  rpc: MessageConnection,
  method: string,
  params: object,
  { timeoutMs = DEFAULT_TIMEOUT_MS, token }: RequestOptions,
): Promise<T> {
  const cancel = new CancellationTokenSource();
  const given = token?.onCancellationRequested(() => cancel.cancel());
  if (token?.isCancellationRequested) {
    cancel.cancel();
  }
  const late = new SupervisorError(`${method} got no response within ${Number(timeoutMs) / 1000} s`, "timedOut");
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    if (timeoutMs !== "none") {
      timer = setTimeout(() => {
        reject(late);
        cancel.cancel();
      }, timeoutMs);
    }
  });
  try {
    return await Promise.race([rpc.sendRequest<T>(method, params, cancel.token), deadline]);
  } catch (error) {
    const ended = error instanceof ResponseError && error.code === ErrorCodes.PendingResponseRejected;
    throw ended ? new SupervisorError(`${method} got no response: the connection has ended`, "cancelled") : toSupervisorError(error);
  } finally {
    clearTimeout(timer);
    given?.dispose();
    cancel.dispose();
  }
}

function toResponseError(error: unknown): ResponseError<unknown> {
  if (error instanceof ResponseError) {
    return error;
  }
  return new ResponseError(ErrorCodes.InternalError, error instanceof Error ? error.message : String(error));
}
