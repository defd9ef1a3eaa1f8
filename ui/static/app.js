// @ts-check
// Starts the UI: asks who is signed in, then shows the page that the URL names. A page is loaded
// when it is first shown.
import { html, render, useEffect, useState, visible } from './core/h.js';
import { signedOut } from './core/api.js';
import { watchOverview } from './core/overview.js';
import { watchEvents } from './core/live.js';
import { link, navigate, route } from './core/router.js';
import { loadSession, whoami } from './core/session.js';
import { common, frame as words } from './core/words.js';
import { Shell } from './parts/shell.js';
import { Empty, Failure, Title } from './parts/states.js';

/** @type {Record<string, [string, string, () => Promise<any>, (() => Promise<any>)?]>} */
const pages = {
  dashboard: [common.dashboard, '', () => import('./pages/dashboard.js')],
  'job-queues': [common.queues, common.queue, () => import('./pages/queues.js'), () => import('./pages/queue.js')],
  'scheduled-jobs': [common.scheduledJobs, '', () => import('./pages/scheduled.js')],
  'periodic-jobs': [common.periodicJobs, words.periodicJob, () => import('./pages/periodics.js'), () => import('./pages/periodic.js')],
  limits: [common.limits, words.limit, () => import('./pages/limits.js'), () => import('./pages/limit.js')],
  'governed-queues': [common.governedQueues, words.governedQueue, () => import('./pages/governedqueues.js'), () => import('./pages/governedqueue.js')],
  'unique-keys': [common.uniqueKeys, '', () => import('./pages/uniquekeys.js')],
  retries: [common.retries, '', () => import('./pages/retries.js')],
  'dead-jobs': [common.deadJobs, '', () => import('./pages/dead.js')],
  'gated-jobs': [common.blockedJobs, '', () => import('./pages/gated.js')],
  jobs: [common.jobs, common.job, () => import('./pages/jobs.js'), () => import('./pages/job.js')],
  'job-metrics': [common.metrics, common.metrics, () => import('./pages/metrics.js'), () => import('./pages/class.js')],
  'worker-processes': [common.workerProcesses, words.workerProcess, () => import('./pages/processes.js'), () => import('./pages/process.js')],
  live: [common.live, '', () => import('./pages/live.js')],
  operations: [common.operations, '', () => import('./pages/operations.js')],
  rejected: [common.rejectedRecords, '', () => import('./pages/rejected.js')],
  health: [common.health, '', () => import('./pages/health.js')],
  'api-docs': [common.httpApi, '', () => import('./pages/api-docs.js')],
};

/** Returns the page of a path. @param {string[]} parts */
function pageOf([name, part, ...more]) {
  if (!pages[name] || part === '' || more.length || (part !== undefined && !pages[name][3])) return null;
  const [title, titleOfOne, load, loadOne] = pages[name];
  return part !== undefined ? { key: name + '/' + part, title: `${visible(part)} · ${titleOfOne}`, load: loadOne } : { key: name, title, load };
}

function App() {
  const [failed, setFailed] = useState(/** @type {any} */ (null));
  useEffect(() => { loadSession().catch(setFailed); }, []);
  const [page] = route.value.parts;
  useEffect(() => {
    if (signedOut.value && page !== 'sign-in') navigate(link('sign-in', [], { to: location.pathname.slice(link('').length) + location.search }), { replace: true });
  }, [signedOut.value, page]);
  if (page === 'sign-in') return html`<${Lazy} key="sign-in" load=${() => import('./pages/sign-in.js')} />`;
  if (!whoami.value) return failed && html`<main id="main"><div class="page"><${Failure} error=${failed} refresh=${() => loadSession().then(() => setFailed(null), setFailed)} /></div></main>`;
  return html`<${Shell}><${Page} /><//>`;
}

function Page() {
  const page = pageOf(route.value.parts);
  const title = page?.title ?? words.pageNotFound;
  useEffect(() => { document.title = title + ' · Millrace'; }, [title]);
  if (!page) return html`<${Title} title=${words.pageNotFound} />
    <${Empty} icon="search" title=${words.nothingHere}><p><code class="anywhere">${location.pathname}</code></p>
      <a class="btn" href=${link('dashboard')}>${words.goToTheDashboard}</a><//>`;
  return html`<${Lazy} key=${page.key} load=${page.load} part=${route.value.parts[1]} />`;
}

/** @param {{load: () => Promise<any>, part?: string}} p */
function Lazy({ load, part }) {
  const [it, set] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let ended = false;
    load().then((m) => { if (!ended) set({ page: m.default }); }, (error) => { if (!ended) set({ error: { status: 0, code: 'unreachable', reason: words.pageNotLoaded(error.message) } }); });
    return () => { ended = true; };
  }, []);
  if (it?.error) return html`<${Failure} error=${it.error} refresh=${() => location.reload()} />`;
  return it && html`<${it.page} part=${part} />`;
}

// This runs while the session is loaded. If it fails, Lazy shows the reason.
pageOf(route.value.parts)?.load().catch(() => {});
watchOverview();
watchEvents();
render(html`<${App} />`, document.getElementById('app'));
