/** The supervisor's requests to the host: run a task, run a command, stop the MCP server. */
import * as vscode from "vscode";
import { reviveArguments, toJson } from "../bridge/commandValues";
import type { RequestHandlers } from "../rpc/supervisorConnection";
import { Turns, chooseTask, runToEnd, type TaskFacts } from "./taskRun";

export interface HostRequestPorts {
  /** The folder whose supervisor sends the requests. */
  folder(): vscode.WorkspaceFolder | undefined;
  /** Decides about the server: a debug window that is open keeps it. */
  stopServer(reason: string): Promise<{ stopped: boolean; outcome: string }>;
  log(line: string): void;
}

export function hostRequests(ports: HostRequestPorts): RequestHandlers {
  const turns = new Turns();
  return {
    "host/runTask": async (params) => {
      const name = stringField(params, "name");
      ports.log(`the supervisor runs the task ${name}`);
      return { exitCode: await runTask(name, ports.folder(), turns) };
    },
    "host/executeCommand": async (params) => {
      const command = stringField(params, "command");
      const args = (params as { args?: unknown }).args;
      ports.log(`the supervisor runs the command ${command}`);
      const revived = (Array.isArray(args) ? args : args === undefined || args === null ? [] : [args]).map((it) =>
        reviveArguments(it, (text) => vscode.Uri.parse(text, true)),
      );
      return { value: toJson(await vscode.commands.executeCommand(command, ...revived)) };
    },
    "host/stopServer": async (params) => {
      const reason = (params as { reason?: unknown } | null)?.reason;
      return ports.stopServer(typeof reason === "string" ? reason : "the supervisor asked for it");
    },
  };
}

function stringField(params: unknown, field: string): string {
  const value = (params as Record<string, unknown> | null)?.[field];
  if (typeof value !== "string" || value === "") {
    throw new Error(`\`${field}\` must be a string`);
  }
  return value;
}

/** Runs a task of the folder by its name to its end. The result is its exit code, if it has a process. */
async function runTask(name: string, folder: vscode.WorkspaceFolder | undefined, turns: Turns): Promise<number | null> {
  const tasks = (await vscode.tasks.fetchTasks()).map((task) => ({ task, ...factsOf(task) }));
  const { task, ...facts } = chooseTask(tasks, name, folder?.uri.toString());
  // VS Code asks its user what to do with a task that is started twice.
  return turns.run(JSON.stringify(facts), () =>
    runToEnd<vscode.TaskExecution>({
      onDidEndProcess: (listener) => vscode.tasks.onDidEndTaskProcess((it) => listener(it.execution, it.exitCode)),
      onDidEnd: (listener) => vscode.tasks.onDidEndTask((it) => listener(it.execution)),
      start: async () => vscode.tasks.executeTask(task),
    }),
  );
}

function factsOf({ name, source, scope, isBackground }: vscode.Task): TaskFacts {
  const folder = typeof scope === "object" ? scope.uri.toString() : undefined;
  return { name, source, folder, isBackground };
}
