// @ts-check
import { html, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { brief, bytes, count, millis, percent, plural, rate, seconds, short } from '../core/format.js';
import { memberText } from '../core/rawjson.js';
import { useResource } from '../core/resource.js';
import { link, navigate, route, setQuery } from '../core/router.js';
import { mayAct, whyNot } from '../core/session.js';
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
  return html`<${Title} crumbs=${[['Queues', link('job-queues')]]} title=${name} badge=${d ? `${count(d.ready)} ready` : null} after=${d && html`<${QueueState} q=${d} />`}>
      ${d && mayAct.value && html`<${Acts} q=${d} refresh=${q.refresh} />`}<${CopyCurl} url=${url} /><//>
    <${Failure} error=${q.error} at=${d ? q.at : 0} refresh=${q.refresh} />
    ${d?.paused && html`<div class="banner" role="status"><${Icon} name="pause" /><span>Paused <${PausedBy} pause=${d.paused} /></span></div>`}
    ${d?.held && html`<div class="banner" role="status"><${Icon} name="pause" /><span>Due jobs are held back: ${d.held.reason}. Next attempt <${Time} at=${d.held.until} />.</span></div>`}
    ${d?.state === 'no_consumers' && html`<div class="banner bad" role="alert"><${Icon} name="alert" /><span>${plural(d.ready, 'job waits', 'jobs wait')} and no workers consume this queue. Start one${d.processes ? ', or check why those that name this queue take nothing' : ''}.</span><div class="tools"><a class="btn small" href=${link('worker-processes')}>Processes</a></div></div>`}
    ${d?.state === 'saturated' && html`<div class="banner bad" role="alert"><${Icon} name="alert" /><span>${plural(d.ready, 'job waits', 'jobs wait')}, all ${count(d.slots)} slots of its workers are busy, and none has been taken for a minute or longer. The jobs that run may hang.</span><div class="tools"><a class="btn small" href=${link('jobs', [], { queue: name })}>Running jobs</a></div></div>`}
    ${d?.rejects_lost && html`<div class="banner" role="status"><${Icon} name="warn" /><span>Jobs that workers reject are lost: this queue is not dead-lettered to jobs.dead. Run <code>millrace doctor</code> for the fix.</span></div>`}
    <${Tabs} label="Queue" value=${tab} onChange=${(/** @type {string} */ v) => setQuery({ tab: v === 'overview' ? '' : v })} options=${[['overview', 'Overview'], ['jobs', 'Jobs'], ['workers', `Workers${d ? ' (' + d.processes + ')' : ''}`]]} />
    <div role="tabpanel">${tab === 'jobs' ? html`<${Peek} name=${name} />` : tab === 'workers' ? html`<${Workers} name=${name} />` : html`<${Overview} q=${d} name=${name} />`}</div>`;
}

/** @param {{q: any, name: string}} p */
function Overview({ q, name }) {
  const m = useMetrics({ queue: name });
  return html`<div class="grid"><${Tiles} q=${q} name=${name} />
    <div class="row wrap between"><span class="dim small">Wait times exclude retries</span><div class="row"><${RangeChooser} /></div></div>
    <${Answer} of=${m}><${Throughput} m=${m} /><${Percentiles} m=${m} of="wait" oldest=${q?.oldest?.seconds} class="c6" /><${Percentiles} m=${m} of="run" class="c6" />
    <${HeatMap} m=${m} of="run" class="c6" /><${HeatMap} m=${m} of="wait" class="c6" /><${Classes} m=${m} /><//></div>`;
}

/** @param {{q: any, name: string}} p */
function Tiles({ q, name }) {
  const cells = q ? [['Ready', brief(q.ready), q.bytes === null ? '' : bytes(q.bytes)], ['Unacked', brief(q.unacked), q.leased > 0 ? `and ${brief(q.leased)} leased` : ''], ['Oldest job', q.oldest ? seconds(q.oldest.seconds) : '–', q.oldest && q.oldest.accuracy !== 'exact' ? 'at least' : ''],
    ['In', rate(q.publish_rate), ''], ['Out', rate(q.ack_rate), q.growth_rate > 0.05 ? 'growing by ' + rate(q.growth_rate) : ''], ['Slots in use', q.slots ? `${q.busy}/${q.slots}` : '–', plural(q.consumers, 'consumer')],
    ['Scheduled', brief(q.scheduled), '', link('scheduled-jobs', [], { queue: name })], ['Retries', brief(q.retries), html`<a href=${link('dead-jobs', [], { queue: name })}>${brief(q.dead)} dead</a>`, link('retries', [], { queue: name })]] : [];
  return html`<section class="card flush" aria-label="Now"><dl class="counters n8" style=${{ margin: 0, minHeight: '5.5rem' }}>${cells.map(([k, v, note, to]) => html`<div key=${k}><dt>${k}</dt><dd>${to ? html`<a href=${to}>${v}</a>` : v}</dd><dd class="note">${note || '\u00a0'}</dd></div>`)}</dl></section>`;
}

