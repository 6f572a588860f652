/**
 * Arguments and results of VS Code's commands as JSON. Arguments may be URIs and positions, written as `{"$uri": …}`;
 * results may be anything, also circular or huge.
 */

export const MAX_RESULT_CHARS = 256 * 1024;
const MAX_DEPTH = 12;
const MAX_ITEMS = 1_000;

/** Replaces `{"$uri": "file:///a"}`, at any depth. */
export function reviveArguments(value: unknown, parseUri: (text: string) => unknown, depth = 0): unknown {
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map((it) => reviveArguments(it, parseUri, depth + 1));
  }
  const entries = Object.entries(value);
  const [first] = entries;
  if (entries.length === 1 && first?.[0] === "$uri" && typeof first[1] === "string") {
    return parseUri(first[1]);
  }
  return Object.fromEntries(entries.map(([key, it]) => [key, reviveArguments(it, parseUri, depth + 1)]));
}

/** A result as JSON within bounds: circles, functions and what is too deep or too much become a remark. */
export function toJson(value: unknown): unknown {
  const plain = plainValue(value, 0, new Set());
  const text = JSON.stringify(plain);
  return text !== undefined && text.length > MAX_RESULT_CHARS ? `${text.slice(0, MAX_RESULT_CHARS)}… (cut)` : (plain ?? null);
}

function plainValue(value: unknown, depth: number, above: Set<object>): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "bigint":
    case "symbol":
    case "function":
      return `(${typeof value})`;
    case "undefined":
      return undefined;
    default:
      break;
  }
  if (value === null) {
    return null;
  }
  const object = value as object;
  if (above.has(object)) {
    return "(circular)";
  }
  if (depth >= MAX_DEPTH) {
    return "(deeper values were left out)";
  }
  const inside = new Set(above).add(object);
  try {
    const own = (object as { toJSON?: () => unknown }).toJSON;
    if (typeof own === "function") {
      return plainValue(own.call(object), depth + 1, inside);
    }
    if (Array.isArray(object)) {
      const items = object.slice(0, MAX_ITEMS).map((it) => plainValue(it, depth + 1, inside) ?? null);
      return object.length > MAX_ITEMS ? [...items, `(${object.length - MAX_ITEMS} more)`] : items;
    }
    const entries = Object.entries(object).slice(0, MAX_ITEMS);
    return Object.fromEntries(entries.map(([key, it]) => [key, plainValue(it, depth + 1, inside)]));
  } catch (error) {
    return `(unreadable: ${error instanceof Error ? error.message : String(error)})`;
  }
}
