/**
 * Stops the MCP server that VS Code runs for us. VS Code's command ignores an id that it does not know, so each step is
 * followed by a look at the processes; where they cannot be seen, the first step that does not throw counts.
 *
 *     stopServer by id ──▶ withdraw the definition ──▶ SIGTERM to the process ──▶ reported as left running
 */

export interface StopServerPorts {
  /** The ids under which VS Code may know the server, the likeliest first. */
  serverIds: readonly string[];
  /** VS Code's command to stop a server. */
  stopById(id: string): Promise<void>;
  /** Takes the definition away from VS Code, which then ends its server. */
  withdrawDefinition(): Promise<void>;
  /** The server's processes; undefined where they cannot be seen. */
  findProcesses(): Promise<number[] | undefined>;
  /** Resolves when none of them is left (true), or after a while (false). */
  waitUntilGone(): Promise<boolean>;
  terminateProcess(pid: number): void;
  log(line: string): void;
}

export type StopOutcome = "notRunning" | "stopped" | "withdrawn" | "terminated" | "leftRunning" | "unverified";

/** Never rejects: a step that fails is logged, and the next is tried. */
export async function stopServer(ports: StopServerPorts): Promise<StopOutcome> {
  const log = (line: string) => ports.log(`stop the MCP server: ${line}`);
  const before = await attempt(log, "look at its processes", () => ports.findProcesses());
  if (before?.length === 0) {
    log("it is not running");
    // It may be about to start, or be run by other means than are known here.
    await attempt(log, `workbench.mcp.stopServer ${ports.serverIds[0]}`, () => ports.stopById(ports.serverIds[0] ?? ""));
    return "notRunning";
  }
  for (const id of ports.serverIds) {
    const done = await attempt(log, `workbench.mcp.stopServer ${id}`, () => ports.stopById(id).then(() => true));
    if (done && before === undefined) {
      log("VS Code took the request; this platform does not show whether it has ended");
      return "unverified";
    }
    if (done && (await isGone(ports, log))) {
      return "stopped";
    }
  }
  await attempt(log, "withdraw its definition", () => ports.withdrawDefinition());
  if (before !== undefined && (await isGone(ports, log))) {
    return "withdrawn";
  }
  for (const pid of (await attempt(log, "look at its processes", () => ports.findProcesses())) ?? []) {
    await attempt(log, `send SIGTERM to process ${pid}`, async () => ports.terminateProcess(pid));
  }
  if (before === undefined) {
    return "unverified";
  }
  return (await isGone(ports, log)) ? "terminated" : "leftRunning";
}

async function isGone(ports: StopServerPorts, log: (line: string) => void): Promise<boolean> {
  const gone = (await attempt(log, "wait for its end", () => ports.waitUntilGone())) ?? false;
  log(gone ? "it has ended" : "it is still running");
  return gone;
}

async function attempt<T>(log: (line: string) => void, step: string, run: () => Promise<T>): Promise<T | undefined> {
  try {
    log(step);
    return await run();
  } catch (error) {
    log(`${step} failed: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}
