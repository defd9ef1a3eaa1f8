// Everything without a pointer.
import { test } from 'node:test';
import { open } from './browser.js';
import { plant } from './deeds.js';
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
    await me.find('alert').reads(/there is no filter “colour”/);
    await me.press('Escape');
    await me.press('?');
    await me.find('dialog', 'Keyboard').seen();
  });

  test('delete with the keyboard alone, and take it back', async () => {
    await plant(world, 'DeedKeys');
    const { page, context } = await open(world.browser);
    await page.goto(world.base + '/');
    await page.getByLabel('Name').waitFor();
    const focused = (name) => until(`${name} has the focus`, () => page.evaluate((n) => (document.activeElement.getAttribute('aria-label') || document.activeElement.textContent || document.activeElement.name) === n, name));
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
    await page.keyboard.type('class:DeedKeys');
    await page.keyboard.press('Enter');
    await page.getByText(/^1 that matches/).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.keyboard.press('#');
    await page.getByRole('dialog').waitFor();
    await focused('Cancel');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText(/0 of [\d,]+ match/).waitFor();
    const undo = page.getByRole('button', { name: 'Undo' });
    await undo.waitFor();
    for (let i = 0; i < 200 && await page.evaluate(() => document.activeElement.textContent) !== 'Undo'; i++) await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByText(/^1 that matches/).waitFor();
    await context.close();
  });
}
