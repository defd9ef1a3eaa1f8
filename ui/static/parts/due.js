// @ts-check
// When entries are due: a histogram whose bars filter the list below, or lead to it.
import { computed, html, useEffect, useState } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { now, serverNow } from '../core/clock.js';
import { brief } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link, navigate, route } from '../core/router.js';
import { Chart } from './chart.js';
import { Card, Failure, Segments } from './states.js';
import { common, due as words } from '../core/words.js';

/** The ranges, with their length and the width of a bar in seconds. */
const spans = {
  '1m': [60, 1], '5m': [300, 5], '1h': [3600, 60], '24h': [86_400, 900], '7d': [604_800, 7200], '30d': [2_592_000, 43_200],
};
const names = Object.keys(spans);

/** How many seconds late a job is at least that is shown as overdue. */
const grace = 2;
/**
 * When each range begins. It moves by a tenth of a short range, and by a minute at most, so that the
 * request stays the same for a while.
 */
const starts = Object.fromEntries(names.map((name) => {
  const by = Math.min(60, spans[name][0] / 10);
  return [name, computed(() => now.value && Math.floor((serverNow() - grace) / by) * by)];
}));

/** @param {number[]} all */
const sum = (all) => all.reduce((a, b) => a + b, 0);

/**
 * Returns the next smaller range if it has most of what is due in this range, or the next larger one
 * if nothing is due in this range.
 * @param {string} span
 * @param {any} d
 */
function better(span, d) {
  const at = names.indexOf(span);
  const here = sum(d.counts);
  const [less, more] = [names[at - 1], names[at + 1]];
  if (less && sum(d.counts.slice(0, spans[less][0] / d.step)) > here / 2) return less;
  return !here && d.after && more ? more : span;
}

/**
 * Returns the link to the set's list of the entries that are due in a span, with the present
 * filter. `from` and `to` of another page are left out.
 * @param {string} set
 * @param {{from?: number, to: number}} span
 */
const listOf = (set, { from, to }) => link(set, [], { ...(route.value.parts[0] === set ? Object.fromEntries(route.value.query) : {}), page: '', next: '', from, to });

/** @param {{set: string}} p */
export function DueTimes({ set }) {
  const [chosen, choose] = useState('');
  const [fit, setFit] = useState(set === 'retries' ? '1h' : '24h');
  const span = chosen || fit;
  const [length, step] = spans[span];
  const start = starts[span].value;
  const due = useResource(apiPath('due-times', [], { set, from: start, to: start + length, step }), { every: 10_000, topic: set === 'retries' ? 'retries' : 'scheduled' });
  const d = due.data;
  const counts = d?.counts || [];
  const overdue = d ? d.before : 0;
  useEffect(() => { if (!chosen && d?.step === step) setFit(better(fit, d)); }, [d, chosen]);
  // Overdue entries have a bar of their own, before the others.
  const first = overdue > 0 ? 1 : 0;
  const x = first || counts.some(Boolean) ? Array.from({ length: first + counts.length }, (_, i) => d.from + (i - first) * d.step) : [];
  const href = (/** @type {number} */ i) => (first && !i ? listOf(set, { to: d.from }) : counts[i - first] ? listOf(set, { from: x[i], to: x[i] + d.step }) : '');
  const retries = set === 'retries';
  const series = [{ label: words.due, colour: retries ? '#d2a106' : '#54be7e', kind: 'bars', values: x.map((_, i) => counts[i - first] || 0) }];
  if (first) series.push({ label: words.overdue, colour: '#ed4337', kind: 'bars', values: x.map((_, i) => (i ? null : overdue)) });
  const late = () => navigate(listOf(set, { to: Math.floor(now.peek()) }));
  return html`<${Card} title=${retries ? words.retriesDue : common.due} tools=${html`
      ${overdue > 0 && html`<button class="btn small hurt" onClick=${late}>${words.overdueOf(overdue)}</button>`}
      ${d?.after > 0 && html`<span class="dim small">${words.beyond(d.after)}</span>`}
      <${Segments} label=${common.range} value=${span} onChange=${choose} options=${names.map((s) => [s, s])} />`}>
    <${Failure} error=${due.error} at=${d ? due.at : 0} refresh=${due.refresh} />
    <${Chart} of=${due} title=${retries ? words.retriesByDueTime : words.scheduledJobsByDueTime} height=${80} format=${brief} stacked
      from=${start - first * step} to=${start + length} now=${Math.max(start, now.peek())} x=${x} href=${href} series=${series}
      summary=${words.summary(sum(counts), span, overdue)}
      onZoom=${(/** @type {number} */ a, /** @type {number} */ b) => navigate(listOf(set, { from: Math.floor(a), to: Math.ceil(b) }))} />
  <//>`;
}
