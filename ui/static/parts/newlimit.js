// @ts-check
// The dialogs that define a limit, and that change what an operator has set of one. They say what
// the limit would hold back.
import { html } from '../core/h.js';
import { without } from '../core/rawjson.js';
import { link, navigate } from '../core/router.js';
import { belowOperator, changeLayer, nameFault, setLayer } from './defined.js';
import { confirm } from './dialog.js';
import { DryRun } from './dryrun.js';
import { allows, each } from './limits.js';
import { Segments } from './states.js';
import { toast } from './toast.js';
import { actions, common } from '../core/words.js';
import { defined, limits as words } from '../core/pagewords.js';

/** What a limit would count if the operator's layer were another one. @param {{name: string, layer: string}} p */
const Preview = ({ name, layer }) => html`<${DryRun} kind="limits" name=${name} layer=${layer} label=${words.preview} none=${words.noPreviewYet}
  show=${(/** @type {any} */ l) => (l.problem ? html`<p class="bad small anywhere">${words.incomplete(l.problem)}</p>` : html`<${Would} l=${l} />`)} />`;

/** @param {{l: any}} p */
function Would({ l }) {
  const used = l.slots > 0 ? words.wouldUse(l.used, l.slots) : words.wouldCount(l.used);
  const full = l.definition.per?.length > 0 && l.full > 0 && words.fullParts(l.full, l.definition.per);
  return html`<p class=${l.blocked ? 'warn strong' : ''}>${words.wouldHold(l.blocked, l.waiting)}</p>
    <p class="dim small">${[used, full].filter(Boolean).join(' · ')}</p>
    ${l.used > l.slots && l.slots > 0 && html`<p class="dim small">${words.stopsNothing}</p>`}`;
}

const whole = /^[1-9]\d*$/;

/**
 * Returns what is wrong with the numbers of a limit, or ''. @param {any} v
 */
function numbersFault(v) {
  if (v.concurrency.trim() && !whole.test(v.concurrency.trim())) return words.enterConcurrency;
  const [jobs, time, burst] = [v.jobs, v.seconds, v.burst].map((t) => t.trim());
  if (!jobs && !time && !burst) return '';
  return whole.test(jobs) && Number(time) >= 1 && (!burst || whole.test(burst)) ? '' : words.enterRate;
}

/** Returns the members that the numbers set. @param {any} v @returns {string[]} */
function numberParts(v) {
  const rate = v.jobs.trim() && `"rate":{"jobs":${v.jobs.trim()},"seconds":${Number(v.seconds)}${v.burst.trim() ? `,"burst":${v.burst.trim()}` : ''}}`;
  return [v.concurrency.trim() && `"concurrency":${v.concurrency.trim()}`, rate].filter(Boolean);
}

/** Returns the fields of what a layer or an override sets. @param {any} of */
const numbersOf = (of) => ({ concurrency: String(of.concurrency ?? ''), jobs: String(of.rate?.jobs ?? ''), seconds: String(of.rate?.seconds ?? ''), burst: String(of.rate?.burst ?? '') });

/**
 * How many jobs may run at once, and begin in a time. Empty fields leave it as it is defined below.
 * @param {{put: (v: any) => void, v: any, below?: any}} p `below`: the definition without these
 */
function Numbers({ put, v, below = {} }) {
  const was = numbersOf(below);
  const field = (/** @type {string} */ name, /** @type {any} */ label) => html`<label class="field grow"><span>${label}</span>
    <input class="in" inputmode="decimal" autocomplete="off" placeholder=${was[name]} value=${v[name]} onInput=${(e) => put({ ...v, [name]: e.target.value })} /></label>`;
  return html`${field('concurrency', words.concurrency)}
    <div class="row low">${field('jobs', words.rateJobs)}${field('seconds', words.rateSeconds)}${field('burst', words.rateBurst)}</div>`;
}

/** Returns the names in a list that is separated by commas. @param {string} text */
const names = (text) => text.split(',').map((t) => t.trim()).filter(Boolean);

const scopes = /** @type {const} */ (['queue', 'class', 'key']);

/** Returns the layer of a new limit. @param {any} v */
const layerOf = (v) => `{${[...['queues', 'classes'].filter((k) => names(v[k]).length).map((k) => `"${k}":${JSON.stringify(names(v[k]))}`),
  ...(v.per.length ? [`"per":${JSON.stringify(v.per)}`] : []), ...numberParts(v)]}}`;

