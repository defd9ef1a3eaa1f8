// @ts-check
import { html, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { bytes, count, percent } from '../core/format.js';
import { useAll } from '../core/resource.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { mayAct, whyNot } from '../core/session.js';
import { common, processes as words } from '../core/words.js';
import { confirm } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { Cut, paged, PagerOf } from '../parts/pager.js';
import { Answer, CopyCurl, Empty, State, Title, Util } from '../parts/states.js';
import { ColumnChooser, sorted, Table } from '../parts/table.js';
import { failed, toast } from '../parts/toast.js';
import { Since, Time } from '../parts/time.js';
import { longest } from '../parts/usual.js';

/** @param {string[]} all */
const some = (all) => common.firstOf(all, 5);

/**
 * Sends a request to processes.
 * @param {'quiet'|'stop'} what
 * @param {string[]} identities
 * @param {number} busy
 * @param {(sent: string[]) => void} done gets the processes to which it was sent
 */
export async function sendToProcesses(what, identities, busy, done) {
  const n = identities.length;
  const verb = words.verbOf(what, n);
  const alone = await onlyThese(identities);
  const yes = await confirm({ title: words.askVerb(what, n), danger: what === 'stop', verb, typed: n > 5 && what === 'stop' ? String(n) : undefined,
    facts: [[common.processes, some(identities)], [common.runningJobs, count(busy)]],
    body: html`<p>${what === 'stop' ? words.aboutStopping(n) : words.aboutQuieting(n)}</p>
      ${alone.length > 0 && html`<div class="banner"><${Icon} name="warn" /><span>${words.onlyOf(n, some(alone))}</span></div>`}` });
  if (!yes) return;
  const sent = await sendToEach(what, identities);
  if (sent.length) toast(words.requested(what, sent.length));
  setTimeout(() => done(sent), 1500);
}

/**
 * Returns the queues that no other live process consumes.
 * @param {string[]} identities
 * @returns {Promise<string[]>} none if that is not known
 */
async function onlyThese(identities) {
  try {
    const { data } = await ask(apiPath('processes', [], { state: 'live', limit: 500 }));
    const queues = (/** @type {boolean} */ those) => data.filter((p) => identities.includes(p.identity) === those).flatMap((p) => p.queues);
    const others = new Set(queues(false));
    return data.length < 500 ? [...new Set(/** @type {string[]} */ (queues(true)))].filter((q) => !others.has(q)) : [];
  } catch {
    return [];
  }
}

/**
 * Sends the request to one process after the other. It continues after a process that is gone, and
 * stops at any other error.
 * @param {'quiet'|'stop'} what
 * @param {string[]} identities
 * @returns {Promise<string[]>} the processes to which it was sent
 */
async function sendToEach(what, identities) {
  const sent = [];
  const gone = [];
  for (const id of identities) {
    try {
      await ask(apiPath('processes', [id, what]), { method: 'PUT' });
      sent.push(id);
    } catch (e) {
      if (e.status === 404 && identities.length > 1) {
        gone.push(id);
        continue;
      }
      const left = identities.length - sent.length - gone.length;
      failed(identities.length > 1 ? new Error(words.notSent(id, left - 1, e.reason)) : e);
      break;
    }
  }
  if (gone.length) failed(new Error(words.gone(some(gone))));
  return sent;
}

/**
 * Returns the queues of a process, those with the highest weight first.
 * @param {any} p
 * @returns {string[]}
 */
export const byWeight = (p) => [...p.queues].sort((a, b) => (p.weights?.[b] || 1) - (p.weights?.[a] || 1));

const silence = (p) => (p.state === 'lost' || p.silent_seconds > 60 ? 'bad' : p.silent_seconds > 25 ? 'warn' : 'ok');

const columns = [
  { id: 'id', label: common.process, always: true, head: true, class: 'lim', sort: (p) => p.identity, cell: (p) => html`<a class="cut" title=${p.identity} href=${link('worker-processes', p.identity)}>${p.hostname}:${p.pid}</a>` },
  { id: 'state', label: common.state, sort: (p) => p.state, cell: (p) => html`<${State} state=${p.state} />` },
  { id: 'tag', label: words.tagVersion, wide: true, sort: (p) => p.tag + p.version, class: 'nowrap', cell: (p) => html`${p.tag && html`<span class="tag">${p.tag}</span> `}<span class="dim">${p.version}</span>` },
  { id: 'heard', label: common.lastHeartbeat, sort: (p) => -p.heard_at, cell: (p) => html`<span class=${silence(p)}><${Time} at=${p.heard_at} /></span>` },
  { id: 'busy', label: common.busy, sort: (p) => (p.concurrency ? p.busy / p.concurrency : 0), cell: (p) => html`<${Util} part=${p.concurrency ? p.busy / p.concurrency : 0} label=${common.slotsOf(p.identity)} text=${`${p.busy}/${p.concurrency}`} />` },
  { id: 'queues', label: common.queues, wide: true, class: 'some', cell: (p) => html`<span class="cut" title=${byWeight(p).join(', ')}>${byWeight(p).map((/** @type {string} */ q) => q + (p.weights?.[q] > 1 ? '×' + p.weights[q] : '')).join(', ')}</span>` },
  { id: 'oldest', label: words.longestJob, right: true, sort: (p) => -(longest(p)?.started_at || Infinity), cell: (p) => (longest(p) ? html`${p.work.some((w) => w.stuck) && html`<span class="tag bad">${words.stuck}</span> `}<a href=${link('jobs', longest(p).jid)} title=${longest(p).class}><${Since} since=${longest(p).started_at} /></a>` : html`<span class="dim">–</span>`) },
  { id: 'rss', label: common.memory, right: true, wide: true, sort: (p) => p.rss_kb, cell: (p) => bytes(p.rss_kb * 1024) },
  { id: 'rtt', label: common.roundTrip, right: true, off: true, sort: (p) => p.rtt_us, cell: (p) => (p.rtt_us ? common.millis(p.rtt_us) : '–') },
  { id: 'up', label: common.started, off: true, sort: (p) => p.started_at, cell: (p) => html`<${Time} at=${p.started_at} />` },
];

export default function Processes() {
  const query = route.value.query;
  const list = useAll('processes', { topic: 'processes' });
  const [chosen, setChosen] = useState(/** @type {Map<string, any>} */ (new Map()));
  const [sort, reverse, text] = [query.get('sort') || 'id', query.get('sort_reverse') === 'true', (query.get('text') || '').toLowerCase()];
  const all = list.data || [];
  const rows = sorted(all.filter((p) => !text || (p.identity + ' ' + p.tag + ' ' + p.version + ' ' + p.state + ' ' + p.queues.join(' ')).toLowerCase().includes(text)), columns, sort, reverse);
  const part = paged(rows);
  const up = all.filter((p) => p.state !== 'lost');
  const sum = (/** @type {string} */ k) => list.data && up.reduce((/** @type {number} */ n, p) => n + p[k], 0);
  const skewed = up.filter((a) => up.some((b) => a.tag === b.tag && a.version !== b.version));
  const versions = [...new Set(skewed.map((p) => p.tag + ' ' + p.version))];
  const act = (/** @type {'quiet'|'stop'} */ what, /** @type {any[]} */ of) => sendToProcesses(what, of.map((p) => p.identity), of.reduce((n, p) => n + p.busy, 0), (sent) => { setChosen((now) => new Map([...now].filter(([id]) => !sent.includes(id)))); list.refresh(); });
  const found = text && `select("\\(.identity) \\(.tag) \\(.version) \\(.state) \\(.queues | join(" "))" | ascii_downcase | contains(${JSON.stringify(text)}))`;
  return html`<${Title} title=${common.workerProcesses} badge=${list.data ? count(all.length + list.left) : null}><${CopyCurl} url=${list.url} jq=${found} /><//>
    <${Cut} list=${list} what=${common.processesInline} />
    ${skewed.length > 0 && html`<div class="banner"><${Icon} name="warn" /><span>${words.mixed(versions.join(', '))}</span></div>`}
    <div class="grid"><section class="card flush" aria-label=${words.totals}><dl class="counters n4" style=${{ margin: 0 }}>${[[common.processes, count(list.data && up.length), all.length - up.length ? common.lost(all.length - up.length) : ''], [common.slots, count(sum('concurrency')), ''], [common.busy, count(sum('busy')), percent(sum('concurrency') ? sum('busy') / sum('concurrency') : null)], [common.memory, bytes(list.data && sum('rss_kb') * 1024), '']].map(([k, v, n]) => html`<div><dt>${k}</dt><dd>${v}</dd><dd class="note">${n || '\u00a0'}</dd></div>`)}</dl></section>
    <section class="card flush" aria-label=${common.processes}><div class="bars"><div class="toolbar"><input class="in small grow" style=${{ maxWidth: '26rem' }} type="search" data-filter placeholder=${words.filterBy} aria-label=${words.filterProcesses} value=${query.get('text') || ''} onInput=${(e) => setQuery({ text: e.target.value, page: '' }, { replace: true })} /><span class="grow"></span><${ColumnChooser} id="processes" columns=${columns} /></div>
      ${chosen.size > 0 && html`<div class="selbar" role="region" aria-label=${common.selection}><span class="strong">${common.selected(common.processesOf(chosen.size))}</span><button class="linkish" onClick=${() => setChosen(new Map())}>${common.clear}</button><div class="tools"><button class="btn small" onClick=${() => act('quiet', [...chosen.values()])}><${Icon} name="quiet" small />${common.quiet}</button><button class="btn small hurt" onClick=${() => act('stop', [...chosen.values()])}><${Icon} name="stop" small />${common.stop}</button></div></div>`}</div>
      <${Answer} of=${list}><${Table} id="processes" caption=${common.workerProcesses} columns=${columns} rows=${part.rows} count=${rows.length} of=${`${text} ${part.page} ${part.size}`} loading=${!list.data} dim=${!!list.error} rowKey=${(p) => p.identity} label=${(p) => words.process(p.identity)} sort=${sort} reverse=${reverse} onSort=${(/** @type {string} */ id, /** @type {boolean} */ r) => setQuery({ sort: id, sort_reverse: r ? 'true' : '' })}
        selection=${mayAct.value ? { chosen, set: setChosen } : undefined} open=${(p) => navigate(link('worker-processes', p.identity))}
        acts=${mayAct.value ? (p) => p.state !== 'lost' && html`<button class="icon" title=${common.quiet} aria-label=${words.quiet(p.identity)} disabled=${p.state !== 'live' || !!whyNot.value} onClick=${() => act('quiet', [p])}><${Icon} name="quiet" /></button><button class="icon hurt more" title=${common.stop} aria-label=${words.stop(p.identity)} disabled=${p.state === 'stopping'} onClick=${() => act('stop', [p])}><${Icon} name="stop" /></button>` : undefined}
        empty=${text ? html`<${Empty} icon="search" title=${common.noMatches(common.processesOf(all.length))}><button class="btn" onClick=${() => setQuery({ text: '' })}>${common.clearFilter}</button><//>` : html`<${Empty} icon="worker" title=${words.noWorkersConnected}><p>${words.whenWorkersAppear}</p><pre class="code">${words.exampleWorker}</pre><//>`} /><//>
      <${PagerOf} of=${part} total=${rows.length} what=${common.processesInline} /></section></div>`;
}
