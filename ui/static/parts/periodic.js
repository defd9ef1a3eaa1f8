// @ts-check
// Periodic jobs: their states, ticks and actions. What cannot be undone asks before.
import { html } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { seconds } from '../core/format.js';
import { link } from '../core/router.js';
import { inZone, scheduleOf } from '../core/schedule.js';
import { confirm } from './dialog.js';
import { Icon } from './icon.js';
import { State } from './states.js';
import { Time } from './time.js';
import { failed, toast } from './toast.js';
import { actions, common } from '../core/words.js';
import { periodic as words } from '../core/pagewords.js';

/** When a periodic job is due. @param {{job: any}} p */
export function Schedule({ job }) {
  const { text, written } = scheduleOf(job.definition);
  return html`<span class="cut" title=${[text, written].filter(Boolean).join('\n')}>${text || '–'} <span class="dim small">${written}</span></span>`;
}

/** @param {{job: any}} p */
export const JobState = ({ job }) => html`<span title=${job.problem}><${State} state=${job.state} /></span>`;

const looks = { made: ['check', 'ok'], run: ['play', 'info'], void: ['undo', 'dim'] };
/** Skips that no user asked for. */
const faults = ['missed', 'refused'];

/** The outcome of a tick. @param {{tick: any}} p */
export function Outcome({ tick }) {
  const [icon, look] = looks[tick.outcome] || (faults.includes(tick.why) ? ['alert', 'bad'] : ['dash', 'warn']);
  const text = tick.outcome === 'skipped' ? words.skipped[tick.why] || tick.why : words.outcomes[tick.outcome] || tick.outcome;
  return html`<span class=${'state ' + look}><${Icon} name=${icon} small />${text}</span>`;
}

/** How long after its tick a job was enqueued. @param {any} tick */
export const lateness = (tick) => (tick.outcome === 'made' ? Math.max(0, tick.at - tick.tick) : null);

/**
 * Coming ticks, by the clock of the time zone.
 * @param {{ticks: number[], zone?: string}} p
 */
export const Ticks = ({ ticks, zone }) => html`<ol class="ticks">${ticks.map((t) => html`<li key=${t}><span class="num">${inZone(t, zone)}</span>
  <span class="dim small"><${Time} at=${t} /></span></li>`)}</ol>`;

/** @typedef {{job: any, done: () => void}} Of */

/**
 * Sends a command about a job, and refreshes the page. Returns the answer, or null if it failed.
 * @param {Of} of
 * @param {string} url
 * @param {any} how
 */
