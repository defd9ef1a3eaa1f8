// @ts-check
// The dialogs that define a periodic job, and that change what an operator has set of one.
import { html } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { without } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link, navigate } from '../core/router.js';
import { ArgsField, kindOf } from './actions.js';
import { belowOperator, changeLayer, nameFault, useSettled } from './defined.js';
import { confirm } from './dialog.js';
import { Ticks } from './periodic.js';
import { Segments } from './states.js';
import { toast } from './toast.js';
import { actions, common, enqueue } from '../core/words.js';
import { defined, periodic as words } from '../core/pagewords.js';

/**
 * The next ticks of a schedule, or what is wrong with it.
 * @param {{cron: string, every: string, tz: string}} p
 */
function Preview({ cron, every, tz }) {
  const url = cron || every ? apiPath('next-ticks', [], { cron, every, tz, n: 5 }) : null;
  const asked = useSettled(url);
  const ticks = useResource(asked, { every: 0, keep: false });
  const here = asked === url && ticks.url === url;
  return html`<div class="field" aria-live="polite"><span>${words.nextTicks}</span>
    ${!url ? html`<p class="dim small">${words.noScheduleYet}</p>`
      : ticks.error && asked === url ? html`<p class="bad small anywhere">${ticks.error.reason}</p>`
        : html`<div class=${here || !ticks.data ? undefined : 'stale'}><${Ticks} ticks=${ticks.data?.next || []} zone=${every ? '' : tz} /></div>`}</div>`;
}

/**
 * The fields of a schedule. Empty fields leave it as it is defined below.
 * @param {{put: (v: any) => void, v: any, below?: any}} p `below`: the definition without the
 *   operator's layer
 */
function ScheduleFields({ put, v, below = {} }) {
  const typed = (/** @type {string} */ name) => (e) => put({ ...v, [name]: e.target.value });
  const own = !!(v.kind === 'cron' ? v.cron : v.every).trim();
  const shown = own || v.kind !== (below.every ? 'every' : 'cron') ? v : { ...v, cron: below.cron || '', every: String(below.every || '') };
  const tz = v.tz.trim() || below.tz || '';
  return html`<div class="field"><span>${words.due}</span><div>
      <${Segments} label=${words.due} value=${v.kind} onChange=${(/** @type {string} */ kind) => put({ ...v, kind })} options=${[['cron', words.byCron], ['every', words.byEvery]]} /></div></div>
    ${v.kind === 'cron' ? html`<div class="row low"><label class="field grow"><span>${words.cron} <span class="dim">${words.fields}</span></span>
        <input class="in mono" autocomplete="off" spellcheck=${false} placeholder=${below.cron || '0 3 * * *'} value=${v.cron} onInput=${typed('cron')} /></label>
      <label class="field grow"><span>${words.timeZone}</span>
        <input class="in" list="known-zones" autocomplete="off" spellcheck=${false} placeholder=${below.tz || words.utc} value=${v.tz} onInput=${typed('tz')} /></label></div>
      <datalist id="known-zones">${zones().map((z) => html`<option value=${z} />`)}</datalist>`
    : html`<label class="field"><span>${words.seconds}</span>
        <input class="in" inputmode="numeric" autocomplete="off" placeholder=${below.every || '90'} value=${v.every} onInput=${typed('every')} /></label>`}
    <${Preview} cron=${v.kind === 'cron' ? shown.cron.trim() : ''} every=${v.kind === 'every' ? shown.every.trim() : ''} tz=${v.kind === 'cron' ? tz : ''} />`;
}

/** @returns {string[]} */
const zones = () => /** @type {any} */ (Intl).supportedValuesOf?.('timeZone') || [];

/** Returns what is wrong with the fields of a schedule, or ''. @param {any} v */
const faultOf = (v) => (v.kind === 'every' && v.every.trim() && !/^[1-9]\d*$/.test(v.every.trim()) ? words.enterSeconds : '');

/** Returns the members of a schedule that are set. @param {any} v */
function scheduleParts(v) {
  const parts = [];
  if (v.kind === 'cron' && v.cron.trim()) parts.push(`"cron":${JSON.stringify(v.cron.trim())}`);
  if (v.kind === 'every' && v.every.trim()) parts.push(`"every":${Number(v.every)}`);
  if (v.tz.trim()) parts.push(`"tz":${JSON.stringify(v.tz.trim())}`);
  return parts;
}

