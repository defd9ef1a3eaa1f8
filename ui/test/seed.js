// The data of the tests and the screenshots: a day of a small shop's background jobs, some of which
// failed.
import { http, until } from './sidecar.js';

const now = () => Date.now() / 1000;
let n = 0;
const jid = () => (++n).toString(16).padStart(4, '0') + 'c0ffee' + (n * 2654435761 % 2 ** 32).toString(16).padStart(8, '0') + '5eed';

/** Returns the same random numbers each time. */
export function dice(seed) {
  return () => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed / 2147483648;
  };
}

const backtrace = ['/app/lib/inventory/client.rb:48:in `get\'', '/app/lib/inventory/sync.rb:21:in `call\'', '/usr/lib/ruby/gems/3.1.0/gems/net-protocol-0.1.2/lib/net/protocol.rb:219:in `rbuf_fill\'',
  '/usr/lib/ruby/gems/3.1.0/gems/net-http-0.3.2/lib/net/http.rb:2330:in `transport_request\'', '/app/jobs/sync_inventory.rb:9:in `perform\''];
const mailTrace = ['/usr/lib/ruby/gems/3.1.0/gems/net-smtp-0.3.1/lib/net/smtp.rb:1055:in `check_auth_response\'',
  '/usr/lib/ruby/gems/3.1.0/gems/net-smtp-0.3.1/lib/net/smtp.rb:812:in `auth_plain\'', '/app/lib/mailer/delivery.rb:31:in `start\'', '/app/jobs/send_invoice.rb:14:in `perform\''];
const importTrace = ['/app/lib/users/import.rb:12:in `open\'', '/app/jobs/import_users.rb:7:in `perform\''];

export const classes = { sync: 'SyncInventory', report: 'DailyReport', invoice: 'SendInvoice', archive: 'ArchiveOrders' };

/**
 * @param {{base: string, management: string, vhost?: string}} to
 * @param {number} [scale] how much has run recently
 */
