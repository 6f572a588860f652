/**
 * Arguments and results of VS Code's commands as JSON. Arguments may be URIs and positions, written as `{"$uri": …}`;
 * results may be anything, also circular or huge.
 */

export const MAX_RESULT_CHARS = 256 * 1024;
export const MAX_DEPTH = 12;
export const MAX_ITEMS = 1_000;
/** Values in a result, all together. */
export const MAX_NODES = 20_000;
const MAX_KEYS = 1_000_000;

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

/**
 * A result as JSON within bounds: circles, functions and what is too deep or too much become a remark. All bounds hold for
 * the whole value, in which an object may be shared by any number of others.
 */
export function toJson(value: unknown): unknown {
  const plain = new PlainValues().convert(value, 0);
  const text = JSON.stringify(plain);
  return text !== undefined && text.length > MAX_RESULT_CHARS ? `${text.slice(0, MAX_RESULT_CHARS)}… (cut)` : (plain ?? null);
}

const LEFT_OUT = "(more was left out)";

/** One conversion, and what is left of its bounds. */
class PlainValues {
  private nodes = MAX_NODES;
  private chars = MAX_RESULT_CHARS;
  /** Names of properties that are read, whether or not they are shown. */
  private keys = MAX_KEYS;
  /** The objects that hold the value that is converted. */
  private readonly above = new Set<object>();

  convert(value: unknown, depth: number): unknown {
    if (--this.nodes < 0 || this.chars <= 0) {
      return LEFT_OUT;
    }
    switch (typeof value) {
      case "string":
        return this.take(value);
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
        return value === null ? null : this.convertObject(value as object, depth);
    }
  }

  private convertObject(object: object, depth: number): unknown {
    if (this.above.has(object)) {
      return "(circular)";
    }
    if (depth >= MAX_DEPTH) {
      return "(deeper values were left out)";
    }
    this.above.add(object);
    try {
      const own = (object as { toJSON?: () => unknown }).toJSON;
      if (typeof own === "function") {
        return this.convert(own.call(object), depth + 1);
      }
      if (ArrayBuffer.isView(object) || object instanceof ArrayBuffer) {
        return `(${object.byteLength} bytes)`;
      }
      return Array.isArray(object) ? this.convertArray(object, depth) : this.convertMembers(object, depth);
    } catch (error) {
      return this.take(`(unreadable: ${error instanceof Error ? error.message : String(error)})`);
    } finally {
      this.above.delete(object);
    }
  }

  private convertArray(items: readonly unknown[], depth: number): unknown[] {
    const plain: unknown[] = [];
    const shown = Math.min(items.length, MAX_ITEMS);
    for (let at = 0; at < shown && this.hasRoom; at++) {
      plain.push(this.convert(items[at], depth + 1) ?? null);
    }
    return plain.length < items.length ? [...plain, `(${items.length - plain.length} more)`] : plain;
  }

  private convertMembers(object: object, depth: number): unknown {
    if (this.keys <= 0) {
      return LEFT_OUT;
    }
    const names = Object.keys(object);
    this.keys -= names.length;
    const plain: [string, unknown][] = [];
    for (const name of names.slice(0, MAX_ITEMS)) {
      if (!this.hasRoom) {
        break;
      }
      plain.push([this.take(name), this.convert((object as Record<string, unknown>)[name], depth + 1)]);
    }
    // Of own properties: one that is called `__proto__` is no prototype.
    return Object.fromEntries(plain);
  }

  private get hasRoom(): boolean {
    return this.nodes > 0 && this.chars > 0;
  }

  /** The text, cut to what there is room for. */
  private take(text: string): string {
    const cut = text.length <= this.chars ? text : `${text.slice(0, this.chars)}… (cut)`;
    this.chars -= text.length;
    return cut;
  }
}
