// Names and messages that could break a page: very long ones without a place to break,
// right-to-left ones, markup, combined characters, and errors of 200 KB. They have a virtual host
// of their own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { resized } from './layout.js';
import { by } from './person.js';
import { http, serve, until, virtualHost } from './sidecar.js';

const now = () => Date.now() / 1000;
const long = 'VeryLong'.repeat(62);
const longQueue = 'hostile-' + 'q'.repeat(180);
const markup = '<img src=x onerror="document.title=1">';
const turned = '\u202egnp.exe';
const arabic = 'إرسال_الفواتير_'.repeat(6);
const hebrew = 'תור-דחוף';
const emoji = '👩‍👩‍👧‍👦🏳️‍🌈'.repeat(12);
/** All characters that turn the direction of writing, and some that have no shape. */
const hidden = [1, 8, 0xb, 0x1b, 0x1f, 0x7f, 0x9f, 0x61c, 0x200b, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069];
const wordy = 'many words that say little '.repeat(12).trim();
/** The names, by the end of the ids of their jobs. */
const names = { long, markup, turned, arabic, emoji, wordy };
const queues = { long: longQueue, arabic: hebrew };
const lines = Array.from({ length: 10_000 }, (_, i) => `/app/jobs/deep.rb:${i}:in \`call'`);
const message = 'the answer was not understood: ' + 'x'.repeat(200_000);
const identity = `${'host'.repeat(40)}:4711:${'tag'.repeat(20)}`;

/** @param {{base: string, publish: (queue: string, record: any) => Promise<any>}} to */
async function plant({ base, publish }) {
  const jobOf = (/** @type {string} */ jid, /** @type {string} */ kind) => ({ jid, class: names[kind] || 'Hostile', queue: queues[kind] || 'hostile',
    args: [names[kind] || jid, { [names[kind] || jid]: 1 }], retry: 30, tags: [(names[kind] || 'short').slice(0, 200)], enqueued_at: now() - 60 });
  const die = (/** @type {string} */ jid, /** @type {string} */ kind, record = {}) =>
    publish('dead_jobs', { type: 'dead_job', jid, died_at: now() - 5, retry_count: 3, error_class: names[kind], error_message: names[kind], ...record, job: jobOf(jid, kind) });
  const again = (/** @type {string} */ jid, /** @type {string} */ kind, record = {}) =>
    publish('retries', { type: 'retry', jid, retry_at: now() + 3600, retry_count: 3, failed_at: now() - 5, error_class: names[kind],
      error_message: names[kind], ...record, job: { ...jobOf(jid, kind), retry_count: 3 } });
  await die('hostile-hidden', '', { error_class: 'Hidden' + String.fromCodePoint(...hidden), error_message: String.fromCodePoint(...hidden) + 'hidden' });
  for (let i = 0; i < 60; i++) await die('hostile-many-' + i, 'long');
  for (const kind of Object.keys(names)) {
    await die('hostile-' + kind, kind);
    await again('hostile-again-' + kind, kind);
    await http(`${base}/api/jobs`, 'POST', { ...jobOf('hostile-later-' + kind, kind), at: now() + 3600 });
    await publish('job_metrics', Array.from({ length: 5 },
      (_, i) => ({ type: 'job_metric', timestamp: now() - i, jid: 'hostile-run-' + kind, job_class: names[kind], queue: queues[kind] || 'hostile',
        duration_ms: 1e7, status: i ? 'failed' : 'dead', worker_identity: identity, wait_ms: 1e8, attempt: 1e6, error_class: names[kind] })));
  }
  await die('hostile-message', '', { error_class: 'Huge', error_message: message, backtrace: lines });
  await again('hostile-again-message', '', { error_class: 'Huge', error_message: message, backtrace: lines });
  await publish('dead_jobs', `no JSON at all: ${long}`);
  for (const queue of [longQueue, hebrew]) {
    await http(`${base}/api/jobs`, 'POST', { class: markup, queue, args: [emoji, arabic, long] });
    await until('it is listed and paused', async () => { await http(`${base}/api/job-queues/${encodeURIComponent(queue)}/pause`, 'PUT', { reason: long.slice(0, 400) }); return true; });
  }
  const kinds = Object.keys(names);
  await http(`${base}/api/definitions`, 'POST', { source: 's'.repeat(255), periodic_jobs: [...kinds.map((kind) => ({ name: 'hostile-' + kind, cron: '0 3 * * *',
    job: { class: names[kind], queue: queues[kind] || 'hostile', args: [names[kind], { [names[kind]]: 1 }] } })),
  { name: 'n'.repeat(64), every: 86_400 * 366, job: { class: long, queue: longQueue } }] });
  await http(`${base}/api/definitions`, 'POST', { source: 's'.repeat(255), limits: [{ name: 'l'.repeat(64), queues: [longQueue, hebrew], classes: kinds.map((k) => names[k]),
    per: ['queue', 'class', 'key'], concurrency: 1, rate: { jobs: 1_000_000, seconds: 2_678_400, burst: 999_999 } }] });
  // The first of each holds a slot, and the second waits for it.
  for (const n of [1, 2]) {
    await http(`${base}/api/jobs`, 'POST', kinds.map((kind) => (
      { jid: `hostile-limited-${kind}-${n}`, class: names[kind], queue: longQueue, gate: { key: names[kind].replace(/\p{Cc}/gu, '').slice(0, 60) } })));
  }
  for (const kind of kinds) await http(`${base}/api/periodic-jobs/hostile-${kind}/skip`, 'POST', { reason: names[kind].slice(0, 400) });
  await http(`${base}/api/periodic-jobs/${'n'.repeat(64)}`, 'PUT', { cron: `${Array.from({ length: 60 }, (_, i) => i)} 3 * * *` });
  await http(`${base}/api/deploys`, 'POST', { label: 'v'.repeat(60), at: now() - 600 });
  await http(`${base}/api/deploys`, 'POST', { label: turned, at: now() - 1200 });
  await http(`${base}/api/operations`, 'POST', { action: 'delete', set: 'dead-jobs', jids: ['hostile-many-0'], reason: `${emoji} ${long}`.slice(0, 400) });
  // Records over 64 KiB are not searched.
  await until('they are read', async () => (await http(`${base}/api/dead-jobs?page=1&text=hostile-`)).filtered_count_at_least >= 60);
  // It has no jobs, but the page of operations shows the error.
  await http(`${base}/api/operations`, 'POST', { action: 'delete', set: 'scheduled-jobs', filter: { error: await longError(base) } });
}

