// @ts-check
import { html } from '../core/h.js';
import { count } from '../core/format.js';
import { overview } from '../core/overview.js';
import { route } from '../core/router.js';
import { mostAttempts } from '../core/story.js';
import { common } from '../core/words.js';
import { retries as words } from '../core/pagewords.js';
import { byAttempt, column, Entries, nextBackoff } from '../parts/entries.js';
import { DueTimes } from '../parts/due.js';
import { LastOperation } from '../parts/ops.js';
import { Empty, Title } from '../parts/states.js';
import { ListOrErrors, Storm } from '../parts/storm.js';
import { Time } from '../parts/time.js';

/** @param {any} r */
function attempts(r) {
  const most = mostAttempts(r.job);
  return html`<span class="num" title=${words.attempts(byAttempt(r), most, nextBackoff(r))}>${byAttempt(r)}<span class="dim">/${most}</span></span>`;
}

/** When the retry is due, or that the broker refused it. @param {{r: any}} p */
const Next = ({ r }) => html`<span class="row"><${Time} at=${r.millrace.at} />
  ${r.millrace.refused && html`<span class="tag bad" title=${r.millrace.refused}>${common.refused}</span>`}</span>`;

const columns = [
  { id: 'at', label: words.nextRetry, always: true, sort: 'at', cell: (r) => html`<${Next} r=${r} />` },
  { id: 'tries', label: common.attempt, right: true, sort: 'attempt', cell: attempts },
  column.class, column.queue, column.error, { ...column.args, off: true },
  { id: 'failed', label: common.failed, off: true, sort: 'failed_at', cell: (r) => html`<${Time} at=${r.failed_at} />` },
  column.jid,
];

export default function Retries() {
  const storm = route.value.query.get('view') === 'storm';
  const total = overview.value?.sets.retries?.total;
  const empty = html`<${Empty} icon="check" title=${common.noRetries}><p>${common.whatIsRetried}</p><//>`;
  return html`<${Title} title=${common.retries} badge=${total === undefined ? null : count(total)}><${LastOperation} set="retries" /><${ListOrErrors} storm=${storm} /><//>
    <div class="stack cards"><${DueTimes} set="retries" />
    ${storm ? html`<${Storm} set="retries" />` : html`<${Entries} set="retries" topic="retries" columns=${columns} empty=${empty} />`}</div>`;
}
