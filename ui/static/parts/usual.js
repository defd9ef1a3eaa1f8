// @ts-check
// How long a job has run, compared with the usual time of its class.
import { html } from '../core/h.js';
import { now } from '../core/clock.js';
import { whereabouts as words } from '../core/words.js';

/**
 * Returns how many times as long as usual a job has run so far, or 0 if that is not known.
 * @param {any} w a running job, as the API has it
 */
export const timesUsual = (w) => (w.usual_ms && w.started_at ? (now.value - w.started_at) * 1000 / w.usual_ms : 0);

/** A hint for a job that runs much longer than usual. @param {{w: any}} p */
export function Usual({ w }) {
  const n = timesUsual(w);
  if (!w.stuck && (n <= 2 || now.value - w.started_at <= 1)) return null;
  return html`<span class=${'tag ' + (w.stuck ? 'bad' : 'warn')}>${words.timesUsual(n < 10 ? n.toFixed(1) : Math.round(n), w.stuck)}</span>`;
}

/** Returns the job that has run longest. @param {any} p a process */
export const longest = (p) => (p.work || []).filter((w) => w.started_at).sort((a, b) => a.started_at - b.started_at)[0];
