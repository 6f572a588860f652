/**
 * Text from outside (file names, messages of builds and programs, names of configurations) made plain for the places where
 * VS Code gives text a meaning. What VS Code reads there:
 *
 *     notification, progress in one     [label](command:… or https:…) is a link; links to commands run them
 *     label of a quick pick, status     $(name) is an icon
 *     debug configuration, task         ${command:…} runs a command, ${input:…} too; any string of it is read
 *     everywhere                        bidirectional marks reorder, invisible characters hide
 *
 * Pure. The functions of VS Code that show text are called in this folder only; a test checks that.
 */

declare const icons: unique symbol;

/** Text in which each `$(name)` is an icon of ours. Made with {@link iconText} only. */
export type IconText = string & { readonly [icons]: true };

/** VS Code shows less of a message. */
export const MAX_CHARS = 2_000;

/** Format, private, unassigned and control characters, separators; and what prints nothing although it is a letter. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0000}-\u{e0fff}]/gu;

/** One line that hides and reorders nothing, at most {@link MAX_CHARS} long. Line breaks and tabs become spaces. */
export function lineText(text: string): string {
  const line = clip(text).replace(/[\r\n\t]+/g, " ");
  return line.replace(UNSAFE, (it) => `\\u{${it.codePointAt(0)?.toString(16)}}`);
}

/** A line for a notification, where it has no links. */
export const notificationText = (text: string): string => lineText(text).replaceAll("](", "] (");

/** `iconText`$(rocket) ${name}``: icons of the literal's own text only; there are none in what is inserted. */
export function iconText(literal: TemplateStringsArray, ...inserted: readonly (string | number)[]): IconText {
  const parts = inserted.map((it, at) => lineText(String(it)).replace(/\$(?=\(|$)/g, "$ ") + (literal[at + 1] ?? ""));
  return ((literal[0] ?? "") + parts.join("")) as IconText;
}

/** Text in a debug configuration or task that VS Code resolves: it names no variable. */
export const configurationText = (text: string): string => lineText(text).replace(/\$(?=[{(]|$)/g, "$ ");

/** The same for each string of a configuration, at any depth. */
export function plainConfiguration<T>(value: T): T {
  if (typeof value === "string") {
    return configurationText(value) as T;
  }
  if (Array.isArray(value)) {
    return value.map(plainConfiguration) as T;
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, plainConfiguration(it)])) as T;
}

const clip = (text: string): string => (text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS)}…`);
