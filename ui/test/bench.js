// `make bench-ui`: the cost of the pages with a large amount of data. Each figure is the median of
// five, compared with the same page without events.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { launch } from './browser.js';

const args = new Map(process.argv.slice(2).map((a) => a.replace(/^-+/, '').split('=')));
const quick = args.has('quick');
const runs = Number(args.get('runs')) || (quick ? 1 : 5);
const only = args.get('only')?.split(',');
const load = quick ? ['-scheduled=50000', '-retries=5000', '-dead=20000', '-rate=500'] : [];
// How long an update is measured, and how long the page without events.
const seconds = quick ? [6, 3] : [8, 4];

/**
 * The limits: milliseconds until a page is usable, milliseconds of the main thread for an update,
 * part of a core for ten dashboards.
 */
const most = { usable: 1000, update: 20, core: 0.1 };

const row = 'main tbody tr:not(.sk) td:not(:empty)';
/**
 * The path, an element that shows that the page is usable, and how many drawings per second there
 * are under load: usually one.
 */
const pages = {
  dashboard: ['/dashboard', '#queues tbody tr:not(.sk) td'], queue: ['/job-queues/team-00.queue-000', row], scheduled: ['/scheduled-jobs', row],
  'scheduled, filtered': ['/scheduled-jobs?class=Shop%3A%3AJob07', row], retries: ['/retries', row],
  'retries by error': ['/retries?view=storm', row], dead: ['/dead-jobs', row], 'dead by error': ['/dead-jobs?view=storm', row],
  'dead by text': ['/dead-jobs?text=is+gone', row], job: ['/jobs/d0000000000000ff', 'main .code'], metrics: ['/job-metrics', row],
  class: ['/job-metrics/Shop%3A%3AJob07', row], processes: ['/worker-processes', row], process: ['/worker-processes/worker-007%3A1007%3Ashop', row],
  live: ['/live', 'main .feed a', 2], operations: ['/operations', 'main .empty'],
  rejected: ['/rejected', 'main .empty'], health: ['/health', row], 'api-docs': ['/api-docs', 'main details'],
};

const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];

/**
 * Starts the broker, the sidecar and the data; with -at=URL,PID it uses a sidecar that runs
 * already.
 */
async function start() {
  if (args.has('at')) return { base: args.get('at').split(',')[0], pid: args.get('at').split(',')[1], stop: async () => {} };
  const child = spawn(new URL('../../bin/uiload', import.meta.url).pathname, [...load, '-binary', new URL('../../bin/millrace', import.meta.url).pathname], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((done) => { child.once('exit', done); });
  const line = await Promise.race([new Promise((done) => { createInterface({ input: child.stdout }).once('line', done); }), ended.then((code) => { throw new Error(`uiload ended with ${code}`); })]);
  return { ...JSON.parse(String(line)), stop: async () => { child.stdin.end(); await ended; } };
}

/** Opens a page with an empty cache, which notes when it becomes usable. */
async function open(browser, selector) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  if (selector) {
    await page.addInitScript((wanted) => {
      const look = () => {
        if (document.querySelector(wanted)) requestAnimationFrame(() => { window.usableAt = performance.now(); });
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }, selector);
  }
  return { context, page };
}

async function usable(browser, base, [path, selector]) {
  const { context, page } = await open(browser, selector);
  await page.goto(base + path, { waitUntil: 'commit' });
  const at = await (await page.waitForFunction(() => window.usableAt)).jsonValue();
  await context.close();
  return at;
}

/**
 * Returns the milliseconds of the main thread's CPU for an update, and for a second without
 * updates.
 */
async function update(browser, base, [path, selector, often = 1]) {
  const { context, page } = await open(browser, selector);
  const news = new Set(); // the seconds in which events came; each counts as one update
  const note = () => news.add(Math.floor(performance.now() / 1000));
  page.on('request', (r) => { if (r.url().includes('/api/')) note(); });
  page.on('websocket', (socket) => socket.on('framereceived', note));
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const spent = async () => (await cdp.send('Performance.getMetrics')).metrics.find((m) => m.name === 'TaskDuration').value * 1000;
  await page.goto(base + path);
  await page.waitForFunction(() => window.usableAt);
  await sleep(4000); // until all modules are loaded
  const samples = { live: [], still: [] };
  for (let i = 0; i < runs; i++) {
    news.clear();
    let before = await spent();
    await sleep(seconds[0] * 1000);
    const live = await spent() - before;
    const n = Math.max(1, news.size) * often;
    await page.getByRole('button', { name: 'Live updates' }).click();
    await sleep(1000);
    before = await spent();
    await sleep(seconds[1] * 1000);
    const still = (await spent() - before) / seconds[1];
    samples.live.push(Math.max(0, live - still * seconds[0]) / n);
    samples.still.push(still);
    await page.getByRole('button', { name: 'Paused updates' }).click();
    await sleep(1000);
  }
  await context.close();
  return [median(samples.live), median(samples.still)];
}

/** Returns the CPU seconds that a process has used. */
function cpu(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function share(pid, s) {
  const [began, before] = [performance.now(), cpu(pid)];
  await sleep(s * 1000);
  return (cpu(pid) - before) / ((performance.now() - began) / 1000);
}

/** Returns the part of a core that the sidecar uses with no dashboard open, and with ten. */
async function dashboards(browser, { base, pid }) {
  const [without, ten] = [[], []];
  for (let i = 0; i < runs; i++) {
    without.push(await share(pid, quick ? 8 : 15));
    const all = await Promise.all(Array.from({ length: 10 }, () => open(browser)));
    for (const { page } of all) await page.goto(base + '/dashboard');
    await sleep(5000);
    ten.push(await share(pid, quick ? 10 : 20));
    for (const { context } of all) await context.close();
    await sleep(2000);
  }
  return [median(without), median(ten)];
}

const verdict = (ok) => (ok ? '' : '  MISSED');

const world = await start();
const browser = await launch([]);
try {
  // After millions of records, the store compacts for a while, and a browser is busy after its
  // start.
  await usable(browser, world.base, pages.health);
  await sleep(quick ? 1000 : 20_000);
  console.log(`${quick ? 'A small size: the targets are for the full one. ' : ''}Median of ${runs}; load of the machine ${readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' ')}\n`);
  console.log('page                    usable after   an update costs   a second without one');
  for (const [name, page] of Object.entries(pages)) {
    if (only && !only.includes(name)) continue;
    const ready = [];
    for (let i = 0; i < runs; i++) ready.push(await usable(browser, world.base, page));
    const [live, still] = await update(browser, world.base, page);
    const cells = [median(ready).toFixed(0).padStart(10), live.toFixed(1).padStart(14), still.toFixed(1).padStart(18)].map((cell) => cell + ' ms');
    console.log(`${name.padEnd(22)} ${cells.join(' ')}${verdict(median(ready) < most.usable && live < most.update)}`);
  }
  if (!only || only.includes('dashboards')) {
    const [without, ten] = await dashboards(browser, world);
    const share = (/** @type {number} */ part) => (part * 100).toFixed(1) + ' %';
    const own = `${share(ten - without)} for them${verdict(ten - without < most.core)}`;
    console.log(`\nThe sidecar uses ${share(without)} of a core with no dashboard open, ${share(ten)} with ten: ${own}`);
  }
} finally {
  await browser.close();
  await world.stop();
}
