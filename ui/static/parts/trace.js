// @ts-check
// An error: class, message, and the backtrace with the frames of libraries folded away.
import { html, useMemo, useState } from '../core/h.js';
import { short } from '../core/format.js';
import { copy, Segments } from './states.js';
import { Icon } from './icon.js';
import { common, trace as words } from '../core/words.js';

const library = /\/(gems|site-packages|dist-packages|node_modules|vendor|lib\/(ruby|python)[^/]*|usr\/lib|go\/pkg\/mod|jre|jdk)\/|node:internal|^\s*at (java|javax|sun|jdk)\.|\/usr\/local\/go\//;

/**
 * Only the beginning of a longer message, and of more lines, is drawn until the user asks for the
 * rest.
 */
const mostText = 2000;
const mostLines = 200;

/** @param {{error: {class?: string, message?: string, backtrace?: string[]}}} p */
export function Trace({ error }) {
  const [full, setFull] = useState(false);
  const [all, setAll] = useState(false);
  const lines = error.backtrace || [];
  const message = error.message || '';
  const whole = useMemo(() => [`${error.class || common.error}: ${message}`, ...lines].join('\n'), [error.class, message, lines.length]);
  const cut = message.length > mostText || lines.length > mostLines;
  const shown = cut && all ? message : message.slice(0, mostText);
  return html`<div class="stack"><div class="row wrap"><span class="tag bad">${short(error.class) || common.error}</span><span class="grow"></span>
      ${lines.length > 0 && html`<${Segments} label=${words.backtrace} value=${full ? 'full' : 'clean'}
        onChange=${(/** @type {string} */ v) => setFull(v === 'full')} options=${[['clean', words.clean], ['full', words.full]]} />`}
      <button class="icon" aria-label=${words.copyError} title=${words.copyError} onClick=${() => copy(whole)}><${Icon} name="copy" /></button></div>
    <div class="message" role=${cut ? 'region' : undefined} aria-label=${cut ? words.message : undefined} tabindex=${cut ? 0 : undefined}>
      ${shown || html`<span class="dim">${words.noMessage}</span>`}${shown.length < message.length && '…'}</div>
    ${lines.length > 0 && html`<div class="code fold" tabindex="0" role="region" aria-label=${words.backtrace}>
      ${all && lines.length > mostLines ? lines.join('\n') : html`<${Lines} lines=${lines.slice(0, mostLines)} full=${full} />`}
      ${!all && lines.length > mostLines && html`<div class="dim">${words.moreLines(lines.length - mostLines)}</div>`}</div>`}
    ${cut && !all && html`<div><button class="btn small" onClick=${() => setAll(true)}>${common.showAll(whole.length)}</button></div>`}
  </div>`;
}

/** @param {{lines: string[], full: boolean}} p */
function Lines({ lines, full }) {
  const groups = full ? lines.map((l) => [l]) : folded(lines);
  return groups.map((g, i) => (typeof g === 'number' ? html`<div key=${i} class="dim">  ${words.libraryFrames(g)}</div>` : html`<div key=${i}>${g[0]}</div>`));
}

/** @param {string[]} lines @returns {(number|string[])[]} */
function folded(lines) {
  /** @type {(number|string[])[]} */
  const out = [];
  for (const l of lines) {
    if (!library.test(l)) out.push([l]);
    else if (typeof out.at(-1) === 'number') out[out.length - 1] = /** @type {number} */ (out.at(-1)) + 1;
    else out.push(1);
  }
  return out;
}