/** Returns the fingerprint of the error with the longest names. @param {string} base */
const longError = async (base) => (await http(`${base}/api/errors?set=dead-jobs`)).items.find((/** @type {any} */ g) => g.error_class === long).fingerprint;

/**
 * A process in which everything is too long.
 * @param {(queue: string, record: any) => Promise<any>} publish
 */
function beat(publish) {
  const [hostname, , tag] = identity.split(':');
  const one = () => publish('heartbeats', {
    type: 'heartbeat', identity, hostname, pid: 4711, tag, concurrency: 1e6, busy: 12, beat: now(), started_at: now() - 1e6, rss_kb: 1e9,
    queues: [longQueue, hebrew, emoji.slice(0, 60), ...Array.from({ length: 40 }, (_, i) => 'queue-' + i)], version: 'v'.repeat(80), rtt_us: 1e9,
    weights: { [longQueue]: 99 }, labels: { [long.slice(0, 100)]: long.slice(0, 200), سياق: arabic }, work: Object.keys(names)
      .map((kind, i) => ({ jid: 'hostile-runs-' + kind, class: names[kind], queue: queues[kind] || 'hostile', started_at: now() - 10 ** i })),
  });
  const timer = setInterval(() => { one().catch(() => {}); }, 8000);
  return { first: one(), stop: () => clearInterval(timer) };
}

