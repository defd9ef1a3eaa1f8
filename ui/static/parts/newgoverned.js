// @ts-check
// The dialogs that govern a queue, and that change what an operator has set of one. They say what
// that does to the jobs that wait.
import { html, useEffect, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { count } from '../core/format.js';
import { without } from '../core/rawjson.js';
import { link, navigate } from '../core/router.js';
import { belowOperator, changeLayer, setLayer } from './defined.js';
import { confirm } from './dialog.js';
import { DryRun } from './dryrun.js';
import { Segments } from './states.js';
import { toast } from './toast.js';
import { actions, common } from '../core/words.js';
import { defined, governed as words } from '../core/pagewords.js';

const whole = /^[1-9]\d*$/;

/** Returns the weights in a text with a key and its weight in each line, null if it has others. @param {string} text */
function weightsIn(text) {
  const lines = text.split('\n').map((line) => line.trim()).filter(Boolean).map((line) => /^(.*\S)\s+([1-9]\d*)$/.exec(line));
  return lines.every(Boolean) ? Object.fromEntries(lines.map(([, key, n]) => [key, Number(n)])) : null;
}

/** Returns what is wrong with the fields, or ''. @param {any} v */
function fault(v) {
  if ([v.max, v.ahead].some((n) => n.trim() && !whole.test(n.trim()))) return words.enterNumbers;
  return weightsIn(v.weights) ? '' : words.enterWeights;
}

/** Returns the members that the fields set. @param {any} v @returns {string[]} */
const parts = (v) => [v.key.trim() && `"key":${JSON.stringify(v.key.trim())}`, v.max.trim() && `"max_waiting":${v.max.trim()}`, v.ahead.trim() && `"ahead":${v.ahead.trim()}`,
  v.weights.trim() && `"weights":${JSON.stringify(weightsIn(v.weights))}`].filter(Boolean);

/** Returns the fields of what a layer sets. @param {any} of */
const fieldsOf = (of) => ({ key: of.key || '', max: String(of.max_waiting ?? ''), ahead: String(of.ahead ?? ''),
  weights: Object.entries(of.weights || {}).map(([key, n]) => `${key} ${n}`).join('\n') });

/** @param {{put: (v: any) => void, v: any, below?: any}} p `below`: the definition without these */
function Fields({ put, v, below = {} }) {
  const was = fieldsOf(below);
  const set = (/** @type {string} */ name) => (/** @type {any} */ e) => put({ ...v, [name]: e.target.value });
  const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {any} */ more) => html`<label class="field grow"><span>${label}</span>
    <input class="in" autocomplete="off" spellcheck=${false} placeholder=${was[name]} value=${v[name]} onInput=${set(name)} ...${more} /></label>`;
  return html`${field('key', words.keyPath, {})}
    <div class="row low">${field('max', words.maxWaiting, { inputmode: 'numeric' })}${field('ahead', words.ahead, { inputmode: 'numeric' })}</div>
    <label class="field"><span>${words.weights} <span class="dim">${words.weightsHint}</span></span>
      <textarea class="in" rows="2" spellcheck=${false} placeholder=${was.weights} value=${v.weights} onInput=${set('weights')} /></label>`;
}

/** What a definition of a governed queue would mean. @param {{name: string, layer: string, out?: number}} p `out`: jobs that are out now */
const Preview = ({ name, layer, out = 0 }) => html`<${DryRun} kind="governed-queues" name=${name} layer=${layer} label=${words.preview} none=${words.noPreviewYet}
  show=${(/** @type {any} */ q) => html`<${Would} q=${q} out=${out} />`} />`;

