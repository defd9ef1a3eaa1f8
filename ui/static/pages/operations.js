// @ts-check
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { filterText } from '../core/filtertext.js';
import { useResource } from '../core/resource.js';
import { link, route, setQuery } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { common } from '../core/words.js';
import { operations as words } from '../core/pagewords.js';
import { Downloads } from '../parts/downloads.js';
import { FilterBox } from '../parts/filter.js';
import { cancelOperation, opText, Progress, setNames, shownState, undoable, undoOperation, verbs } from '../parts/ops.js';
import { Answer, CopyCurl, Empty, State, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Tabs } from '../parts/tabs.js';
import { Time } from '../parts/time.js';

/** Returns which jobs an operation is about. @param {any} op @param {any} [group] */
function jobsText(op, group) {
  if (op.undoes) return words.operationOf(op.undoes);
  return op.filter ? filterText(op.filter, group) || words.all : words.selectedJobs;
}

/** The jobs of an operation. The tooltip has what the API calls them. @param {{op: any}} p */
function Which({ op }) {
  const text = jobsText(op, op.error_group);
  return html`<span class="cut" title=${[...new Set([text, jobsText(op)])].join('\n')}>${text}</span>`;
}

export default function Operations() {
  const tab = route.value.query.get('tab') || 'operations';
  const turn = (/** @type {string} */ v) => setQuery({ tab: v === 'operations' ? '' : v, next: '', ...Object.fromEntries(terms.map((t) => [t, ''])) });
  return html`<${Title} title=${common.operations}><${CopyCurl} url=${tab === 'audit' ? journalUrl() : apiPath('operations')} /><//>
    <${Tabs} label=${common.operations} value=${tab} onChange=${turn} options=${[['operations', common.operations], ['audit', words.auditLog]]} />
    <div role="tabpanel">${tab === 'audit' ? html`<${Audit} />` : html`<${List} />`}</div>`;
}

function List() {
  const ops = useResource(apiPath('operations'), { topic: 'operations', every: 2000 });
  const columns = [
    { id: 'what', label: words.operation, always: true, head: true, cell: (o) => opText(o) },
    { id: 'state', label: common.state, cell: (o) => html`<${State} state=${shownState(o, ops.data || [])} />` },
    { id: 'far', label: common.progress, cell: (o) => html`<${Far} op=${o} />` },
    { id: 'filter', label: common.filter, wide: true, class: 'some', cell: (o) => html`<${Which} op=${o} />` },
    { id: 'reason', label: common.reason, wide: true, class: 'some', cell: (o) => html`<span class="cut" title=${o.reason}>${o.reason || html`<span class="dim">–</span>`}</span>` },
    { id: 'actor', label: words.by, wide: true, cell: (o) => o.actor || '–' },
    { id: 'at', label: common.started, cell: (o) => html`<${Time} at=${o.started_at} />` },
  ];
  const acts = (o) => (o.state === 'running' ? html`<button class="btn small" onClick=${() => cancelOperation(o.id)}>${common.stop}</button>`
    : undoable(o, ops.data || []) && html`<button class="btn small" onClick=${() => undoOperation(o)}>${common.undo}</button>`);
  return html`<section class="card flush" aria-label=${common.operations}><${Answer} of=${ops}>
    <${Table} id="operations" caption=${common.operations} columns=${columns} rows=${ops.data || []} loading=${!ops.data} rowKey=${(o) => o.id}
      acts=${mayAct.value ? acts : undefined} empty=${html`<${Empty} icon="ops" title=${words.noBulkOperationsYet}><p>${words.howToBegin}</p><//>`} /><//></section>`;
}

/** The progress of an operation, and its last error. @param {{op: any}} p */
const Far = ({ op }) => html`<div class="far"><${Progress} op=${op} />${op.last_error && html`<div class="bad small anywhere">${op.last_error}</div>`}</div>`;

/** Returns the link to the actions of one operation, job by job. @param {string} operation */
const partsOf = (operation) => link('operations', [], { tab: 'audit', operation });