/** @param {{m: any}} p */
function Classes({ m }) {
  const [sort, setSort] = useState({ id: 'total', reverse: true });
  const columns = [
    { id: 'name', label: 'Class', always: true, head: true, class: 'lim', sort: (/** @type {any} */ c) => c.name, cell: (/** @type {any} */ c) => (c.other ? html`<i>all other classes</i>` : html`<a class="cut" title=${c.name} href=${link('job-metrics', c.name)}>${c.name}</a>`) },
    { id: 'count', label: 'Jobs', right: true, sort: ran, cell: (/** @type {any} */ c) => count(ran(c)) }, { id: 'fail', label: 'Failed', right: true, sort: failShare, cell: (/** @type {any} */ c) => percent(failShare(c)) },
    ...['p50', 'p95', 'p99'].map((k) => ({ id: k, label: k, right: true, sort: (/** @type {any} */ c) => c.run?.[k + '_ms'] ?? null, cell: (/** @type {any} */ c) => millis(c.run?.[k + '_ms']) })),
    { id: 'total', label: 'Total time', right: true, sort: (/** @type {any} */ c) => c.total_ms, cell: (/** @type {any} */ c) => millis(c.total_ms) },
  ];
  return html`<${Card} flush title="Classes"><${Table} id="queue-classes" caption="Classes of this queue" columns=${columns} rows=${sorted(m.data?.classes || [], columns, sort.id, sort.reverse)} loading=${!m.data} rowKey=${(/** @type {any} */ c) => c.name} sort=${sort.id} reverse=${sort.reverse} onSort=${(/** @type {string} */ id, /** @type {boolean} */ reverse) => setSort({ id, reverse })}
    empty=${html`<${Empty} icon="chart" title="No jobs ran in this range" />`} /><//>`;
}

/** What a table shows of a job, as far as it can be read; the arguments as they are written. @param {string} body */
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
      setJobs((await ask(apiPath('job-queues', [name, 'jobs'], { count: 20 }))).data.map((/** @type {any} */ j, /** @type {number} */ n) => ({ ...j, ...partsOf(j.body), n })));
    } catch (e) {
      failed(e);
    }
  };
  const columns = [
    { id: 'class', label: 'Class', always: true, class: 'lim', cell: (/** @type {any} */ j) => html`<a class="strong cut" title=${j.message_id} href=${link('jobs', j.message_id)}>${j.class || j.message_id || '–'}</a>` },
    { id: 'args', label: 'Arguments', class: 'fill', cell: (/** @type {any} */ j) => html`<code class="cut">${short(j.args || j.body)}</code>` },
    { id: 'enqueued', label: 'Enqueued', cell: (/** @type {any} */ j) => html`<${Time} at=${j.enqueued_at} />` },
    { id: 'prio', label: 'Priority', right: true, wide: true, cell: (/** @type {any} */ j) => j.priority },
    { id: 'size', label: 'Size', right: true, wide: true, cell: (/** @type {any} */ j) => bytes(j.size) },
    { id: 'seen', label: 'Redelivered', wide: true, cell: (/** @type {any} */ j) => (j.redelivered ? 'yes' : 'no') },
  ];
  return html`<${Card} flush title="Next in line" tools=${html`<button class="btn small primary" disabled=${!mayAct.value} title=${whyNot.value} onClick=${peek}><${Icon} name="eye" small />Peek 20</button>`}>
    <p class="toolbar dim">Peeking fetches and requeues messages, which marks them as redelivered. A quorum queue counts that against its delivery limit.</p>
    ${jobs && html`<${Table} id="peek" caption="Next jobs in the queue" columns=${columns} rows=${jobs} rowKey=${(/** @type {any} */ j) => String(j.n)} still=${false} acts=${(/** @type {any} */ j) => html`<button class="icon" aria-label=${'Show job ' + (j.n + 1)} onClick=${() => setOpen(open === String(j.n) ? '' : String(j.n))}><${Icon} name="eye" /></button>`} empty=${html`<${Empty} title="The queue is empty" />`} />
      ${open && jobs[open] && html`<div class="toolbar" style=${{ display: 'block' }}><${Payload} text=${jobs[open].body} label=${'Job ' + (Number(open) + 1)} name=${jobs[open].message_id} /></div>`}`}<//>`;
}

