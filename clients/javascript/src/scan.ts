/**
 * Finds the members of a JSON object without changing a byte. The text was parsed before, so it is
 * valid JSON. The scan finds only its nesting and its members.
 */

const QUOTE = 34;
const BACKSLASH = 92;
const isSpace = (c: number): boolean => c === 32 || c === 10 || c === 13 || c === 9;

/** Returns the index behind the string that begins at i. */
function afterString(text: string, i: number): number {
  for (let from = i + 1; ; ) {
    const end = text.indexOf('"', from);
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end + 1;
    from = end + 1;
  }
}

function afterSpace(text: string, i: number): number {
  while (isSpace(text.charCodeAt(i))) i++;
  return i;
}

/** Returns the index behind the value that begins at i, and how deep it is nested. */
function afterValue(text: string, i: number): { end: number; deepest: number } {
  let depth = 0;
  let deepest = 0;
  for (;;) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      i = afterString(text, i);
    } else if (c === 91 || c === 123) {
      deepest = Math.max(deepest, ++depth);
      i++;
    } else if (c === 93 || c === 125) {
      depth--;
      i++;
    } else if (depth > 0) {
      i++;
      continue;
    } else {
      while (i < text.length && !',]}'.includes(text.charAt(i)) && !isSpace(text.charCodeAt(i))) i++;
    }
    if (depth === 0) return { end: i, deepest };
  }
}

/** A member of an object: the spelling of its name, and where its value begins and ends. */
export interface Member {
  name: string;
  begin: number;
  end: number;
}

/** Returns the members of an object. */
export function members(text: string): { found: Member[]; depth: number } {
  const found: Member[] = [];
  let depth = 1;
  let i = afterSpace(text, text.indexOf('{') + 1);
  while (text[i] !== '}') {
    if (text[i] === ',') i = afterSpace(text, i + 1);
    const behind = afterString(text, i);
    const name = text.slice(i + 1, behind - 1);
    const begin = afterSpace(text, afterSpace(text, behind) + 1);
    const value = afterValue(text, begin);
    depth = Math.max(depth, value.deepest + 1);
    found.push({ name, begin, end: value.end });
    i = afterSpace(text, value.end);
  }
  return { found, depth };
}

/** Returns the text of each item of an array. */
export function items(text: string): string[] {
  const found: string[] = [];
  let i = afterSpace(text, text.indexOf('[') + 1);
  while (text[i] !== ']') {
    if (text[i] === ',') i = afterSpace(text, i + 1);
    const { end } = afterValue(text, i);
    found.push(text.slice(i, end));
    i = afterSpace(text, end);
  }
  return found;
}

/** Returns the text of a job that a client wrote, with another retry_count. */
export function withRetryCount(text: string, count: number): string {
  const { begin, end } = members(text).found.find((m) => m.name === 'retry_count')!;
  return text.slice(0, begin) + count + text.slice(end);
}

/**
 * Returns a job's text with the queue that it came from, if it names none. Otherwise it would be
 * retried in the default queue.
 */
export function withQueue(text: string, queue: string): string {
  const { found } = members(text);
  const own = found.find((m) => m.name === 'queue');
  if (own && text.slice(own.begin, own.end) !== 'null') return text;
  const value = JSON.stringify(queue);
  if (own) return text.slice(0, own.begin) + value + text.slice(own.end);
  const last = text.lastIndexOf('}');
  return `${text.slice(0, last)}${found.length ? ',' : ''}"queue":${value}${text.slice(last)}`;
}
