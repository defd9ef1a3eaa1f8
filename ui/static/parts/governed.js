// @ts-check
// Governed queues: their state and what it means, what waits, what is out, and their actions.
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { count } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { Buttons, pause, pauseButton, remove as removeDefined } from './defined.js';
import { Banner, State, Util } from './states.js';
import { common } from '../core/words.js';
import { governed as words, limits as limitWords } from '../core/pagewords.js';

/** Returns the governed queues. @param {boolean} [wanted] if not, nothing is requested */
export const useGoverned = (wanted = true) => useResource(wanted ? apiPath('governed-queues') : null, { every: 10_000 });

/** The state, and that nothing is delivered. @param {{of: any}} p */
export const GovernedState = ({ of: q }) => html`<span class="row wrap">${(!q.paused || q.state !== 'governed') && html`<${State} state=${q.state} />`}
  ${q.paused && html`<${State} state="paused" />`}</span>`;

const looks = { bypassed: 'bad', switching: 'info', draining: 'info' };
const icons = { bypassed: 'alert', switching: 'info', draining: 'info' };

/** What a state means and what to do, unless all is well. @param {{q: any, tools?: any}} p */
export const Meaning = ({ q, tools }) => html`
  ${words.means[q.state] && html`<${Banner} look=${looks[q.state]} icon=${icons[q.state] || 'warn'} tools=${tools}>${words.means[q.state]}<//>`}
  ${q.paused && html`<${Banner} icon="pause" tools=${!words.means[q.state] && tools}>${words.meansPaused}<//>`}`;

/** @param {number} n @param {any} q */
const atLeast = (n, q) => (q.waiting_more ? limitWords.atLeast(n) : count(n));

/** How many jobs wait, of how many that may. @param {{of: any}} p */
export function WaitingOf({ of: q }) {
  const most = q.definition.max_waiting;
  return most ? html`<${Util} part=${q.waiting / most} text=${common.of(atLeast(q.waiting, q), count(most))} label=${words.waitingIn(q.name)} />`
    : html`<span class="num">${atLeast(q.waiting, q)}</span>`;
}

/** How many jobs are delivered and have not ended, of how many that may. @param {{of: any}} p */
export function OutOf({ of: q }) {
  const { ahead } = q.definition;
  return ahead ? html`<${Util} part=${q.out / ahead} text=${common.of(count(q.out), count(ahead))} label=${words.outOf(q.name)} />` : html`<span class="num">${count(q.out)}</span>`;
}

/** That a queue is governed, on its own page. @param {{name: string}} p */
export function GovernedQueue({ name }) {
  const q = useGoverned().data?.find((/** @type {any} */ one) => one.name === name);
  if (!q) return null;
  const tools = html`<a class="btn small" href=${link('governed-queues', name)}>${words.showIt}</a>`;
  if (words.means[q.state] || q.paused) return html`<${Meaning} q=${q} tools=${tools} />`;
  return html`<${Banner} look="info" icon="governed" tools=${tools}>${words.isGoverned(atLeast(q.waiting, q), q.out)}<//>`;
}

/** @typedef {{q: any, done: () => void}} Of */

/** Governs a queue no longer, or removes a layer. @param {Of & {texts: Record<string, string>, layer?: string}} of */
export const remove = ({ q, ...of }) => removeDefined({ ...of, kind: 'governed-queues', thing: q, says: {
  ask: words.askForget, verb: words.forget, comesBack: words.comesBack, rest: words.aboutTheLayer, done: words.forgotten,
  facts: [[words.waiting, q.waiting > 0 && words.withoutLimits(q.waiting)]] } });

/** The actions on one governed queue. @param {Of & {row?: boolean}} p */
export function Acts({ q, done, row }) {
  const thing = { ...q, state: q.paused ? 'paused' : q.state };
  const turn = (/** @type {boolean} */ on) => pause(on, { kind: 'governed-queues', thing, done }, {
    facts: [[words.waiting, count(q.waiting)], [words.out, count(q.out)]], body: html`<p class="dim">${words.aboutPausing}</p>` });
  return html`<${Buttons} name=${q.name} row=${row} all=${[pauseButton(thing, turn)]} />`;
}
