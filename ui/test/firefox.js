// Features in which browsers may differ, in Firefox: layout, sign-in, and the policy of the page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { launchFirefox } from './bidi.js';
import { resized } from './layout.js';
import { all } from './pages.js';

/**
 * A large screen, a tablet and a phone. Other widths would show nothing that Chromium does not
 * show.
 */
const widths = [1400, 768, 390];
/**
 * Errors by design, and Firefox's message about a page that is left before it has connected to its
 * events.
 */
const expected = /401|jobs\/unknown-job|health\/checks|connection to the server at ws:.*\/api\/events/;

const heading = (/** @type {string} */ name) => document.querySelector('h1')?.textContent.includes(name);
const filled = () => !document.querySelector('tr.sk') && !!document.querySelector('main :is(tbody tr, .facts, .ops, .feed a, .empty)');

/** Runs in the page: counts its WebSockets. */
function countSockets() {
  window.sockets = 0;
  window.WebSocket = class extends WebSocket {
    /** @param {any} at */
    constructor(at) {
      super(at);
      window.sockets++;
    }
  };
}

export function inFirefox(world) {
  test('Firefox: signing in and out, and no page is wider than its window or out of line with the header', { timeout: 180_000 }, async () => {
    const page = await launchFirefox();
    try {
      await page.setViewportSize({ width: 1400, height: 900 });
      await page.goto(world.base + '/retries?queue=inventory');
      await page.fill('Name', 'guest');
      await page.fill('Password', 'wrong');
      await page.click({ role: 'button', name: 'Sign in' });
      await page.shows('a wrong password is refused', () => !!document.querySelector('[role=alert]'));
      await page.fill('Password', 'guest');
      await page.evaluate(countSockets);
      await page.click({ role: 'button', name: 'Sign in' });
      await page.shows('the page that was asked for', heading, 'Retries');
      await page.shows('a connection for events', () => window.sockets > 0);
      await page.shows('the list', filled);
      await page.evaluate(() => new Promise((done) => { setTimeout(done, 500); }));
      assert.equal(await page.evaluate(() => window.sockets), 1, 'signing in opens one connection');
      assert.deepEqual(page.faults.filter((f) => f.includes('/api/events')), []);
      assert.match(await page.evaluate(() => location.href), /\/retries\?queue=inventory$/);
      const wrong = [];
      for (const path of new Set(all.map(([path]) => path))) {
        await page.setViewportSize({ width: 1400, height: 900 });
        await page.goto(world.base + path);
        await page.shows(path, filled);
        wrong.push(...await resized(page, path, widths), ...(await page.evaluate(() => window.refusals)).map((/** @type {string} */ r) => `${path}: refused by the policy: ${r}`));
      }
      assert.deepEqual([...wrong, ...page.faults.filter((f) => !expected.test(f))], []);
      await page.setViewportSize({ width: 1400, height: 900 });
      await page.click({ role: 'button', name: 'Menu of guest' });
      await page.click({ role: 'button', name: 'Sign out' });
      await page.shows('the sign-in page', () => !!document.querySelector('input[name=password]'));
      await page.goto(world.base + '/dashboard');
      await page.shows('that the user is signed out', () => !!document.querySelector('input[name=password]'));
    } finally {
      await page.close();
    }
  });
}
