// @ts-check
// How much was done in each queue of late: one question about all of them when the lines are first drawn, then one a minute about what is new.
import { signal, useEffect } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { minute, serverNow } from '../core/clock.js';
import { whenIdle } from '../core/idle.js';
import { paused } from '../core/paused.js';

/** Seconds that a point of a line is the sum of, and how many points there are. */
const span = 120;
const points = 15;
/** Workers may report late: what ended so many seconds ago does not change any more. */
const late = 60;

/** What was done in each queue, by when the time began that it is the sum of; the oldest first. @type {import('../../vendor/signals.js').Signal<Map<number, Map<string, number>>>} */
const sums = signal(new Map());
let settled = 0; // up to when
let asking = false;

/** Asks for what is not known yet, or may have changed. All who look ask from and to the same times, so that the sidecar looks once for them. */
async function load() {
  const now = serverNow();
  const to = Math.floor(now / span) * span;
  const first = to - points * span;
  if (to < settled) settled = 0; // a clock went back: what was asked of the future is not known
  const from = Math.max(settled, first);
  if (asking || from >= to) return;
  asking = true;
  try {
    const { data } = await ask(apiPath('queue-throughput', [], { from, to, step: span }));
    const all = new Map([...sums.peek()].filter(([at]) => at >= first && at < from));
    for (let at = from, i = 0; at < to; at += span, i++) all.set(at, new Map(data.queues.map((/** @type {any} */ q) => [q.other ? '' : q.name, q.counts[i]])));
    sums.value = all;
    settled = Math.floor((now - late) / span) * span;
  } catch { /* whoever asks for more shows it; it is tried again in a minute */ }
  asking = false;
}

/** Gives what there is to be drawn of a queue: jobs a minute, the oldest first; nothing while it is not known. @returns {(queue: string) => number[]} */
export function useTrends() {
  const now = minute.value;
  useEffect(() => (paused.value ? undefined : whenIdle(load)), [now, paused.value]);
  const all = [...sums.value.values()];
  return (queue) => all.map((m) => (m.get(queue) || 0) / (span / 60));
}
