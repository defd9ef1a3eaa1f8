// @ts-check
// An error: class, message, and the backtrace with the frames of libraries folded away.
import { html, useState } from '../core/h.js';
import { plural } from '../core/format.js';
import { copy, Segments } from './states.js';
import { Icon } from './icon.js';

const library = /\/(gems|site-packages|dist-packages|node_modules|vendor|lib\/(ruby|python)[^/]*|usr\/lib|go\/pkg\/mod|jre|jdk)\/|node:internal|^\s*at (java|javax|sun|jdk)\.|\/usr\/local\/go\//;

/** @param {{error: {class?: string, message?: string, backtrace?: string[]}}} p */
export function Trace({ error }) {
  const [full, setFull] = useState(false);
  const lines = error.backtrace || [];
  const whole = [`${error.class || 'Error'}: ${error.message || ''}`, ...lines].join('\n');
  return html`<div class="stack"><div class="row wrap"><span class="tag bad">${error.class || 'Error'}</span><span class="grow"></span>
      ${lines.length > 0 && html`<${Segments} label="Backtrace" value=${full ? 'full' : 'clean'} onChange=${(/** @type {string} */ v) => setFull(v === 'full')} options=${[['clean', 'Clean'], ['full', 'Full']]} />`}
      <button class="icon" aria-label="Copy error" title="Copy error" onClick=${() => copy(whole)}><${Icon} name="copy" /></button></div>
    <p class="anywhere" style=${{ whiteSpace: 'pre-wrap' }}>${error.message || html`<span class="dim">No message</span>`}</p>
    ${lines.length > 0 && html`<div class="code fold" tabindex="0" role="region" aria-label="Backtrace">${(full ? lines.map((l) => [l]) : folded(lines)).map((g, i) => (typeof g === 'number' ? html`<div key=${i} class="dim">  … ${plural(g, 'library frame')}</div>` : html`<div key=${i}>${g[0]}</div>`))}</div>`}
  </div>`;
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
