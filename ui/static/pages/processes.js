// @ts-check
import { html, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { bytes, count, percent } from '../core/format.js';
import { useAll } from '../core/resource.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { mayAct, whyNot } from '../core/session.js';
import { common } from '../core/words.js';
import { processes as words } from '../core/pagewords.js';
import { confirm } from '../parts/dialog.js';
import { Icon } from '../parts/icon.js';
import { Cut, paged, PagerOf } from '../parts/paging.js';
import { Answer, Banner, CopyCurl, Counters, Empty, State, Title, Util } from '../parts/states.js';
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
  const yes = await confirm({
    title: words.askVerb(what, n), danger: what === 'stop', verb, typed: n > 5 && what === 'stop' ? String(n) : undefined,
    facts: [[common.processes, some(identities)], [common.runningJobs, count(busy)]],
    body: html`<p>${what === 'stop' ? words.aboutStopping(n) : words.aboutQuieting(n)}</p>
      ${alone.length > 0 && html`<${Banner} icon="warn">${words.onlyOf(n, some(alone))}<//>`}`,
  });
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

/** The part of its slots that a process uses. @param {any} p */
const used = (p) => (p.concurrency ? p.busy / p.concurrency : 0);

/** How long the longest job has run. @param {{p: any}} a */
function Longest({ p }) {
  const job = longest(p);
  if (!job) return html`<span class="dim">–</span>`;
  const stuck = p.work.some((w) => w.stuck) && html`<span class="tag bad">${words.stuck}</span> `;
  return html`${stuck}<a href=${link('jobs', job.jid)} title=${job.class}><${Since} since=${job.started_at} /></a>`;
}

const columns = [
  {
    id: 'id', label: common.process, always: true, head: true, class: 'lim', sort: (p) => p.identity,
    cell: (p) => html`<a class="cut" title=${p.identity} href=${link('worker-processes', p.identity)}>${p.hostname}:${p.pid}</a>`,
  },
  { id: 'state', label: common.state, sort: (p) => p.state, cell: (p) => html`<${State} state=${p.state} />` },
  {
    id: 'tag', label: words.tagVersion, wide: true, sort: (p) => p.tag + p.version, class: 'nowrap',
    cell: (p) => html`${p.tag && html`<span class="tag">${p.tag}</span> `}<span class="dim">${p.version}</span>`,
  },
  {
    id: 'heard', label: common.heartbeat, sort: (p) => -p.heard_at,
    cell: (p) => html`<span class=${silence(p)}><${Time} at=${p.heard_at} /></span>`,
  },
  {
    id: 'busy', label: common.busy, sort: used,
    cell: (p) => html`<${Util} part=${used(p)} label=${common.slotsOf(p.identity)} text=${`${p.busy}/${p.concurrency}`} />`,
  },
  { id: 'queues', label: common.queues, wide: true, class: 'fill', cell: (p) => html`<span class="cut" title=${byWeight(p).join(', ')}>${weighted(p)}</span>` },
  { id: 'oldest', label: words.longestJob, right: true, sort: (p) => -(longest(p)?.started_at || Infinity), cell: (p) => html`<${Longest} p=${p} />` },
  { id: 'rss', label: common.memory, right: true, wide: true, sort: (p) => p.rss_kb, cell: (p) => bytes(p.rss_kb * 1024) },
  { id: 'rtt', label: common.roundTrip, right: true, off: true, sort: (p) => p.rtt_us, cell: (p) => (p.rtt_us ? common.millis(p.rtt_us) : '–') },
  { id: 'up', label: common.started, off: true, sort: (p) => p.started_at, cell: (p) => html`<${Time} at=${p.started_at} />` },
];

/** The queues of a process, with their weights. @param {any} p */
const weighted = (p) => byWeight(p).map((q) => q + (p.weights?.[q] > 1 ? '×' + p.weights[q] : '')).join(', ');

/** All that a text can find in a process. @param {any} p */
const textOf = (p) => `${p.identity} ${p.tag} ${p.version} ${p.state} ${p.queues.join(' ')}`.toLowerCase();

/**
 * The sums over the processes that are not lost.
 * @param {any[]|null} all
 * @returns {import('../parts/states.js').Counter[]}
 */
function totals(all) {
  const up = all?.filter((p) => p.state !== 'lost');
  const sum = (/** @type {string} */ k) => up?.reduce((n, p) => n + p[k], 0);
  const lost = all ? all.length - up.length : 0;
  return [
    [common.processes, count(up?.length), lost ? common.lost(lost) : ''],
    [common.slots, count(sum('concurrency')), ''],
    [common.busy, count(sum('busy')), percent(sum('concurrency') ? sum('busy') / sum('concurrency') : null)],
    [common.memory, bytes(all && sum('rss_kb') * 1024), ''],
  ];
}

/** Returns the tags and versions of processes whose tag has several versions. @param {any[]} all */
function mixedVersions(all) {
  const up = all.filter((p) => p.state !== 'lost');
  const mixed = up.filter((a) => up.some((b) => a.tag === b.tag && a.version !== b.version));
  return [...new Set(mixed.map((p) => p.tag + ' ' + p.version))];
}

export default function Processes() {
  const query = route.value.query;
  const list = useAll('processes', { topic: 'processes' });
  const text = (query.get('text') || '').toLowerCase();
  const all = list.data || [];
  const found = text && `select("\\(.identity) \\(.tag) \\(.version) \\(.state) \\(.queues | join(" "))" | ascii_downcase | contains(${JSON.stringify(text)}))`;
  const mixed = mixedVersions(all);
  return html`<${Title} title=${common.workerProcesses} badge=${list.data ? count(all.length + list.left) : null}><${CopyCurl} url=${list.url} jq=${found} /><//>
    <${Cut} list=${list} what=${common.processesInline} />
    ${mixed.length > 0 && html`<${Banner} icon="warn">${words.mixed(mixed.join(', '))}<//>`}
    <div class="grid"><${Counters} label=${words.totals} of=${totals(list.data)} width=${4} /><${List} list=${list} text=${text} /></div>`;
}

/** @param {{list: any, text: string}} p */
function List({ list, text }) {
  const query = route.value.query;
  const [chosen, setChosen] = useState(/** @type {Map<string, any>} */ (new Map()));
  const [sort, reverse] = [query.get('sort') || 'id', query.get('sort_reverse') === 'true'];
  const all = list.data || [];
  const rows = sorted(all.filter((p) => !text || textOf(p).includes(text)), columns, sort, reverse);
  const part = paged(rows);
  const act = (/** @type {'quiet'|'stop'} */ what, /** @type {any[]} */ of) => {
    const sent = (/** @type {string[]} */ ids) => {
      setChosen((now) => new Map([...now].filter(([id]) => !ids.includes(id))));
      list.refresh();
    };
    sendToProcesses(what, of.map((p) => p.identity), of.reduce((n, p) => n + p.busy, 0), sent);
  };
  const acts = (p) => p.state !== 'lost' && html`<button class="icon" title=${common.quiet} aria-label=${words.quiet(p.identity)}
      disabled=${p.state !== 'live' || !!whyNot.value} onClick=${() => act('quiet', [p])}><${Icon} name="quiet" /></button>
    <button class="icon hurt more" title=${common.stop} aria-label=${words.stop(p.identity)} disabled=${p.state === 'stopping'}
      onClick=${() => act('stop', [p])}><${Icon} name="stop" /></button>`;
  const empty = text
    ? html`<${Empty} icon="search" title=${common.noMatches(common.processesOf(all.length))}>
      <button class="btn" onClick=${() => setQuery({ text: '' })}>${common.clearFilter}</button><//>`
    : html`<${Empty} icon="worker" title=${words.noWorkersConnected}><p>${words.whenWorkersAppear}</p><pre class="code">${words.exampleWorker}</pre><//>`;
  return html`<section class="card flush" aria-label=${common.processes}><div class="bars"><div class="toolbar">
      <input class="in small grow most" type="search" data-filter placeholder=${words.filterBy} aria-label=${words.filterProcesses} value=${query.get('text') || ''}
        onInput=${(e) => setQuery({ text: e.target.value, page: '' }, { replace: true })} /><span class="grow"></span>
      <${ColumnChooser} id="processes" columns=${columns} /></div>
      ${chosen.size > 0 && html`<${Chosen} chosen=${chosen} choose=${setChosen} act=${act} />`}</div>
    <${Answer} of=${list}><${Table} id="processes" caption=${common.workerProcesses} columns=${columns} rows=${part.rows} count=${rows.length}
      of=${`${text} ${part.page} ${part.size}`} loading=${!list.data} dim=${!!list.error} rowKey=${(p) => p.identity} label=${(p) => words.process(p.identity)}
      sort=${sort} reverse=${reverse} onSort=${(/** @type {string} */ id, /** @type {boolean} */ r) => setQuery({ sort: id, sort_reverse: r ? 'true' : '' })}
      selection=${mayAct.value ? { chosen, set: setChosen } : undefined} open=${(p) => navigate(link('worker-processes', p.identity))}
      acts=${mayAct.value ? acts : undefined} empty=${empty} /><//>
    <${PagerOf} of=${part} total=${rows.length} what=${common.processesInline} /></section>`;
}

/**
 * The actions on the selected processes.
 * @param {{chosen: Map<string, any>, choose: (m: Map<string, any>) => void, act: (what:
 *   'quiet'|'stop', of: any[]) => void}} p
 */
const Chosen = ({ chosen, choose, act }) => html`<div class="selbar" role="region" aria-label=${common.selection}>
  <span class="strong">${common.selected(common.processesOf(chosen.size))}</span><button class="linkish" onClick=${() => choose(new Map())}>${common.clear}</button>
  <div class="tools"><button class="btn small" onClick=${() => act('quiet', [...chosen.values()])}><${Icon} name="quiet" small />${common.quiet}</button>
    <button class="btn small hurt" onClick=${() => act('stop', [...chosen.values()])}><${Icon} name="stop" small />${common.stop}</button></div></div>`;
