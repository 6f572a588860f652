/** The supervisor's requests to the host: run a task, run a command, stop the MCP server. */
import * as vscode from "vscode";
import { reviveArguments, toJson } from "../bridge/commandValues";
import type { RequestHandlers } from "../rpc/supervisorConnection";

export interface HostRequestPorts {
  /** Decides about the server: a debug window that is open keeps it. */
  stopServer(reason: string): Promise<{ stopped: boolean; outcome: string }>;
  log(line: string): void;
}

export function hostRequests(ports: HostRequestPorts): RequestHandlers {
  return {
    "host/runTask": async (params) => {
      const name = stringField(params, "name");
      ports.log(`the supervisor runs the task ${name}`);
      return { exitCode: await runTask(name) };
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

/** Runs a task by its name, or as `source: name`, to its end. The result is its exit code, if it has a process. */
async function runTask(name: string): Promise<number | null> {
  const tasks = await vscode.tasks.fetchTasks();
  const task = tasks.find((it) => it.name === name) ?? tasks.find((it) => `${it.source}: ${it.name}` === name);
  if (task === undefined) {
    throw new Error(`there is no task ${name}; there are: ${tasks.map((it) => it.name).slice(0, 20).join(", ") || "none"}`);
  }
  const subscriptions: vscode.Disposable[] = [];
  try {
    const ended = new Promise<number | null>((resolve) => {
      let exitCode: number | null = null;
      // Registered before it is started. The end of the process comes before that of the task.
      subscriptions.push(
        vscode.tasks.onDidEndTaskProcess((event) => {
          if (isSameTask(event.execution.task, task)) {
            exitCode = event.exitCode ?? null;
          }
        }),
        vscode.tasks.onDidEndTask((event) => isSameTask(event.execution.task, task) && resolve(exitCode)),
      );
    });
    await vscode.tasks.executeTask(task);
    return await ended;
  } finally {
    subscriptions.forEach((it) => it.dispose());
  }
}

const isSameTask = (a: vscode.Task, b: vscode.Task): boolean =>
  a.name === b.name && a.source === b.source && JSON.stringify(a.definition) === JSON.stringify(b.definition);
