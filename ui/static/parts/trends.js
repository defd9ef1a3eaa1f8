// @ts-check
// The recent throughput of each queue: one request for all queues when the lines are first drawn,
// then one each minute for the new points.
import { signal, useEffect } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { minute, serverNow } from '../core/clock.js';
import { whenIdle } from '../core/idle.js';
import { paused } from '../core/paused.js';

/** How many seconds a point of a line covers, and how many points there are. */
const span = 120;
const points = 15;
/** Workers may report late. Numbers older than this many seconds do not change any more. */
const late = 60;

/**
 * The throughput of each queue, by the begin of its time span, the oldest first.
 * @type {import('../../vendor/signals.js').Signal<Map<number, Map<string, number>>>}
 */
const sums = signal(new Map());
let settled = 0; // up to when the numbers are final
let asking = false;

/**
 * Requests the points that are missing or may have changed. All browsers use the same times, so
 * that the sidecar computes them once.
 */
async function load() {
  const now = serverNow();
  const to = Math.floor(now / span) * span;
  const first = to - points * span;
  if (to < settled) settled = 0; // a clock was set back: points in the future are not known
  const from = Math.max(settled, first);
  if (asking || from >= to) return;
  asking = true;
  try {
    const { data } = await ask(apiPath('queue-throughput', [], { from, to, step: span }));
    const all = new Map([...sums.peek()].filter(([at]) => at >= first && at < from));
    for (let at = from, i = 0; at < to; at += span, i++) all.set(at, new Map(data.queues.map((q) => [q.other ? '' : q.name, q.counts[i]])));
    sums.value = all;
    settled = Math.floor((now - late) / span) * span;
  } catch { /* a component that needs more shows the error; the next minute tries again */ }
  asking = false;
}

/**
 * Returns a function for the points of a queue: jobs per minute, the oldest first, and none while
 * they are not known.
 * @returns {(queue: string) => number[]}
 */
export function useTrends() {
  const now = minute.value;
  useEffect(() => (paused.value ? undefined : whenIdle(load)), [now, paused.value]);
  const all = [...sums.value.values()];
  return (queue) => all.map((m) => (m.get(queue) || 0) / (span / 60));
}
