// @ts-check
// The changes in a text that is being edited, before it is sent.
import { html, useMemo } from '../core/h.js';
import { changed, difference } from '../core/difference.js';
import { common, record as words } from '../core/words.js';

/** More lines cannot be read, and would be drawn at each key press. */
const most = 300;

const looks = { '-': ['bad', '−', words.lineRemoved], '+': ['ok', '+', words.lineAdded], ' ': ['dim', ' ', ''] };

/** @param {{was: string, is: string}} p */
export function Difference({ was, is }) {
  const lines = useMemo(() => difference(was, is), [was, is]);
  if (was === is) return null;
  if (!lines) return html`<p class="dim small">${words.tooLongToCompare}</p>`;
  const many = (/** @type {string} */ sign) => lines.filter((l) => l.sign === sign).length;
  const shown = changed(lines);
  return html`<div class="field"><span>${words.changes} <span class="dim">${words.removedAndAdded(many('-'), many('+'))}</span></span>
    <div class="code fold" role="group" aria-label=${words.changes} tabindex="0">${shown.slice(0, most).map((line, i) => html`<${Line} key=${i} line=${line} />`)}
      ${shown.length > most && html`<div class="dim">${common.more(shown.length - most)}</div>`}</div></div>`;
}

/** @param {{line: import('../core/difference.js').Line}} p */
function Line({ line }) {
  if (line.left) return html`<div class="dim">${words.unchangedLines(line.left)}</div>`;
  const [look, sign, word] = looks[line.sign];
  return html`<div class=${look}><span aria-hidden="true">${sign} </span>${word && html`<span class="sr">${word}</span>`}${line.text.replace(/\r?\n$/, '')}</div>`;
}
