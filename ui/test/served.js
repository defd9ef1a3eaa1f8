// How the page is served: browsers cache it, unchanged files are answered with 304, and a policy
// blocks everything foreign.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, signIn } from './browser.js';

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'self'; "
  + "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

export function served(world) {
  test('a page that is loaded again costs a 304, and its modules nothing', async () => {
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    // The page loads these when it is idle.
    for (const late of ['/parts/lower.js', '/parts/palette.js']) {
      await page.waitForFunction((name) => performance.getEntriesByType('resource').some((e) => e.name.endsWith(name)), late);
    }
    // And then the modules that these import.
    await page.waitForFunction(() => {
      const before = globalThis.loaded;
      globalThis.loaded = performance.getEntriesByType('resource').length;
      return globalThis.loaded === before;
    }, undefined, { polling: 1000 });
    const cdp = await context.newCDPSession(page);
    const asked = new Map();
    const got = [];
    cdp.on('Network.requestWillBeSent', (e) => asked.set(e.requestId, new URL(e.request.url).pathname));
    // The headers from the network. An answer from the browser's own cache has none.
    cdp.on('Network.responseReceivedExtraInfo', (e) => got.push(e));
    const answers = () => got.map((e) => [asked.get(e.requestId), e.statusCode]);
    await cdp.send('Network.enable');
    await page.reload();
    await page.getByRole('table', { name: 'Queues' }).getByRole('link').first().waitFor();
    assert.deepEqual(answers().filter(([path]) => path === '/dashboard').map(([, status]) => status), [304], 'the page is the one that the browser has');
    assert.deepEqual(answers().filter(([path]) => path?.includes('/assets/')), [], 'modules of this version are not asked for again');

    // A proxy or a browser that asks again gets 304 for each module, with an empty body.
    const modules = await page.evaluate(() => performance.getEntriesByType('resource').map((e) => e.name).filter((name) => name.includes('/assets/')));
    assert.ok(modules.length > 30, `${modules.length} modules`);
    const wrong = await page.evaluate(async (all) => {
      const found = [];
      for (const url of all) {
        const first = await fetch(url, { cache: 'reload' });
        const tag = first.headers.get('ETag');
        const again = await fetch(url, { cache: 'no-store', headers: { 'If-None-Match': tag } });
        const other = await fetch(url, { cache: 'no-store', headers: { 'If-None-Match': '"another"' } });
        if (!/^"[0-9a-f]{20}(-gzip)?"$/.test(tag) || again.status !== 304 || (await again.text()) !== '' || other.status !== 200
          || !(await other.text()).length || first.headers.get('Cache-Control') !== 'public, max-age=31536000, immutable') found.push(`${url}: ${tag} ${again.status} ${other.status}`);
      }
      return found;
    }, modules);
    assert.deepEqual(wrong, []);
    await context.close();
  });

  test('the policy is on every page, and holds', async () => {
    for (const path of ['/dashboard', '/job-queues', '/job-queues/a%2Fb', '/scheduled-jobs', '/retries?view=storm', '/dead-jobs', '/gated-jobs',
      '/jobs', '/jobs/x', '/job-metrics/A', '/worker-processes', '/live', '/operations', '/rejected', '/health', '/api-docs', '/sign-in']) {
      const { headers, status } = await fetch(world.base + path);
      assert.equal(status, 200, path);
      assert.deepEqual(['Content-Security-Policy', 'Cross-Origin-Opener-Policy', 'X-Content-Type-Options', 'X-Frame-Options', 'Referrer-Policy',
        'Cache-Control'].map((name) => headers.get(name)), [policy, 'same-origin', 'nosniff', 'DENY', 'no-referrer', 'no-cache'], path);
    }
    const { page, context } = await open(world.browser);
    await signIn(page, world.base);
    const got = await page.evaluate(async () => {
      /** @type {Record<string, string>} */
      const tried = {};
      const attempt = async (name, act) => { try { await act(); tried[name] = 'done'; } catch (e) { tried[name] = e.name; } };
      await attempt('markup from text', () => { document.createElement('div').innerHTML = '<img src=x>'; });
      // Not from here, because tools are allowed to do this.
      await attempt('code from text', () => new Promise((done, no) => { setTimeout(() => { try { done((0, eval)('1')); } catch (e) { no(e); } }, 0); }));
      await attempt('a policy of its own', () => window.trustedTypes.createPolicy('own', { createHTML: (s) => s }));
      await attempt('a request elsewhere', () => fetch('http://127.0.0.1:9/'));
      const script = document.createElement('script');
      await attempt('an inline script', () => { script.text = 'window.ran = true'; });
      document.body.append(script);
      const style = document.createElement('style');
      style.textContent = 'body { outline: 99px solid red }';
      document.head.append(style);
      document.body.setAttribute('style', 'outline: 99px solid red');
      tried['an inline style'] = getComputedStyle(document.body).outlineWidth === '99px' ? 'done' : 'refused';
      tried.ran = String(window.ran);
      await new Promise((done) => { setTimeout(done, 100); });
      return [tried, window.refusals.map((r) => r.split(':')[0])];
    });
    assert.deepEqual(got[0], { 'markup from text': 'TypeError', 'code from text': 'EvalError', 'a policy of its own': 'TypeError',
      'a request elsewhere': 'TypeError', 'an inline script': 'TypeError', 'an inline style': 'refused', ran: 'undefined' });
    for (const directive of ['require-trusted-types-for', 'trusted-types', 'connect-src', 'style-src']) assert.ok(got[1].some((r) => r.startsWith(directive)), `${directive} in ${got[1]}`);
    await context.close();
  });
}