/** Asks for a new periodic job, and defines it as an operator. @param {string[]} taken names */
export function define(taken) {
  const send = async (/** @type {any} */ v) => {
    const job = [`"class":${JSON.stringify(v.class.trim())}`, `"args":${v.args}`, `"queue":${JSON.stringify(v.queue.trim())}`];
    const parts = [...scheduleParts(v), `"job":{${job}}`, ...(v.overlap === 'skip' ? ['"overlap":"skip"'] : []), ...(v.late === 'skip' ? [] : [`"catch_up":"${v.late}"`])];
    await ask(apiPath('periodic-jobs', v.name.trim()), { method: 'PUT', body: `{${parts}}` });
    toast(defined.changed(v.name.trim(), defined.defined));
    navigate(link('periodic-jobs', v.name.trim()));
  };
  const check = (/** @type {any} */ v) => {
    const fault = nameFault(v.name.trim(), taken);
    if (fault) return fault;
    if (!(v.kind === 'cron' ? v.cron : v.every).trim()) return words.enterASchedule;
    if (!v.class.trim()) return enqueue.enterAClass;
    if (!v.queue.trim()) return actions.enterAQueue;
    return faultOf(v) || (kindOf(v.args) === 'array' ? '' : enqueue.argumentsMustBeAnArray);
  };
  return confirm({
    title: words.defineAPeriodicJob, verb: defined.define, wide: true, send, check,
    value: { name: '', kind: 'cron', cron: '', every: '', tz: Intl.DateTimeFormat().resolvedOptions().timeZone || '', class: '', queue: 'default', args: '[]', late: 'skip', overlap: 'allow' },
    fields: (put, v) => html`<${Fields} put=${put} v=${v} />`,
  });
}

/** @param {{put: (v: any) => void, v: any}} p */
function Fields({ put, v }) {
  const typed = (/** @type {string} */ name) => (e) => put({ ...v, [name]: e.target.value });
  const field = (/** @type {string} */ name, /** @type {string} */ label) => html`<label class="field grow"><span>${label}</span>
    <input class="in" autocomplete="off" spellcheck=${false} value=${v[name]} onInput=${typed(name)} /></label>`;
  const choice = (/** @type {string} */ name, /** @type {string} */ label, /** @type {[string, string][]} */ options) => html`<label class="field"><span>${label}</span>
    <select class="in" value=${v[name]} onChange=${typed(name)}>${options.map(([value, text]) => html`<option value=${value} selected=${v[name] === value}>${text}</option>`)}</select></label>`;
  return html`${field('name', common.name)}<${ScheduleFields} put=${put} v=${v} />
    <div class="row low">${field('class', common.class)}${field('queue', common.queue)}</div><${ArgsField} put=${put} v=${v} />
    <details><summary class="strong">${enqueue.more}</summary><div class="stack">
      ${choice('late', words.lateTicks, [['skip', words.lateSkip], ['last', words.lateLast], ['all', words.lateAll]])}
      ${choice('overlap', words.overlap, [['allow', words.overlapAllow], ['skip', words.overlapSkip]])}</div></details>`;
}

/**
 * Changes what an operator has set: when the job is due, and whether it is paused. All other members
 * of the layer stay as they are written.
 * @param {any} job
 * @param {string} text the layer, or ''
 * @param {() => void} done
 */
export function edit(job, text, done) {
  const was = text ? JSON.parse(text) : {};
  const below = belowOperator(job);
  if (job.layers.file?.value.cron) delete below.every; // the two replace each other
  if (job.layers.file?.value.every) delete below.cron;
  const first = { kind: was.every || (!was.cron && below.every) ? 'every' : 'cron', cron: was.cron || '', every: String(was.every || ''), tz: was.tz || '', paused: String(was.paused ?? '') };
  const send = async (/** @type {any} */ v) => {
    const rest = ['cron', 'every', 'tz', 'paused'].reduce(without, text || '{}').trim();
    const parts = [...scheduleParts(v), ...(v.paused ? [`"paused":${v.paused}`] : [])];
    await changeLayer({ kind: 'periodic-jobs', thing: job, done }, text, `{${[...parts, rest.slice(1, -1).trim()].filter(Boolean)}}`);
  };
  return confirm({
    title: actions.changeOf(job.name), verb: actions.change, wide: true, send, value: first, check: faultOf,
    body: Object.keys(below).length > 0 && html`<p class="dim">${defined.aboutTheOperator}</p>`,
    fields: (put, v) => html`<${ScheduleFields} put=${put} v=${v} below=${below} />
      <div class="field"><span>${common.state}</span><div><${Segments} label=${common.state} value=${v.paused} onChange=${(/** @type {string} */ paused) => put({ ...v, paused })}
        options=${[['', defined.asDefined], ['false', defined.active], ['true', common.paused]]} /></div></div>`,
  });
}