/** @param {{q: any, out: number}} p */
function Would({ q, out }) {
  const { max_waiting: max = 0, ahead = 0 } = q.definition;
  const within = (q.ready || 0) + (q.unacked || 0);
  const later = q.scheduled + q.retries;
  return html`<p class=${q.full ? 'warn strong' : ''}>${q.full ? words.wouldBeFull(q.gated, max) : words.wouldTake(q.gated, max)}</p>
    ${q.definition.paused && html`<p class="warn strong">${words.meansPaused}</p>`}
    ${!q.state && html`<p class=${within ? 'warn strong' : 'dim small'}>${within ? words.drainsFirst(within) : words.whenGoverned}</p>`}
    <p class="dim small anywhere">${[words.wouldCount(q.limits), later > 0 && words.countedLater(later)].filter(Boolean).join(' · ')}</p>
    ${ahead > 0 && out > ahead && html`<p class="dim small">${words.stopsNothing(out, ahead)}</p>`}`;
}

/** Asks which queue to govern, and governs it as an operator. @param {string[]} taken names */
export function define(taken) {
  const send = async (/** @type {any} */ v) => {
    const name = v.name.trim();
    await setLayer('governed-queues', name, `{${parts(v)}}`, true);
    toast(defined.changed(name, words.governedNow));
    navigate(link('governed-queues', name));
  };
  const check = (/** @type {any} */ v) => (!v.name.trim() ? words.enterAQueue : taken.includes(v.name.trim()) ? words.nameTaken(v.name.trim()) : fault(v));
  return confirm({ title: words.governAQueue, verb: words.govern, wide: true, send, check, value: { name: '', ...fieldsOf({}) }, body: html`<p class="dim">${words.aboutGoverning}</p>`,
    fields: (put, v) => html`<${NewFields} put=${put} v=${v} taken=${taken} />` });
}

/** @param {{put: (v: any) => void, v: any, taken: string[]}} p */
function NewFields({ put, v, taken }) {
  const [queues, set] = useState(/** @type {any[]} */ ([]));
  useEffect(() => { ask(apiPath('job-queues', [], { limit: 500 })).then(({ data }) => set(data), () => {}); }, []);
  return html`<label class="field"><span>${common.queue}</span>
      <input class="in" list="govern-which" autocomplete="off" spellcheck=${false} value=${v.name} onInput=${(e) => put({ ...v, name: e.target.value })} /></label>
    <datalist id="govern-which">${queues.filter((one) => !taken.includes(one.name)).map((one) => html`<option key=${one.name} value=${one.name} />`)}</datalist>
    <${Fields} put=${put} v=${v} />
    <${Preview} name=${v.name.trim()} layer=${!v.name.trim() || taken.includes(v.name.trim()) || fault(v) ? '' : `{${parts(v)}}`} />`;
}

/**
 * Changes what an operator has set. All other members of the layer stay as they are written.
 * @param {any} q
 * @param {string} text the layer, or ''
 * @param {() => void} done
 */
export function edit(q, text, done) {
  const was = text ? JSON.parse(text) : {};
  const below = belowOperator(q);
  const layer = (/** @type {any} */ v) => {
    const rest = ['key', 'max_waiting', 'ahead', 'weights', 'paused'].reduce(without, text || '{}').trim();
    return `{${[...parts(v), ...(v.paused ? [`"paused":${v.paused}`] : []), rest.slice(1, -1).trim()].filter(Boolean)}}`;
  };
  // Without other layers an empty one still governs the queue.
  const alone = !Object.keys(q.layers).some((l) => l !== 'operator');
  return confirm({
    title: actions.changeOf(q.name), verb: actions.change, wide: true, check: fault, value: { ...fieldsOf(was), paused: String(was.paused ?? '') },
    send: (v) => changeLayer({ kind: 'governed-queues', thing: q, done }, text, layer(v), alone),
    body: !alone && html`<p class="dim">${defined.aboutTheOperator}</p>`,
    facts: [[words.waiting, count(q.waiting)], [words.out, count(q.out)]],
    fields: (put, v) => html`<${Fields} put=${put} v=${v} below=${below} />
      <div class="field"><span>${common.state}</span><div><${Segments} label=${common.state} value=${v.paused} onChange=${(/** @type {string} */ paused) => put({ ...v, paused })}
        options=${[['', defined.asDefined], ['false', defined.active], ['true', common.paused]]} /></div></div>
      <${Preview} name=${q.name} layer=${fault(v) ? '' : layer(v)} out=${q.out} />`,
  });
}
