// @ts-check
// How much was done in each queue of late. An answer about a short time has the sums of all queues: lines cost the same however many are drawn.
import { signal, useEffect } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { minute, serverNow } from '../core/clock.js';
import { whenIdle } from '../core/idle.js';
import { paused } from '../core/paused.js';
import { ran } from './charts.js';

/** Seconds that a point of a line is the sum of, and how many points there are. */
const span = 120;
const points = 15;

/** What was done in each queue, by when the time ended that it is the sum of. @type {import('../../vendor/signals.js').Signal<Map<number, Map<string, number>>>} */
const sums = signal(new Map());
let asking = false;

/** Asks for what is not known yet; for the newest point twice, as workers may report late. */
async function load() {
  if (asking) return;
  asking = true;
  const end = Math.floor(serverNow() / span) * span;
  const known = sums.peek();
  /** @type {Map<number, Map<string, number>>} */
  const all = new Map();
  try {
    for (let at = end - (points - 1) * span; at <= end; at += span) {
      const settled = known.has(at) && known.has(at + span);
      all.set(at, settled || at === end && known.has(at) ? known.get(at) : await about(at));
    }
    sums.value = all;
  } catch { /* whoever asks for more shows it; it is tried again in a minute */ }
  asking = false;
}

/** @param {number} to */
async function about(to) {
  const { data } = await ask(apiPath('job-metrics', [], { from: to - span, to, step: 60 }));
  return new Map(data.queues.map((/** @type {any} */ q) => [q.name, ran(q)]));
}

/** Gives what there is to be drawn of a queue: jobs a minute, the oldest first; nothing while it is not known. @returns {(queue: string) => number[]} */
export function useTrends() {
  const now = minute.value;
  useEffect(() => (paused.value ? undefined : whenIdle(load)), [now, paused.value]);
  const all = [...sums.value.values()];
  return (queue) => all.map((m) => (m.get(queue) || 0) / (span / 60));
}
