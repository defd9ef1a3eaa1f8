// @ts-check
// Limits: what they allow, what they hold back, and their actions. What cannot be undone asks
// before.
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { count } from '../core/format.js';
import { Buttons, pause, pauseButton, remove as removeDefined, send } from './defined.js';
import { confirm } from './dialog.js';
import { State, Util } from './states.js';
import { Time } from './time.js';
import { toast } from './toast.js';
import { common } from '../core/words.js';
import { limits as words } from '../core/pagewords.js';

/** Returns what a definition, or an override, allows, in words. @param {any} def */
export const allows = (def) => [def.concurrency && words.atOnce(def.concurrency), def.rate && words.inTime(def.rate)].filter(Boolean).join(', ');

/** Returns what has a limit of its own, in words. @param {any} def */
export const each = (def) => (def.per?.length ? words.per(def.per) : '');

/** What a limit allows. @param {{limit: any}} p */
export function Allows({ limit }) {
  const text = allows(limit.definition) || '–';
  return html`<span class="cut" title=${[text, each(limit.definition)].filter(Boolean).join(' ')}>${text} <span class="dim small">${each(limit.definition)}</span></span>`;
}

/** The slots that are held. @param {{used: number, of?: number, name: string}} p */
export const Used = ({ used, of, name }) => (of ? html`<${Util} part=${used / of} text=${common.of(count(used), count(of))} label=${common.slotsOf(name)} />`
  : html`<span class="num">${count(used)}</span>`);

/** How many jobs wait. @param {{limit: any}} p */
export const Waiting = ({ limit }) => html`<span class="num">${limit.waiting_more ? words.atLeast(limit.waiting) : count(limit.waiting)}</span>`;

/** Why a limit holds jobs back, if it does. @param {{limit: any}} p */
export function HoldsBack({ limit: l }) {
  if (!l.blocked) return html`<span class="dim">–</span>`;
  const per = l.definition.per || [];
  const [state, why] = l.state === 'paused' ? ['paused', words.isPaused]
    : l.full ? ['held', per.length ? words.fullParts(l.full, per) : words.isFull] : ['held', l.opens ? words.opens(html`<${Time} at=${l.opens} />`) : words.rate];
  return html`<${State} state=${state} text=${html`<span class="breaks">${words.holdsBack(l.blocked, why)}</span>`} />`;
}

/** @typedef {{limit: any, done: () => void}} Of */

/** Deletes a limit, or a layer of it. @param {Of & {texts: Record<string, string>, layer?: string}} of */
export const remove = ({ limit, ...of }) => removeDefined({ ...of, kind: 'limits', thing: limit, says: {
  ask: words.askDelete, verb: words.deleteLimit, comesBack: words.comesBack, rest: words.aboutTheLayer,
  facts: [[words.heldBackNow, limit.blocked > 0 && common.jobsOf(limit.blocked)]] } });

/** The actions on one limit. @param {Of & {row?: boolean}} p */
export function Acts({ limit, done, row }) {
  const turn = (/** @type {boolean} */ on) => pause(on, { kind: 'limits', thing: limit, done }, {
    facts: [[words.allows, [allows(limit.definition), each(limit.definition)].join(' ')]], body: html`<p class="dim">${words.aboutPausing}</p>` });
  return html`<${Buttons} name=${limit.name} row=${row} all=${[pauseButton(limit, turn)]} />`;
}

/** Frees a slot. @param {any} slot @param {() => void} done */
export async function free(slot, done) {
  const yes = await confirm({ title: words.askFree, verb: words.freeSlot, danger: true, reason: true,
    facts: [[common.job, slot.jid], [common.class, slot.class], [common.queue, slot.queue], [common.key, slot.key], [common.since, html`<${Time} at=${slot.at} past />`]],
    body: html`<p>${words.aboutFreeing}</p>` });
  if (!yes) return;
  if (await send({ done }, apiPath('slots', 'free'), { method: 'POST', body: { slot: slot.slot, reason: yes.reason || undefined } })) toast(words.freed(slot.jid));
}
