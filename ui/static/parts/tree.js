// @ts-check
// A record as a tree. The position and the text of each member and item can be copied, byte for
// byte.
import { html, useState } from '../core/h.js';
import { count } from '../core/format.js';
import { below } from '../core/rawjson.js';
import { copy } from './states.js';
import { record as words } from '../core/words.js';

/** @typedef {import('../core/rawjson.js').Node} Node */

/**
 * @param {{text: string, node: Node, find: string, path: string}} p `path`: the position of the
 *   whole text
 */
export function Tree({ text, node, find, path }) {
  return html`<div class="tree" onKeyDown=${walk}><${Branch} text=${text} node=${node} depth=${0} find=${find} path=${path} /></div>`;
}

/**
 * Moves between nodes with the arrow keys. A Tab stop at each node would be too many. Tab reaches
 * the first node, and the copy buttons of the present one.
 * @param {any} e
 */
function walk(e) {
  if (e.altKey || e.ctrlKey || e.metaKey || e.shiftKey) return;
  const all = [...e.currentTarget.querySelectorAll('li[tabindex]')];
  const i = all.indexOf(e.target.closest('li'));
  const to = all[{ ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: all.length - 1 }[e.key]];
  if (!to) return;
  e.preventDefault();
  to.focus();
}

/** @param {any} p */
function Branch({ text, node, depth, find, name, path, comma }) {
  const many = node.kind === 'object' || node.kind === 'array';
  const [open, setOpen] = useState(depth < 4 && (node.items?.length ?? 0) <= 200);
  const key = name !== undefined && html`<span class="k" title=${path}>${mark(name, find)}</span><span class="c">: </span>`;
  if (!many || !node.items.length) {
    return html`${key}<${Leaf} text=${text.slice(node.from, node.to)} kind=${node.kind} find=${find} path=${path} /><span class="c">${comma && ','}</span>`;
  }
  const [a, b] = node.kind === 'object' ? '{}' : '[]';
  const hit = find && text.slice(node.from, node.to).toLowerCase().includes(find);
  const wide = open || hit;
  const item = (/** @type {Node} */ n, /** @type {number} */ i) => {
    const at = below(path, node.keys ? node.keys[i] : i);
    return html`<${Item} key=${i} raw=${text.slice(n.from, n.to)} path=${at} first=${!depth && !i}>
      <${Branch} text=${text} node=${n} depth=${depth + 1} find=${find} name=${node.keys?.[i]} comma=${i < node.items.length - 1} path=${at} /><//>`;
  };
  return html`<button class="tw" aria-label=${wide ? words.fold(path) : words.unfold(path)} aria-expanded=${String(!!wide)}
    onClick=${() => setOpen(!open)}>${wide ? '▾' : '▸'}</button>${key}<span class="c">${a}</span>${wide
    ? html`<ul>${node.items.slice(0, 2000).map(item)}${node.items.length > 2000 && html`<li class="c">${words.moreInRaw(node.items.length - 2000)}</li>`}</ul>`
    : html`<button class="has" onClick=${() => setOpen(true)}> ${count(node.items.length)} … </button>`}<span class="c">${b}${comma && ','}</span>`;
}

/**
 * A line of the tree. Its copy buttons are visible while it has the pointer or the focus.
 * @param {{raw: string, path: string, first: boolean, children?: any}} p
 */
function Item({ raw, path, first, children }) {
  const [over, setOver] = useState(false);
  const [inside, setInside] = useState(false);
  // The pointer or the focus is on this line only, not on the lines around it.
  const comes = (/** @type {(on: boolean) => void} */ set) => (/** @type {Event} */ e) => { e.stopPropagation(); set(true); };
  // A window keeps its focus while the user is in another one.
  const goes = (/** @type {(on: boolean) => void} */ set, otherwise) => (e) => {
    e.stopPropagation();
    const to = e.relatedTarget || otherwise();
    if (to?.closest?.('li') !== e.currentTarget) set(false);
  };
  return html`<li tabindex=${first ? 0 : -1} onPointerOver=${comes(setOver)} onPointerOut=${goes(setOver, () => null)}
      onFocusIn=${comes(setInside)} onFocusOut=${goes(setInside, () => document.activeElement)}>
    ${(over || inside) && html`<span class="of">
      <button class="btn small" aria-label=${words.copyPathOf(path)} onClick=${() => copy(path, words.copied(path))}>${words.copyPath}</button>
      <button class="btn small" aria-label=${words.copyValueOf(path)} onClick=${() => copy(raw, words.copiedValueOf(path))}>${words.copyValue}</button></span>`}${children}</li>`;
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
