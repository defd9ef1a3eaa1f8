// The whole UI without a pointer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { go, open, signIn } from './browser.js';
import { plant } from './actions.js';
import { story } from './person.js';
import { until } from './sidecar.js';

export function keyboard(world) {
  story(world, 'with the keyboard alone', async (me) => {
    await me.find('table', 'Queues').find('link', 'archive').seen();
    await me.press('g');
    await me.press('x');
    await me.find('heading', 'Dead jobs').seen();
    const rows = me.find('table', 'dead jobs').find('row');
    await rows.nth(3).seen();
    for (const key of ['j', 'x', 'j', 'x']) await me.press(key);
    await me.find('region', 'Selection').reads(/2 jobs selected/);
    await me.press('Enter');
    await me.find('heading', /^Jobs/, { level: 1 }).seen();
    await me.back();
    await rows.nth(3).seen();
    await me.press('/');
    const box = me.find('combobox', /^Filter/);
    await box.focused();
    await me.type('colour:red');
    await me.press('Enter');
    await me.find('alert').reads(/unknown filter “colour”/);
    await me.press('Escape');
    await me.press('?');
    await me.find('dialog', 'Keyboard shortcuts').seen();
  });

  test('keys do one thing each: not below a dialog, not again while held, not that of a row after g', async () => {
    await plant(world, 'ActionOnce');
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    await go(page, 'Retries');
    await page.getByRole('combobox', { name: /^Filter/ }).fill('class:ActionOnce');
    await page.keyboard.press('Enter');
    await page.getByText(/^1 matching/).waitFor();
    // Takes the focus away from the field.
    await page.getByRole('heading', { name: 'Retries', level: 1 }).click();
    const sent = [];
    page.on('request', (r) => { if (r.method() === 'POST') sent.push(new URL(r.url()).pathname); });
    const chosen = page.getByRole('region', { name: 'Selection' });
    await page.keyboard.press('j');

    await page.keyboard.press('#');
    await page.getByRole('dialog', { name: 'Delete this job?' }).waitFor();
    // Takes the focus away from the buttons.
    await page.getByRole('heading', { name: 'Delete this job?' }).click();
    for (const key of ['x', 'r', 'g', 'd', '?']) await page.keyboard.press(key);
    assert.equal(await page.getByRole('dialog').count(), 1);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('heading', { name: 'Retries', level: 1 }).waitFor();
    assert.equal(await chosen.count(), 0);

    for (const key of ['g', 'r']) await page.keyboard.press(key);
    await until('the filter is gone', () => page.url().endsWith('/retries'));
    await page.goBack();
    await page.getByText(/^1 matching/).waitFor();
    for (const key of ['j', 'g', 'Shift+#', 'x']) await page.keyboard.press(key);
    await chosen.getByText('1 job selected').waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
    assert.deepEqual(sent, []);
    for (let i = 0; i < 4; i++) await page.keyboard.down('r');
    await page.keyboard.up('r');
    await page.getByText(/No matches in [\d,]+ jobs/).waitFor();
    assert.deepEqual(sent, ['/api/retries/ActionOnce-r/retry']);
    await context.close();
  });

  test('the key of the filter counts in the first moments of a page, too', async () => {
    const { page, context } = await open(world.browser);
    // Test machines may be slow: the page tries again ten times as long.
    await page.addInitScript(() => {
      const wait = window.setTimeout;
      window.setTimeout = (run, ms, ...more) => wait(run, ms === 100 ? 1000 : ms, ...more);
    });
    await signIn(page, world.base);
    let load = () => {};
    const pressed = new Promise((done) => { load = () => done(true); });
    await page.route('**/pages/dead.js', async (route) => {
      await pressed;
      await route.continue();
    });
    await go(page, 'Dead');
    await page.getByRole('heading', { level: 1 }).waitFor({ state: 'detached' });
    await page.keyboard.press('/');
    load();
    const filter = page.getByRole('combobox', { name: /^Filter/ });
    await until('the filter has the focus', () => filter.evaluate((box) => box === document.activeElement));
    assert.equal(await page.getByRole('dialog').count(), 0);
    await context.close();
  });

  test('delete with the keyboard alone, and take it back', async () => {
    await plant(world, 'ActionKeys');
    const { page, context } = await open(world.browser);
    await page.goto(world.base + '/');
    await page.getByLabel('Name').waitFor();
    const focused = (name) => until(`${name} has the focus`, () =>
      page.evaluate((n) => (document.activeElement.getAttribute('aria-label') || document.activeElement.textContent || document.activeElement.name) === n, name));
    await focused('name');
    await page.keyboard.type('guest');
    await page.keyboard.press('Tab');
    await page.keyboard.type('guest');
    await page.keyboard.press('Enter');
    await page.getByRole('table', { name: 'Queues' }).getByRole('link').first().waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('x');
    await page.getByRole('table', { name: 'dead jobs' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('class:ActionKeys');
    await page.keyboard.press('Enter');
    await page.getByText(/^1 matching/).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.keyboard.press('#');
    await page.getByRole('dialog').waitFor();
    await focused('Cancel');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText(/No matches in [\d,]+ jobs/).waitFor();
    const undo = page.getByRole('button', { name: 'Undo' });
    await undo.waitFor();
    for (let i = 0; i < 200 && await page.evaluate(() => document.activeElement.textContent) !== 'Undo'; i++) await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByText(/^1 matching/).waitFor();
    await context.close();
  });
}
