// @ts-check
import { html } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { bytes, count } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { route, setQuery } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { common } from '../core/words.js';
import { rejected as words } from '../core/pagewords.js';
import { confirm } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { Pager } from '../parts/pager.js';
import { Answer, CopyCurl, Empty, Title } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { failed, toast } from '../parts/toast.js';

/** @param {any} r @param {() => void} done */
async function fix(r, done) {
  let whole;
  try {
    whole = (await ask(apiPath('rejected', [r.stream, r.offset]))).data;
  } catch (e) {
    return failed(e);
  }
  const isText = whole.encoding === 'utf-8';
  const yes = await confirm({
    title: words.askFix(r.stream, r.offset), verb: words.republish, wide: true, value: isText ? whole.body : '',
    body: html`<p class="bad">${r.reason}</p>${!isText && html`<p class="dim">${words.notTextReplaced}</p>`}`,
    check: (v) => { try { JSON.parse(v); return ''; } catch (e) { return words.notJson(e.message); } },
    fields: (set, v) => html`<label class="field"><span>${common.record}</span>
      <textarea class="in" rows="14" spellcheck=${false} value=${v} onInput=${(e) => set(e.target.value)}></textarea></label>`,
  });
  if (!yes) return undefined;
  try {
    await ask(apiPath('rejected', [r.stream, r.offset, 'resubmit']), { method: 'POST', body: yes.value });
    toast(words.recordRepublished);
  } catch (e) {
    failed(e);
  }
  return setTimeout(done, 500);
}

/** @param {any} r @param {() => void} done */
async function dismiss(r, done) {
  /** @type {[string, string][]} */
  const facts = [[common.stream, r.stream], [words.offset, String(r.offset)], [common.reason, r.reason]];
  if (!await confirm({ title: words.askDismiss, verb: common.dismiss, danger: true, facts, body: html`<p>${words.aboutDismissing}</p>` })) return;
  try {
    await ask(apiPath('rejected', [r.stream, r.offset]), { method: 'DELETE' });
    toast(words.recordDismissed);
  } catch (e) {
    failed(e);
  }
  setTimeout(done, 300);
}

const columns = [
  { id: 'stream', label: common.stream, always: true, cell: (r) => html`<span class="tag">${r.stream}</span>` },
  { id: 'offset', label: words.offset, right: true, cell: (r) => count(r.offset) },
  { id: 'reason', label: common.reason, class: 'fill', cell: (r) => html`<span class="bad cut" title=${r.reason}>${r.reason}</span>` },
  { id: 'body', label: common.record, class: 'fill', cell: (r) => html`<code class="cut">${r.encoding === 'utf-8' ? r.body : words.notText}</code>` },
  { id: 'size', label: common.size, right: true, wide: true, cell: (r) => bytes(r.size) },
];

export default function Rejected() {
  const query = route.value.query;
  const page = Number(query.get('page')) || 1;
  const size = Number(query.get('page_size')) || 50;
  const url = apiPath('rejected', [], { page, page_size: size, stream: query.get('stream') });
  const list = useResource(url);
  const d = list.data;
  const acts = (r) => html`<button class="icon" title=${words.fixAndRepublish} aria-label=${words.fix(r.stream, r.offset)}
      onClick=${() => fix(r, list.refresh)}><${Icon} name="edit" /></button>
    <button class="icon hurt" title=${common.dismiss} aria-label=${words.dismiss(r.stream, r.offset)}
      onClick=${() => dismiss(r, list.refresh)}><${Icon} name="trash" /></button>`;
  return html`<${Title} title=${common.rejectedRecords} badge=${d ? count(d.total_count) : null}><${CopyCurl} url=${url} /><//>
    <section class="card flush" aria-label=${common.rejectedRecords}><p class="toolbar dim">${words.about}</p>
      <${Answer} of=${list}><${Table} id="rejected" caption=${common.rejectedRecords} columns=${columns} rows=${d?.items || []} count=${d?.filtered_count}
        loading=${!d} rowKey=${(r) => r.stream + r.offset} acts=${mayAct.value ? acts : undefined}
        empty=${html`<${Empty} title=${words.noRejectedRecords}><p>${words.allParsed}</p><//>`} /><//>
      ${d && html`<${Pager} page=${page} size=${size} items=${d.items.length} total=${d.filtered_count} pages=${d.page_count}
        what=${d.filtered_count === 1 ? words.record : words.records}
        onPage=${(/** @type {number} */ n) => setQuery({ page: n })} onSize=${(/** @type {number} */ n) => setQuery({ page_size: n, page: '' })} />`}</section>`;
}
