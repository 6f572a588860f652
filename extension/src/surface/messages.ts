/** Notifications, progress, choices, and debug sessions that are started: outside text in them is text. */
import * as vscode from "vscode";
import { configurationText, iconText, notificationText, plainConfiguration } from "./plainText";

export const showInformation = (message: string): void =>
  void vscode.window.showInformationMessage(notificationText(message));

/** Resolves with the button that was clicked. */
export const showError = <B extends string>(message: string, ...buttons: B[]): Thenable<B | undefined> =>
  vscode.window.showErrorMessage<B>(notificationText(message), ...buttons);

/** Runs it with a notification that shows its progress, and can cancel it. */
export function showProgress<T>(
  title: string,
  run: (report: (message: string) => void, token: vscode.CancellationToken) => Promise<T>,
): Thenable<T> {
  const options = { location: vscode.ProgressLocation.Notification, title: notificationText(title), cancellable: true };
  return vscode.window.withProgress(options, (progress, token) =>
    run((message) => progress.report({ message: notificationText(message) }), token),
  );
}

export interface Choice {
  label: string;
  description: string;
  id: string;
}

/** Resolves with the id of what the user has chosen. */
export async function chooseOne(title: string, choices: readonly Choice[]): Promise<string | undefined> {
  const items = choices.map(({ label, description, id }) => ({ label: iconText`${label}`, description: iconText`${description}`, id }));
  return (await vscode.window.showQuickPick(items, { title }))?.id;
}

/** Starts a session of exactly this configuration: VS Code resolves no variable in it. */
export const startDebugging = (
  folder: vscode.WorkspaceFolder | undefined,
  configuration: vscode.DebugConfiguration,
  options?: vscode.DebugSessionOptions,
): Thenable<boolean> => vscode.debug.startDebugging(folder, plainConfiguration(configuration), options);

/**
 * Runs a program in the terminal, as a task of this folder. VS Code resolves the variables of a task: the folder is named by
 * one. Throws where the program's path would be read as one.
 */
export async function runInTerminal(folder: vscode.WorkspaceFolder, name: string, program: string, args: readonly string[]): Promise<void> {
  if (configurationText(program) !== program) {
    throw new Error(`cannot run ${program} in a terminal: VS Code would read its path as a variable`);
  }
  const execution = new vscode.ProcessExecution(program, ["--workspace", "${workspaceFolder}", ...args], { cwd: "${workspaceFolder}" });
  const task = new vscode.Task({ type: "tether", name }, folder, name, "tether", execution, []);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, clear: true, focus: true };
  await vscode.tasks.executeTask(task);
}
