// The tab Jobs in RabbitMQ's management UI, and Millrace behind it, in Chromium:
//
//   node test/plugin.js MANAGEMENT_URL supervise|waiting|link [SCREENSHOT]
//
// The tests of internal/plugintest run it against nodes of theirs. The browser may note no error
// and no refusal by the page's policy.
import assert from 'node:assert/strict';
import { launch, open } from './browser.js';

const [url, mode, screenshot] = process.argv.slice(2);
const browser = await launch();
try {
  const { page, faults } = await open(browser);
  await page.goto(url);
  await page.fill('input[name=username]', 'guest');
  await page.fill('input[name=password]', 'guest');
  await page.click('input[type=submit], button[type=submit]');
  await page.getByRole('link', { name: 'Jobs', exact: true }).click();
  await page.getByRole('heading', { name: 'Jobs', level: 1 }).waitFor();
  if (mode === 'link') await checkLink(page);
  if (mode === 'waiting') await checkWaiting(page);
  if (mode === 'supervise') await checkSupervise(page, faults);
  assert.deepEqual(await page.evaluate(() => window.refusals), []);
  assert.deepEqual(faults, []);
} finally {
  await browser.close();
}

/** The tab leads to an address of the settings. */
async function checkLink(page) {
  assert.equal(await page.getByRole('link', { name: 'Open Millrace' }).getAttribute('href'), 'https://jobs.example/millrace/');
  await page.getByText('Virtual host / has exchanges of the type x-delayed-message, but no sidecar serves it').waitFor();
}

/** The sidecar exits immediately, with markup in its reason. */
async function checkWaiting(page) {
  const section = page.locator('.millrace-vhost').first();
  await section.getByText('The sidecar of this node does not run, and starts again.').waitFor();
  assert.equal(await section.locator('.millrace-reason').innerText(), 'exit status 3: millrace: no <b>luck</b> today');
  assert.equal(await section.getByRole('link', { name: 'Open Millrace' }).count(), 0);
}

/** The tab shows figures and a log, refreshes itself, and opens Millrace with the user signed in. */
async function checkSupervise(page, faults) {
  const section = page.locator('.millrace-vhost').first();
  await section.getByRole('heading', { name: 'Virtual host /' }).waitFor();
  for (const name of ['Scheduled', 'Retries', 'Dead', 'Overdue', 'Worker processes', 'Leader', 'Process', 'Since']) {
    assert.notEqual(await section.locator('tr', { has: page.locator('th', { hasText: new RegExp(`^${name}$`) }) }).first().locator('td').innerText(), '', name);
  }
  await section.getByText('no live worker processes').waitFor();
  assert.match(await section.locator('.millrace-log').innerText(), /msg="millrace: serving"/);
  if (screenshot) await page.screenshot({ path: screenshot, fullPage: true });
  await page.waitForResponse((r) => r.url().endsWith('/api/millrace-status')); // it refreshes itself
  const address = page.url();
  await section.getByText('no live worker processes').click();
  await page.waitForURL('**/api/millrace/~2F/worker-processes');
  await page.getByRole('heading', { name: 'Processes', level: 1 }).waitFor();
  await page.goto(address);
  const events = page.waitForEvent('websocket').then((socket) => socket.waitForEvent('framereceived'));
  await page.locator('.millrace-vhost').first().getByRole('link', { name: 'Open Millrace' }).click();
  await page.getByRole('heading', { name: 'Dashboard', level: 1 }).waitFor();
  await events;
  assert.deepEqual(faults, []);
  await page.getByRole('button', { name: /guest/ }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Password').waitFor();
  const refused = faults.filter((fault) => fault.includes('401 (Unauthorized)')); // requests that were under way
  for (const fault of refused) faults.splice(faults.indexOf(fault), 1);
}