export async function seed({ base, management, vhost = '%2F' }, scale = 1) {
  // A number that JSON.parse would round can only be in a text.
  const exact = (text) => text.replaceAll('"INVOICE"', '9007199254740993');
  const publish = (queue, record) => http(`${management}/api/exchanges/${vhost}/amq.default/publish`, 'POST',
    { properties: { delivery_mode: 2 }, routing_key: queue, payload: typeof record === 'string' ? record : exact(JSON.stringify(record)), payload_encoding: 'string' });
  const random = dice(7);
  const job = (cls, queue, args, more = {}) => ({ jid: jid(), class: cls, queue, args, retry: 10, enqueued_at: now() - 3600 * random(), ...more });

  await metrics(publish, random, scale);
  // They are in their queue before the jobs of a limit that go there too.
  await http(`${base}/api/jobs`, 'POST', Array.from({ length: 14 }, (_, i) => ({ class: classes.archive, queue: 'archive', args: [2020 + i % 5, i] })));
  await periodic(base);
  await limits(base);
  await governed(base);
  await unique(base);
  await http(`${base}/api/deploys`, 'POST', { label: 'v2.4', at: now() - 5400 });

  const later = [];
  for (let i = 0; i < 140; i++) later.push({ class: i % 3 ? 'SendReminder' : classes.report, queue: i % 3 ? 'mails' : 'reports',
    args: [i, `customer-${i * 37 % 900}`], at: now() + 1800 + 86_400 * 6 * random() ** 2 });
  later.push({ class: 'MonthlyClosing', queue: 'reports', jid: 'closing-december', args: [{ month: '2026-12', accounts: [4711, 12], dry_run: false }], at: now() + 86_400, tags: ['finance'] });
  for (let i = 0; i < 12; i++) {
    later.push({ class: 'millrace.Message', queue: 'millrace.messages', at: now() + 2400 + 3600 * i, args: [{ exchange: i % 4 ? 'orders' : '',
      routing_key: i % 4 ? 'order.unpaid' : 'newsletter', body: JSON.stringify({ order: 7000 + i, total: 'EUR 19.90', items: [{ sku: `sku-${i}`, count: 1 + i % 3 }] }),
      properties: { content_type: 'application/json', message_id: `order-${7000 + i}`, headers: { customer: 4711 + i, shop: 'eu' } } }], ...(i === 5 ? { jid: 'order-unpaid-7005' } : {}) });
  }
  await http(`${base}/api/jobs`, 'POST', later);

  const all = [];
  const lastAttempts = [];
  for (let i = 0; i < 130; i++) {
    const sync = i < 112;
    const j = sync ? job(classes.sync, 'inventory', [`warehouse-${i % 7}`, 1000 + i]) : job('ChargeCard', 'demo.critical', [i, 'EUR 19.90']);
    const count = 1 + Math.floor(random() * 6);
    all.push(() => publish('retries', { type: 'retry', jid: j.jid, retry_at: now() + 1800 + 5400 * random(), retry_count: count,
      failed_at: now() - 600 * random(), error_class: sync ? 'Timeout' : 'CardDeclined',
      error_message: sync ? `no answer from 10.0.3.${i % 20} within ${3000 + i} ms` : 'the bank refused: insufficient funds',
      backtrace: sync ? backtrace.join('\n') : undefined, job: { ...j, retry_count: count } }));
  }
  for (let i = 0; i < 46; i++) {
    const kind = i % 4;
    const died = now() - 3600 * 40 * random() ** 2;
    if (!i) {
      // The reports of workers about the last attempts of this job.
      for (const attempt of [9, 10, 11]) lastAttempts.push({ type: 'job_metric', timestamp: died - 1800 * (11 - attempt) - 1, jid: 'dead-invoice-1',
        job_class: classes.invoice, queue: 'mails', duration_ms: 180 + 37 * attempt, status: attempt < 11 ? 'failed' : 'dead',
        worker_identity: 'web-1:4711:shop', wait_ms: 12, attempt, error_class: 'SMTPAuthenticationError' });
    }
    const enqueued = { enqueued_at: died - 3600 * 9 * random() - 60 };
    const j = kind === 3 ? job('ImportUsers', 'demo.low', [`users-${i}.csv`], enqueued) : job(classes.invoice, 'mails',
      [{ invoice: i ? 80_000 + i : 'INVOICE', to: `ann+${i}@example.com` }], enqueued);
    all.push(() => publish('dead_jobs', { type: 'dead_job', jid: i ? j.jid : 'dead-invoice-1', died_at: died, retry_count: 10,
      error_class: kind === 3 ? 'FileNotFound' : 'SMTPAuthenticationError',
      error_message: kind === 3 ? `no such file: users-${i}.csv` : '535 5.7.8 Authentication credentials invalid',
      backtrace: kind === 3 ? importTrace : mailTrace, job: { ...j, jid: i ? j.jid : 'dead-invoice-1', retry_count: 10 } }));
  }
  for (let i = 0; i < 80; i++) {
    // Sixty died within the last half an hour, the others hours before. So the tests have enough
    // time.
    const died = now() - (i < 60 ? 60 + 25 * i : 7200 + 600 * i);
    const j = job(classes.sync, 'inventory', [`warehouse-${i % 7}`, 5000 + i], { enqueued_at: died - 3600 });
    all.push(() => publish('dead_jobs', { type: 'dead_job', jid: j.jid, died_at: died, retry_count: 10, error_class: 'Timeout',
      error_message: `no answer from 10.0.3.${i % 20} within ${3000 + i} ms`, backtrace, job: { ...j, retry_count: 10 } }));
  }
  all.push(() => publish('job_metrics', lastAttempts));
  while (all.length) await Promise.all(all.splice(0, 12).map((send) => send()));
  await publish('scheduled_jobs', '{"type":"scheduled_job","jid":"broken","scheduled_at":"tomorrow","job":{"class":"SendReminder"}}');
  await publish('retries', 'not even JSON');
  await until('the seed is read', async () => {
    const o = await http(`${base}/api/overview`);
    return o.sets['dead-jobs'].total >= 126 && o.sets.retries.total >= 130 && o.sets['scheduled-jobs'].total >= 141 && o.views.caught_up;
  });
  return { publish };
}