/** Asks for a new limit, and defines it as an operator. @param {string[]} taken names */
export function define(taken) {
  const send = async (/** @type {any} */ v) => {
    const name = v.name.trim();
    await setLayer('limits', name, layerOf(v));
    toast(defined.changed(name, defined.defined));
    navigate(link('limits', name));
  };
  const check = (/** @type {any} */ v) => nameFault(v.name.trim(), taken) || numbersFault(v) || (numberParts(v).length ? '' : words.enterALimit);
  return confirm({
    title: words.defineALimit, verb: defined.define, wide: true, send, check, value: { name: '', queues: '', classes: '', per: [], ...numbersOf({}) },
    fields: (put, v) => html`<${Fields} put=${put} v=${v} />`,
  });
}

/** The name by which a limit is previewed that has none yet. */
const unnamed = '-';

/** @param {{put: (v: any) => void, v: any}} p */
function Fields({ put, v }) {
  const text = (/** @type {string} */ name, /** @type {string} */ label, hint = '') => html`<label class="field grow"><span>${label} <span class="dim">${hint}</span></span>
    <input class="in" autocomplete="off" spellcheck=${false} value=${v[name]} onInput=${(e) => put({ ...v, [name]: e.target.value })} /></label>`;
  const turn = (/** @type {string} */ scope) => put({ ...v, per: scopes.filter((s) => (s === scope) !== v.per.includes(s)) });
  return html`${text('name', common.name)}
    <div class="row low">${text('queues', common.queues, words.allIfEmpty)}${text('classes', common.classes, words.allIfEmpty)}</div>
    <div class="field"><span>${words.separately}</span><div class="row wrap" role="group" aria-label=${words.separately}>${scopes.map((s) => html`<label class="check" key=${s}>
      <input type="checkbox" checked=${v.per.includes(s)} onChange=${() => turn(s)} />${words.scopes[s]}</label>`)}</div></div>
    <${Numbers} put=${put} v=${v} /><${Preview} name=${v.name.trim() || unnamed} layer=${numbersFault(v) || !numberParts(v).length ? '' : layerOf(v)} />`;
}

/**
 * Changes what an operator has set: the numbers, and whether the limit is paused. All other members
 * of the layer stay as they are written.
 * @param {any} limit
 * @param {string} text the layer, or ''
 * @param {() => void} done
 */
export function edit(limit, text, done) {
  const was = text ? JSON.parse(text) : {};
  const below = belowOperator(limit);
  const layer = (/** @type {any} */ v) => {
    const rest = ['concurrency', 'rate', 'paused'].reduce(without, text || '{}').trim();
    return `{${[...numberParts(v), ...(v.paused ? [`"paused":${v.paused}`] : []), rest.slice(1, -1).trim()].filter(Boolean)}}`;
  };
  return confirm({
    title: actions.changeOf(limit.name), verb: actions.change, wide: true, check: numbersFault, value: { ...numbersOf(was), paused: String(was.paused ?? '') },
    send: (v) => changeLayer({ kind: 'limits', thing: limit, done }, text, layer(v)),
    body: Object.keys(below).length > 0 && html`<p class="dim">${defined.aboutTheOperator}</p>`,
    facts: [[words.now, [allows(limit.definition), each(limit.definition)].join(' ')]],
    fields: (put, v) => html`<${Numbers} put=${put} v=${v} below=${below} />
      <div class="field"><span>${common.state}</span><div><${Segments} label=${common.state} value=${v.paused} onChange=${(/** @type {string} */ paused) => put({ ...v, paused })}
        options=${[['', defined.asDefined], ['false', defined.active], ['true', common.paused]]} /></div></div>
      <${Preview} name=${limit.name} layer=${numbersFault(v) ? '' : layer(v)} />`,
  });
}

/**
 * Changes what one key may do. The overrides of other keys stay.
 * @param {any} limit
 * @param {string} text the operator's layer, or ''
 * @param {string} key
 * @param {() => void} done
 */
export function editKey(limit, text, key, done) {
  const { definition } = limit;
  const all = definition.overrides || {};
  const layer = (/** @type {any} */ v) => {
    const one = numberParts(v);
    const others = Object.entries(all).filter(([k]) => k !== key).map(([k, o]) => `${JSON.stringify(k)}:${JSON.stringify(o)}`);
    const rest = without(text || '{}', 'overrides').trim().slice(1, -1).trim();
    return `{${[rest, `"overrides":{${[...others, ...(one.length ? [`${JSON.stringify(key)}:{${one}}`] : [])]}}`].filter(Boolean)}}`;
  };
  return confirm({
    title: words.changeKey(key), verb: actions.change, wide: true, check: numbersFault, value: numbersOf(all[key] || {}),
    send: (v) => changeLayer({ kind: 'limits', thing: limit, done }, text, layer(v)), body: html`<p class="dim">${words.aboutKeys}</p>`,
    fields: (put, v) => html`<${Numbers} put=${put} v=${v} below=${definition} /><${Preview} name=${limit.name} layer=${numbersFault(v) ? '' : layer(v)} />`,
  });
}
