// @ts-check
// Periodic jobs: their states, ticks and actions. What cannot be undone asks before.
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { seconds } from '../core/format.js';
import { link } from '../core/router.js';
import { inZone, scheduleOf } from '../core/schedule.js';
import { Buttons, pause, pauseButton, remove as removeDefined, send } from './defined.js';
import { confirm } from './dialog.js';
import { Icon } from './icon.js';
import { Time } from './time.js';
import { toast } from './toast.js';
import { actions, common } from '../core/words.js';
import { defined, periodic as words } from '../core/pagewords.js';

/** When a periodic job is due. @param {{job: any}} p */
export function Schedule({ job }) {
  const { text, written } = scheduleOf(job.definition);
  return html`<span class="cut" title=${[text, written].filter(Boolean).join('\n')}>${text || '–'} <span class="dim small">${written}</span></span>`;
}

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

/** The next tick, for a dialog. @param {any} job */
const nextOf = (job) => job.next.length > 0 && html`${inZone(job.next[0], job.definition.tz)} · <${Time} at=${job.next[0]} />`;

/** @param {Of} of */
export async function run(of) {
  const { job } = of;
  const yes = await confirm({ title: words.askRun(job.name), verb: actions.runNow, reason: true, facts: [[common.class, job.class], [common.queue, job.queue]],
    body: html`<p class="dim">${words.aboutRunning}</p>` });
  if (!yes) return;
  const answer = await send(of, apiPath('periodic-jobs', [job.name, 'run']), { method: 'POST', body: yes.reason ? { reason: yes.reason } : undefined });
  if (answer) toast(defined.changed(job.name, actions.enqueued), { to: link('jobs', answer.data.jid), toText: actions.show });
}

/** Skips the tick that is shown as the next one. @param {Of} of */
export async function skip(of) {
  const { job } = of;
  const [tick] = job.next;
  const yes = await confirm({ title: words.askSkip(job.name), verb: words.skip, reason: true, facts: [[words.tick, nextOf(job)]],
    body: html`<p class="dim">${words.aboutSkipping}</p>` });
  if (!yes) return;
  const answer = await send(of, apiPath('periodic-jobs', [job.name, 'skip']), { method: 'POST', body: { tick, reason: yes.reason || undefined } });
  if (answer) toast(defined.changed(job.name, words.skips(inZone(tick, job.definition.tz))));
}

/**
 * Deletes a job, or a layer of it.
 * @param {Of & {texts: Record<string, string>, layer?: string}} of `texts`: the layers, as they
 *   are written
 */
export const remove = ({ job, ...of }) => removeDefined({ ...of, kind: 'periodic-jobs', thing: job, says: {
  ask: words.askDelete, verb: words.deleteJob, comesBack: words.comesBack, rest: words.aboutTheLayer, facts: [[words.nextTick, nextOf(job)]] } });

/**
 * The actions on one job.
 * @param {Of & {row?: boolean}} p
 */
export function Acts({ job, done, row }) {
  const of = { job, done };
  const whole = job.state !== 'incomplete';
  const turn = (/** @type {boolean} */ on) => pause(on, { kind: 'periodic-jobs', thing: job, done }, { facts: [[words.nextTick, nextOf(job)]],
    body: html`<p class="dim">${words.aboutPausing}</p>` });
  return html`<${Buttons} name=${job.name} row=${row} all=${[pauseButton(job, turn), ['enqueue', actions.runNow, whole, () => run(of)],
    ['next', words.skipNext, whole && job.next.length > 0, () => skip(of)]]} />`;
}

/** How late the job of a tick was enqueued. @param {{tick: any}} p */
export function Late({ tick }) {
  const late = lateness(tick);
  return late === null ? html`<span class="dim">–</span>` : html`<span class=${late > 60 ? 'bad strong' : undefined}>${seconds(late)}</span>`;
}
