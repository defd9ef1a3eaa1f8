// @ts-check
import { html, useState } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { absolute, count, plural } from '../core/format.js';
import { contractKnown, has } from '../core/features.js';
import { useResource } from '../core/resource.js';
import { link, route, setQuery } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { cancelOperation, opText, Progress, shownState, undoable, undoOperation } from '../parts/ops.js';
import { Answer, CopyCurl, Empty, State, Tabs, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Time } from '../parts/time.js';

/** @param {any} op */
export function filterText(op) {
  const f = Object.entries(op.filter || {}).map(([k, v]) => `${k}: ${k === 'from' || k === 'to' ? absolute(Number(v)) : v}`);
  if (op.undoes) return 'operation ' + op.undoes;
  return op.filter ? f.join(', ') || 'all' : 'chosen one by one';
}

export default function Operations() {
  const tab = route.value.query.get('tab') || 'operations';
  return html`<${Title} title="Operations"><${CopyCurl} url=${tab === 'audit' ? journalUrl() : apiPath('operations')} /><//>
    <${Tabs} label="Of" value=${tab} onChange=${(/** @type {string} */ v) => setQuery({ tab: v === 'operations' ? '' : v, next: '', actor: '', op: '' })} options=${[['operations', 'Operations'], ['audit', 'Everything that was done']]} />
    <div role="tabpanel">${tab === 'audit' ? html`<${Audit} />` : html`<${List} />`}</div>`;
}

function List() {
  const ops = useResource(apiPath('operations'), { topic: 'operations', every: 2000 });
  const columns = [
    { id: 'what', label: 'What', always: true, head: true, cell: (/** @type {any} */ o) => opText(o) },
    { id: 'state', label: 'State', cell: (/** @type {any} */ o) => html`<${State} state=${shownState(o, ops.data || [])} />` },
    { id: 'far', label: 'How far', cell: (/** @type {any} */ o) => html`<div style=${{ minWidth: '9rem', padding: '.5rem 0' }}><${Progress} op=${o} />${o.last_error && html`<div class="bad small anywhere">${o.last_error}</div>`}</div>` },
    { id: 'filter', label: 'Which', wide: true, class: 'some', cell: (/** @type {any} */ o) => html`<span class="cut" title=${filterText(o)}>${filterText(o)}</span>` },
    { id: 'reason', label: 'Reason', wide: true, class: 'some', cell: (/** @type {any} */ o) => html`<span class="cut" title=${o.reason}>${o.reason || html`<span class="dim">–</span>`}</span>` },
    { id: 'actor', label: 'By', wide: true, cell: (/** @type {any} */ o) => o.actor || '–' }, { id: 'at', label: 'Started', cell: (/** @type {any} */ o) => html`<${Time} at=${o.started_at} />` },
  ];
  return html`<section class="card flush" aria-label="Operations"><${Answer} of=${ops}><${Table} id="operations" caption="Operations" columns=${columns} rows=${ops.data || []} loading=${!ops.data} rowKey=${(/** @type {any} */ o) => o.id}
      acts=${mayAct.value ? (/** @type {any} */ o) => (o.state === 'running' ? html`<button class="btn small" onClick=${() => cancelOperation(o.id)}>Stop</button>` : undoable(o, ops.data || []) && html`<button class="btn small" onClick=${() => undoOperation(o)}>Undo</button>`) : undefined}
      empty=${html`<${Empty} icon="ops" title="Nobody has done anything to many jobs at once"><p>Select jobs in a list, or all that match a filter, and choose what to do.</p><//>`} /><//></section>`;
}

/** What it was done to. @param {any} r */
function about(r) {
  if (r.jid) return html`<a class="mono" href=${link('jobs', r.jid)}>${r.jid}</a>`;
  if (r.queue) return html`<a href=${link('job-queues', r.queue)}>${r.queue}</a>${r.to && html` to <a href=${link('job-queues', r.to)}>${r.to}</a>`}${r.count > 0 && html` <span class="dim">(${plural(r.count, 'job')})</span>`}`;
  if (r.identity) return r.identity === '*' ? 'all processes' : html`<a href=${link('worker-processes', r.identity)}>${r.identity}</a>`;
  return '–';
}

/** What the journal is asked, by the words of this page's URL. */
function journalUrl() {
  const query = route.value.query;
  return apiPath('journal', [], { ...Object.fromEntries(['actor', 'op', 'jid'].map((k) => [k, query.get(k)])), limit: 50, next: query.get('next') });
}

/** What anybody did, from the journal. */
function Audit() {
  const query = route.value.query;
  const [actor, setActor] = useState(query.get('actor') || '');
  const next = query.get('next');
  const there = has('/api/journal', 'get');
  const j = useResource(there ? journalUrl() : null, { topic: 'operations', every: 10_000 });
  const items = j.data?.items || [];
  const columns = [{ id: 'at', label: 'When', always: true, cell: (/** @type {any} */ r) => html`<${Time} at=${r.at} />` }, { id: 'actor', label: 'Who', cell: (/** @type {any} */ r) => r.actor || html`<span class="dim">Millrace</span>` }, { id: 'op', label: 'What', cell: (/** @type {any} */ r) => html`<span class="tag">${r.action ? `${r.action}: ${r.state}` : r.op}</span>` },
    { id: 'jid', label: 'About', cell: about }, { id: 'set', label: 'Set', cell: (/** @type {any} */ r) => r.set || r.stream || '–' }, { id: 'reason', label: 'Reason', class: 'fill', cell: (/** @type {any} */ r) => html`<span class="cut" title=${r.reason}>${r.reason || ''}</span>` }];
  if (!contractKnown()) return null;
  if (!there) return html`<section class="card"><${Empty} icon="ops" title="This sidecar does not tell"><p>It has no route /api/journal yet. What was done to one job is on that job's page.</p><//></section>`;
  return html`<section class="card flush" aria-label="Journal"><form class="toolbar" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); setQuery({ actor, next: '' }); }}><input class="in small" aria-label="Who" placeholder="Who" value=${actor} onInput=${(/** @type {any} */ e) => setActor(e.target.value)} /><button class="btn small">Filter</button>${query.get('actor') && html`<button type="button" class="btn small plain" onClick=${() => { setActor(''); setQuery({ actor: '', next: '' }); }}>Clear</button>`}</form>
    <${Answer} of=${j}><${Table} id="audit" caption="What was done" columns=${columns} rows=${items} loading=${!j.data} rowKey=${(/** @type {any} */ r) => String(r.record)} empty=${html`<${Empty} icon="ops" title="Nothing that matches was done" />`} /><//>
    ${j.data && html`<nav class="pager" aria-label="Pages of the list"><span class="num">${count(items.length)} shown${j.data.older_than_kept && !j.data.next ? '; what is older is not kept' : ''}</span><div class="tools">
      ${next && html`<button class="btn small" onClick=${() => setQuery({ next: '' })}>Newest</button>`}<button class="btn small" disabled=${!j.data.next} onClick=${() => setQuery({ next: j.data.next })}>Older</button></div></nav>`}</section>`;
}
