/**
 * `.devtools/session.json` as the window bridge reads it. The file lies in a workspace, so it may be hostile: only one with
 * the launch id of our own window counts, and its socket must be ours.
 */
import { constants } from "node:fs";
import { lstat, open } from "node:fs/promises";
import * as path from "node:path";

export const SESSION_FILE = path.join(".devtools", "session.json");
const MAX_BYTES = 64 * 1024;

export interface BridgeAddress {
  socket: string;
  /** Epoch milliseconds: a supervisor that reconnects to the window writes the file anew. */
  persistedAt: number;
}

/** The address in the file's text; undefined if it is not about the window with this launch id. */
export function parseSession(text: string, launchId: string): BridgeAddress | undefined {
  let session: unknown;
  try {
    session = JSON.parse(text);
  } catch {
    return undefined;
  }
  const fields = (session ?? {}) as Record<string, unknown>;
  const { hostBridgePath, persistedAt } = fields;
  const isOurs = fields["version"] === 1 && fields["launchId"] === launchId;
  if (!isOurs || typeof hostBridgePath !== "string" || !path.isAbsolute(hostBridgePath)) {
    return undefined;
  }
  return { socket: hostBridgePath, persistedAt: typeof persistedAt === "number" ? persistedAt : 0 };
}

/** The address in a workspace's session file; undefined if there is none for this window. */
export async function readSession(folder: string, launchId: string): Promise<BridgeAddress | undefined> {
  try {
    // A link, or a pipe on which a read would hang, is no session file.
    const file = await open(path.join(folder, SESSION_FILE), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const seen = await file.stat();
      if (!seen.isFile() || seen.size > MAX_BYTES || !isOurs(seen.uid)) {
        return undefined;
      }
      return parseSession(await file.readFile("utf8"), launchId);
    } finally {
      await file.close();
    }
  } catch {
    return undefined;
  }
}

/** Rejects when the path is not a socket of our user. */
export async function checkSocket(socket: string): Promise<void> {
  const seen = await lstat(socket);
  if (!seen.isSocket()) {
    throw new Error(`${socket} is not a socket`);
  }
  if (!isOurs(seen.uid)) {
    throw new Error(`${socket} belongs to user ${seen.uid}`);
  }
}

const isOurs = (uid: number): boolean => process.getuid === undefined || uid === process.getuid();

/** The folders whose session file may be this window's: each given one, and those above it. */
export function candidateFolders(folders: readonly string[]): string[] {
  const found = new Set<string>();
  for (const folder of folders) {
    for (let at = folder; !found.has(at); at = path.dirname(at)) {
      found.add(at);
    }
  }
  return [...found];
}
