// @ts-check
// Shows a record as it was written: large numbers, the order of members and spaces survive, for nothing here is parsed and written again.
import { html, useMemo, useState } from '../core/h.js';
import { bytes, count } from '../core/format.js';
import { read } from '../core/rawjson.js';
import { copy, Segments } from './states.js';
import { Icon } from './icon.js';

const first = 64 * 1024;

/** @param {{text: string, label: string, name?: string}} p */
export function Payload({ text, label, name = 'record' }) {
  const [mode, setMode] = useState('pretty');
  const [find, setFind] = useState('');
  const [all, setAll] = useState(false);
  const cut = !all && text.length > first;
  const shown = cut ? text.slice(0, first) : text;
  const node = useMemo(() => (cut ? null : read(text)), [text, cut]);
  const save = () => {
    const a = document.createElement('a');
    a.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
    a.download = name + '.json';
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  };
  return html`<div class="stack">
    <div class="row wrap"><${Segments} label=${label + ', as'} value=${mode} onChange=${setMode} options=${[['pretty', 'Pretty'], ['raw', 'Raw'], ['hex', 'Hex']]} />
      <span class="dim small">${bytes(new TextEncoder().encode(text).length)}</span>
      ${mode === 'pretty' && html`<input class="in small grow" type="search" placeholder="Find in it" aria-label=${'Find in ' + label} value=${find} onInput=${(/** @type {any} */ e) => setFind(e.target.value)} />`}
      <span class="grow"></span><button class="icon" aria-label=${'Copy ' + label} title="Copy all" onClick=${() => copy(text)}><${Icon} name="copy" /></button>
      <button class="icon" aria-label=${'Download ' + label} title="Download" onClick=${save}><${Icon} name="download" /></button></div>
    <div class="code" tabindex="0" role="region" aria-label=${label}>
      ${mode === 'hex' ? hex(shown) : mode === 'raw' || !node ? html`<span class="anywhere" style=${{ whiteSpace: 'pre-wrap' }}>${shown}</span>` : html`<div class="tree"><${Tree} text=${text} node=${node} depth=${0} find=${find.toLowerCase()} path="" /></div>`}
    </div>
    ${cut && html`<button class="btn small" onClick=${() => setAll(true)}>Show all ${bytes(text.length)}</button>`}
  </div>`;
}

/** @param {any} p */
function Tree({ text, node, depth, find, name, path, comma }) {
  const many = node.kind === 'object' || node.kind === 'array';
  const [open, setOpen] = useState(depth < 4 && (node.items?.length ?? 0) <= 200);
  const key = name !== undefined && html`<span class="k" title=${path}>${mark(name, find)}</span><span class="c">: </span>`;
  if (!many || !node.items.length) return html`${key}<${Leaf} text=${text.slice(node.from, node.to)} kind=${node.kind} find=${find} path=${path} /><span class="c">${comma && ','}</span>`;
  const [a, b] = node.kind === 'object' ? '{}' : '[]';
  const hit = find && text.slice(node.from, node.to).toLowerCase().includes(find);
  const wide = open || hit;
  return html`<button class="tw" aria-label=${(wide ? 'Fold ' : 'Unfold ') + (path || 'record')} aria-expanded=${String(!!wide)} onClick=${() => setOpen(!open)}>${wide ? '▾' : '▸'}</button>${key}<span class="c">${a}</span>${wide
    ? html`<ul>${node.items.slice(0, 2000).map((/** @type {any} */ item, /** @type {number} */ i) => html`<li key=${i}><${Tree} text=${text} node=${item} depth=${depth + 1} find=${find} name=${node.keys?.[i]} comma=${i < node.items.length - 1}
      path=${path + (node.keys ? (path ? '.' : '') + unquote(node.keys[i]) : `[${i}]`)} /></li>`)}${node.items.length > 2000 && html`<li class="c">… ${count(node.items.length - 2000)} more: see Raw</li>`}</ul>`
    : html`<button class="has" onClick=${() => setOpen(true)}> ${count(node.items.length)} … </button>`}<span class="c">${b}${comma && ','}</span>`;
}

/** @param {{text: string, kind: string, find: string, path: string}} p */
function Leaf({ text, kind, find, path }) {
  const as = { string: 's', number: 'n', word: 'w' }[kind] || 'c';
  return html`<span class=${as} title=${path}>${mark(text, find)}</span>`;
}

/** @param {string} text @param {string} find */
function mark(text, find) {
  const i = find ? text.toLowerCase().indexOf(find) : -1;
  return i < 0 ? text : html`${text.slice(0, i)}<mark>${text.slice(i, i + find.length)}</mark>${text.slice(i + find.length)}`;
}

/** @param {string} s */
function unquote(s) {
  try {
    return JSON.parse(s);
  } catch {
    return s;
  }
}

/** @param {string} text */
function hex(text) {
  const all = new TextEncoder().encode(text.slice(0, 16_384));
  const lines = [];
  for (let i = 0; i < all.length; i += 16) {
    const part = [...all.slice(i, i + 16)];
    lines.push(i.toString(16).padStart(6, '0') + '  ' + part.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(48) + ' ' + part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '·')).join(''));
  }
  return lines.join('\n') + (text.length > 16_384 ? '\n…' : '');
}

/** A short view of arguments for a table. @param {string} text */
export const short = (text) => (text.length > 300 ? text.slice(0, 300) + '…' : text);
