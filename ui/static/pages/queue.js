// @ts-check
import { html, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { brief, bytes, count, millis, percent, rate, seconds, short } from '../core/format.js';
import { memberText } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { mayAct, whyNot } from '../core/session.js';
import { common, queue as words } from '../core/words.js';
import { failShare, Percentiles, ran, RangeChooser, Throughput, useMetrics } from '../parts/charts.js';
import { confirm } from '../parts/dialog.js';
import { HeatMap } from '../parts/heat.js';
import { Icon } from '../parts/icon.js';
import { isPaused, pause } from '../parts/pausing.js';
import { Payload } from '../parts/payload.js';
import { PausedBy, QueueState } from '../parts/queues.js';
import { Answer, Card, CopyCurl, Empty, Failure, State, Tabs, Title } from '../parts/states.js';
import { sorted, Table } from '../parts/table.js';
import { failed, toast } from '../parts/toast.js';
import { Time } from '../parts/time.js';

/** @param {{part: string}} p */
export default function Queue({ part: name }) {
  const url = apiPath('job-queues', name);
  const q = useResource(url, { topic: 'queues' });
  const tab = route.value.query.get('tab') || 'overview';
  const d = q.data;
  return html`<${Title} crumbs=${[[common.queues, link('job-queues')]]} title=${name} badge=${d ? words.readyOf(d.ready) : null} after=${d && html`<${QueueState} q=${d} />`}>
      ${d && mayAct.value && html`<${Acts} q=${d} refresh=${q.refresh} />`}<${CopyCurl} url=${url} /><//>
    <${Failure} error=${q.error} at=${d ? q.at : 0} refresh=${q.refresh} />
    ${d?.paused && html`<div class="banner" role="status"><${Icon} name="pause" /><span>${words.pausedBy(html`<${PausedBy} pause=${d.paused} />`)}</span></div>`}
    ${d?.held && html`<div class="banner" role="status"><${Icon} name="pause" /><span>${words.heldBack(d.held.reason, html`<${Time} at=${d.held.until} />`)}</span></div>`}
    ${d?.state === 'no_consumers' && html`<div class="banner bad" role="alert"><${Icon} name="alert" /><span>${words.noConsumers(d.ready, d.processes)}</span><div class="tools"><a class="btn small" href=${link('worker-processes')}>${common.processes}</a></div></div>`}
    ${d?.state === 'saturated' && html`<div class="banner bad" role="alert"><${Icon} name="alert" /><span>${words.saturated(d.ready, d.slots)}</span><div class="tools"><a class="btn small" href=${link('jobs', [], { queue: name })}>${common.runningJobs}</a></div></div>`}
    ${d?.rejects_lost && html`<div class="banner" role="status"><${Icon} name="warn" /><span>${words.rejectsLost(html`<code>${words.millraceDoctor}</code>`)}</span></div>`}
    <${Tabs} label=${common.queue} value=${tab} onChange=${(/** @type {string} */ v) => setQuery({ tab: v === 'overview' ? '' : v })} options=${[['overview', words.overview], ['jobs', common.jobs], ['workers', words.workersTab(d?.processes)]]} />
    <div role="tabpanel">${tab === 'jobs' ? html`<${Peek} name=${name} />` : tab === 'workers' ? html`<${Workers} name=${name} />` : html`<${Overview} q=${d} name=${name} />`}</div>`;
}

/** @param {{q: any, name: string}} p */
function Overview({ q, name }) {
  const m = useMetrics({ queue: name });
  return html`<div class="grid"><${Tiles} q=${q} name=${name} />
    <div class="row wrap between"><span class="dim small">${words.waitTimesExcludeRetries}</span><div class="row"><${RangeChooser} /></div></div>
    <${Answer} of=${m}><${Throughput} m=${m} /><${Percentiles} m=${m} of="wait" oldest=${q?.oldest?.seconds} class="c6" /><${Percentiles} m=${m} of="run" class="c6" />
    <${HeatMap} m=${m} of="run" class="c6" /><${HeatMap} m=${m} of="wait" class="c6" /><${Classes} m=${m} /><//></div>`;
}

/** @param {{q: any, name: string}} p */
function Tiles({ q, name }) {
  const cells = q ? [[common.ready, brief(q.ready), q.bytes === null ? '' : bytes(q.bytes)], [common.unacked, brief(q.unacked), q.leased > 0 ? words.andLeased(q.leased) : ''], [common.oldestJob, q.oldest ? seconds(q.oldest.seconds) : '–', q.oldest && q.oldest.accuracy !== 'exact' ? words.atLeast : ''],
    [common.in, rate(q.publish_rate), ''], [common.out, rate(q.ack_rate), q.growth_rate > 0.05 ? words.growingBy(q.growth_rate) : ''], [common.slotsInUse, q.slots ? `${q.busy}/${q.slots}` : '–', words.consumersOf(q.consumers)],
    [common.scheduled, brief(q.scheduled), '', link('scheduled-jobs', [], { queue: name })], [common.retries, brief(q.retries), html`<a href=${link('dead-jobs', [], { queue: name })}>${common.deadOf(q.dead)}</a>`, link('retries', [], { queue: name })]] : [];
  return html`<section class="card flush" aria-label=${common.now}><dl class="counters n8" style=${{ margin: 0, minHeight: '5.5rem' }}>${cells.map(([k, v, note, to]) => html`<div key=${k}><dt>${k}</dt><dd>${to ? html`<a href=${to}>${v}</a>` : v}</dd><dd class="note">${note || '\u00a0'}</dd></div>`)}</dl></section>`;
}

/** @param {{m: any}} p */
function Classes({ m }) {
  const [sort, setSort] = useState({ id: 'total', reverse: true });
  const columns = [
    { id: 'name', label: common.class, always: true, head: true, class: 'lim', sort: (c) => c.name, cell: (c) => (c.other ? html`<i>${common.allOther.class}</i>` : html`<a class="cut" title=${c.name} href=${link('job-metrics', c.name)}>${c.name}</a>`) },
    { id: 'count', label: common.jobs, right: true, sort: ran, cell: (c) => count(ran(c)) }, { id: 'fail', label: common.failed, right: true, sort: failShare, cell: (c) => percent(failShare(c)) },
    ...['p50', 'p95', 'p99'].map((k) => ({ id: k, label: k, right: true, sort: (c) => c.run?.[k + '_ms'] ?? null, cell: (c) => millis(c.run?.[k + '_ms']) })),
    { id: 'total', label: common.totalTime, right: true, sort: (c) => c.total_ms, cell: (c) => millis(c.total_ms) },
  ];
  return html`<${Card} flush title=${common.classes}><${Table} id="queue-classes" caption=${words.classesOfThisQueue} columns=${columns} rows=${sorted(m.data?.classes || [], columns, sort.id, sort.reverse)} loading=${!m.data} rowKey=${(c) => c.name} sort=${sort.id} reverse=${sort.reverse} onSort=${(/** @type {string} */ id, /** @type {boolean} */ reverse) => setSort({ id, reverse })}
    empty=${html`<${Empty} icon="chart" title=${common.noJobsRan} />`} /><//>`;
}

/**
 * Returns the parts of a job for a table, as far as the job can be read, with the arguments as they
 * are written.
 * @param {string} body
 */
function partsOf(body) {
  try {
    const job = JSON.parse(body);
    return { class: job.class, enqueued_at: job.enqueued_at, args: memberText(body, 'args') };
  } catch {
    return {};
  }
}

/** @param {{name: string}} p */
function Peek({ name }) {
  const [jobs, setJobs] = useState(/** @type {any} */ (null));
  const [open, setOpen] = useState('');
  const peek = async () => {
    try {
      setJobs((await ask(apiPath('job-queues', [name, 'jobs'], { count: 20 }))).data.map((j, /** @type {number} */ n) => ({ ...j, ...partsOf(j.body), n })));
    } catch (e) {
      failed(e);
    }
  };
  const columns = [
    { id: 'class', label: common.class, always: true, class: 'lim', cell: (j) => html`<a class="strong cut" title=${j.message_id} href=${link('jobs', j.message_id)}>${j.class || j.message_id || '–'}</a>` },
    { id: 'args', label: common.arguments, class: 'fill', cell: (j) => html`<code class="cut">${short(j.args || j.body)}</code>` },
    { id: 'enqueued', label: common.enqueued, cell: (j) => html`<${Time} at=${j.enqueued_at} />` },
    { id: 'prio', label: common.priority, right: true, wide: true, cell: (j) => j.priority },
    { id: 'size', label: common.size, right: true, wide: true, cell: (j) => bytes(j.size) },
    { id: 'seen', label: words.redelivered, wide: true, cell: (j) => (j.redelivered ? words.yes : words.no) },
  ];
  return html`<${Card} flush title=${words.nextInLine} tools=${html`<button class="btn small primary" disabled=${!mayAct.value} title=${whyNot.value} onClick=${peek}><${Icon} name="eye" small />${words.peek20}</button>`}>
    <p class="toolbar dim">${words.aboutPeeking}</p>
    ${jobs && html`<${Table} id="peek" caption=${words.nextJobsInTheQueue} columns=${columns} rows=${jobs} rowKey=${(j) => String(j.n)} still=${false} acts=${(j) => html`<button class="icon" aria-label=${words.showJob(j.n + 1)} onClick=${() => setOpen(open === String(j.n) ? '' : String(j.n))}><${Icon} name="eye" /></button>`} empty=${html`<${Empty} title=${words.theQueueIsEmpty} />`} />
      ${open && jobs[open] && html`<div class="toolbar" style=${{ display: 'block' }}><${Payload} text=${jobs[open].body} label=${words.jobNumber(Number(open) + 1)} name=${jobs[open].message_id} /></div>`}`}<//>`;
}

/** @param {{name: string}} p */
function Workers({ name }) {
  const list = useResource(apiPath('processes', [], { queue: name }), { topic: 'processes' });
  const columns = [{ id: 'id', label: common.process, always: true, head: true, cell: (p) => html`<a href=${link('worker-processes', p.identity)}>${p.identity}</a>` }, { id: 'state', label: common.state, cell: (p) => html`<${State} state=${p.state} />` },
    { id: 'busy', label: common.busy, right: true, cell: (p) => `${p.busy}/${p.concurrency}` }, { id: 'work', label: words.jobsOfThisQueue, right: true, cell: (p) => p.work.filter((w) => w.queue === name).length }, { id: 'heard', label: common.lastHeartbeat, cell: (p) => html`<${Time} at=${p.heard_at} />` }];
  return html`<${Card} flush title=${common.workers}><${Answer} of=${list}><${Table} id="queue-workers" caption=${common.workers} columns=${columns} rows=${list.data || []} loading=${!list.data} rowKey=${(p) => p.identity} open=${(p) => navigate(link('worker-processes', p.identity))} empty=${html`<${Empty} icon="worker" title=${words.noWorkersConsumeThisQueue} />`} /><//><//>`;
}

/** @param {{q: any, refresh: () => void}} p */
function Acts({ q, refresh }) {
  const name = q.name;
  const act = async (/** @type {string} */ text, /** @type {string|string[]} */ part, /** @type {string} */ method, /** @type {() => void} */ then = () => {}, body = undefined) => {
    try {
      await ask(apiPath('job-queues', part), { method, body });
      toast(text);
      then();
    } catch (e) {
      failed(e.status === 404 || e.status === 405 ? new Error(words.cannotDo) : e);
    }
    setTimeout(refresh, 300);
  };
  const why = (yes) => (yes.reason ? { reason: yes.reason } : undefined);
  const purge = async () => { const yes = await confirm({ title: words.askPurge(name), danger: true, reason: true, verb: words.purgeOf(q.ready), typed: name, body: html`<p>${words.aboutPurging(q.ready)}</p>` }); if (yes) act(words.purged(name), [name, 'jobs'], 'DELETE', () => {}, why(yes)); };
  const remove = async () => { const yes = await confirm({ title: words.askDelete(name), danger: true, reason: true, verb: words.deleteQueue, typed: name, facts: [[common.jobs, count(q.ready + (q.unacked || 0))], [common.consumers, count(q.consumers)]], body: html`<p>${words.aboutDeleting}</p>` }); if (yes) act(words.deleted(name), name, 'DELETE', () => navigate(link('job-queues')), why(yes)); };
  const move = async () => {
    const names = await ask(apiPath('job-queues', [], { limit: 500 })).then(({ data }) => data.map((one) => one.name).filter((/** @type {string} */ one) => one !== name), () => []);
    const yes = await confirm({ title: words.askMove(name), verb: words.moveOf(q.ready), reason: true, value: '', check: (v) => (!v.trim() || v.trim() === name ? words.chooseAnotherQueue : ''),
      fields: (set, v) => html`<label class="field"><span>${words.toQueue}</span><input class="in" list="move-to" autocomplete="off" value=${v} onInput=${(e) => set(e.target.value)} /></label><datalist id="move-to">${names.map((/** @type {string} */ one) => html`<option value=${one} />`)}</datalist>`, body: html`<p class="dim">${words.aboutMoving(name)}</p>` });
    if (yes) act(words.moved(name, yes.value.trim()), [name, 'move'], 'POST', () => {}, { to: yes.value.trim(), ...why(yes) });
  };
  const paused = isPaused(q);
  return html`<button class=${'btn small ' + (paused ? 'primary' : 'hold')} onClick=${() => pause(!paused, [q], refresh)}><${Icon} name=${paused ? 'play' : 'pause'} small />${paused ? common.resume : common.pause}</button>
    <button class="btn small" onClick=${move}>${words.move}</button><button class="btn small plain hurt" onClick=${purge}>${words.purge}</button><button class="btn small plain hurt" onClick=${remove}>${common.delete}</button>`;
}
