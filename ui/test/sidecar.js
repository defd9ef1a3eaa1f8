// A sidecar with a broker of its own, a demo worker and its traffic: what `millrace up` runs.
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const program = new URL('../../bin/millrace', import.meta.url).pathname;

function freePort() {
  return new Promise((done) => {
    const s = createServer().listen(0, '127.0.0.1', () => {
      const { port } = s.address();
      s.close(() => done(port));
    });
  });
}

/** Waits until something holds, for a minute: machines may be slow. */
export async function until(what, check, ms = 60_000) {
  const end = Date.now() + ms;
  for (let last; ;) {
    try {
      const found = await check();
      if (found) return found;
    } catch (e) {
      last = e;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${ms / 1000} s`, { cause: last });
    await sleep(100);
  }
}

export async function start({ rate = 20 } = {}) {
  const state = await mkdtemp(join(tmpdir(), 'millrace-ui-'));
  const port = await freePort();
  const child = spawn(program, ['up', '--fresh', '--http-addr', `127.0.0.1:${port}`, '--rate', String(rate)], { env: { ...process.env, XDG_STATE_HOME: state }, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stdout.on('data', (d) => { said += d; });
  child.stderr.on('data', (d) => { said += d; });
  const ended = new Promise((done) => { child.once('exit', done); });
  const stop = async () => {
    child.kill('SIGINT');
    await ended;
    await rm(state, { recursive: true, force: true });
  };
  try {
    await until('millrace up', () => {
      if (child.exitCode !== null) throw new Error(said);
      return /Broker\s+(\S+)/.exec(said);
    }, 120_000);
  } catch (e) {
    await stop();
    throw new Error(said, { cause: e });
  }
  return { base: `http://127.0.0.1:${port}`, management: /Broker\s+(\S+)/.exec(said)[1], stop };
}

const authorization = 'Basic ' + Buffer.from('guest:guest').toString('base64');

/** Asks the sidecar or the broker's management. */
export async function http(url, method = 'GET', body = undefined) {
  const r = await fetch(url, { method, headers: { authorization, 'content-type': 'application/json' }, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await r.text();
  if (!r.ok) throw new Error(`${method} ${url}: ${r.status} ${text}`);
  return text ? JSON.parse(text) : null;
}
