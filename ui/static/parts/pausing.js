// @ts-check
// Pauses and resumes queues: one, or those that are selected.
import { html, useEffect } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { count, plural } from '../core/format.js';
import { confirm } from './dialog.js';
import { Icon } from './icon.js';
import { PausedBy } from './queues.js';
import { failed, say, toast } from './toast.js';

/** @param {any} q */
export const isPaused = (q) => !!q.paused || q.state === 'paused';

/** The first of them, and how many more there are. @param {string[]} all */
const some = (all) => all.slice(0, 5).join(', ') + (all.length > 5 ? ` and ${all.length - 5} more` : '');

/** @param {boolean} on paused, or resumed @param {any[]} queues @param {(names: string[]) => void} done given those that are so now */
export async function pause(on, queues, done) {
  const [one] = queues;
  const alone = queues.length === 1;
  const of = alone ? one.name : plural(queues.length, 'queue');
  const verb = on ? 'Pause' : 'Resume';
  const sum = (/** @type {string} */ k) => count(queues.reduce((n, q) => n + (q[k] || 0), 0));
  const it = alone ? 'it' : 'them';
  const yes = await confirm({ title: `${verb} ${of}?`, verb: alone ? verb : `${verb} ${of}`, reason: true,
    facts: [['Queues', !alone && some(queues.map((q) => q.name))], ['Ready jobs', sum('ready')], ['Consumers', sum('consumers')], ['Paused', alone && one.paused && html`<${PausedBy} pause=${one.paused} />`]],
    body: html`<p class="dim">${on ? `Workers take no new jobs${alone ? '' : ' from these queues'} until you resume ${it}. Running jobs finish; new jobs keep queueing.` : `Workers take jobs from ${it} again.`}</p>` });
  if (!yes) return;
  const told = await tellEach(on ? 'pause' : 'resume', queues.map((q) => q.name), yes.reason);
  if (told.length) toast(`${told.length === 1 ? told[0] : plural(told.length, 'queue')}: ${on ? 'paused' : 'resumed'}`);
  setTimeout(() => done(told), 300);
}

/** One after the other. A queue that is gone does not stop the rest; any other error does. @param {'pause'|'resume'} order @param {string[]} names @param {string} reason */
async function tellEach(order, names, reason) {
  const told = [];
  for (const [i, name] of names.entries()) {
    try {
      await ask(apiPath('job-queues', [name, order]), { method: 'PUT', body: reason ? { reason } : undefined });
      told.push(name);
    } catch (e) {
      const left = names.length - i - 1;
      failed(new Error(`${name}: ${e.reason || e.message}${left && e.status !== 404 ? `; ${plural(left, 'other')} not changed` : ''}`));
      if (e.status !== 404) break;
    }
  }
  return told;
}

/** What can be done to queues that are chosen. @param {{chosen: Map<string, any>, all: any[], choose: (m: Map<string, any>) => void, refresh: () => void}} p all: as they are now */
export function ChosenQueues({ chosen, all, choose, refresh }) {
  const these = all.filter((q) => chosen.has(q.name));
  useEffect(() => say(plural(chosen.size, 'queue') + ' selected'), [chosen.size]);
  const button = (/** @type {boolean} */ on, /** @type {any[]} */ of) => html`<button class=${'btn small ' + (on ? 'hold' : 'primary')} disabled=${!of.length} onClick=${() => pause(on, of, done)}><${Icon} name=${on ? 'pause' : 'play'} small />${on ? 'Pause' : 'Resume'}</button>`;
  const done = (/** @type {string[]} */ told) => {
    choose(new Map([...chosen].filter(([name]) => !told.includes(name))));
    refresh();
  };
  return html`<div class="selbar" role="region" aria-label="Selection"><span class="strong">${plural(chosen.size, 'queue')} selected</span>
    <button class="linkish" onClick=${() => choose(new Map())}>Clear</button><div class="tools">${button(true, these.filter((q) => !isPaused(q)))}${button(false, these.filter(isPaused))}</div></div>`;
}
