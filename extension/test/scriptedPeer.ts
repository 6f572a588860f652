/** A supervisor that a test scripts: the real protocol over streams in memory. */
import { PassThrough } from "node:stream";
import { StreamMessageReader, StreamMessageWriter, createMessageConnection, type MessageConnection } from "vscode-jsonrpc/node";
import { SupervisorConnection, type RequestHandlers } from "../src/rpc/supervisorConnection";

export const SUPERVISOR = { name: "devtether", version: "0.1.0", pid: 7, workspace: "/some folder" };
export const CLIENT = { name: "test", role: "host" as const, capabilities: {} };

export interface ScriptedPeer {
  rpc: MessageConnection;
  /** What the client reads, and what it writes. */
  toClient: PassThrough;
  fromClient: PassThrough;
}

export function scriptedPeer(answers: Record<string, (params: unknown) => unknown> = {}): ScriptedPeer {
  const [toClient, fromClient] = [new PassThrough(), new PassThrough()];
  const rpc = createMessageConnection(new StreamMessageReader(fromClient), new StreamMessageWriter(toClient));
  const all: Record<string, (params: unknown) => unknown> = { initialize: () => SUPERVISOR, ...answers };
  for (const [method, answer] of Object.entries(all)) {
    rpc.onRequest(method, (params: unknown) => answer(params));
  }
  rpc.listen();
  return { rpc, toClient, fromClient };
}

export const openTo = (peer: ScriptedPeer, handlers: RequestHandlers = {}, timeoutMs = 5_000): Promise<SupervisorConnection> =>
  SupervisorConnection.open({ reader: peer.toClient, writer: peer.fromClient }, CLIENT, handlers, timeoutMs);

/** Resolves once `holds`, for what has no event. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 20_000;
  while (!(await holds())) {
    if (Date.now() > end) {
      throw new Error(`never: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
