// @ts-check
// A point in time. A relative time changes only its text, and nothing is drawn again.
import { html, useComputed, useSignal } from '../core/h.js';
import { now } from '../core/clock.js';
import { absolute, exact, relative, seconds } from '../core/format.js';
import { times } from '../core/prefs.js';
import { common } from '../core/words.js';

/**
 * @param {{at: number|null|undefined, past?: boolean}} p `at`: seconds since 1970; `past`: it is
 *   past, even if a wrong clock disagrees
 */
export function Time({ at, past }) {
  const when = useSignal(at);
  if (when.peek() !== at) when.value = at;
  const text = useComputed(() => {
    if (!when.value) return '–';
    if (times.value !== 'relative') return absolute(when.value, times.value === 'utc');
    return relative(past ? Math.min(when.value, now.value) : when.value, now.value);
  });
  if (!at) return html`<span class="dim">–</span>`;
  return html`<time class="nowrap" datetime=${iso(at)} title=${exact(at) + ' · ' + absolute(at, true)}>${text}</time>`;
}

/** @param {number} at */
function iso(at) {
  const d = new Date(at * 1000);
  return Number.isNaN(d.getTime()) ? undefined : d.toISOString();
}

/** How long something has lasted until now. @param {{since: number|null|undefined}} p */
export function Since({ since }) {
  const from = useSignal(since);
  if (from.peek() !== since) from.value = since;
  const text = useComputed(() => (from.value ? seconds(Math.max(0, Math.floor(now.value - from.value))) : '–'));
  return html`<span class="nowrap num" title=${since ? common.sinceTime(exact(since)) : undefined}>${text}</span>`;
}
