/**
 * Debug sessions that the supervisor has this editor open: `startDebugSession {host, port}` → the id of VS Code's session,
 * `terminateDebugSession {sessionId}` → whether there was such a session.
 */
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { RequestHandlers } from "../rpc/supervisorConnection";
import { startDebugging } from "../surface/messages";

/** The field of a configuration that names an address of ours. An unknown value, such as a user's, names none. */
const ADDRESS_FIELD = "__tetherAddress";
const LOOPBACK = ["127.0.0.1", "localhost", "::1"];
/** Opening a session takes a connection to a local port. */
const START_TIMEOUT_MS = 30_000;

export class RemoteSessions implements vscode.Disposable {
  private readonly addresses = new Map<string, { host: string; port: number }>();
  private readonly sessions = new Map<string, vscode.DebugSession>();
  private readonly waiting = new Map<string, (session: vscode.DebugSession) => void>();
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly folder: () => vscode.WorkspaceFolder | undefined) {
    this.subscriptions = [
      vscode.debug.onDidStartDebugSession((session) => this.waiting.get(String(session.configuration[ADDRESS_FIELD]))?.(session)),
      vscode.debug.onDidTerminateDebugSession((session) => this.sessions.delete(session.id)),
    ];
  }

  handlers(): RequestHandlers {
    return {
      startDebugSession: (params) => this.startSession(params),
      terminateDebugSession: (params) => this.terminateSession(params),
    };
  }

  /** Where the adapter of a session listens, if the supervisor has asked for the session. */
  addressOf(configuration: vscode.DebugConfiguration): { host: string; port: number } | undefined {
    return this.addresses.get(String(configuration[ADDRESS_FIELD]));
  }

  dispose(): void {
    this.subscriptions.forEach((it) => it.dispose());
  }

  private async startSession(params: unknown): Promise<{ sessionId: string }> {
    const { host, port, name } = (params ?? {}) as { host?: unknown; port?: unknown; name?: unknown };
    if (typeof host !== "string" || !LOOPBACK.includes(host) || typeof port !== "number") {
      throw new Error("`host` must be this machine, and `port` a number");
    }
    const token = randomUUID();
    this.addresses.set(token, { host, port });
    let timer: NodeJS.Timeout | undefined;
    try {
      const started = new Promise<vscode.DebugSession>((resolve, reject) => {
        this.waiting.set(token, resolve);
        timer = setTimeout(() => reject(new Error("VS Code did not open the session in time")), START_TIMEOUT_MS);
      });
      started.catch(() => undefined);
      const title = typeof name === "string" ? name : `port ${port}`;
      const configuration = { type: "tether", request: "attach", name: `Tether: ${title}`, [ADDRESS_FIELD]: token };
      if (!(await startDebugging(this.folder(), configuration))) {
        throw new Error("VS Code refused to open the session");
      }
      const session = await started;
      this.sessions.set(session.id, session);
      return { sessionId: session.id };
    } finally {
      clearTimeout(timer);
      this.waiting.delete(token);
      this.addresses.delete(token);
    }
  }

  private async terminateSession(params: unknown): Promise<boolean> {
    const session = this.sessions.get(String((params as { sessionId?: unknown } | null)?.sessionId));
    if (session === undefined) {
      return false;
    }
    await vscode.debug.stopDebugging(session);
    return true;
  }
}
