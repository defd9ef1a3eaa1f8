// @ts-check
import { html } from '../core/h.js';
import { count } from '../core/format.js';
import { overview } from '../core/overview.js';
import { common } from '../core/words.js';
import { gated as words } from '../core/pagewords.js';
import { column, Entries } from '../parts/entries.js';
import { LastOperation } from '../parts/ops.js';
import { Empty, Title } from '../parts/states.js';
import { Time } from '../parts/time.js';

const columns = [
  { id: 'at', label: common.since, always: true, sort: 'at', cell: (r) => html`<${Time} at=${r.millrace.at} />` },
  column.class, column.queue, column.args,
  column.jid,
];

export default function Gated() {
  const total = overview.value?.sets['gated-jobs']?.total;
  return html`<${Title} title=${common.blockedJobs} badge=${total === undefined ? null : count(total)}><${LastOperation} set="gated-jobs" /><//>
    <${Entries} set="gated-jobs" topic="scheduled" columns=${columns} empty=${html`<${Empty} icon="gated" title=${words.noBlockedJobs}><p>${words.whatIsBlocked}</p><//>`} />`;
}
