/**
 * The text of output channels. VS Code writes each channel of an extension to a file in the log folder of its extension
 * host, and has no other way to read another extension's channel. Knows nothing of VS Code's API.
 *
 *     exthost1/output_logging_20260101T120000/3-My Channel.log     created with createOutputChannel(name)
 *     exthost1/publisher.extension/My Log.log                      created with { log: true }
 *     exthost1/remoteexthost.log                                   the extension host itself
 */
import { open, readdir, stat, type FileHandle } from "node:fs/promises";
import * as path from "node:path";

export interface OutputFile {
  channel: string;
  file: string;
  bytes: number;
  modifiedAt: number;
}

export interface OutputText {
  channel: string;
  text: string;
  /** To be given as `since` to read on. */
  cursor: number;
  /** Bytes before the text that were left out. */
  dropped: number;
}

const MAX_FOLDERS = 500;
export const DEFAULT_LIMIT = 16 * 1024;
export const MAX_LIMIT = 256 * 1024;
/** Of UTF-8. */
const MAX_CHARACTER_BYTES = 4;

/** The channels of an extension host, by its log folder; the ones that changed last come first. */
export async function listOutputFiles(logFolder: string): Promise<OutputFile[]> {
  const found: OutputFile[] = [];
  const top = await readdir(logFolder, { withFileTypes: true });
  const folders = top.filter((entry) => entry.isDirectory()).slice(0, MAX_FOLDERS);
  const places = [logFolder, ...folders.map((entry) => path.join(logFolder, entry.name))];
  for (const place of places) {
    const entries = await readdir(place, { withFileTypes: true }).catch(() => []);
    for (const entry of entries.filter((it) => it.isFile() && it.name.endsWith(".log"))) {
      const file = path.join(place, entry.name);
      const seen = await stat(file).catch(() => undefined);
      if (seen !== undefined) {
        found.push({ channel: channelName(entry.name), file, bytes: seen.size, modifiedAt: Math.round(seen.mtimeMs) });
      }
    }
  }
  return found.sort((a, b) => b.modifiedAt - a.modifiedAt);
}

/** "3-My Channel.log" and "My Channel.log" → "My Channel" */
export const channelName = (file: string): string => file.replace(/^\d+-/, "").replace(/\.log$/, "");

/** A channel by its name, case aside; the newest if several have it. */
export const findChannel = (files: readonly OutputFile[], name: string): OutputFile | undefined =>
  files.find((it) => it.channel === name) ?? files.find((it) => it.channel.toLowerCase() === name.toLowerCase());

/**
 * At most `limit` bytes: from the cursor `since` on, without it the last ones. Whole lines, if there is one, and always whole
 * characters: the bytes of one that is not complete are left for the next call.
 */
export async function readOutput(output: OutputFile, since: number | undefined, limit = DEFAULT_LIMIT): Promise<OutputText> {
  const most = Math.min(Math.max(1, limit), MAX_LIMIT);
  const file = await open(output.file, "r");
  try {
    const size = (await file.stat()).size;
    // A file that has become shorter has begun anew.
    const from = since === undefined || since > size ? undefined : since;
    const start = from ?? Math.max(0, size - most);
    const read = (length: number) => readBytes(file, start, Math.min(length, size - start));
    let text = await read(most);
    if (countIncompleteBytes(text) === text.length) {
      // The limit is shorter than one character, which is read as a whole: else nothing would ever be.
      text = await read(Math.max(most, MAX_CHARACTER_BYTES));
    }
    const end = start + text.length;
    let dropped = from === undefined ? start : 0;
    if (from === undefined && start > 0) {
      const line = text.indexOf(0x0a) + 1;
      const hasWholeLine = line > 0 && line < text.length;
      const left = hasWholeLine ? line : countContinuationBytes(text);
      text = text.subarray(left);
      dropped += left;
    }
    const incomplete = countIncompleteBytes(text);
    text = text.subarray(0, text.length - incomplete);
    return { channel: output.channel, text: text.toString("utf8"), cursor: end - incomplete, dropped };
  } finally {
    await file.close();
  }
}

async function readBytes(file: FileHandle, start: number, length: number): Promise<Buffer> {
  const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, undefined, start);
  return buffer.subarray(0, bytesRead);
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** How many bytes at the beginning are the rest of a character. */
function countContinuationBytes(bytes: Uint8Array): number {
  let count = 0;
  while (count < MAX_CHARACTER_BYTES - 1 && isContinuation(bytes[count])) {
    count++;
  }
  return count;
}

/** How many bytes at the end are the beginning of a character. */
function countIncompleteBytes(bytes: Uint8Array): number {
  let back = 1;
  while (back < MAX_CHARACTER_BYTES && isContinuation(bytes[bytes.length - back])) {
    back++;
  }
  const first = bytes[bytes.length - back] ?? 0;
  const length = first >= 0xf0 && first < 0xf8 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return first < 0xf8 && back < length ? back : 0;
}