/** Periodic jobs of all kinds of layers. None is due while the tests run. */
async function periodic(base) {
  const job = (cls, queue, args) => ({ class: cls, queue, args });
  await http(`${base}/api/definitions`, 'POST', { source: 'shop', periodic_jobs: [
    { name: 'daily-report', cron: '0 3 * * *', tz: 'Europe/Stockholm', catch_up: 'last', job: job(classes.report, 'reports', [{ currencies: ['EUR', 'SEK'] }]) },
    { name: 'monthly-closing', cron: '30 4 1 * *', tz: 'America/New_York', except: ['2027-01-01'], job: job('MonthlyClosing', 'reports', []) },
    { name: 'sync-inventory', every: 86_400 * 7, overlap: 'skip', job: job(classes.sync, 'inventory', ['warehouse-1']) },
    { name: 'weekly-invoices', cron: '0 8 * * mon', tz: 'Europe/Berlin', job: job(classes.invoice, 'mails', []) }] });
  await http(`${base}/api/definitions`, 'POST', { source: 'shop.json', layer: 'file', periodic_jobs: [{ name: 'daily-report', job: { queue: 'reports' }, tz: 'Europe/Berlin' }] });
  await http(`${base}/api/periodic-jobs/weekly-invoices/pause`, 'PUT', { reason: 'the mail server moves' });
  await http(`${base}/api/periodic-jobs/daily-report`, 'PUT', { cron: '30 3 * * *' });
  await http(`${base}/api/periodic-jobs/daily-report/skip`, 'POST', { reason: 'the office is closed' });
}

/** Limits of all kinds of layers. Jobs of two customers hold slots, in a queue without workers. */
async function limits(base) {
  await http(`${base}/api/definitions`, 'POST', { source: 'shop', limits: [
    { name: 'imports-each', queues: ['archive'], classes: ['ImportCustomer'], per: ['key'], concurrency: 3 },
    { name: 'bank-api', classes: ['ChargeCard'], rate: { jobs: 100, seconds: 60, burst: 5 } },
    { name: 'exports', queues: ['reports'], concurrency: 20, rate: { jobs: 500, seconds: 3600 } }] });
  await http(`${base}/api/limits/imports-each`, 'PUT', { concurrency: 2, overrides: { 'customer-7': { concurrency: 8 } } });
  await http(`${base}/api/limits/exports/pause`, 'PUT', { reason: 'the warehouse moves' });
  // One after the other: jobs of one request are published concurrently, and the first get the slots.
  for (const [i, key] of ['customer-42', 'customer-42', 'customer-42', 'customer-7', 'customer-42', 'customer-42', 'customer-9'].entries()) {
    await http(`${base}/api/jobs`, 'POST', { jid: `import-${i + 1}`, class: 'ImportCustomer', queue: 'archive', args: [`${key}.csv`], gate: { key } });
  }
}

/** Governed queues of two layers, one of which is full. Both are paused: no job is out. */
async function governed(base) {
  await http(`${base}/api/definitions`, 'POST', { source: 'shop', queues: [
    { name: 'imports', key: 'args.0.customer_id', max_waiting: 40, ahead: 20, weights: { 'customer-42': 3, 'customer-7': 2 }, paused: true }, { name: 'uploads', max_waiting: 5 }] });
  await http(`${base}/api/governed-queues/uploads/pause`, 'PUT', { reason: 'the disk is full' });
  for (let i = 0; i < 24; i++) await http(`${base}/api/jobs`, 'POST', { jid: `import-order-${i}`, class: 'ImportOrders', queue: 'imports', args: [{ customer_id: `customer-${[42, 7, 9][i % 3]}` }] });
  for (let i = 0; i < 5; i++) await http(`${base}/api/jobs`, 'POST', { jid: `upload-${i}`, class: 'Upload', queue: 'uploads', args: [i] });
}

