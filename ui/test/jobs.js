// What an operator comes for, each as a story; nothing is reached but by what is on the page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';
import { http, until } from './sidecar.js';

export function jobs(world) {
  const story = (name, tell) => test(name, async () => {
    const { page, context, faults } = await open(world.browser);
    await signIn(page, world.base);
    await tell(page);
    assert.deepEqual(faults.filter((f) => f.startsWith('error')), []);
    assert.deepEqual(await page.evaluate(() => window.refusals), []);
    await context.close();
  });
  const totals = async () => Object.fromEntries(Object.entries((await http(world.base + '/api/overview')).sets).map(([k, v]) => [k, v.total]));
  const ofErrors = async (set, error) => (await http(`${world.base}/api/${set}?page=1&page_size=1&error=${error}`)).filtered_count_at_least;
  const filter = async (page, text) => {
    await page.getByRole('combobox', { name: /^Filter/ }).fill(text);
    await page.keyboard.press('Enter');
  };

  story('why does this queue stand still?', async (page) => {
    await page.getByRole('region', { name: 'Needs a look' }).getByRole('link', { name: 'archive' }).click();
    await page.getByText('nobody consumes this queue').waitFor();
    await page.getByRole('tab', { name: 'Jobs in it' }).click();
    await page.getByRole('button', { name: 'Peek at 20' }).click();
    await page.getByRole('table', { name: 'Jobs at the head of the queue' }).getByText('ArchiveOrders').first().waitFor();
  });

  story('retry all timeouts of one class, spread over ten minutes, and stop half-way', async (page) => {
    const others = await ofErrors('retries', 'CardDeclined');
    await page.getByRole('link', { name: /^Retries/ }).first().click();
    await filter(page, 'error:Timeout');
    await filter(page, 'class:SyncInventory');
    await page.getByText('1–50 of 112').waitFor();
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('button', { name: 'Select all 112 matching' }).click();
    await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Retry now' }).click();
    await page.getByLabel('Spread over minutes').fill('10');
    await page.getByRole('button', { name: 'Retry 112 retries' }).click();
    const operation = page.getByRole('group', { name: /Retry 112 retries/ });
    await operation.getByText(/^[1-9]\d* of 112 done/).waitFor();
    await operation.getByRole('button', { name: 'Stop' }).click();
    await operation.getByText('cancelled').waitFor();
    assert.ok(await ofErrors('retries', 'Timeout') > 50, 'the rest still waits');
    assert.equal(await ofErrors('retries', 'CardDeclined'), others, 'nothing else was touched');
  });

  story('find a job by its id, read its arguments as they are, edit them, and run it again', async (page) => {
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search and commands' }).fill('dead-invoice-1');
    await page.getByRole('option', { name: /open the job/ }).click();
    await page.getByRole('region', { name: 'the arguments' }).getByText('9007199254740993').waitFor();
    await page.getByRole('button', { name: 'Change' }).click();
    const field = page.getByRole('dialog').getByLabel('Arguments');
    assert.match(await field.inputValue(), /9007199254740993/);
    await field.fill('[{"invoice": 9007199254740995, "to": "bob@example.com"}]');
    await page.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
    await page.getByRole('region', { name: 'the arguments' }).getByText('9007199254740995').waitFor();
    await page.getByRole('button', { name: 'Run a copy' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Run a copy' }).click();
    await page.getByText('A copy was enqueued').first().waitFor();
    await page.getByRole('button', { name: 'Retry now' }).click();
    await page.getByText('It waits nowhere now').waitFor();
  });

  story('a “delete all” touches what matches alone; a wrong delete can be undone', async (page) => {
    const before = await ofErrors('dead-jobs', 'FileNotFound');
    await page.getByRole('link', { name: /^Dead/ }).first().click();
    await filter(page, 'queue:mails');
    const all = await page.getByText(/^1–3\d of 3\d that match/).textContent();
    await page.getByRole('button', { name: /^Delete: SendInvoice/ }).first().click();
    await page.getByRole('button', { name: 'Delete 1 job' }).click();
    await page.getByText(/SendInvoice .*: deleted/).first().waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Taken back').first().waitFor();
    await page.mouse.move(5, 5); // rows stay while somebody points at them
    await page.getByText(all).waitFor();
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('region', { name: 'Selection' }).getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog');
    await until('the safe answer has the focus', () => page.evaluate(() => document.activeElement.textContent === 'Cancel'));
    await dialog.getByRole('button', { name: /^Delete 3\d dead jobs/ }).click();
    await page.mouse.move(5, 5);
    await page.getByText(/0 of \d+ match/).waitFor();
    assert.ok(await ofErrors('dead-jobs', 'FileNotFound') >= before, 'no other was touched');
    await page.getByRole('group', { name: /^Delete 3\d dead jobs/ }).getByText('done', { exact: true }).waitFor();
  });

  story('reschedule tomorrow’s closing, with its time in the journal’s care', async (page) => {
    await page.getByRole('link', { name: /^Scheduled/ }).first().click();
    await filter(page, 'class:MonthlyClosing');
    await page.getByRole('button', { name: 'Change: MonthlyClosing closing-december' }).click();
    await page.getByRole('button', { name: 'In 7 d' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
    await page.getByRole('cell', { name: /in (6 d 23 h|7 d)/ }).waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('cell', { name: /in (23 h|24 h|1 d)/ }).waitFor();
  });

  story('which worker is stuck, and on what? Quiet it', async (page) => {
    await page.getByRole('link', { name: 'Processes' }).click();
    await page.getByRole('button', { name: 'Longest job' }).click();
    await page.getByRole('button', { name: 'Longest job' }).click();
    await page.getByRole('link', { name: 'worker-2:822' }).click();
    const row = page.getByRole('row', { name: /report-that-hangs/ });
    await row.getByText(/usual/).waitFor();
    await page.getByRole('button', { name: 'Quiet' }).click();
    await page.getByText(/told to be quiet|listens/i).first().waitFor();
  });

  story('a release made a class slower', async (page) => {
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Metrics' }).click();
    await page.getByRole('button', { name: '24h' }).click();
    await page.getByRole('rowheader', { name: 'SendInvoice' }).getByRole('link').click();
    await page.getByRole('button', { name: '1h', exact: true }).click();
    await page.getByText(/on before/).first().waitFor();
    await page.getByRole('button', { name: 'Table of Run time', exact: true }).click();
    await page.getByRole('table', { name: 'Run time' }).getByRole('row').nth(5).waitFor();
  });

  story('pause a queue and resume it', async (page) => {
    await page.getByRole('table', { name: 'Queues' }).getByRole('link', { name: 'archive' }).click();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByRole('button', { name: 'Resume', exact: true }).click();
    await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  });

  story('with the keyboard alone', async (page) => {
    await page.getByRole('table', { name: 'Queues' }).getByRole('link', { name: 'archive' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('x');
    await page.getByRole('heading', { name: 'Dead jobs' }).waitFor();
    await page.getByRole('table', { name: 'dead jobs' }).getByRole('row').nth(3).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.getByText('2 jobs selected').first().waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: /Jobs/ }).waitFor();
    await page.goBack();
    await page.getByRole('table', { name: 'dead jobs' }).getByRole('row').nth(3).waitFor();
    await page.keyboard.press('/');
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('role')), 'combobox');
    await page.keyboard.type('colour:red');
    await page.keyboard.press('Enter');
    await page.getByText('there is no filter “colour”').first().waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  });

  story('a record that cannot be read is mended', async (page) => {
    await page.getByRole('link', { name: 'Rejected' }).click();
    await page.getByRole('button', { name: /^Mend scheduled_jobs/ }).click();
    await page.getByLabel('Record', { exact: true }).fill(JSON.stringify({ type: 'scheduled_job', jid: 'mended', scheduled_at: Date.now() / 1000 + 9000, job: { jid: 'mended', class: 'SendReminder', args: [], queue: 'mails' } }));
    await page.getByRole('button', { name: 'Publish it' }).click();
    const before = await totals();
    await until('it is scheduled', () => http(world.base + '/api/scheduled-jobs/mended'));
    assert.ok(before);
  });
}