const at = encodeURIComponent;
const paths = ['/dashboard', '/job-queues', '/job-queues/' + longQueue, '/job-queues/' + at(hebrew), `/job-queues/${at(hebrew)}?tab=workers`,
  '/scheduled-jobs', '/retries', '/retries?view=storm', '/dead-jobs', '/dead-jobs?view=storm', '/dead-jobs?class=' + long, '/gated-jobs',
  '/jobs', '/jobs?state=finished', '/jobs?state=retries', '/jobs/hostile-long', '/jobs/hostile-again-arabic', '/jobs/hostile-emoji',
  '/jobs/hostile-later-wordy', '/jobs/hostile-message', '/jobs/hostile-again-message', '/jobs/hostile-markup', '/jobs/hostile-runs-long',
  '/periodic-jobs', '/periodic-jobs/hostile-long', '/periodic-jobs/hostile-arabic', '/periodic-jobs/hostile-turned', '/periodic-jobs/' + 'n'.repeat(64),
  '/limits', '/limits/' + 'l'.repeat(64), '/jobs/hostile-limited-long-1', '/jobs/hostile-limited-long-2', '/jobs/hostile-limited-arabic-2',
  '/job-metrics', '/job-metrics?show=' + long, '/job-metrics/' + long, '/job-metrics/' + at(arabic), '/worker-processes', '/worker-processes/'
    + at(identity), '/operations', '/operations?tab=audit', '/rejected', '/live', '/health'];
/** Dialogs with such names. @type {[string, (p: any) => any][]} */
const dialogs = [['/dead-jobs?jid=hostile-long', (p) => p.getByRole('button', { name: /^Delete: / }).first()],
  ['/jobs/hostile-again-emoji', (p) => p.getByRole('button', { name: 'Change', exact: true })], ['/job-queues/' + longQueue, (p) => p.getByRole('button', { name: 'Purge' })],
  ['/worker-processes/' + at(identity), (p) => p.getByRole('button', { name: 'Stop' })], ['/rejected', (p) => p.getByRole('button', { name: /^Dismiss / }).first()],
  ['/periodic-jobs/hostile-emoji', (p) => p.getByRole('button', { name: 'Run now' })], ['/periodic-jobs/' + 'n'.repeat(64), (p) => p.getByRole('button', { name: 'Change', exact: true })],
  ['/limits/' + 'l'.repeat(64), (p) => p.getByRole('button', { name: /^Free slot: / }).first()], ['/limits/' + 'l'.repeat(64), (p) => p.getByRole('button', { name: /^Change: / }).first()]];

/** Answers that are errors by design: a job that is sent to a queue is not in it immediately. */
const expected = /job-queues|404|health\/checks/;

/** @param {any} page @param {string} path */
async function visit(page, path) {
  await page.setViewportSize({ width: 1700, height: 900 });
  await page.goto(path);
  await page.waitForFunction(() => document.querySelector('main tbody tr:not(.sk), main .facts, main .empty, main .feed'));
  await page.waitForTimeout(500);
}

/** @param {any} own */
async function fits(own) {
  const { page, context, faults } = await open(own.browser, { viewport: { width: 1700, height: 900 } });
  await signIn(page, own.base);
  faults.length = 0;
  const wrong = [];
  const filtered = '/dead-jobs?error=' + await longError(own.base);
  for (const path of [...paths, filtered]) {
    await visit(page, own.base + path);
    wrong.push(...await resized(page, path.slice(0, 60)));
  }
  for (const [path, button] of dialogs) {
    await visit(page, own.base + path);
    await button(page).click();
    await page.getByRole('dialog').waitFor();
    wrong.push(...await resized(page, 'the dialog of ' + path.slice(0, 40)));
  }
  await visit(page, own.base + filtered);
  await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
  await page.getByRole('button', { name: /^Select all \d+ matching/ }).click();
  await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByText('error: VeryLong').waitFor();
  wrong.push(...await resized(page, 'the dialog of one error'));
  assert.deepEqual([...wrong, ...faults.filter((f) => !expected.test(f))], []);
  assert.notEqual(await page.title(), '1', 'markup is text');
  assert.deepEqual(await page.evaluate(() => window.refusals), []);
  await context.close();
}

