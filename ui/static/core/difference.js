// @ts-check
// The difference between two texts, line by line.

/**
 * @typedef {{sign: '-'|'+'|' ', text: string, left?: number}} Line `left` is the number of
 *   unchanged lines left out here
 */

/** Larger texts are not compared, because the comparison is repeated at each key press. */
const mostText = 64 * 1024;
const mostLines = 2000;

/**
 * Splits a text into lines that together are the text. A line ends at a line break, or after a
 * comma between members, because most arguments are on one line.
 * @param {string} text
 */
export function linesOf(text) {
  const lines = [];
  const end = /,[ \t\r]*\n?|\n/y;
  let from = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '\\' && text[i + 1] !== '\n') i++;
    else if (c === '"') quoted = !quoted;
    else if (c === '\n' || (c === ',' && !quoted)) {
      end.lastIndex = i;
      end.test(text);
      lines.push(text.slice(from, end.lastIndex));
      from = end.lastIndex;
      i = from - 1;
      quoted = false; // a string cannot continue on the next line
    }
  }
  if (from < text.length) lines.push(text.slice(from));
  return lines;
}

/**
 * Returns the lines to remove and to add to change one text into the other, or null if they are too
 * large.
 * @param {string} was
 * @param {string} is
 * @returns {Line[]|null}
 */
export function difference(was, is) {
  if (Math.max(was.length, is.length) > mostText) return null;
  const [a, b] = [linesOf(was), linesOf(is)];
  const short = Math.min(a.length, b.length);
  if (Math.max(a.length, b.length) > mostLines) return null;
  let head = 0;
  while (head < short && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < short - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  return [...signed(' ', a.slice(0, head)), ...between(a.slice(head, a.length - tail), b.slice(head, b.length - tail)), ...signed(' ', a.slice(a.length - tail))];
}

/** @param {Line['sign']} sign @param {string[]} lines @returns {Line[]} */
const signed = (sign, lines) => lines.map((text) => ({ sign, text }));

/** Finds the largest number of lines to keep. @param {string[]} a @param {string[]} b */
function between(a, b) {
  const wide = b.length + 1;
  // How many lines can be kept from each pair of lines on.
  const kept = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) kept[i * wide + j] = a[i] === b[j] ? kept[(i + 1) * wide + j + 1] + 1 : Math.max(kept[(i + 1) * wide + j], kept[i * wide + j + 1]);
  }
  /** @type {Line[]} */
  const lines = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ sign: ' ', text: a[i++] });
      j++;
    } else if (kept[(i + 1) * wide + j] >= kept[i * wide + j + 1]) lines.push({ sign: '-', text: a[i++] });
    else lines.push({ sign: '+', text: b[j++] });
  }
  return [...lines, ...signed('-', a.slice(i)), ...signed('+', b.slice(j))];
}

/**
 * Leaves out unchanged lines, except for some beside each change.
 * @param {Line[]} lines
 * @param {number} [beside]
 */
export function changed(lines, beside = 2) {
  /** @type {Line[]} */
  const shown = [];
  lines.forEach((line, i) => {
    const near = lines.slice(Math.max(0, i - beside), i + beside + 1).some((l) => l.sign !== ' ');
    const last = shown.at(-1);
    if (near) shown.push(line);
    else if (last?.left) last.left++;
    else shown.push({ sign: ' ', text: '', left: 1 });
  });
  return shown;
}
