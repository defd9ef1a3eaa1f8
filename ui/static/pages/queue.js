// @ts-check
import { html, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { brief, bytes, count, millis, percent, rate, seconds, short } from '../core/format.js';
import { nameOfJob } from '../core/message.js';
import { memberText } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { mayAct, whyNot } from '../core/session.js';
import { common } from '../core/words.js';
import { queue as words } from '../core/pagewords.js';
import { failShare, Percentiles, ran, RangeChooser, Throughput, useMetrics } from '../parts/charts.js';
import { confirm } from '../parts/dialog.js';
import { Enqueue } from '../parts/enqueue.js';
import { GovernedQueue } from '../parts/governed.js';
import { HeatMap } from '../parts/heat.js';
import { Icon } from '../parts/icon.js';
import { isPaused, pause } from '../parts/pausing.js';
import { Payload } from '../parts/payload.js';
import { PausedBy, QueueState } from '../parts/queues.js';
import { Answer, Banner, Card, CopyCurl, Counters, Empty, Failure, State, Title } from '../parts/states.js';
import { sorted, Table } from '../parts/table.js';
import { Tabs } from '../parts/tabs.js';
import { failed, toast } from '../parts/toast.js';
import { Time } from '../parts/time.js';

/** @param {{part: string}} p */
export default function Queue({ part: name }) {
  const url = apiPath('job-queues', name);
  const q = useResource(url, { topic: 'queues' });
  const tab = route.value.query.get('tab') || 'overview';
  const d = q.data;
  /** @type {[string, string][]} */
  const tabs = [['overview', words.overview], ['jobs', common.jobs], ['workers', words.workersTab(d?.processes)]];
  return html`<${Title} crumbs=${[[common.queues, link('job-queues')]]} title=${name} badge=${d ? words.readyOf(d.ready) : null}
        after=${d && html`<${QueueState} q=${d} />`}>
      ${d && mayAct.value && html`<${Acts} q=${d} refresh=${q.refresh} />`}<${CopyCurl} url=${url} /><//>
    <${Failure} error=${q.error} at=${d ? q.at : 0} refresh=${q.refresh} />
    <${GovernedQueue} name=${name} />
    ${d && html`<${Problems} q=${d} />`}
    <${Tabs} label=${common.queue} value=${tab} onChange=${(/** @type {string} */ v) => setQuery({ tab: v === 'overview' ? '' : v })} options=${tabs} />
    <div role="tabpanel">${tab === 'jobs' ? html`<${Peek} name=${name} />`
      : tab === 'workers' ? html`<${Workers} name=${name} />` : html`<${Overview} of=${q} name=${name} />`}</div>`;
}

/** Why jobs of the queue wait or are lost. @param {{q: any}} p */
function Problems({ q }) {
  const processes = html`<a class="btn small" href=${link('worker-processes')}>${common.processes}</a>`;
  const running = html`<a class="btn small" href=${link('jobs', [], { queue: q.name })}>${common.runningJobs}</a>`;
  return html`
    ${q.paused && html`<${Banner} icon="pause">${words.pausedBy(html`<${PausedBy} pause=${q.paused} />`)}<//>`}
    ${q.held && html`<${Banner} icon="pause">${words.heldBack(q.held.reason, html`<${Time} at=${q.held.until} />`)}<//>`}
    ${q.state === 'no_consumers' && html`<${Banner} look="bad" icon="alert" tools=${processes}>${words.noConsumers(q.ready, q.processes)}<//>`}
    ${q.state === 'saturated' && html`<${Banner} look="bad" icon="alert" tools=${running}>${words.saturated(q.ready, q.slots)}<//>`}
    ${q.rejects_lost && html`<${Banner} icon="warn">${words.rejectsLost(html`<code>${words.millraceDoctor}</code>`)}<//>`}`;
}

/**
 * A queue that was deleted still has metrics.
 * @param {{of: any, name: string}} p `of`: the resource with the queue
 */
function Overview({ of, name }) {
  const q = of.data;
  const m = useMetrics({ queue: name });
  return html`<div class="grid"><${Answer} of=${of} quiet><${Counters} label=${common.now} of=${q ? countersOf(q) : []} width=${8} /><//>
    <div class="row wrap between"><span class="dim small">${words.waitTimesExcludeRetries}</span><div class="row"><${RangeChooser} /></div></div>
    <${Answer} of=${m}><${Throughput} m=${m} />
    <${Percentiles} m=${m} of="wait" oldest=${q?.oldest?.seconds} class="c6" /><${Percentiles} m=${m} of="run" class="c6" />
    <${HeatMap} m=${m} of="run" class="c6" /><${HeatMap} m=${m} of="wait" class="c6" /><${Classes} m=${m} /><//></div>`;
}

/** @param {any} q @returns {import('../parts/states.js').Counter[]} */
function countersOf(q) {
  const of = (/** @type {string} */ set) => link(set, [], { queue: q.name });
  return [
    [common.ready, brief(q.ready), q.bytes === null ? '' : bytes(q.bytes)],
    [common.unacked, brief(q.unacked), q.leased > 0 ? words.andLeased(q.leased) : ''],
    [common.oldestJob, q.oldest ? seconds(q.oldest.seconds) : '–', q.oldest && q.oldest.accuracy !== 'exact' ? words.atLeast : ''],
    [common.in, rate(q.publish_rate), ''],
    [common.out, rate(q.ack_rate), q.growth_rate > 0.05 ? words.growingBy(q.growth_rate) : ''],
    [common.slotsInUse, q.slots ? `${q.busy}/${q.slots}` : '–', words.consumersOf(q.consumers)],
    [common.scheduled, brief(q.scheduled), '', of('scheduled-jobs')],
    [common.retries, brief(q.retries), html`<a href=${of('dead-jobs')}>${common.deadOf(q.dead)}</a>`, of('retries')],
  ];
}

/** @param {{m: any}} p */
function Classes({ m }) {
  const [sort, setSort] = useState({ id: 'total', reverse: true });
  const columns = [
    {
      id: 'name', label: common.class, always: true, head: true, class: 'lim', sort: (c) => c.name,
      cell: (c) => (c.other ? html`<i>${common.allOther.class}</i>` : html`<a class="cut" title=${c.name} href=${link('job-metrics', c.name)}>${c.name}</a>`),
    },
    { id: 'count', label: common.jobs, right: true, sort: ran, cell: (c) => count(ran(c)) },
    { id: 'fail', label: common.failed, right: true, sort: failShare, cell: (c) => percent(failShare(c)) },
    ...['p50', 'p95', 'p99'].map((k) => ({ id: k, label: k, right: true, sort: (c) => c.run?.[k + '_ms'] ?? null, cell: (c) => millis(c.run?.[k + '_ms']) })),
    { id: 'total', label: common.totalTime, right: true, sort: (c) => c.total_ms, cell: (c) => millis(c.total_ms) },
  ];
  return html`<${Card} flush title=${common.classes}><${Table} id="queue-classes" caption=${words.classesOfThisQueue} columns=${columns}
    rows=${sorted(m.data?.classes || [], columns, sort.id, sort.reverse)} loading=${!m.data} rowKey=${(c) => c.name} sort=${sort.id} reverse=${sort.reverse}
    onSort=${(/** @type {string} */ id, /** @type {boolean} */ reverse) => setSort({ id, reverse })}
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
    return { name: nameOfJob(job), enqueued_at: job.enqueued_at, args: memberText(body, 'args') };
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
    {
      id: 'class', label: common.class, always: true, class: 'lim',
      cell: (j) => html`<a class="strong cut" title=${j.message_id} href=${link('jobs', j.message_id)}>${j.name || j.message_id || '–'}</a>`,
    },
    { id: 'args', label: common.arguments, class: 'fill', cell: (j) => html`<code class="cut">${short(j.args || j.body)}</code>` },
    { id: 'enqueued', label: common.enqueued, cell: (j) => html`<${Time} at=${j.enqueued_at} />` },
    { id: 'prio', label: common.priority, right: true, wide: true, cell: (j) => j.priority },
    { id: 'size', label: common.size, right: true, wide: true, cell: (j) => bytes(j.size) },
    { id: 'seen', label: words.redelivered, wide: true, cell: (j) => (j.redelivered ? words.yes : words.no) },
  ];
  const tools = html`<button class="btn small primary" disabled=${!mayAct.value} title=${whyNot.value} onClick=${peek}><${Icon} name="eye" small />${words.peek20}</button>`;
  const flip = (/** @type {string} */ n) => setOpen(open === n ? '' : n);
  const acts = (j) => html`<button class="icon" aria-label=${words.showJob(j.n + 1)} onClick=${() => flip(String(j.n))}><${Icon} name="eye" /></button>`;
  const job = open && jobs?.[open];
  return html`<${Card} flush title=${words.nextInLine} tools=${tools}><p class="toolbar dim">${words.aboutPeeking}</p>
    ${jobs && html`<${Table} id="peek" caption=${words.nextJobsInTheQueue} columns=${columns} rows=${jobs} rowKey=${(j) => String(j.n)} still=${false}
      acts=${acts} empty=${html`<${Empty} title=${words.theQueueIsEmpty} />`} />`}
    ${job && html`<div class="toolbar whole"><${Payload} text=${job.body} label=${words.jobNumber(Number(open) + 1)} name=${job.message_id} /></div>`}<//>`;
}

/** @param {{name: string}} p */
function Workers({ name }) {
  const list = useResource(apiPath('processes', [], { queue: name }), { topic: 'processes' });
  const columns = [
    { id: 'id', label: common.process, always: true, head: true, cell: (p) => html`<a href=${link('worker-processes', p.identity)}>${p.identity}</a>` },
    { id: 'state', label: common.state, cell: (p) => html`<${State} state=${p.state} />` },
    { id: 'busy', label: common.busy, right: true, cell: (p) => `${p.busy}/${p.concurrency}` },
    { id: 'work', label: words.jobsOfThisQueue, right: true, cell: (p) => p.work.filter((w) => w.queue === name).length },
    { id: 'heard', label: common.heartbeat, cell: (p) => html`<${Time} at=${p.heard_at} />` },
  ];
  return html`<${Card} flush title=${common.workers}><${Answer} of=${list}><${Table} id="queue-workers" caption=${common.workers} columns=${columns}
    rows=${list.data || []} loading=${!list.data} rowKey=${(p) => p.identity} open=${(p) => navigate(link('worker-processes', p.identity))}
    empty=${html`<${Empty} icon="worker" title=${words.noWorkersConsumeThisQueue} />`} /><//><//>`;
}

/** @param {{q: any, refresh: () => void}} p */
function Acts({ q, refresh }) {
  const name = q.name;
  /** @type {(text: string | ((did: any) => string), part: string|string[], method: string, then?: () => void, body?: any) => Promise<void>} */
  const act = async (text, part, method, then = () => {}, body = undefined) => {
    try {
      const { data } = await ask(apiPath('job-queues', part), { method, body });
      toast(typeof text === 'string' ? text : text(data));
      then();
    } catch (e) {
      failed(e.status === 404 || e.status === 405 ? new Error(words.cannotDo) : e);
    }
    setTimeout(refresh, 300);
  };
  const why = (yes) => (yes.reason ? { reason: yes.reason } : undefined);
  const sure = (/** @type {any} */ question) => confirm({ danger: true, reason: true, typed: name, ...question });
  const purge = async () => {
    const yes = await sure({ title: words.askPurge(name), verb: words.purgeOf(q.ready), body: html`<p>${words.aboutPurging(q.ready)}</p>` });
    if (yes) act((did) => words.purged(name, did.purged), [name, 'jobs'], 'DELETE', () => {}, why(yes));
  };
  const remove = async () => {
    const facts = [[common.jobs, count(q.ready + (q.unacked || 0))], [common.consumers, count(q.consumers)]];
    const yes = await sure({ title: words.askDelete(name), verb: words.deleteQueue, facts, body: html`<p>${words.aboutDeleting}</p>` });
    if (yes) act(words.deleted(name), name, 'DELETE', () => navigate(link('job-queues')), why(yes));
  };
  const move = async () => {
    const names = await ask(apiPath('job-queues', [], { limit: 500 })).then(({ data }) => data.map((one) => one.name), () => []);
    const others = names.filter((/** @type {string} */ one) => one !== name);
    const yes = await confirm({
      title: words.askMove(name), verb: words.moveOf(q.ready), reason: true, value: '', body: html`<p class="dim">${words.aboutMoving(name)}</p>`,
      check: (v) => (!v.trim() || v.trim() === name ? words.chooseAnotherQueue : ''),
      fields: (set, v) => html`<label class="field"><span>${words.toQueue}</span>
          <input class="in" list="move-to" autocomplete="off" value=${v} onInput=${(e) => set(e.target.value)} /></label>
        <datalist id="move-to">${others.map((/** @type {string} */ one) => html`<option value=${one} />`)}</datalist>`,
    });
    if (yes) act(words.moved(name, yes.value.trim()), [name, 'move'], 'POST', () => {}, { to: yes.value.trim(), ...why(yes) });
  };
  const paused = isPaused(q);
  return html`<${Enqueue} queue=${name} />
    <button class=${'btn small ' + (paused ? 'primary' : 'hold')} onClick=${() => pause(!paused, [q], refresh)}>
      <${Icon} name=${paused ? 'play' : 'pause'} small />${paused ? common.resume : common.pause}</button>
    <button class="btn small" onClick=${move}>${words.move}</button>
    <button class="btn small plain hurt" onClick=${purge}>${words.purge}</button>
    <button class="btn small plain hurt" onClick=${remove}>${common.delete}</button>`;
}
