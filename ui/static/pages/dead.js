// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { minute, serverNow } from '../core/clock.js';
import { brief, count, percent, seconds } from '../core/format.js';
import { overview } from '../core/overview.js';
import { useResource } from '../core/resource.js';
import { route, setQuery } from '../core/router.js';
import { Chart } from '../parts/chart.js';
import { column, Entries } from '../parts/entries.js';
import { Card, Empty, Failure, Segments, Title } from '../parts/states.js';
import { Storm } from '../parts/storm.js';
import { Time } from '../parts/time.js';

const columns = [
  { id: 'at', label: 'Died', always: true, cell: (/** @type {any} */ r) => html`<${Time} at=${r.millrace.at} />` },
  column.class, column.queue, column.error,
  { id: 'tries', label: 'Attempts', right: true, wide: true, cell: (/** @type {any} */ r) => r.millrace.attempt ?? 0 },
  { id: 'reason', label: 'Reason', wide: true, cell: (/** @type {any} */ r) => html`<span class="tag">${r.reason || 'exhausted'}</span>` },
  { ...column.args, off: true }, column.jid,
];

function Growth() {
  minute.value;
  const day = Math.floor(serverNow() / 3600) * 3600;
  const m = useResource(apiPath('job-metrics', [], { from: day - 7 * 86_400, to: day + 3600, step: 3600 }), { every: 60_000 });
  const points = m.data?.series || [];
  return html`<${Card} title="Deaths an hour, last 7 days"><${Failure} error=${m.error} at=${m.data ? m.at : 0} refresh=${m.refresh} /><${Chart} of=${m} title="Deaths an hour" height=${120} format=${brief} stacked x=${points.map((/** @type {any} */ p) => p.at)}
    series=${[{ label: 'died', colour: '#d12771', kind: 'bars', values: points.map((/** @type {any} */ p) => p.dead) }]} /><//>`;
}

/** What is given up, and when: nothing vanishes unsaid. */
function Kept() {
  const d = overview.value?.sets['dead-jobs'];
  if (!d?.max) return null;
  const part = d.total / d.max;
  return html`<p class=${'small ' + (part > 0.8 ? 'warn' : 'dim')}>The newest ${count(d.max)} are kept, for ${seconds(d.max_age_seconds)}: ${percent(part)} of that is used.${part > 0.8 ? ' Beyond it, those that died first are given up.' : ''}</p>`;
}

export default function Dead() {
  const storm = route.value.query.get('view') === 'storm';
  const total = overview.value?.sets['dead-jobs']?.total;
  return html`<${Title} title="Dead jobs" badge=${total === undefined ? null : count(total)}>
      <${Segments} label="View" value=${storm ? 'storm' : 'list'} onChange=${(/** @type {string} */ v) => setQuery({ view: v === 'storm' ? 'storm' : '' })} options=${[['list', 'List'], ['storm', 'By error']]} /><//>
    <div class="stack" style=${{ gap: '1rem' }}><${Growth} /><${Kept} />
    ${storm ? html`<${Storm} set="dead-jobs" />` : html`<${Entries} set="dead-jobs" topic="dead" columns=${columns} empty=${html`<${Empty} icon="check" title="Nothing is dead"><p>A job that has failed for the last time is kept here, until somebody retries or deletes it.</p><//>`} />`}</div>`;
}