async function send({ done }, url, how) {
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
 * Resuming asks for no confirmation, because pausing undoes it.
 * @param {boolean} on pause, or resume
 * @param {Of} of
 */
export async function pause(on, of) {
  const { job } = of;
  let reason = '';
  if (on) {
    const yes = await confirm({ title: words.askPause(job.name), verb: common.pause, reason: true, facts: [[words.nextTick, nextOf(job)]],
      body: html`<p class="dim">${words.aboutPausing}</p>` });
    if (!yes) return;
    reason = yes.reason;
  }
  const put = (/** @type {'pause'|'resume'} */ order, /** @type {string} */ reason) =>
    send(of, apiPath('periodic-jobs', [job.name, order]), { method: 'PUT', body: reason ? { reason } : undefined });
  if (await put(on ? 'pause' : 'resume', reason)) toast(words.changed(job.name, on ? words.paused : words.resumed), { undo: () => put(on ? 'resume' : 'pause', '') });
}

/** The next tick, for a dialog. @param {any} job */
const nextOf = (job) => job.next.length > 0 && html`${inZone(job.next[0], job.definition.tz)} · <${Time} at=${job.next[0]} />`;

/** @param {Of} of */
export async function run(of) {
  const { job } = of;
  const yes = await confirm({ title: words.askRun(job.name), verb: actions.runNow, reason: true, facts: [[common.class, job.class], [common.queue, job.queue]],
    body: html`<p class="dim">${words.aboutRunning}</p>` });
  if (!yes) return;
  const answer = await send(of, apiPath('periodic-jobs', [job.name, 'run']), { method: 'POST', body: yes.reason ? { reason: yes.reason } : undefined });
  if (answer) toast(words.changed(job.name, actions.enqueued), { to: link('jobs', answer.data.jid), toText: actions.show });
}

/** Skips the tick that is shown as the next one. @param {Of} of */
export async function skip(of) {
  const { job } = of;
  const [tick] = job.next;
  const yes = await confirm({ title: words.askSkip(job.name), verb: words.skip, reason: true, facts: [[words.tick, nextOf(job)]],
    body: html`<p class="dim">${words.aboutSkipping}</p>` });
  if (!yes) return;
  const answer = await send(of, apiPath('periodic-jobs', [job.name, 'skip']), { method: 'POST', body: { tick, reason: yes.reason || undefined } });
  if (answer) toast(words.changed(job.name, words.skips(inZone(tick, job.definition.tz))));
}

/**
 * Deletes a job, or with a layer only what that sets. Only what an operator has set can be set
 * again from here.
 * @param {Of & {texts?: Record<string, string>, layer?: string}} of `texts`: the layers, as they
 *   are written
 */
export async function remove({ job, done, texts = {}, layer }) {
  const sources = Object.entries(job.layers).filter(([name]) => name !== 'operator').map(([name, l]) => words.sourceOf(words.layers[name] || name, l.source));
  const back = texts.operator !== undefined && (layer === 'operator' || !sources.length);
  const body = html`${!layer && sources.length > 0 && html`<p class="dim">${words.comesBack}</p>`}${layer && html`<p class="dim">${words.aboutTheLayer(sources.length > 0)}</p>`}
    ${back && html`<p class="dim small">${actions.youCanUndoThis}</p>`}`;
  const title = layer ? words.askForgetLayer(job.name) : words.askDelete(job.name);
  const yes = await confirm({ title, verb: layer ? words.forgetLayer : words.deleteJob, danger: true, reason: true, body,
    facts: [[words.definedBy, sources.join(', ')], [words.nextTick, !layer && nextOf(job)]] });
  if (!yes) return;
  const undo = back ? () => send({ job, done }, apiPath('periodic-jobs', job.name), { method: 'PUT', body: texts.operator }) : undefined;
  if (await send({ job, done }, apiPath('periodic-jobs', job.name, { layer }), { method: 'DELETE', reason: yes.reason })) {
    toast(words.changed(job.name, layer ? words.layerForgotten : actions.deleted), { undo });
  }
}

/**
 * The actions on one job. In a row they are icons.
 * @param {Of & {row?: boolean}} p
 */
export function Acts({ job, done, row }) {
  const of = { job, done };
  const paused = job.state === 'paused';
  const whole = job.state !== 'incomplete';
  /** @type {[string, string, boolean, () => any][]} */
  const all = [
    paused ? ['play', common.resume, whole, () => pause(false, of)] : ['pause', common.pause, whole, () => pause(true, of)],
    ['enqueue', actions.runNow, whole, () => run(of)],
    ['next', words.skipNext, whole && job.next.length > 0, () => skip(of)],
  ];
  return all.map(([icon, text, may, act], i) => (row
    ? html`<button key=${i} class=${'icon' + (i ? ' more' : '')} disabled=${!may} title=${text} aria-label=${words.actOn(text, job.name)} onClick=${act}><${Icon} name=${icon} /></button>`
    : html`<button key=${i} class="btn small" disabled=${!may} onClick=${act}><${Icon} name=${icon} small />${text}</button>`));
}

/** How late the job of a tick was enqueued. @param {{tick: any}} p */
export function Late({ tick }) {
  const late = lateness(tick);
  return late === null ? html`<span class="dim">–</span>` : html`<span class=${late > 60 ? 'bad strong' : undefined}>${seconds(late)}</span>`;
}
