// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { serverNow } from '../core/clock.js';
import { count, seconds } from '../core/format.js';
import { now } from '../core/clock.js';
import { overview } from '../core/overview.js';
import { location } from '../parts/where.js';
import { byAttempt, byTime, column, Entries } from '../parts/entries.js';
import { DueTimes } from '../parts/due.js';
import { Empty, Title } from '../parts/states.js';
import { Time } from '../parts/time.js';

/** Later than this is late. */
const late = 60;

/** @param {{row: any}} p */
function Due({ row }) {
  const behind = now.value - row.millrace.at;
  return html`<span class="row"><${Time} at=${row.millrace.at} />${row.millrace.refused ? html`<span class="tag bad" title=${row.millrace.refused}>refused</span>` : behind > late && html`<span class="tag bad" title=${seconds(behind) + ' late'}>delayed</span>`}</span>`;
}

const columns = [
  { id: 'at', label: 'Due', always: true, sort: byTime, cell: (/** @type {any} */ r) => html`<${Due} row=${r} />` },
  column.class, column.queue, column.args,
  { id: 'tries', label: 'Attempt', right: true, off: true, sort: byAttempt, cell: byAttempt },
  { id: 'enqueued', label: 'Enqueued', off: true, cell: (/** @type {any} */ r) => html`<${Time} at=${r.job?.enqueued_at || r.job?.created_at} />` },
  column.jid,
];

export default function Scheduled() {
  const total = overview.value?.sets['scheduled-jobs']?.total;
  return html`<${Title} title="Scheduled jobs" badge=${total === undefined ? null : count(total)} />
    <div class="stack" style=${{ gap: '1rem' }}><${DueTimes} set="scheduled-jobs" />
    <${Entries} set="scheduled-jobs" topic="scheduled" columns=${columns} empty=${html`<${Empty} icon="clock" title="No scheduled jobs"><p>A job with a time waits here until it is due. For example:</p>
      <pre class="code">curl -u USER ${location + apiPath('jobs')} \\
  -H 'Content-Type: application/json' \\
  -d '{"class": "SendEmail", "args": ["ann@example.com"], "at": ${Math.round(serverNow()) + 3600}}'</pre><//>`} /></div>`;
}
