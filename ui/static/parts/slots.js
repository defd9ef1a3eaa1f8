// @ts-check
// The jobs that hold slots: they are delivered and have not ended.
import { html } from '../core/h.js';
import { count } from '../core/format.js';
import { link, navigate } from '../core/router.js';
import { mayAdminister } from '../core/session.js';
import { to } from './defined.js';
import { Icon } from './icon.js';
import { free } from './limits.js';
import { Answer, Card, Empty } from './states.js';
import { Table } from './table.js';
import { Time } from './time.js';
import { common } from '../core/words.js';
import { defined, limits as words } from '../core/pagewords.js';

/** @param {{title: string, of: any, done: () => void}} p `of`: a resource with the slots */
export function HeldSlots({ title, of, done }) {
  const columns = [
    { id: 'jid', label: common.job, always: true, head: true, class: 'lim', cell: (s) => html`<a class="mono cut" title=${s.jid} href=${link('jobs', s.jid)}>${s.jid}</a>` },
    { id: 'key', label: common.key, class: 'lim', cell: (s) => html`<span class="cut" title=${s.key}>${s.key || html`<span class="dim">–</span>`}</span>` },
    { id: 'class', label: common.class, class: 'lim', wide: true, cell: (s) => to('job-metrics', s.class) },
    { id: 'queue', label: common.queue, class: 'lim', wide: true, cell: (s) => to('job-queues', s.queue) },
    { id: 'at', label: common.since, cell: (s) => html`<${Time} at=${s.at} past />` },
  ];
  const act = (/** @type {any} */ s) => html`<button class="icon" title=${words.freeSlot} aria-label=${defined.actOn(words.freeSlot, s.jid)}
    onClick=${() => free(s, done)}><${Icon} name="out" /></button>`;
  return html`<${Card} flush title=${title} tools=${of.data && html`<span class="badge">${count(of.data.length)}</span>`}>
    <${Answer} of=${of}><${Table} id="slots" caption=${title} columns=${columns} rows=${of.data || []} loading=${!of.data} rowKey=${(s) => s.slot}
      open=${(s) => navigate(link('jobs', s.jid))} acts=${mayAdminister.value ? act : undefined} empty=${html`<${Empty} icon="check" title=${words.noSlots} />`} /><//><//>`;
}
