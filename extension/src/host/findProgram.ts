/** Which `tether` is run: the setting's, the bundled one, or the first on PATH. Knows nothing of VS Code. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import * as path from "node:path";
import { SupervisorError } from "../rpc/supervisorError";

export interface ProgramSearch {
  /** The setting `tether.path`; empty: not set. */
  setting: string;
  extensionFolder: string;
  /** The value of PATH. */
  searchPath: string;
  platform: NodeJS.Platform;
}

export interface FoundProgram {
  path: string;
  from: "setting" | "bundled" | "PATH";
}

/** The `kind` of the error when there is no program. */
export const MISSING_PROGRAM = "missingProgram";

/** Rejects with what was looked for. */
export async function findProgram(search: ProgramSearch): Promise<FoundProgram> {
  const name = search.platform === "win32" ? "tether.exe" : "tether";
  if (search.setting !== "") {
    if (!path.isAbsolute(search.setting)) {
      throw missing(`the setting tether.path must be an absolute path, not ${search.setting}`);
    }
    if (await isProgram(search.setting)) {
      return { path: search.setting, from: "setting" };
    }
    // Another program than the one that was chosen is never run instead.
    throw missing(`${search.setting}, the setting tether.path, is not a program`);
  }
  const bundled = path.join(search.extensionFolder, "bin", name);
  if (await isProgram(bundled)) {
    return { path: bundled, from: "bundled" };
  }
  // A relative entry of PATH would run a program of the folder that is open.
  for (const folder of search.searchPath.split(path.delimiter).filter((it) => path.isAbsolute(it))) {
    const file = path.join(folder, name);
    if (await isProgram(file)) {
      return { path: file, from: "PATH" };
    }
  }
  throw missing(`\`${name}\` is not on PATH, and tether.path is not set`);
}

const missing = (message: string) => new SupervisorError(message, MISSING_PROGRAM, ["set `tether.path` in the settings"]);

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
