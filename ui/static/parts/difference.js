// @ts-check
// What changes in a text that is being edited, before it is sent.
import { html, useMemo } from '../core/h.js';
import { changed, difference } from '../core/difference.js';
import { count, plural } from '../core/format.js';

/** More cannot be read, and would have to be drawn with each key. */
const most = 300;

const looks = { '-': ['bad', '−', 'removed: '], '+': ['ok', '+', 'added: '], ' ': ['dim', ' ', ''] };

/** @param {{was: string, is: string}} p */
export function Difference({ was, is }) {
  const lines = useMemo(() => difference(was, is), [was, is]);
  if (was === is) return null;
  if (!lines) return html`<p class="dim small">The difference is not shown: the text is too long for that.</p>`;
  const many = (/** @type {string} */ sign) => plural(lines.filter((l) => l.sign === sign).length, 'line');
  const shown = changed(lines);
  return html`<div class="field"><span>What changes <span class="dim">(${many('-')} removed, ${many('+')} added)</span></span>
    <div class="code fold" role="group" aria-label="What changes" tabindex="0">${shown.slice(0, most).map((line, i) => html`<${Line} key=${i} line=${line} />`)}
      ${shown.length > most && html`<div class="dim">… ${count(shown.length - most)} more</div>`}</div></div>`;
}

/** @param {{line: import('../core/difference.js').Line}} p */
function Line({ line }) {
  if (line.left) return html`<div class="dim">… ${plural(line.left, 'line')} as before</div>`;
  const [look, sign, word] = looks[line.sign];
  return html`<div class=${look}><span aria-hidden="true">${sign} </span>${word && html`<span class="sr">${word}</span>`}${line.text.replace(/\r?\n$/, '')}</div>`;
}
