/**
 * The processes that VS Code runs for our definition: children of this extension host with its command line, which is
 * preceded by an interpreter where the program is a script. Read from /proc, so on Linux only.
 */
import { readFile, readdir } from "node:fs/promises";

const PAUSE_MS = 50;

export async function findServerProcesses(
  command: readonly string[],
  parent = process.pid,
  proc = "/proc",
): Promise<number[] | undefined> {
  // No definition was given yet: nothing runs for it. Every process would end with the words of an empty command.
  if (command.length === 0) {
    return [];
  }
  const entries = await readdir(proc).catch(() => undefined);
  const pids = entries?.filter((name) => /^[0-9]+$/.test(name)).map(Number);
  if (pids === undefined || pids.length === 0) {
    return undefined;
  }
  const matches = await Promise.all(pids.map((pid) => isServer(`${proc}/${pid}`, command, parent)));
  return pids.filter((_, at) => matches[at]);
}

async function isServer(folder: string, command: readonly string[], parent: number): Promise<boolean> {
  try {
    // The name in parentheses may contain anything, so the fields are counted from its end: state, parent, …
    const stat = await readFile(`${folder}/stat`, "utf8");
    const [state, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state === "Z" || Number(ppid) !== parent) {
      return false;
    }
    const words = (await readFile(`${folder}/cmdline`, "utf8")).split("\0").slice(0, -1);
    const own = words.slice(-command.length);
    return own.length === command.length && own.every((word, at) => word === command[at]);
  } catch {
    // It has exited meanwhile.
    return false;
  }
}

/** Nothing reports the end of a process that another has started: it is looked for until `timeoutMs`. */
export async function waitForNoProcess(find: () => Promise<number[] | undefined>, timeoutMs: number): Promise<boolean> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    if ((await find())?.length === 0) {
      return true;
    }
    if (Date.now() >= end) {
      return false;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
