// @ts-check
import { html } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { bytes, count } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { route, setQuery } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { confirm } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { Pager } from '../parts/pager.js';
import { Answer, CopyCurl, Empty, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { failed, toast } from '../parts/toast.js';

/** @param {any} r @param {() => void} done */
async function mend(r, done) {
  let whole;
  try {
    whole = (await ask(apiPath('rejected', [r.stream, r.offset]))).data;
  } catch (e) {
    return failed(e);
  }
  const yes = await confirm({ title: `Mend the record at ${r.stream} ${r.offset}`, verb: 'Publish it', wide: true, value: whole.encoding === 'utf-8' ? whole.body : '', body: html`<p class="bad">${r.reason}</p>${whole.encoding !== 'utf-8' && html`<p class="dim">It is not text: what stands here is published in its place.</p>`}`,
    check: (v) => { try { JSON.parse(v); return ''; } catch (e) { return 'Not JSON yet: ' + e.message; } },
    fields: (set, v) => html`<label class="field"><span>Record</span><textarea class="in" rows="14" spellcheck=${false} value=${v} onInput=${(/** @type {any} */ e) => set(e.target.value)}></textarea></label>` });
  if (!yes) return undefined;
  try {
    await ask(apiPath('rejected', [r.stream, r.offset, 'resubmit']), { method: 'POST', body: yes.value });
    toast('Published in its place');
  } catch (e) {
    failed(e);
  }
  return setTimeout(done, 500);
}

/** @param {any} r @param {() => void} done */
async function dismiss(r, done) {
  if (!await confirm({ title: 'Take this record off the list?', verb: 'Take it off', danger: true, facts: [['Stream', r.stream], ['Offset', String(r.offset)], ['Reason', r.reason]], body: html`<p>The record stays in its stream as long as that keeps it, but is not shown here again.</p>` })) return;
  try {
    await ask(apiPath('rejected', [r.stream, r.offset]), { method: 'DELETE' });
    toast('Taken off the list');
  } catch (e) {
    failed(e);
  }
  setTimeout(done, 300);
}

const columns = [
  { id: 'stream', label: 'Stream', always: true, cell: (/** @type {any} */ r) => html`<span class="tag">${r.stream}</span>` }, { id: 'offset', label: 'Offset', right: true, cell: (/** @type {any} */ r) => count(r.offset) },
  { id: 'reason', label: 'Reason', class: 'fill', cell: (/** @type {any} */ r) => html`<span class="bad cut" title=${r.reason}>${r.reason}</span>` }, { id: 'body', label: 'Record', class: 'fill', cell: (/** @type {any} */ r) => html`<code class="cut">${r.encoding === 'utf-8' ? r.body : '(not text)'}</code>` }, { id: 'size', label: 'Size', right: true, wide: true, cell: (/** @type {any} */ r) => bytes(r.size) },
];

export default function Rejected() {
  const query = route.value.query;
  const page = Number(query.get('page')) || 1;
  const size = Number(query.get('page_size')) || 50;
  const url = apiPath('rejected', [], { page, page_size: size, stream: query.get('stream') });
  const list = useResource(url);
  const d = list.data;
  return html`<${Title} title="Rejected records" badge=${d ? count(d.total_count) : null}><${CopyCurl} url=${url} /><//>
    <section class="card flush" aria-label="Rejected records"><p class="toolbar dim">What was published to Millrace's streams and cannot be read, each with the reason. A mended record is published to the same stream.</p>
      <${Answer} of=${list}><${Table} id="rejected" caption="Rejected records" columns=${columns} rows=${d?.items || []} loading=${!d} rowKey=${(/** @type {any} */ r) => r.stream + r.offset}
        acts=${mayAct.value ? (/** @type {any} */ r) => html`<button class="icon" title="Mend and publish" aria-label=${`Mend ${r.stream} ${r.offset}`} onClick=${() => mend(r, list.refresh)}><${Icon} name="edit" /></button><button class="icon hurt" title="Take off the list" aria-label=${`Take off ${r.stream} ${r.offset}`} onClick=${() => dismiss(r, list.refresh)}><${Icon} name="trash" /></button>` : undefined}
        empty=${html`<${Empty} title="Nothing was rejected"><p>All that was published could be read.</p><//>`} /><//>
      ${d && html`<${Pager} page=${page} size=${size} items=${d.items.length} total=${d.filtered_count} pages=${d.page_count} what=${d.filtered_count === 1 ? 'record' : 'records'} onPage=${(/** @type {number} */ n) => setQuery({ page: n })} onSize=${(/** @type {number} */ n) => setQuery({ page_size: n, page: '' })} />`}</section>`;
}
