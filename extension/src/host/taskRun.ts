/** Chooses a task by its name, and follows its run to the end. Knows nothing of VS Code. */

/** What is known of a task of VS Code. */
export interface TaskFacts {
  name: string;
  /** What contributes it, such as `npm` or `Workspace`. */
  source: string;
  /** The URI of its folder; undefined: it is of the whole workspace, or of the user. */
  folder: string | undefined;
  isBackground: boolean;
}

/** The task by its name, or as `source: name`: of this folder, or of no other one. Throws where there is none that ends. */
export function chooseTask<T extends TaskFacts>(tasks: readonly T[], name: string, folder: string | undefined): T {
  const here = tasks.filter((it) => it.folder === undefined || it.folder === folder);
  const own = [...here.filter((it) => it.folder === folder), ...here.filter((it) => it.folder !== folder)];
  const found = own.find((it) => it.name === name) ?? own.find((it) => `${it.source}: ${it.name}` === name);
  if (found === undefined) {
    const isElsewhere = tasks.some((it) => !here.includes(it) && (it.name === name || `${it.source}: ${it.name}` === name));
    const names = own.map((it) => it.name).slice(0, 20).join(", ") || "none";
    throw new Error(`there is no task ${name} in this folder${isElsewhere ? ", but in another one" : ""}; there are: ${names}`);
  }
  if (found.isBackground) {
    throw new Error(`the task ${name} runs in the background: it has no end that could be waited for`);
  }
  return found;
}

/** The events of one run of a task. `E` is VS Code's object for a run; the same run has the same one. */
export interface TaskRunPorts<E> {
  /** Calls `listener` with the exit code of each run whose process has ended. */
  onDidEndProcess(listener: (run: E, exitCode: number | undefined) => void): { dispose(): void };
  /** Calls `listener` at the end of each run. The end of its process comes before that. */
  onDidEnd(listener: (run: E) => void): { dispose(): void };
  start(): Promise<E>;
}

/** Starts the task, and waits for the end of this run, not of another one. Its exit code; null: it has no process. */
export async function runToEnd<E extends object>(ports: TaskRunPorts<E>): Promise<number | null> {
  const exitCodes = new Map<E, number | null>();
  const ended = new Set<E>();
  let wake: () => void = () => undefined;
  // Registered before it is started: a short task may have ended when its run is known.
  const subscriptions = [
    ports.onDidEndProcess((run, exitCode) => exitCodes.set(run, exitCode ?? null)),
    ports.onDidEnd((run) => {
      ended.add(run);
      wake();
    }),
  ];
  try {
    const run = await ports.start();
    while (!ended.has(run)) {
      await new Promise<void>((resolve) => (wake = resolve));
    }
    return exitCodes.get(run) ?? null;
  } finally {
    subscriptions.forEach((it) => it.dispose());
  }
}

/** Runs one at a time of those with the same key, in the order in which they came. */
export class Turns {
  private readonly last = new Map<string, Promise<void>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.last.get(key) ?? Promise.resolve();
    const outcome = before.then(work);
    const settled = outcome.then(
      () => undefined,
      () => undefined,
    );
    this.last.set(key, settled);
    try {
      return await outcome;
    } finally {
      if (this.last.get(key) === settled) {
        this.last.delete(key);
      }
    }
  }
}
