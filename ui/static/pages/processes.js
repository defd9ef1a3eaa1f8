// @ts-check
import { html, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { bytes, count, percent, plural } from '../core/format.js';
import { useAll } from '../core/resource.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { mayAct, whyNot } from '../core/session.js';
import { confirm } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { Cut, paged, PagerOf } from '../parts/pager.js';
import { Answer, CopyCurl, Empty, State, Title, Util } from '../parts/states.js';
import { ColumnChooser, sorted, Table } from '../parts/table.js';
import { failed, toast } from '../parts/toast.js';
import { Since, Time } from '../parts/time.js';
import { longest } from '../parts/usual.js';

/** The first of them, and how many more. @param {string[]} all */
const some = (all) => all.slice(0, 5).join(', ') + (all.length > 5 ? ` and ${all.length - 5} more` : '');

/** Tells processes something. @param {'quiet'|'stop'} what @param {string[]} identities @param {number} busy @param {(told: string[]) => void} done given those that were told */
export async function tellProcesses(what, identities, busy, done) {
  const n = identities.length;
  const verb = `${what === 'stop' ? 'Stop' : 'Quiet'} ${plural(n, 'process', 'processes')}`;
  const alone = await onlyThese(identities);
  const [it, its, Its] = n === 1 ? ['It', 'it', 'This is the only worker'] : ['They', 'them', 'These are the only workers'];
  const yes = await confirm({ title: verb + '?', danger: what === 'stop', verb, typed: n > 5 && what === 'stop' ? String(n) : undefined,
    facts: [['Processes', some(identities)], ['Running jobs', count(busy)]],
    body: html`<p>${it} ${n === 1 ? 'finishes' : 'finish'} running jobs and ${what === 'stop' ? `then ${n === 1 ? 'exits' : 'exit'}` : `${n === 1 ? 'takes' : 'take'} no new ones`}. Millrace cannot ${what === 'stop' ? 'restart' : 'undo this for'} ${its}.</p>
      ${alone.length > 0 && html`<div class="banner"><${Icon} name="warn" /><span>${Its} of: ${some(alone)}</span></div>`}` });
  if (!yes) return;
  const told = await tellEach(what, identities);
  if (told.length) toast(`${what === 'stop' ? 'Stop' : 'Quiet'} requested for ${plural(told.length, 'process', 'processes')}; status follows with the next heartbeat`);
  setTimeout(() => done(told), 1500);
}

/** Queues that no other live process consumes. @param {string[]} identities @returns {Promise<string[]>} none where that is not known */
async function onlyThese(identities) {
  try {
    const { data } = await ask(apiPath('processes', [], { state: 'live', limit: 500 }));
    const queues = (/** @type {boolean} */ those) => data.filter((/** @type {any} */ p) => identities.includes(p.identity) === those).flatMap((/** @type {any} */ p) => p.queues);
    const others = new Set(queues(false));
    return data.length < 500 ? [...new Set(/** @type {string[]} */ (queues(true)))].filter((q) => !others.has(q)) : [];
  } catch {
    return [];
  }
}

/** Sends the request to one process after the other. A process that is gone does not stop the rest; any other error does.
 * @param {'quiet'|'stop'} what @param {string[]} identities @returns {Promise<string[]>} those that it was sent to */
async function tellEach(what, identities) {
  const told = [];
  const gone = [];
  for (const id of identities) {
    try {
      await ask(apiPath('processes', [id, what]), { method: 'PUT' });
      told.push(id);
    } catch (e) {
      if (e.status === 404 && identities.length > 1) {
        gone.push(id);
        continue;
      }
      const left = identities.length - told.length - gone.length;
      failed(identities.length > 1 ? new Error(`${id}${left > 1 ? ' and ' + plural(left - 1, 'other') : ''}: ${e.reason}`) : e);
      break;
    }
  }
  if (gone.length) failed(new Error(`No longer connected: ${some(gone)}`));
  return told;
}

/** Its queues, those that it asks most first. @param {any} p @returns {string[]} */
export const byWeight = (p) => [...p.queues].sort((a, b) => (p.weights?.[b] || 1) - (p.weights?.[a] || 1));

const silence = (/** @type {any} */ p) => (p.state === 'lost' || p.silent_seconds > 60 ? 'bad' : p.silent_seconds > 25 ? 'warn' : 'ok');

const columns = [
  { id: 'id', label: 'Process', always: true, head: true, class: 'lim', sort: (/** @type {any} */ p) => p.identity, cell: (/** @type {any} */ p) => html`<a class="cut" title=${p.identity} href=${link('worker-processes', p.identity)}>${p.hostname}:${p.pid}</a>` },
  { id: 'state', label: 'State', sort: (/** @type {any} */ p) => p.state, cell: (/** @type {any} */ p) => html`<${State} state=${p.state} />` },
  { id: 'tag', label: 'Tag, version', wide: true, sort: (/** @type {any} */ p) => p.tag + p.version, class: 'nowrap', cell: (/** @type {any} */ p) => html`${p.tag && html`<span class="tag">${p.tag}</span> `}<span class="dim">${p.version}</span>` },
  { id: 'heard', label: 'Last heartbeat', sort: (/** @type {any} */ p) => -p.heard_at, cell: (/** @type {any} */ p) => html`<span class=${silence(p)}><${Time} at=${p.heard_at} /></span>` },
  { id: 'busy', label: 'Busy', sort: (/** @type {any} */ p) => (p.concurrency ? p.busy / p.concurrency : 0), cell: (/** @type {any} */ p) => html`<${Util} part=${p.concurrency ? p.busy / p.concurrency : 0} label=${'Slots of ' + p.identity + ' in use'} text=${`${p.busy}/${p.concurrency}`} />` },
  { id: 'queues', label: 'Queues', wide: true, class: 'some', cell: (/** @type {any} */ p) => html`<span class="cut" title=${byWeight(p).join(', ')}>${byWeight(p).map((/** @type {string} */ q) => q + (p.weights?.[q] > 1 ? '×' + p.weights[q] : '')).join(', ')}</span>` },
  { id: 'oldest', label: 'Longest job', right: true, sort: (/** @type {any} */ p) => -(longest(p)?.started_at || Infinity), cell: (/** @type {any} */ p) => (longest(p) ? html`${p.work.some((/** @type {any} */ w) => w.stuck) && html`<span class="tag bad">Stuck</span> `}<a href=${link('jobs', longest(p).jid)} title=${longest(p).class}><${Since} since=${longest(p).started_at} /></a>` : html`<span class="dim">–</span>`) },
  { id: 'rss', label: 'Memory', right: true, wide: true, sort: (/** @type {any} */ p) => p.rss_kb, cell: (/** @type {any} */ p) => bytes(p.rss_kb * 1024) },
  { id: 'rtt', label: 'Round trip', right: true, off: true, sort: (/** @type {any} */ p) => p.rtt_us, cell: (/** @type {any} */ p) => (p.rtt_us ? (p.rtt_us / 1000).toFixed(1) + ' ms' : '–') },
  { id: 'up', label: 'Started', off: true, sort: (/** @type {any} */ p) => p.started_at, cell: (/** @type {any} */ p) => html`<${Time} at=${p.started_at} />` },
];

export default function Processes() {
  const query = route.value.query;
  const list = useAll('processes', { topic: 'processes' });
  const [chosen, setChosen] = useState(/** @type {Map<string, any>} */ (new Map()));
  const [sort, reverse, text] = [query.get('sort') || 'id', query.get('sort_reverse') === 'true', (query.get('text') || '').toLowerCase()];
  const all = list.data || [];
  const rows = sorted(all.filter((/** @type {any} */ p) => !text || (p.identity + ' ' + p.tag + ' ' + p.version + ' ' + p.state + ' ' + p.queues.join(' ')).toLowerCase().includes(text)), columns, sort, reverse);
  const part = paged(rows);
  const up = all.filter((/** @type {any} */ p) => p.state !== 'lost');
  const sum = (/** @type {string} */ k) => list.data && up.reduce((/** @type {number} */ n, /** @type {any} */ p) => n + p[k], 0);
  const skewed = up.filter((/** @type {any} */ a) => up.some((/** @type {any} */ b) => a.tag === b.tag && a.version !== b.version));
  const versions = [...new Set(skewed.map((/** @type {any} */ p) => p.tag + ' ' + p.version))];
  const act = (/** @type {'quiet'|'stop'} */ what, /** @type {any[]} */ of) => tellProcesses(what, of.map((p) => p.identity), of.reduce((n, p) => n + p.busy, 0), (told) => { setChosen((now) => new Map([...now].filter(([id]) => !told.includes(id)))); list.refresh(); });
  const found = text && `select("\\(.identity) \\(.tag) \\(.version) \\(.state) \\(.queues | join(" "))" | ascii_downcase | contains(${JSON.stringify(text)}))`;
  return html`<${Title} title="Worker processes" badge=${list.data ? count(all.length + list.left) : null}><${CopyCurl} url=${list.url} jq=${found} /><//>
    <${Cut} list=${list} what="processes" />
    ${skewed.length > 0 && html`<div class="banner"><${Icon} name="warn" /><span>Mixed versions: ${versions.join(', ')}</span></div>`}
    <div class="grid"><section class="card flush" aria-label="Totals"><dl class="counters n4" style=${{ margin: 0 }}>${[['Processes', count(list.data && up.length), all.length - up.length ? plural(all.length - up.length, 'lost', 'lost') : ''], ['Slots', count(sum('concurrency')), ''], ['Busy', count(sum('busy')), percent(sum('concurrency') ? sum('busy') / sum('concurrency') : null)], ['Memory', bytes(list.data && sum('rss_kb') * 1024), '']].map(([k, v, n]) => html`<div><dt>${k}</dt><dd>${v}</dd><dd class="note">${n || '\u00a0'}</dd></div>`)}</dl></section>
    <section class="card flush" aria-label="Processes"><div class="bars"><div class="toolbar"><input class="in small grow" style=${{ maxWidth: '26rem' }} type="search" data-filter placeholder="Filter by host, tag, version, queue, state" aria-label="Filter processes" value=${query.get('text') || ''} onInput=${(/** @type {any} */ e) => setQuery({ text: e.target.value, page: '' }, { replace: true })} /><span class="grow"></span><${ColumnChooser} id="processes" columns=${columns} /></div>
      ${chosen.size > 0 && html`<div class="selbar" role="region" aria-label="Selection"><span class="strong">${plural(chosen.size, 'process', 'processes')} selected</span><button class="linkish" onClick=${() => setChosen(new Map())}>Clear</button><div class="tools"><button class="btn small" onClick=${() => act('quiet', [...chosen.values()])}><${Icon} name="quiet" small />Quiet</button><button class="btn small hurt" onClick=${() => act('stop', [...chosen.values()])}><${Icon} name="stop" small />Stop</button></div></div>`}</div>
      <${Answer} of=${list}><${Table} id="processes" caption="Worker processes" columns=${columns} rows=${part.rows} of=${`${text} ${part.page} ${part.size}`} loading=${!list.data} dim=${!!list.error} rowKey=${(/** @type {any} */ p) => p.identity} label=${(/** @type {any} */ p) => 'process ' + p.identity} sort=${sort} reverse=${reverse} onSort=${(/** @type {string} */ id, /** @type {boolean} */ r) => setQuery({ sort: id, sort_reverse: r ? 'true' : '' })}
        selection=${mayAct.value ? { chosen, set: setChosen } : undefined} open=${(/** @type {any} */ p) => navigate(link('worker-processes', p.identity))}
        acts=${mayAct.value ? (/** @type {any} */ p) => p.state !== 'lost' && html`<button class="icon" title="Quiet" aria-label=${'Quiet ' + p.identity} disabled=${p.state !== 'live' || !!whyNot.value} onClick=${() => act('quiet', [p])}><${Icon} name="quiet" /></button><button class="icon hurt more" title="Stop" aria-label=${'Stop ' + p.identity} disabled=${p.state === 'stopping'} onClick=${() => act('stop', [p])}><${Icon} name="stop" /></button>` : undefined}
        empty=${text ? html`<${Empty} icon="search" title=${`No matches in ${plural(all.length, 'process', 'processes')}`}><button class="btn" onClick=${() => setQuery({ text: '' })}>Clear filter</button><//>` : html`<${Empty} icon="worker" title="No workers connected"><p>Worker processes appear here with their first heartbeat. Start one, for example:</p><pre class="code">millrace worker --exec jobs.yaml</pre><//>`} /><//>
      <${PagerOf} of=${part} total=${rows.length} what="processes" /></section></div>`;
}