/** Returns the jobs, queue or process of an action. @param {any} r */
function about(r) {
  if (r.jid) return html`<a class="mono" href=${link('jobs', r.jid)}>${r.jid}</a>`;
  if (r.queue) {
    // Otherwise a type of queue.
    const to = r.op === 'moved' ? html`<a href=${link('job-queues', r.to)}>${r.to}</a>` : r.to;
    return html`<a href=${link('job-queues', r.queue)}>${r.queue}</a>${to && words.movedTo(to)}${r.count > 0 && html` <span class="dim">(${common.jobsOf(r.count)})</span>`}`;
  }
  if (r.limit) return html`<a href=${link('limits', r.limit)}>${r.limit}</a>`;
  if (r.periodic) return html`<a href=${link('periodic-jobs', r.periodic)}>${r.periodic}</a>`;
  if (r.identity) return r.identity === '*' ? words.allProcesses : html`<a href=${link('worker-processes', r.identity)}>${r.identity}</a>`;
  if (r.operation) return html`<a href=${partsOf(r.operation)} title=${words.operationOf(r.operation)}>${r.count > 0 ? common.jobsOf(r.count) : words.operationOf(r.operation)}</a>`;
  return '–';
}

/** The filters of the audit log, in the words of the API. */
const terms = ['actor', 'op', 'queue', 'jid', 'operation', 'from', 'to'];
const ops = ['operation', 'deleted', 'killed', 'changed', 'undone', 'triggered', 'retried', 'paused', 'resumed', 'made', 'removed', 'purged', 'moved', 'retyped', 'quieted',
  'stopped', 'cancelled', 'released', 'dismissed', 'enqueued', 'defined', 'forgotten', 'freed', 'run', 'skipped', 'missed'];

/** Returns the filter of this page's URL. An operation is one row, unless the URL selects it. */
function journalFilter() {
  const query = route.value.query;
  const collapse = query.get('jid') || query.get('operation') ? undefined : 'operations';
  return { ...Object.fromEntries(terms.map((k) => [k, query.get(k)])), collapse };
}

/** Returns the request for this page's URL. */
const journalUrl = () => apiPath('journal', [], { ...journalFilter(), limit: 200, next: route.value.query.get('next') });

/** Returns the text of an action, in a word or two. @param {any} r */
const actionText = (r) => (r.action ? words.beganOrEnded(verbs[r.action] || r.action, r.state) : words.ops[r.op] || r.op);

/** The audit log: the actions, who did them and why, from the journal. */
function Audit() {
  const query = route.value.query;
  const next = query.get('next');
  const url = journalUrl();
  const j = useResource(url, { topic: 'operations', every: 10_000 });
  const items = j.data?.items || [];
  const those = (/** @type {string} */ name) => [...new Set(items.map((r) => r[name]).filter(Boolean))];
  const columns = [
    { id: 'at', label: common.time, always: true, cell: (r) => html`<${Time} at=${r.at} past />` },
    {
      id: 'actor', label: words.user, class: 'lim',
      cell: (r) => (r.actor ? html`<span class="cut" title=${r.actor}>${r.actor}</span>` : html`<span class="dim">${common.millrace}</span>`),
    },
    { id: 'op', label: words.action, cell: (r) => html`<span class="tag">${actionText(r)}</span>` },
    { id: 'jid', label: words.target, class: 'some', cell: (r) => html`<span class="cut">${about(r)}</span>` },
    { id: 'set', label: common.list, wide: true, cell: (r) => setNames[r.set] || r.stream || '–' },
    { id: 'reason', label: common.reason, class: 'fill', cell: (r) => html`<span class="cut" title=${r.reason}>${r.reason || ''}</span>` },
  ];
  const filtered = terms.some((t) => query.get(t));
  return html`<section class="card flush" aria-label=${words.auditLog}><div class="toolbar">
      <${FilterBox} label=${words.filterAuditLog} names=${terms} query=${query} suggest=${{ actor: () => those('actor'), queue: () => those('queue'), op: () => ops }}
        onChange=${(changes) => setQuery({ ...changes, next: '' })} /><${Downloads} set="journal" filter=${journalFilter()} /></div>
    <${Answer} of=${j}><${Table} id="audit" caption=${words.auditLog} columns=${columns} rows=${items} of=${j.url} loading=${!j.data} busy=${j.stale} rowKey=${(r) => String(r.record)}
      empty=${html`<${Empty} icon="ops" title=${filtered ? words.noMatchingActions : words.noActionsYet} />`} /><//>
    ${j.data && html`<nav class="pager" aria-label=${common.pagesOfTheList}><span class="num">${words.shown(items.length, j.data.older_than_kept && !j.data.next)}</span><div class="tools">
      ${next && html`<button class="btn small" onClick=${() => setQuery({ next: '' })}>${common.newest}</button>`}
      <button class="btn small" disabled=${!j.data.next} onClick=${() => setQuery({ next: j.data.next })}>${common.older}</button></div></nav>`}</section>`;
}
