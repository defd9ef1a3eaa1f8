// @ts-check
// A list's filter: terms as chips, in the URL under the API's names. A term that is not understood
// is shown, and never dropped.
import { cx, html, useMemo, useRef, useState } from '../core/h.js';
import { errorText } from '../core/filtertext.js';
import { absolute } from '../core/format.js';
import { relativeTime } from '../core/times.js';
import { Icon } from './icon.js';
import { common, filter as words } from '../core/words.js';

/**
 * @typedef {{name: string, label: string, text: string, title?: string}} Term `name` is the API's;
 *   `title`: what the API has in place of the text
 */

/**
 * A path in the arguments and a value, as in 0.customer:42. A dot, a colon or a backslash in a name
 * has a backslash before it.
 */
const argument = /^((?:[^.:\\]|\\[.:\\])+(?:\.(?:[^.:\\]|\\[.:\\])+)*):(.*)$/s;
/** Returns how a term begins. @param {string} name */
const beginOf = (name) => name + (name === 'args' ? '.' : ':');

/**
 * Parses one word of a filter.
 * @param {string} word
 * @param {string[]} names
 * @param {string} [when] what a time is here: due or died
 * @returns {{params?: Record<string, string>, wrong?: string}}
 */
export function parseTerm(word, names, when = '') {
  const m = /^(args)\.(.*)$/s.exec(word) || /^([a-z_]+):(.*)$/s.exec(word);
  if (!m && names.includes('text')) return { params: { text: word } };
  if (!m) return { wrong: words.noTextSearch(known(names, when)) };
  const [, name, rest] = m;
  const value = unquoted(rest);
  if (name === when) return span(value, when === 'due' ? 1 : -1);
  if (!names.includes(name)) return { wrong: words.unknown(name, known(names, when)) };
  if (name === 'args') {
    const [, path, text] = argument.exec(value) || [];
    return path ? { params: { args: `${path}:${unquoted(text)}` } } : { wrong: words.notArgument(word) };
  }
  if (!value) return { wrong: words.needsValue(name, words.examples[name] || 'abc') };
  if (name === 'from' || name === 'to') {
    if (relativeTime.test(value)) return { params: { [name]: value } };
    const at = /^\d+(\.\d+)?$/.test(value) ? Number(value) : Date.parse(value) / 1000;
    return Number.isNaN(at) ? { wrong: words.notTime(value) } : { params: { [name]: String(at) } };
  }
  return { params: { [name]: value } };
}

/** @param {string} text */
const unquoted = (text) => text.replace(/^"(.*)"$/s, '$1');

/** @param {string[]} names @param {string} when */
const known = (names, when) => words.or([...names, when].filter(Boolean));

/**
 * "<1h" is within that time from now, and ">1h" is farther away. The URL has the relative time, so
 * that it stays true.
 * @param {string} value
 * @param {1|-1} way ahead or back
 */
function span(value, way) {
  const m = /^([<>])(\d{1,5}[smhd])$/.exec(value);
  if (!m) return { wrong: words.notSpan(value) };
  const at = (way > 0 ? '+' : '-') + m[2];
  return { params: (m[1] === '<') === (way > 0) ? { to: at } : { from: at } };
}

/** Returns a term with its texts. @param {string} name @param {string} value @param {any} [group] @returns {Term} */
function termOf(name, value, group) {
  const [, path, text] = (name === 'args' && argument.exec(value)) || [];
  if (path) return { name, label: beginOf(name) + path, text };
  if (name === 'error') {
    const error = errorText(value, group);
    return { name, label: name, text: error, title: error === value ? undefined : `${error}\n${value}` };
  }
  return { name, label: name, text: (name === 'from' || name === 'to') && !relativeTime.test(value) ? absolute(Number(value)) : value };
}

/**
 * @param {{names: string[], query: URLSearchParams, onChange: (changes: Record<string, string>) =>
 *   void, suggest?: Record<string, () => (string|[string, string])[]>, label: string, group?: any,
 *   when?: 'due'|'died'|''}} p `group`: the error that a fingerprint stands for; `when`: what a
 *   time is in this list
 */
