// @ts-check
// Pauses and resumes queues: one, or the selected ones.
import { html, useEffect } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { count } from '../core/format.js';
import { confirm } from './dialog.js';
import { Icon } from './icon.js';
import { failed, say, toast } from './toast.js';
import { common, queues as words } from '../core/words.js';

/** @param {any} q */
export const isPaused = (q) => !!q.paused || q.state === 'paused';

/**
 * Resuming one queue asks for no confirmation, because pausing it undoes that.
 * @param {boolean} on pause, or resume
 * @param {any[]} queues
 * @param {(names: string[]) => void} done gets the queues that were changed
 */
export async function pause(on, queues, done) {
  const [one] = queues;
  const alone = queues.length === 1;
  if (!on && alone) {
    const { name, paused } = one;
    return send(on, [name], '', done, () => changeEach('pause', [name], paused?.reason || ''));
  }
  const of = alone ? one.name : common.queuesOf(queues.length);
  const verb = on ? common.pause : common.resume;
  const sum = (/** @type {string} */ k) => count(queues.reduce((n, q) => n + (q[k] || 0), 0));
  const yes = await confirm({ title: words.askVerb(verb, of), verb: alone ? verb : words.verbOf(verb, of), reason: true,
    facts: [[common.queues, !alone && common.firstOf(queues.map((q) => q.name), 5)], [words.readyJobs, sum('ready')], [common.consumers, sum('consumers')]],
    body: html`<p class="dim">${on ? words.aboutPausing(alone) : words.aboutResuming}</p>` });
  return yes && send(on, queues.map((q) => q.name), yes.reason, done);
}

/**
 * @param {boolean} on
 * @param {string[]} names
 * @param {string} reason
 * @param {(names: string[]) => void} done
 * @param {() => any} [undo]
 */
async function send(on, names, reason, done, undo) {
  const changed = await changeEach(on ? 'pause' : 'resume', names, reason);
  if (changed.length) toast(words.changed(changed.length === 1 ? changed[0] : common.queuesOf(changed.length), on), { undo });
  setTimeout(() => done(changed), 300);
}

/**
 * Changes one queue after the other. It continues after a queue that is gone, and stops at any
 * other error.
 * @param {'pause'|'resume'} order
 * @param {string[]} names
 * @param {string} reason
 */
async function changeEach(order, names, reason) {
  const changed = [];
  for (const [i, name] of names.entries()) {
    try {
      await ask(apiPath('job-queues', [name, order]), { method: 'PUT', body: reason ? { reason } : undefined });
      changed.push(name);
    } catch (e) {
      const left = names.length - i - 1;
      failed(new Error(words.notChanged(name, e.reason || e.message, e.status === 404 ? 0 : left)));
      if (e.status !== 404) break;
    }
  }
  return changed;
}

/**
 * The actions on the selected queues.
 * @param {{chosen: Map<string, any>, all: any[], choose: (m: Map<string, any>) => void, refresh: ()
 *   => void}} p `all`: their present state
 */
export function ChosenQueues({ chosen, all, choose, refresh }) {
  const these = all.filter((q) => chosen.has(q.name));
  useEffect(() => say(common.selected(common.queuesOf(chosen.size))), [chosen.size]);
  const button = (/** @type {boolean} */ on, /** @type {any[]} */ of) => html`<button class=${'btn small ' + (on ? 'hold' : 'primary')} disabled=${!of.length}
    onClick=${() => pause(on, of, done)}><${Icon} name=${on ? 'pause' : 'play'} small />${on ? common.pause : common.resume}</button>`;
  const done = (/** @type {string[]} */ changed) => {
    choose(new Map([...chosen].filter(([name]) => !changed.includes(name))));
    refresh();
  };
  return html`<div class="selbar" role="region" aria-label=${common.selection}><span class="strong">${common.selected(common.queuesOf(chosen.size))}</span>
    <button class="linkish" onClick=${() => choose(new Map())}>${common.clear}</button>
    <div class="tools">${button(true, these.filter((q) => !isPaused(q)))}${button(false, these.filter(isPaused))}</div></div>`;
}
