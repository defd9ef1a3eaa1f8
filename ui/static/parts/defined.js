// @ts-check
// What users define in layers: periodic jobs, limits and governed queues. Their list, their layers, and the actions
// that all have.
import { html, useEffect, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { count } from '../core/format.js';
import { read } from '../core/rawjson.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { confirm } from './dialog.js';
import { Icon } from './icon.js';
import { paged, PagerOf } from './paging.js';
import { Answer, Card, CopyCurl, Empty, State, Title } from './states.js';
import { ColumnChooser, sorted, Table } from './table.js';
import { Time } from './time.js';
import { failed, overtaken, toast } from './toast.js';
import { actions, common } from '../core/words.js';
import { defined as words } from '../core/pagewords.js';

/** The layers, the weakest first. */
export const layerOrder = ['code', 'file', 'operator'];

/**
 * @typedef {{kind: string, thing: any, done: () => void}} Of `kind`: the page of the list, which is
 *   also the API's path; `thing`: the API's answer about one
 */

/**
 * Sends a command, and refreshes the page. Returns the answer, or null if it failed.
 * @param {{done: () => void}} of
 * @param {string} url
 * @param {any} how
 */
export async function send({ done }, url, how) {
  try {
    return await ask(url, how);
  } catch (e) {
    failed(e);
    return null;
  } finally {
    done();
  }
}

/**
 * Says what was done, and offers to undo it. An earlier offer would now undo something else.
 * @param {{kind: string, thing: any}} of
 * @param {string} what
 * @param {() => any} [undo]
 */
function did({ kind, thing: { name } }, what, undo) {
  overtaken((of) => of.set === kind && of.name === name);
  toast(words.changed(name, what), { undo, of: { set: kind, name } });
}

/** @param {{of: any}} p */
export const DefinedState = ({ of }) => html`<span title=${of.problem}><${State} state=${of.state} /></span>`;

/**
 * Resuming asks for no confirmation, because pausing undoes it.
 * @param {boolean} on pause, or resume
 * @param {Of} of
 * @param {any} question what the dialog says about pausing
 */
export async function pause(on, of, question) {
  const { name } = of.thing;
  let reason = '';
  if (on) {
    const yes = await confirm({ title: words.askPause(name), verb: common.pause, reason: true, ...question });
    if (!yes) return;
    reason = yes.reason;
  }
  const { kind } = of;
  const put = (/** @type {'pause'|'resume'} */ order, /** @type {string} */ reason) =>
    send(of, apiPath(kind, [name, order]), { method: 'PUT', body: reason ? { reason } : undefined });
  if (await put(on ? 'pause' : 'resume', reason)) did(of, on ? words.paused : words.resumed, () => put(on ? 'resume' : 'pause', ''));
}

/**
 * Deletes a definition, or with a layer only what that sets. Only what an operator has set can be
 * set again from here.
 * @param {Of & {texts?: Record<string, string>, layer?: string, says: {ask: (name: string) =>
 *   string, verb: string, comesBack: string, rest: (more: boolean) => string, facts: [string,
 *   any][], done?: string}}} of `texts`: the layers, as they are written; `says`: the texts of the dialog,
 *   and of what was done
 */
export async function remove({ kind, thing, done, texts = {}, layer, says }) {
  const { name } = thing;
  const sources = Object.entries(thing.layers).filter(([l]) => l !== 'operator').map(([l, { source }]) => words.sourceOf(words.layers[l] || l, source));
  const back = texts.operator !== undefined && (layer === 'operator' || !sources.length);
  const body = html`${!layer && sources.length > 0 && html`<p class="dim">${says.comesBack}</p>`}${layer && html`<p class="dim">${says.rest(sources.length > 0)}</p>`}
    ${back && html`<p class="dim small">${actions.youCanUndoThis}</p>`}`;
  const yes = await confirm({ title: layer ? words.askForgetLayer(name) : says.ask(name), verb: layer ? words.forgetLayer : says.verb, danger: true, reason: true, body,
    facts: [[words.definedBy, sources.join(', ')], ...(layer ? [] : says.facts)] });
  if (!yes) return;
  const undo = back ? () => send({ done }, apiPath(kind, name), { method: 'PUT', body: texts.operator }) : undefined;
  if (await send({ done }, apiPath(kind, name, { layer }), { method: 'DELETE', reason: yes.reason })) {
    did({ kind, thing }, layer ? words.layerForgotten : says.done || actions.deleted, undo);
  }
}

/**
 * The buttons of one row or page. In a row they are icons.
 * @param {{all: [string, string, boolean, () => any][], name: string, row?: boolean}} p `all`: the
 *   icon, the text, whether it may be pressed, and what it does
 */
export function Buttons({ all, name, row }) {
  return all.map(([icon, text, may, act], i) => (row
    ? html`<button key=${i} class=${'icon' + (i ? ' more' : '')} disabled=${!may} title=${text} aria-label=${words.actOn(text, name)} onClick=${act}><${Icon} name=${icon} /></button>`
    : html`<button key=${i} class="btn small" disabled=${!may} onClick=${act}><${Icon} name=${icon} small />${text}</button>`));
}

/** Pauses or resumes. @param {any} thing @param {(on: boolean) => any} act @returns {[string, string, boolean, () => any]} */
export const pauseButton = (thing, act) => (thing.state === 'paused' ? ['play', common.resume, true, () => act(false)]
  : ['pause', common.pause, thing.state !== 'incomplete', () => act(true)]);

/** The page of what was deleted, or never was. @param {{icon: string, title: string}} p */
export const Missing = ({ icon, title }) => html`<section class="card"><${Empty} icon=${icon} title=${title}><p>${words.whereItMayBe}</p>
  <a class="btn" href=${link('operations', [], { tab: 'audit' })}>${words.auditLog}</a><//></section>`;

/** A link to the page of something. @param {string} page @param {string} name */
export const to = (page, name) => (name ? html`<a class="cut" title=${name} href=${link(page, name)}>${name}</a>` : '–');

/**
 * The list of all that are defined.
 * @param {{kind: string, title: string, icon: string, of: any, columns: any[], find: (d: any) =>
 *   string[], acts: (d: any) => any, define: (taken: string[]) => any, says: {countOf: (n: number) =>
 *   string} & Record<'noneYet'|'howToDefine'|'exampleDefine'|'filterBy'|'filterAll'|'inline',
 *   string> & {define?: string}}} p `find`: what the filter looks at; `define`: opens the dialog
 */
export function DefinedList({ kind, title, icon, of, columns, find, acts, define, says }) {
  const query = route.value.query;
  const all = of.data || [];
  const text = (query.get('text') || '').toLowerCase();
  const sort = query.get('sort') || '';
  const reverse = query.get('sort_reverse') === 'true';
  const found = text ? all.filter((/** @type {any} */ d) => find(d).some((s) => s.toLowerCase().includes(text))) : all;
  const part = paged(sorted(found, columns, sort, reverse));
  const empty = text
    ? html`<${Empty} icon="search" title=${common.noMatches(says.countOf(all.length))}><button class="btn" onClick=${() => setQuery({ text: '' })}>${common.clearFilter}</button><//>`
    : html`<${Empty} icon=${icon} title=${says.noneYet}><p>${says.howToDefine}</p><pre class="code">${says.exampleDefine}</pre><//>`;
  return html`<${Title} title=${title} badge=${of.data ? count(all.length) : null}>
      ${mayAct.value && html`<button class="btn small" onClick=${() => define(all.map((/** @type {any} */ d) => d.name))}><${Icon} name="plus" small />${says.define || words.define}</button>`}<//>
    <section class="card flush" aria-label=${title}><div class="toolbar">
      <input class="in small grow" type="search" data-filter placeholder=${says.filterBy} aria-label=${says.filterAll} value=${query.get('text') || ''}
        onInput=${(e) => setQuery({ text: e.target.value, page: '' }, { replace: true })} /><span class="grow"></span>
      <${ColumnChooser} id=${kind} columns=${columns} /><${CopyCurl} url=${of.url} /></div>
    <${Answer} of=${of}><${Table} id=${kind} caption=${title} columns=${columns} rows=${part.rows} count=${found.length} loading=${!of.data} dim=${!!of.error}
      rowKey=${(d) => d.name} sort=${sort} reverse=${reverse} of=${`${text} ${part.page} ${part.size}`}
      onSort=${(/** @type {string} */ id, /** @type {boolean} */ r) => setQuery({ sort: id, sort_reverse: r ? 'true' : '', page: '' })}
      open=${(d) => navigate(link(kind, d.name))} acts=${mayAct.value ? acts : undefined} empty=${empty} /><//>
    <${PagerOf} of=${part} total=${found.length} what=${says.inline} /></section>`;
}

/**
 * Returns the members that a layer sets, as they are written. Those of a job are listed one by one,
 * because layers replace them one by one.
 * @param {string} text
 * @returns {Map<string, string>}
 */
function membersOf(text) {
  const all = new Map();
  const add = (/** @type {any} */ node, /** @type {string} */ before) => node?.keys?.forEach((/** @type {string} */ key, /** @type {number} */ i) => {
    const name = JSON.parse(key);
    if (!before && name === 'job') add(node.items[i], 'job.');
    else all.set(before + name, text.slice(node.items[i].from, node.items[i].to));
  });
  add(read(text), '');
  return all;
}

/** Members that replace each other. */
const twins = { cron: 'every', every: 'cron' };

/** The members of a definition, with a column for each layer. @param {{thing: any, layers: string[], texts: Record<string, string>, tools: any}} p */
export function Layers({ thing, layers, texts, tools }) {
  const sets = layers.map((l) => membersOf(texts[l]));
  const replaces = (/** @type {Map<string, string>} */ s, /** @type {string} */ name) => s.has(name) || s.has(twins[name]);
  const rows = [...new Set(sets.flatMap((s) => [...s.keys()]))].map((name) => ({ name, wins: sets.findLastIndex((s) => replaces(s, name)) }));
  const columns = [
    { id: 'member', label: words.member, always: true, head: true, class: 'mono', cell: (m) => m.name },
    ...layers.map((l, i) => ({
      id: l, label: words.layers[l], always: true, class: layers.length > 1 ? 'some' : 'fill',
      cell: (m) => html`<${Member} text=${sets[i].get(m.name)} wins=${m.wins === i} />`,
    })),
  ];
  return html`<${Card} flush title=${words.definition} tools=${tools}>
    <${Table} id="layers" caption=${words.definition} columns=${columns} rows=${rows} rowKey=${(m) => m.name} still=${false} />
    <ul class="notes dim small">${layers.map((l) => html`<li class="anywhere" key=${l}>
      ${words.setBy(words.layers[l], thing.layers[l].source, thing.layers[l].actor, html`<${Time} at=${thing.layers[l].at} past />`)}</li>`)}</ul><//>`;
}

/**
 * A member of a layer, as it is written. It is struck out if a stronger layer replaces it.
 * @param {{text?: string, wins: boolean}} p
 */
const Member = ({ text, wins }) => (text === undefined ? html`<span class="dim">–</span>`
  : html`<span class=${'mono cut' + (wins ? '' : ' dim over')} title=${wins ? text : words.replaced}>${text}</span>`);

/**
 * Sets the operator's layer as it is written, or removes it if it is empty.
 * @param {string} kind
 * @param {string} name
 * @param {string} layer
 * @param {boolean} [keep] an empty layer is set
 */
export const setLayer = (kind, name, layer, keep) => (layer === '{}' && !keep ? ask(apiPath(kind, name, { layer: 'operator' }), { method: 'DELETE' })
  : ask(apiPath(kind, name), { method: 'PUT', body: layer }));

/**
 * Changes the operator's layer. It can be undone.
 * @param {Of} of
 * @param {string} was the layer as it is written, or ''
 * @param {string} layer
 * @param {boolean} [keep] an empty layer is set
 */
export async function changeLayer({ kind, thing, done }, was, layer, keep) {
  if (!(layer === '{}' && !was)) await setLayer(kind, thing.name, layer, keep);
  did({ kind, thing }, actions.changed, () => setLayer(kind, thing.name, was || '{}', keep).then(done, done));
  done();
}

/** Returns what code and files define, one layer over the other. @param {any} thing */
export const belowOperator = (thing) => Object.assign({}, ...['code', 'file'].map((l) => thing.layers[l]?.value || {}));

/**
 * Returns a value once it has stayed the same for a moment. Nothing is requested while the user
 * types.
 * @template T
 * @param {T} value
 * @returns {T}
 */
export function useSettled(value) {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(() => value), 300);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Returns what is wrong with a name, or ''. @param {string} name @param {string[]} taken */
export function nameFault(name, taken) {
  if (!/^[\w.-]{1,64}$/.test(name)) return words.enterAName;
  return taken.includes(name) ? words.nameTaken(name) : '';
}
