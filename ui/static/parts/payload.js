// @ts-check
// Shows a record as it was written. It is not parsed and written again, so large numbers, the order
// of members, and spaces do not change.
import { html, useMemo, useState } from '../core/h.js';
import { bytes } from '../core/format.js';
import { read } from '../core/rawjson.js';
import { copy, Segments } from './states.js';
import { Icon } from './icon.js';
import { Tree } from './tree.js';
import { common, record as words } from '../core/words.js';

const first = 64 * 1024;

/**
 * @param {{text: string, label: string, name?: string, path?: string}} p `path`: its position in
 *   the whole record
 */
export function Payload({ text, label, name = 'record', path = '' }) {
  const [mode, setMode] = useState('pretty');
  const [find, setFind] = useState('');
  const [all, setAll] = useState(false);
  const cut = !all && text.length > first;
  const shown = cut ? text.slice(0, first) : text;
  const node = useMemo(() => (cut ? null : read(text)), [text, cut]);
  const save = () => {
    const a = document.createElement('a');
    const json = node || cut;
    a.href = URL.createObjectURL(new Blob([text], { type: json ? 'application/json' : 'text/plain' }));
    a.download = name + (json ? '.json' : '.txt');
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  };
  return html`<div class="stack">
    <div class="row wrap"><${Segments} label=${words.as(label)} value=${mode} onChange=${setMode} options=${[['pretty', words.pretty], ['raw', words.raw], ['hex', words.hex]]} />
      <span class="dim small">${bytes(new TextEncoder().encode(text).length)}</span>
      ${mode === 'pretty' && html`<input class="in small grow" type="search" placeholder=${words.find} aria-label=${words.findIn(label)}
        value=${find} onInput=${(e) => setFind(e.target.value)} />`}
      <span class="grow"></span><button class="icon" aria-label=${words.copy(label)} title=${words.copyAll} onClick=${() => copy(text)}><${Icon} name="copy" /></button>
      <button class="icon" aria-label=${words.downloadOf(label)} title=${words.download} onClick=${save}><${Icon} name="download" /></button></div>
    <div class="code" tabindex="0" role="region" aria-label=${label}>
      ${mode === 'hex' ? hex(shown) : mode === 'raw' || !node ? html`<span class="raw">${shown}</span>`
        : html`<${Tree} text=${text} node=${node} find=${find.toLowerCase()} path=${path} />`}
    </div>
    ${cut && html`<button class="btn small" onClick=${() => setAll(true)}>${common.showAll(text.length)}</button>`}
  </div>`;
}

/** @param {string} text */
function hex(text) {
  const all = new TextEncoder().encode(text.slice(0, 16_384));
  const lines = [];
  for (let i = 0; i < all.length; i += 16) {
    const part = [...all.slice(i, i + 16)];
    const digits = part.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(48);
    const letters = part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '·')).join('');
    lines.push(`${i.toString(16).padStart(6, '0')}  ${digits} ${letters}`);
  }
  return lines.join('\n') + (text.length > 16_384 ? '\n…' : '');
}