export function FilterBox({ names, query, onChange, suggest = {}, label, group, when = '' }) {
  const [text, set] = useState('');
  const [wrong, setWrong] = useState(/** @type {{word: string, why: string}[]} */ ([]));
  const [at, setAt] = useState(-1);
  const [open, setOpen] = useState(false);
  const input = useRef(null);
  const ignored = (/** @type {Term} */ t) => (names.includes(t.name) ? '' : words.ignored(t.name));
  const terms = Object.keys(words.hints).filter((n) => query.get(n)).map((name) => termOf(name, query.get(name), group));
  const list = useMemo(() => (open ? completions(text, names, suggest, when) : []), [text, open, query.toString()]);
  // Both together, so that Enter cannot come between them.
  const setText = (/** @type {string} */ now) => {
    set(now);
    setAt(-1);
  };
  const commit = (/** @type {string} */ word) => {
    word = word.trim();
    if (!word) return;
    const { params, wrong: why } = parseTerm(word, names, when);
    if (why) setWrong([...wrong, { word, why }]);
    else onChange(params);
    setText('');
    setOpen(false);
  };
  const take = (c) => {
    if (c.more) {
      setText(c.word);
      input.current.focus();
    } else commit(c.word);
  };
  const key = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      setOpen(true);
      setAt(Math.max(-1, Math.min(list.length - 1, at + (e.key === 'ArrowDown' ? 1 : -1))));
      e.preventDefault();
    } else if (e.key === 'Enter') {
      if (list[at]) take(list[at]);
      else commit(text);
      e.preventDefault();
    } else if (e.key === 'Tab' && list[Math.max(at, 0)] && text) {
      take(list[Math.max(at, 0)]);
      e.preventDefault();
    } else if (e.key === 'Escape') {
      if (open && list.length) setOpen(false);
      else input.current.blur();
    } else if (e.key === 'Backspace' && !text) {
      if (wrong.length) setWrong(wrong.slice(0, -1));
      else if (terms.length) onChange({ [terms.at(-1).name]: '' });
    }
  };
  const shownList = open && list.length > 0;
  return html`<div class="chips" role="search" onClick=${(e) => e.target === e.currentTarget && input.current.focus()}>
    <${Icon} name="search" small class="dim" />
    ${terms.map((t) => html`<span class=${cx('chip', ignored(t) && 'bad')} key=${t.name} title=${ignored(t) || t.title}><b>${t.label}:</b>
      <span class="cut">${t.text}</span>${ignored(t) && html`<span class="sr">: ${ignored(t)}</span>`}
      <button aria-label=${common.removeFilter(t.name)} onClick=${() => onChange({ [t.name]: '' })}><${Icon} name="x" small /></button></span>`)}
    ${wrong.map((w, i) => html`<span class="chip bad" key=${'w' + i} title=${w.why}><${Icon} name="alert" small /><span class="cut">${w.word}</span><span class="sr">: ${w.why}</span>
      <button aria-label=${words.remove(w.word)} onClick=${() => setWrong(wrong.filter((x) => x !== w))}><${Icon} name="x" small /></button></span>`)}
    <input ref=${input} data-filter role="combobox" aria-label=${label} aria-expanded=${String(shownList)} aria-controls="filter-list" aria-autocomplete="list"
      aria-activedescendant=${shownList && at >= 0 ? 'filter-' + at : undefined} autocomplete="off" spellcheck=${false}
      placeholder=${terms.length ? '' : offer(names)} value=${text}
      onInput=${(e) => { setText(e.target.value); setOpen(true); }} onFocus=${() => setOpen(true)} onBlur=${() => setOpen(false)} onKeyDown=${key} />
    ${wrong.length > 0 && html`<span class="bad small" role="alert">${wrong.at(-1).why}</span>`}
    ${shownList && html`<ul class="sugg" id="filter-list" role="listbox" aria-label=${words.suggestions}>${list.map((c, i) => html`
      <li id=${'filter-' + i} role="option" aria-selected=${String(i === at)} onMouseDown=${(e) => { e.preventDefault(); take(c); }}>
        <span class="cut">${c.word}</span><span class="dim nowrap">${c.hint}</span></li>`)}</ul>`}
  </div>`;
}


/** Returns examples of terms, of which a few are enough. @param {string[]} names */
const offer = (names) => words.offer([...(names.includes('text') ? ['text'] : []), ...names.filter((n) => n !== 'text').map(beginOf)], 4);

/**
 * @param {string} text
 * @param {string[]} names
 * @param {Record<string, () => (string|[string, string])[]>} suggest
 * @param {string} when
 */
function completions(text, names, suggest, when) {
  const m = /^([a-z]+):(.*)$/.exec(text);
  if (m && suggest[m[1]]) {
    const part = m[2].toLowerCase();
    const all = suggest[m[1]]().map((v) => (Array.isArray(v) ? v : [v, '']));
    return all.filter(([v]) => v.toLowerCase().includes(part)).slice(0, 12).map(([v, hint]) => ({ word: `${m[1]}:${v}`, hint, more: false }));
  }
  if (m) return [];
  const spans = [{ word: 'due:<1h', hint: words.dueWithinAnHour, more: false }, { word: 'died:<1h', hint: words.diedWithinTheLastHour, more: false }];
  return [
    ...names.filter((n) => n !== 'text' && n.startsWith(text)).map((n) => ({ word: beginOf(n), hint: words.hints[n] || '', more: true })),
    ...spans.filter((c) => when && c.word.startsWith(when) && c.word.startsWith(text)),
  ];
}
