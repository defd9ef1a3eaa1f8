// @ts-check
// Reads JSON without changing a byte, and finds the position of each part. JSON.parse rounds large
// numbers and reorders members, but a record is shown as it was written.

/**
 * @typedef {{kind: 'object'|'array'|'string'|'number'|'word', from: number, to: number, keys?:
 *   string[], items?: Node[]}} Node
 */

/** Reads a whole text. Returns null if it is not JSON. @param {string} text @returns {Node|null} */
export function read(text) {
  try {
    const r = new Reader(text);
    const node = r.value(0);
    r.space();
    return r.at === text.length ? node : null;
  } catch {
    return null;
  }
}

class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  space() {
    while (this.at < this.text.length && ' \n\r\t'.includes(this.text[this.at])) this.at++;
  }

  /** @param {number} depth @returns {Node} */
  value(depth) {
    if (depth > 2000) throw new Error('too deep');
    this.space();
    const c = this.text[this.at];
    if (c === '{') return this.many(depth, '}');
    if (c === '[') return this.many(depth, ']');
    const from = this.at;
    if (c === '"') {
      this.string();
      return { kind: 'string', from, to: this.at };
    }
    const word = /[-+.\w]+/y;
    word.lastIndex = this.at;
    const found = word.exec(this.text);
    if (!found) throw new Error('unexpected');
    this.at = word.lastIndex;
    return { kind: /^[-\d]/.test(found[0]) ? 'number' : 'word', from, to: this.at };
  }

  string() {
    for (this.at++; this.at < this.text.length; this.at++) {
      const c = this.text.charCodeAt(this.at);
      if (c === 92) this.at++;
      else if (c === 34) {
        this.at++;
        return;
      }
    }
    throw new Error('unended');
  }

  /** @param {number} depth @param {string} end @returns {Node} */
  many(depth, end) {
    /** @type {Node} */
    const node = { kind: end === '}' ? 'object' : 'array', from: this.at, to: 0, items: [] };
    if (end === '}') node.keys = [];
    this.at++;
    for (;;) {
      this.space();
      if (this.text[this.at] === end && !node.items.length) break;
      if (node.keys) {
        const from = this.at;
        if (this.text[from] !== '"') throw new Error('no key');
        this.string();
        node.keys.push(this.text.slice(from, this.at));
        this.space();
        if (this.text[this.at++] !== ':') throw new Error('no colon');
      }
      node.items.push(this.value(depth + 1));
      this.space();
      if (this.text[this.at] === end) break;
      if (this.text[this.at++] !== ',') throw new Error('no comma');
    }
    node.to = ++this.at;
    return node;
  }
}

/**
 * Returns the member of an object at a path of names.
 * @param {Node|null|undefined} node
 * @param {...string} path
 * @returns {Node|null}
 */
export function member(node, ...path) {
  for (const name of path) {
    const i = node?.keys ? node.keys.lastIndexOf(JSON.stringify(name)) : -1;
    if (i < 0) return null;
    node = node.items[i];
  }
  return node || null;
}

/**
 * Returns the position of a member or an item as JSONPath: args[0].user.id, args[0]["user-id"].
 * @param {string} path of the object or array that contains it
 * @param {string|number} step the member's name as it is written, with its quotes, or the item's
 *   index
 */
export function below(path, step) {
  const name = typeof step === 'string' && /^"([\p{L}_$][\p{L}\p{N}_$]*)"$/u.exec(step)?.[1];
  return name ? (path && path + '.') + name : `${path}[${step}]`;
}

/** Returns the text of a member of a record. @param {string} text @param {...string} path */
export function memberText(text, ...path) {
  const node = member(read(text), ...path);
  return node ? text.slice(node.from, node.to) : '';
}

/**
 * Returns the texts of the items of a list's answer.
 * @param {string} text
 * @param {string} [of] the member with the items; without it, the answer is an array
 */
export function itemTexts(text, of) {
  const all = of ? member(read(text), of) : read(text);
  return (all?.items || []).map((n) => text.slice(n.from, n.to));
}

/** Returns a record without the member that the API added. @param {string} text */
export const ownText = (text) => without(text, 'millrace');

/**
 * Returns an object without one of its members. The rest is unchanged.
 * @param {string} text
 * @param {string} name
 */
export function without(text, name) {
  const node = read(text);
  const i = node?.keys ? node.keys.lastIndexOf(JSON.stringify(name)) : -1;
  if (i < 0) return text;
  const own = node.items[i];
  const before = text.slice(0, text.lastIndexOf(node.keys[i], own.from - 1)).replace(/,?\s*$/, '');
  const after = text.slice(own.to);
  return before + (before.trim() === '{' ? after.replace(/^\s*,/, '') : after);
}