/** @param {{name: string}} p */
function Workers({ name }) {
  const list = useResource(apiPath('processes', [], { queue: name }), { topic: 'processes' });
  const columns = [{ id: 'id', label: 'Process', always: true, head: true, cell: (/** @type {any} */ p) => html`<a href=${link('worker-processes', p.identity)}>${p.identity}</a>` }, { id: 'state', label: 'State', cell: (/** @type {any} */ p) => html`<${State} state=${p.state} />` },
    { id: 'busy', label: 'Busy', right: true, cell: (/** @type {any} */ p) => `${p.busy}/${p.concurrency}` }, { id: 'work', label: 'Jobs of this queue', right: true, cell: (/** @type {any} */ p) => p.work.filter((/** @type {any} */ w) => w.queue === name).length }, { id: 'heard', label: 'Last heartbeat', cell: (/** @type {any} */ p) => html`<${Time} at=${p.heard_at} />` }];
  return html`<${Card} flush title="Workers"><${Answer} of=${list}><${Table} id="queue-workers" caption="Workers" columns=${columns} rows=${list.data || []} loading=${!list.data} rowKey=${(/** @type {any} */ p) => p.identity} open=${(/** @type {any} */ p) => navigate(link('worker-processes', p.identity))} empty=${html`<${Empty} icon="worker" title="No workers consume this queue" />`} /><//><//>`;
}

/** @param {{q: any, refresh: () => void}} p */
function Acts({ q, refresh }) {
  const name = q.name;
  const act = async (/** @type {string} */ text, /** @type {string|string[]} */ part, /** @type {string} */ method, /** @type {() => void} */ then = () => {}, /** @type {any} */ body = undefined) => {
    try {
      await ask(apiPath('job-queues', part), { method, body });
      toast(text);
      then();
    } catch (e) {
      failed(e.status === 404 || e.status === 405 ? new Error('this version of Millrace cannot do that') : e);
    }
    setTimeout(refresh, 300);
  };
  const why = (/** @type {any} */ yes) => (yes.reason ? { reason: yes.reason } : undefined);
  const purge = async () => { const yes = await confirm({ title: `Purge ${name}?`, danger: true, reason: true, verb: `Purge ${plural(q.ready, 'job')}`, typed: name, body: html`<p>${plural(q.ready, 'job is', 'jobs are')} deleted. This can't be undone. Scheduled jobs, retries and dead jobs of this queue stay.</p>` }); if (yes) act(`${name}: purged`, [name, 'jobs'], 'DELETE', () => {}, why(yes)); };
  const remove = async () => { const yes = await confirm({ title: `Delete the queue ${name}?`, danger: true, reason: true, verb: 'Delete queue', typed: name, facts: [['Jobs', count(q.ready + (q.unacked || 0))], ['Consumers', count(q.consumers)]], body: html`<p>Deletes the queue and its jobs. This can't be undone. The queue is recreated when the next job is published.</p>` }); if (yes) act(`${name}: deleted`, name, 'DELETE', () => navigate(link('job-queues')), why(yes)); };
  const move = async () => {
    const names = await ask(apiPath('job-queues', [], { limit: 500 })).then(({ data }) => data.map((/** @type {any} */ one) => one.name).filter((/** @type {string} */ one) => one !== name), () => []);
    const yes = await confirm({ title: `Move waiting jobs of ${name}`, verb: `Move ${plural(q.ready, 'job')}`, reason: true, value: '', check: (v) => (!v.trim() || v.trim() === name ? 'Choose another queue' : ''),
      fields: (set, v) => html`<label class="field"><span>To queue</span><input class="in" list="move-to" autocomplete="off" value=${v} onInput=${(/** @type {any} */ e) => set(e.target.value)} /></label><datalist id="move-to">${names.map((/** @type {string} */ one) => html`<option value=${one} />`)}</datalist>`, body: html`<p class="dim">Jobs that are enqueued later stay in ${name}.</p>` });
    if (yes) act(`${name}: jobs moved to ${yes.value.trim()}`, [name, 'move'], 'POST', () => {}, { to: yes.value.trim(), ...why(yes) });
  };
  const paused = isPaused(q);
  return html`<button class=${'btn small ' + (paused ? 'primary' : 'hold')} onClick=${() => pause(!paused, [q], refresh)}><${Icon} name=${paused ? 'play' : 'pause'} small />${paused ? 'Resume' : 'Pause'}</button>
    <button class="btn small" onClick=${move}>Move</button><button class="btn small plain hurt" onClick=${purge}>Purge</button><button class="btn small plain hurt" onClick=${remove}>Delete</button>`;
}
