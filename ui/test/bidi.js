// Debian's own Firefox, over WebDriver BiDi: commands and events in JSON on a WebSocket. Firefox
// ESR lacks features that Playwright needs, and Node 20 has no WebSocket.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './sidecar.js';

const program = process.env.FIREFOX || ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find(existsSync);

/** Firefox connects to this machine only, and nothing is animated. */
const prefs = {
  'network.proxy.type': 1, 'network.proxy.http': '127.0.0.1', 'network.proxy.http_port': 9, 'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9, 'network.captive-portal-service.enabled': false, 'network.connectivity-service.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false, 'toolkit.telemetry.server': '', 'browser.shell.checkDefaultBrowser': false, 'app.update.auto': false, 'ui.prefersReducedMotion': 1,
};

/**
 * Opens a WebSocket. Sent frames are masked, as the protocol requires from clients.
 * @param {string} url
 * @param {(text: string) => void} heard
 * @returns {Promise<{send: (text: string) => void, close: () => void}>}
 */
function webSocket(url, heard) {
  const { hostname, port, pathname } = new URL(url);
  const tcp = connect(Number(port), hostname);
  const frame = (/** @type {number} */ kind, /** @type {Buffer} */ body) => {
    const mask = randomBytes(4);
    if (body.length > 0xffff) throw new Error(`${body.length} bytes are more than a frame of this client holds`);
    const size = body.length < 126 ? Buffer.from([0x80 | body.length]) : Buffer.from([0x80 | 126, body.length >> 8, body.length & 255]);
    tcp.write(Buffer.concat([Buffer.from([0x80 | kind]), size, mask, body.map((b, i) => b ^ mask[i % 4])]));
  };
  let got = Buffer.alloc(0);
  /** @type {Buffer[]} */
  let parts = [];
  /** Takes a frame from the received bytes, if it is complete. */
  const next = () => {
    if (got.length < 2) return false;
    const short = got[1] & 127;
    const head = short === 127 ? 10 : short === 126 ? 4 : 2;
    if (got.length < head) return false;
    const size = short === 127 ? Number(got.readBigUInt64BE(2)) : short === 126 ? got.readUInt16BE(2) : short;
    if (got.length < head + size) return false;
    const [first, body] = [got[0], got.subarray(head, head + size)];
    got = got.subarray(head + size);
    if ((first & 15) === 9) frame(10, body);
    else if ((first & 15) < 3) {
      parts.push(body);
      if (first & 128) {
        heard(Buffer.concat(parts).toString());
        parts = [];
      }
    }
    return true;
  };
  return new Promise((done, fail) => {
    let open = false;
    tcp.on('error', fail);
    tcp.on('data', (d) => {
      got = Buffer.concat([got, d]);
      const end = got.indexOf('\r\n\r\n');
      if (!open && end < 0) return;
      if (!open) {
        if (!got.toString().startsWith('HTTP/1.1 101')) fail(new Error(got.toString()));
        got = got.subarray(end + 4);
        open = true;
        done({ send: (text) => frame(1, Buffer.from(text)), close: () => tcp.destroy() });
      }
      while (next());
    });
    const key = randomBytes(16).toString('base64');
    tcp.write([
      `GET ${pathname} HTTP/1.1`, `Host: ${hostname}:${port}`, 'Upgrade: websocket', 'Connection: Upgrade',
      `Sec-WebSocket-Key: ${key}`, 'Sec-WebSocket-Version: 13', '', '',
    ].join('\r\n'));
  });
}

