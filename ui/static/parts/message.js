// @ts-check
// A delayed message, and how many wait for each exchange.
import { html, useState } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { bytes, count } from '../core/format.js';
import { bodyOf, bytesOf, messageOf, toExchange } from '../core/message.js';
import { itemTexts, memberText } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { Payload } from './payload.js';
import { Answer, Card } from './states.js';
import { Table } from './table.js';
import { Time } from './time.js';
import { common, message as words } from '../core/words.js';

/**
 * The message that a job delivers; nothing for other jobs.
 * @param {{job: any, args: string, set?: string}} p `args`: the arguments as they were written;
 *   `set`: the list to which the exchange links
 */
export function Message({ job, args, set = 'scheduled-jobs' }) {
  const m = messageOf(job);
  if (!m) return null;
  const written = itemTexts(args)[0] || '';
  const properties = memberText(written, 'properties');
  const body = bodyOf(m);
  return html`<${Card} title=${words.message}>
      <dl class="facts"><dt>${words.exchange}</dt><dd><a href=${link(set, [], toExchange(m.exchange))}>${m.exchange || words.defaultExchange}</a></dd>
        <dt>${words.routingKey}</dt><dd>${m.routing_key || words.none}</dd>
        ${!properties && html`<dt>${words.properties}</dt><dd>${m.properties_base64 ? words.inBytes(bytes(bytesOf(m.properties_base64).length)) : words.none}</dd>`}
        ${!body.text && html`<dt>${words.body}</dt><dd>${body.size ? words.binary(bytes(body.size)) : words.empty}</dd>`}</dl><//>
    ${properties && html`<${Card} title=${words.properties}><${Payload} text=${properties} label=${words.theProperties} path="properties" name="properties" /><//>`}
    ${body.text && html`<${Card} title=${words.body}><${Payload} text=${body.text} label=${words.theBody} name="body" /><//>`}`;
}

/** How many rows the table has at first. */
const few = 5;

const columns = [
  {
    id: 'exchange', label: words.exchange, always: true, head: true, class: 'lim',
    cell: (e) => html`<a class="strong cut" title=${e.exchange} href=${link('scheduled-jobs', [], toExchange(e.exchange))}>${e.exchange || words.defaultExchange}</a>`,
  },
  { id: 'scheduled', label: common.scheduled, right: true, always: true, cell: (e) => count(e.scheduled) },
  { id: 'retrying', label: common.retries, right: true, always: true, cell: (e) => toSet('retries', e.exchange, e.retrying) },
  { id: 'dead', label: common.dead, right: true, always: true, cell: (e) => toSet('dead-jobs', e.exchange, e.dead) },
  { id: 'next', label: words.next, wide: true, cell: (e) => (e.next_at === null ? '–' : html`<${Time} at=${e.next_at} />`) },
];

/** @param {string} set @param {string} exchange @param {number} n */
const toSet = (set, exchange, n) => (n ? html`<a href=${link(set, [], toExchange(exchange))}>${count(n)}</a>` : count(n));

/** The delayed messages by exchange, if there are any. */
export function Exchanges() {
  const [all, setAll] = useState(false);
  const found = useResource(apiPath('messages', 'exchanges'), { topic: 'scheduled', every: 10_000 });
  const rows = found.data?.items || [];
  if (!rows.length && !found.error) return null;
  const more = !all && rows.length > few;
  return html`<${Card} flush title=${words.byExchange} tools=${more && html`<button class="btn small" onClick=${() => setAll(true)}>${words.showAll(rows.length)}</button>`}>
    <${Answer} of=${found}><${Table} id="exchanges" caption=${words.byExchange} columns=${columns} rows=${more ? rows.slice(0, few) : rows} rowKey=${(e) => 'x' + e.exchange} still=${false} /><//>
    ${found.data?.unsearched > 0 && html`<p class="dim small foot">${words.notCounted(found.data.unsearched)}</p>`}<//>`;
}
