// @ts-check
// When entries are due: a histogram whose bars filter the list below, or lead to it.
import { html, useEffect, useState } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { minute, now, serverNow } from '../core/clock.js';
import { brief } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link, navigate, route } from '../core/router.js';
import { Chart } from './chart.js';
import { Card, Failure, Segments } from './states.js';
import { common, due as words } from '../core/words.js';

const spans = { '1h': [3600, 60], '24h': [86_400, 900], '7d': [604_800, 7200], '30d': [2_592_000, 43_200] };

/** @param {number[]} all */
const sum = (all) => all.reduce((a, b) => a + b, 0);

/**
 * Returns a range that fits the data: not all in one bar, and not empty.
 * @param {string} now
 * @param {any} d
 */
function better(now, d) {
  if (now === '24h' && sum(d.counts) && !d.after && !sum(d.counts.slice(4))) return '1h';
  if (!sum(d.counts) && d.after) return { '1h': '24h', '24h': '7d' }[now] || '30d';
  return now;
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
  // The range changes only each minute, so that the request stays the same for a while.
  minute.value;
  const start = Math.floor(serverNow() / 60) * 60;
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
      <${Segments} label=${common.range} value=${span} onChange=${choose} options=${Object.keys(spans).map((s) => [s, s])} />`}>
    <${Failure} error=${due.error} at=${d ? due.at : 0} refresh=${due.refresh} />
    <${Chart} of=${due} title=${retries ? words.retriesByDueTime : words.scheduledJobsByDueTime} height=${80} format=${brief} stacked
      from=${start - first * step} to=${start + length} now=${Math.max(start, now.peek())} x=${x} href=${href} series=${series}
      summary=${words.summary(sum(counts), span, overdue)}
      onZoom=${(/** @type {number} */ a, /** @type {number} */ b) => navigate(listOf(set, { from: Math.floor(a), to: Math.ceil(b) }))} />
  <//>`;
}
