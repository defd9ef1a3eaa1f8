// A sidecar with a broker of its own, a demo worker and its traffic, as `millrace up` runs them.
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
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

/** Waits until a condition holds, for a minute, because test machines may be slow. */
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
    await sleep(250); // a look for an element by its role costs up to 0.1 s of processor time
  }
}

export async function start({ rate = 5 } = {}) {
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
  return { base: `http://127.0.0.1:${port}`, management: /Broker\s+(\S+)/.exec(said)[1], amqp: /AMQP\s+(\S+)/.exec(said)[1], stop };
}

/**
 * Starts another sidecar, for a virtual host of the same broker. It can be stopped and started
 * again.
 * @param {any} beside
 * @param {string} vhost
 * @param {string[]} more flags
 */
export async function serve({ amqp, management }, vhost, more) {
  const state = await mkdtemp(join(tmpdir(), 'millrace-ui-'));
  const port = await freePort();
  const key = join(state, 'key');
  await writeFile(key, 'k'.repeat(40));
  const args = ['serve', '--amqp-url', amqp + vhost, '--management-url', management, '--http-addr', `127.0.0.1:${port}`, '--state-dir',
    join(state, 'view'), '--session-key-file', key, '--log-level', 'error', ...more];
  let child, ended;
  const begin = async () => {
    child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    ended = new Promise((done) => { child.once('exit', done); });
    await until('the sidecar is ready, or holds what was pending', async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
      return answer.ok || (await answer.text()).includes('are held');
    });
  };
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  const end = async () => {
    await stop();
    await rm(state, { recursive: true, force: true });
  };
  await begin();
  return { port, begin, stop, end };
}

/**
 * Starts a worker process whose jobs are commands.
 * @param {any} beside
 * @param {string} vhost
 * @param {string} tag
 * @param {string[]} plan lines of its file
 */
export async function work({ amqp }, vhost, tag, plan) {
  const dir = await mkdtemp(join(tmpdir(), 'millrace-ui-'));
  const file = join(dir, 'jobs.yaml');
  await writeFile(file, [`tag: ${tag}`, ...plan].join('\n'));
  const child = spawn(program, ['worker', '--exec', file, '--amqp-url', amqp + vhost, '--log-level', 'error'], { stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = new Promise((done) => { child.once('exit', done); });
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    await rm(dir, { recursive: true, force: true });
  };
  return { ended, stop };
}

/**
 * Makes a virtual host on the broker, with all permissions for guest.
 * @param {{management: string}} at
 * @param {string} name
 */
export async function virtualHost({ management }, name) {
  await http(`${management}/api/vhosts/${name}`, 'PUT', {});
  await http(`${management}/api/permissions/${name}/guest`, 'PUT', { configure: '.*', write: '.*', read: '.*' });
}

const authorization = 'Basic ' + Buffer.from('guest:guest').toString('base64');

/**
 * Sends a request to the sidecar or to the broker's management API, on a connection of its own. The
 * broker may close a connection that is kept, while the next request is sent.
 */
export async function http(url, method = 'GET', body = undefined) {
  const r = await fetch(url, { method, headers: { authorization, connection: 'close', 'content-type': 'application/json' }, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await r.text();
  if (!r.ok) throw new Error(`${method} ${url}: ${r.status} ${text}`);
  return text ? JSON.parse(text) : null;
}