/** Unique jobs that wait, one of which has its key for a day. One is a duplicate. */
async function unique(base) {
  const job = (jid, cls, arg, of) => ({ jid, class: cls, queue: 'search', args: [arg], at: now() + 7200, gate: { unique: of } });
  for (const one of [job('reindex-1', 'Reindex', 42, {}), job('reindex-2', 'Reindex', 42, {}), job('order-4711', 'ShipOrder', 4711, { key: 'order-4711', for: 86_400 })]) {
    await http(`${base}/api/jobs`, 'POST', one);
  }
}

/** A day of metrics. Since the deploy, one class is slower. */
async function metrics(publish, random, scale) {
  const kinds = [[classes.sync, 'inventory', 900, 0.12, 'Timeout'], [classes.invoice, 'mails', 220, 0.02, 'SMTPAuthenticationError'],
    [classes.report, 'reports', 9000, 0.01, 'OutOfMemory'], ['ResizeImage', 'demo.low', 60, 0.05, 'Timeout'], ['ChargeCard', 'demo.critical', 140, 0.01, 'CardDeclined']];
  let batch = [];
  for (let t = now() - 86_400; t < now(); t += 240) {
    const busy = 0.4 + Math.sin(((t % 86_400) / 86_400) * Math.PI) ** 2;
    for (const [cls, queue, usual, fails, error] of kinds) {
      for (let i = 0; i < Math.ceil(3 * scale * busy * (0.5 + random())); i++) {
        const failed = random() < fails;
        const slower = cls === classes.invoice && t > now() - 5400 ? 3.5 : 1;
        batch.push({ type: 'job_metric', timestamp: t + 240 * random(), job_class: cls, queue,
          duration_ms: Math.round(usual * slower * (0.4 + random() ** 3 * 4)), status: failed ? (random() < 0.1 ? 'dead' : 'failed') : 'success',
          worker_identity: 'web-1:4711:shop', wait_ms: Math.round(20 + 400 * busy * random() ** 4 * 8), attempt: 1, ...(failed ? { error_class: error } : {}) });
      }
    }
    if (batch.length > 400) {
      await publish('job_metrics', batch);
      batch = [];
    }
  }
  await publish('job_metrics', batch);
}

/**
 * The jobs that a process runs: reports, each of which takes twenty seconds.
 * @param {number} process
 * @param {number} slots
 */
const reports = (process, slots) => Array.from({ length: slots }, (_, k) => {
  const takes = 20;
  const began = Math.floor(now() / takes - k / slots) * takes + (k * takes) / slots;
  return { jid: `report-${process + 1}${k}-${(began * 10 % 1e7).toFixed(0)}`, class: classes.report, queue: 'reports', started_at: began };
});

/** Sends the heartbeats of three processes every few seconds. One process is stuck. */
export function beat(publish) {
  const started = now() - 17_000;
  const stuck = now() - 3 * 3600 - 40;
  const one = () => Promise.all([['worker-1', 4711, 'v2.4', 10, 4], ['worker-2', 822, 'v2.4', 10, 7],
    ['worker-3', 96, 'v2.3', 20, 3]].map(([hostname, pid, version, concurrency, busy], i) => publish('heartbeats', {
    type: 'heartbeat', identity: `${hostname}:${pid}:shop`, hostname, pid, tag: 'shop', concurrency, busy, beat: now(), started_at: started - i * 900,
    rss_kb: 180_000 + i * 40_000, queues: ['demo.critical', 'mails', 'inventory', 'reports'], version, rtt_us: 700 + i * 200,
    weights: { 'demo.critical': 5, mails: 2, inventory: 1, reports: 1 }, labels: { region: i ? 'eu-west' : 'eu-north' },
    work: i === 1 ? [{ jid: 'report-that-hangs', class: classes.report, queue: 'reports', started_at: stuck }, ...reports(i, busy - 1)] : reports(i, busy),
  })));
  const timer = setInterval(() => { one().catch(() => {}); }, 8000);
  return { first: one(), stop: () => clearInterval(timer) };
}
