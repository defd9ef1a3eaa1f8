// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { now, serverNow } from '../core/clock.js';
import { count } from '../core/format.js';
import { overview } from '../core/overview.js';
import { common } from '../core/words.js';
import { scheduled as words } from '../core/pagewords.js';
import { location } from '../parts/where.js';
import { byAttempt, column, Entries } from '../parts/entries.js';
import { DueTimes } from '../parts/due.js';
import { Exchanges } from '../parts/message.js';
import { LastOperation } from '../parts/ops.js';
import { Empty, Title } from '../parts/states.js';
import { Time } from '../parts/time.js';

/** How many seconds after its time a job is late. */
const late = 60;

/** @param {{row: any}} p */
function Due({ row }) {
  const behind = now.value - row.millrace.at;
  const { at, refused } = row.millrace;
  return html`<span class="row"><${Time} at=${at} />${refused ? html`<span class="tag bad" title=${refused}>${common.refused}</span>`
    : behind > late && html`<span class="tag bad" title=${common.late(behind)}>${words.delayed}</span>`}</span>`;
}

const columns = [
  { id: 'at', label: common.due, always: true, sort: 'at', cell: (r) => html`<${Due} row=${r} />` },
  column.class, column.queue, column.args,
  { id: 'tries', label: common.attempt, right: true, off: true, sort: 'attempt', cell: byAttempt },
  { id: 'enqueued', label: common.enqueued, off: true, cell: (r) => html`<${Time} at=${r.job?.enqueued_at || r.job?.created_at} />` },
  column.jid,
];

export default function Scheduled() {
  const total = overview.value?.sets['scheduled-jobs']?.total;
  const empty = html`<${Empty} icon="clock" title=${common.noScheduledJobs}><p>${common.whatIsScheduled} ${words.forExample}</p>
    <pre class="code">${words.example(location + apiPath('jobs'), Math.round(serverNow()) + 3600)}</pre><//>`;
  return html`<${Title} title=${common.scheduledJobs} badge=${total === undefined ? null : count(total)}><${LastOperation} set="scheduled-jobs" /><//>
    <div class="stack cards"><${DueTimes} set="scheduled-jobs" /><${Exchanges} />
    <${Entries} set="scheduled-jobs" topic="scheduled" columns=${columns} empty=${empty} /></div>`;
}