/** @param {any} own */
async function begins(own) {
  const { page, context } = await open(own.browser);
  await signIn(page, own.base);
  await page.goto(own.base + '/jobs/hostile-message');
  const error = page.getByRole('region', { name: 'Error', exact: true });
  await error.getByRole('region', { name: 'Backtrace' }).waitFor();
  const height = () => page.evaluate(() => document.documentElement.scrollHeight);
  assert.ok(await height() < 4000, `the page is ${await height()} pixels high`);
  assert.ok(await page.evaluate(() => document.querySelectorAll('*').length) < 2000);
  assert.ok((await error.getByRole('region', { name: 'Message' }).innerText()).length < 3000);
  await error.getByRole('button', { name: /^Show all \d+ KB/ }).click();
  await until('all of it is there', async () => (await error.getByRole('region', { name: 'Message' }).innerText()).length > 200_000);
  assert.match(await error.getByRole('region', { name: 'Backtrace' }).innerText(), /deep\.rb:9999:/);
  assert.ok(await height() < 4000, `the page is ${await height()} pixels high`);
  await page.goto(own.base + '/dead-jobs?jid=hostile-message');
  const row = page.getByRole('table', { name: 'dead jobs' }).getByRole('row').nth(1);
  await row.waitFor();
  assert.ok((await row.innerText()).length < 1000, 'a list has the beginning of it');
  await context.close();
}

/** Returns the texts that charts draw. @param {any} own @param {string} path */
async function drawn(own, path) {
  const { page, context } = await open(own.browser);
  await page.addInitScript(() => {
    window.drawn = [];
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
      window.drawn.push(text);
      return draw.call(this, text, ...at);
    };
  });
  await signIn(page, own.base);
  await page.goto(own.base + path);
  const texts = () => page.evaluate(() => window.drawn);
  await until('the names of deploys are drawn', async () => (await texts()).some((/** @type {string} */ text) => text.includes('gnp')));
  const all = await texts();
  await context.close();
  return all;
}

export function hostile(world) {
  test('hostile names and messages', async (t) => {
    await virtualHost(world, 'hostile');
    const sidecar = await serve(world, 'hostile', ['--environment', 'staging-' + hebrew.repeat(6)]);
    const publish = (/** @type {string} */ queue, /** @type {any} */ record) =>
      http(`${world.management}/api/exchanges/hostile/amq.default/publish`, 'POST',
        { properties: { delivery_mode: 2 }, routing_key: queue, payload: typeof record === 'string' ? record : JSON.stringify(record), payload_encoding: 'string' });
    const hearts = beat(publish);
    try {
      const own = { browser: world.browser, base: `http://127.0.0.1:${sidecar.port}` };
      await hearts.first;
      await plant({ base: own.base, publish });
      await t.test('none is too long for a page or a dialog, at any width', () => fits(own));
      await t.test('of a huge message and backtrace the beginning is shown, and the rest when it is asked for', () => begins(own));
      await t.test('a name that turns the direction of writing is shown with what it has in it', () => by(own, async (me) => {
        await me.go('Dead');
        await me.filter('jid:hostile-turned');
        const row = me.find('table', 'dead jobs').find('row').nth(1);
        await row.reads(/\\u202egnp\.exe/);
        await row.find('link', /gnp\.exe/).first().click();
        await me.find('heading', /\\u202egnp\.exe/, { level: 1 }).seen();
        await me.go('Dead');
        await me.filter('jid:hostile-hidden');
        const escapes = hidden.map((c) => String.raw`\\u` + c.toString(16).padStart(4, '0')).join('');
        await row.reads(new RegExp(`Hidden${escapes} ${escapes}hidden`));
      }));
      await t.test('so it is beside the line of a deploy', async () => {
        const texts = await drawn(own, '/dashboard');
        assert.ok(texts.includes(' \\u202egnp.exe '), texts.join('|'));
        assert.ok(!texts.some((/** @type {string} */ text) => text.includes('\u202e')));
      });
    } finally {
      hearts.stop();
      await sidecar.end();
    }
  });
}
