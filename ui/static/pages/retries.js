// @ts-check
import { html } from '../core/h.js';
import { count } from '../core/format.js';
import { overview } from '../core/overview.js';
import { route, setQuery } from '../core/router.js';
import { common, retries as words } from '../core/words.js';
import { byAttempt, byTime, column, Entries } from '../parts/entries.js';
import { DueTimes } from '../parts/due.js';
import { Empty, Segments, Title } from '../parts/states.js';
import { Storm } from '../parts/storm.js';
import { Time } from '../parts/time.js';

/** How long a worker waits before the next attempt, if it keeps to the usual formula. @param {number} n */
const backoff = (n) => n ** 4 + 15;

/** @param {any} r */
export function attempts(r) {
  const most = r.job?.retry === true || r.job?.retry === undefined ? 25 : r.job.retry === false ? 0 : r.job.retry;
  const n = r.millrace.attempt ?? 0;
  return html`<span class="num" title=${words.attempts(n, most, backoff(n))}>${n}<span class="dim">/${most}</span></span>`;
}

const columns = [
  { id: 'at', label: words.nextRetry, always: true, sort: byTime, cell: (/** @type {any} */ r) => html`<span class="row"><${Time} at=${r.millrace.at} />${r.millrace.refused && html`<span class="tag bad" title=${r.millrace.refused}>${common.refused}</span>`}</span>` },
  { id: 'tries', label: common.attempt, right: true, sort: byAttempt, cell: attempts },
  column.class, column.queue, column.error, { ...column.args, off: true },
  { id: 'failed', label: common.failed, off: true, cell: (/** @type {any} */ r) => html`<${Time} at=${r.failed_at} />` },
  column.jid,
];

export default function Retries() {
  const storm = route.value.query.get('view') === 'storm';
  const total = overview.value?.sets.retries?.total;
  return html`<${Title} title=${common.retries} badge=${total === undefined ? null : count(total)}>
      <${Segments} label=${common.view} value=${storm ? 'storm' : 'list'} onChange=${(/** @type {string} */ v) => setQuery({ view: v === 'storm' ? 'storm' : '' })} options=${[['list', common.list], ['storm', common.byError]]} /><//>
    <div class="stack" style=${{ gap: '1rem' }}><${DueTimes} set="retries" />
    ${storm ? html`<${Storm} set="retries" />` : html`<${Entries} set="retries" topic="retries" columns=${columns} empty=${html`<${Empty} icon="check" title=${common.noRetries}><p>${common.whatIsRetried}</p><//>`} />`}</div>`;
}
