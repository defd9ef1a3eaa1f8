// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { minute, serverNow } from '../core/clock.js';
import { brief, count } from '../core/format.js';
import { overview } from '../core/overview.js';
import { useResource } from '../core/resource.js';
import { route } from '../core/router.js';
import { common } from '../core/words.js';
import { dead as words } from '../core/pagewords.js';
import { Chart } from '../parts/chart.js';
import { column, Entries, failedAttempts } from '../parts/entries.js';
import { LastOperation } from '../parts/ops.js';
import { Card, Empty, Failure, Title } from '../parts/states.js';
import { ListOrErrors, Storm } from '../parts/storm.js';
import { Time } from '../parts/time.js';

const columns = [
  { id: 'at', label: common.died, always: true, sort: 'at', cell: (r) => html`<${Time} at=${r.millrace.at} past />` },
  column.class, column.queue, column.error,
  { id: 'tries', label: common.attempts, right: true, wide: true, sort: 'attempt', cell: failedAttempts },
  { id: 'reason', label: common.reason, wide: true, cell: (r) => html`<span class="tag">${r.reason || words.exhausted}</span>` },
  { ...column.args, off: true }, column.jid,
];

function Growth() {
  minute.value;
  const day = Math.floor(serverNow() / 3600) * 3600;
  const m = useResource(apiPath('job-metrics', [], { from: day - 7 * 86_400, to: day + 3600, step: 3600 }), { every: 60_000 });
  const points = m.data?.series || [];
  return html`<${Card} title=${words.diedPerHour7Days} tools=${html`<${Kept} />`}><${Failure} error=${m.error} at=${m.data ? m.at : 0} refresh=${m.refresh} />
    <${Chart} of=${m} title=${words.diedPerHour} height=${80} format=${brief} stacked x=${points.map((p) => p.at)}
      series=${[{ label: words.died, colour: '#d12771', kind: 'bars', values: points.map((p) => p.dead) }]} /><//>`;
}

/** How much of the retention is used, and what happens when it is full. */
function Kept() {
  const d = overview.value?.sets['dead-jobs'];
  if (!d?.max) return null;
  const part = d.total / d.max;
  return html`<span class=${'small ' + (part > 0.8 ? 'warn' : 'dim')}>${words.retention(d.max, d.max_age_seconds, part)}</span>`;
}

export default function Dead() {
  const storm = route.value.query.get('view') === 'storm';
  const total = overview.value?.sets['dead-jobs']?.total;
  const empty = html`<${Empty} icon="check" title=${common.noDeadJobs}><p>${common.whatIsDead}</p><//>`;
  return html`<${Title} title=${common.deadJobs} badge=${total === undefined ? null : count(total)}><${LastOperation} set="dead-jobs" /><${ListOrErrors} storm=${storm} /><//>
    <div class="stack cards"><${Growth} />
    ${storm ? html`<${Storm} set="dead-jobs" />` : html`<${Entries} set="dead-jobs" topic="dead" columns=${columns} empty=${empty} />`}</div>`;
}