/** Starts Firefox, and returns a page of it. */
export async function launchFirefox() {
  if (!program) throw new Error('no Firefox: apt-get install firefox-esr, or set FIREFOX');
  const profile = await mkdtemp(join(tmpdir(), 'millrace-firefox-'));
  await writeFile(join(profile, 'user.js'), Object.entries(prefs).map(([k, v]) => `user_pref(${JSON.stringify(k)}, ${JSON.stringify(v)});\n`).join(''));
  const child = spawn(program, ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise((done) => { child.once('exit', done); });
  let said = '';
  child.stderr.on('data', (d) => { said += d; });
  let socket;
  const close = async () => {
    socket?.close();
    child.kill('SIGTERM');
    await ended;
    await rm(profile, { recursive: true, force: true });
  };
  try {
    const [, at] = await until('Firefox listens', () => {
      if (child.exitCode !== null) throw new Error(said);
      return /BiDi listening on (ws:\S+)/.exec(said);
    });
    const waiting = new Map();
    /** Errors on the console. @type {string[]} */
    const faults = [];
    socket = await webSocket(at + '/session', (text) => {
      const m = JSON.parse(text);
      if (m.method === 'log.entryAdded' && m.params.level === 'error') faults.push(`${m.params.type}: ${m.params.text} ${m.params.stackTrace?.callFrames[0]?.url || ''}`);
      waiting.get(m.id)?.(m);
    });
    let last = 0;
    const command = async (/** @type {string} */ method, /** @type {any} */ params) => {
      const id = ++last;
      const answer = await new Promise((done) => {
        waiting.set(id, done);
        socket.send(JSON.stringify({ id, method, params }));
      });
      waiting.delete(id);
      if (answer.type === 'error') throw new Error(`${method}: ${answer.error}: ${answer.message}`);
      return answer.result;
    };
    await command('session.new', { capabilities: {} });
    await command('session.subscribe', { events: ['log.entryAdded'] });
    const noteRefusals = `() => {
      window.refusals = [];
      addEventListener('securitypolicyviolation', (e) => window.refusals.push(e.violatedDirective + ': ' + e.blockedURI));
    }`;
    await command('script.addPreloadScript', { functionDeclaration: noteRefusals });
    const { context } = (await command('browsingContext.getTree', {})).contexts[0];
    return { ...pageOf(command, context), faults, close };
  } catch (e) {
    await close();
    throw e;
  }
}

/** @param {(method: string, params: any) => Promise<any>} command @param {string} context */
function pageOf(command, context) {
  const evaluate = async (/** @type {(arg: any) => any} */ fn, /** @type {any} */ arg = null) => {
    const answer = await command('script.callFunction',
      { functionDeclaration: `async (arg) => JSON.stringify((await (${fn})(JSON.parse(arg))) ?? null)`,
        arguments: [{ type: 'string', value: JSON.stringify(arg) }], awaitPromise: true, target: { context } });
    if (answer.type === 'exception') throw new Error(answer.exceptionDetails.text);
    return JSON.parse(answer.result.value);
  };
  /**
   * Clicks with the pointer on an element with a role and a name, or only a name.
   * @param {{role?: string, name: string}} what
   */
  const click = async (what) => {
    const [node] = await until(`${what.role || ''} ${what.name} is there`, async () => {
      const { nodes } = await command('browsingContext.locateNodes', { context, locator: { type: 'accessibility', value: what } });
      return nodes.length && nodes;
    });
    const actions = [{ type: 'pointerMove', x: 0, y: 0, origin: { type: 'element', element: { sharedId: node.sharedId } } }, { type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 }];
    await command('input.performActions', { context, actions: [{ type: 'pointer', id: 'mouse', actions }] });
  };
  const type = (/** @type {string} */ text) => command('input.performActions',
    { context, actions: [{ type: 'key', id: 'keys', actions: [...text].flatMap((value) => [{ type: 'keyDown', value }, { type: 'keyUp', value }]) }] });
  return {
    evaluate,
    click,
    goto: (/** @type {string} */ url) => command('browsingContext.navigate', { context, url, wait: 'complete' }),
    /** Returns a picture of the window, or of the whole page. @param {boolean} whole */
    screenshot: async (whole) => Buffer.from((await command('browsingContext.captureScreenshot', { context, origin: whole ? 'document' : 'viewport' })).data, 'base64'),
    setViewportSize: (/** @type {{width: number, height: number}} */ viewport) => command('browsingContext.setViewport', { context, viewport }),
    /** Clears a field, and types into it. @param {string} name @param {string} text */
    fill: async (name, text) => {
      await click({ name });
      await evaluate(() => /** @type {any} */ (document.activeElement).select());
      await type(text);
    },
    /**
     * Waits until a condition holds in the page.
     * @param {string} what
     * @param {(arg: any) => any} check
     * @param {any} [arg]
     */
    shows: (what, check, arg) => until(what, () => evaluate(check, arg)),
  };
}
