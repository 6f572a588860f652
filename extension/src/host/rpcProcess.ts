/** Starts `tether rpc`, which connects its stdio to the folder's supervisor and starts that on demand. */
import { spawn } from "node:child_process";
import type { ConnectingClient } from "../rpc/supervisorConnection";
import { SupervisorConnection, type RequestHandlers } from "../rpc/supervisorConnection";
import { SupervisorError } from "../rpc/supervisorError";

/** How much of the program's stderr an error has. */
const MAX_ERROR_CHARS = 4_000;
/** How long it may run on after its stdin has ended. */
const EXIT_TIMEOUT_MS = 5_000;

/** The process ends with the connection. Rejects with what the program wrote to stderr. */
export async function connectThroughProgram(
  program: string,
  folder: string,
  client: ConnectingClient,
  handlers: RequestHandlers,
  log: (line: string) => void,
): Promise<SupervisorConnection> {
  const child = spawn(program, ["--workspace", folder, "rpc"], { cwd: folder, stdio: "pipe" });
  let stderr = "";
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (text: string) => {
    stderr = (stderr + text).slice(-MAX_ERROR_CHARS);
    log(`tether rpc: ${text.trimEnd()}`);
  });
  // A write to a program that has exited is reported by the exit.
  child.stdin.on("error", () => undefined);
  const exited = new Promise<string>((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("close", (code, signal) => resolve(stderr.trim() || `it exited with ${signal ?? code}`));
  });
  const failed = exited.then((reason) => {
    throw new SupervisorError(`\`tether rpc\` failed: ${reason}`, "other");
  });
  failed.catch(() => undefined);
  try {
    const opened = SupervisorConnection.open({ reader: child.stdout, writer: child.stdin }, client, handlers);
    opened.catch(() => undefined);
    const connection = await Promise.race([opened, failed]).catch(async (error: SupervisorError) => {
      // The closed connection is seen before the exit, which has the reason.
      child.stdin.end();
      const reason = await Promise.race([exited, delay(EXIT_TIMEOUT_MS)]);
      throw stderr === "" || reason === undefined ? error : new SupervisorError(stderr.trim(), error.kind, error.hints);
    });
    connection.onClose(() => {
      child.stdin.end();
      const timer = setTimeout(() => child.kill(), EXIT_TIMEOUT_MS);
      void exited.then(() => clearTimeout(timer));
    });
    return connection;
  } catch (error) {
    child.kill();
    throw error;
  }
}

const delay = (ms: number): Promise<undefined> => new Promise((resolve) => setTimeout(() => resolve(undefined), ms).unref());
