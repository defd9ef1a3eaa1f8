// A browser for the tests: Debian's Chromium, driven by playwright-core.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

/**
 * Pages are short-lived: the compilers of JavaScript that optimize most do not pay off. Without them
 * the browser takes a seventh less of the processor.
 */
const fewCompilers = '--js-flags=--no-turbofan --no-maglev --always-sparkplug';

/** The headless shell has no windows, and takes half as much of the processor as a whole Chromium. */
const path = process.env.CHROMIUM || ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'].map((name) => '/usr/bin/' + name).find(existsSync);

/** @param {string[]} more arguments */
export function launch(more = [fewCompilers]) {
  if (!path) throw new Error('no Chromium: apt-get install chromium-headless-shell, or set CHROMIUM');
  return chromium.launch({ executablePath: path, args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb', ...more] });
}

/**
 * Opens a page, in a context of its own. It notes faults: errors on its console, and requests that
 * its policy refused.
 */
export async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  const close = context.close.bind(context);
  context.close = async () => {
    await page.unrouteAll({ behavior: 'ignoreErrors' }); // a request that is under way would fail the file
    await close();
  };
  const faults = [];
  await page.addInitScript(() => {
    window.refusals = [];
    addEventListener('securitypolicyviolation', (e) => window.refusals.push(`${e.violatedDirective}: ${e.blockedURI} ${e.sample}`));
  });
  page.on('console', (m) => { if (m.type() === 'error') faults.push('console: ' + m.text() + ' ' + m.location().url); });
  page.on('pageerror', (e) => faults.push('error: ' + (e.stack || e.message)));
  page.setDefaultTimeout(60_000); // test machines may be slow
  return { context, page, faults };
}

/**
 * Opens a page through the navigation.
 * @param {import('playwright-core').Page} page
 * @param {string} name
 */
export const go = (page, name) => page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name }).click();

/** The cookies of those who have signed in, by sidecar and user. */
const sessions = new Map();

/**
 * Signs a user in, and opens the dashboard. Who has signed in before comes back with the cookie.
 * @param {import('playwright-core').Page} page
 * @param {string} base
 */
export async function signIn(page, base, name = 'guest', password = 'guest') {
  const who = `${base} ${name}`;
  const heading = page.getByRole('heading', { name: 'Dashboard', level: 1 });
  if (sessions.has(who)) {
    await page.context().addCookies(sessions.get(who));
    await page.goto(base + '/');
    await heading.waitFor();
    return;
  }
  await page.goto(base + '/');
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await heading.waitFor();
  sessions.set(who, await page.context().cookies());
}
