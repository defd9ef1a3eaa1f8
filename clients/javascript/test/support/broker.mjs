// A private RabbitMQ for tests on 127.0.0.1, and a proxy that can hold back its answers.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, connect } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import amqplib from 'amqplib';

const FOLDERS = [process.env.MILLRACE_TEST_RABBITMQ, '/usr/lib/rabbitmq/bin', '/opt/rabbitmq/sbin'];
const START_LIMIT = 180_000; // ms

async function listen(server, port = 0) {
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', () => resolve(undefined)));
  return server.address().port;
}

/** Returns ports below the range that the kernel uses for outgoing connections. */
async function freePorts(n) {
  for (;;) {
    const first = 14_000 + Math.floor(Math.random() * 5_900);
    const ports = Array.from({ length: n }, (_, i) => first + i);
    const servers = [];
    try {
      for (const port of ports) {
        const server = createServer();
        await listen(server, port);
        servers.push(server);
      }
      return ports;
    } catch (error) {
      if (error.code !== 'EADDRINUSE') throw error;
    } finally {
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    }
  }
}

/** Writes a CA, and certificates signed by it for the broker and for a client. */
function certificates(directory) {
  const openssl = (...args) => {
    const { status, stderr, error } = spawnSync('openssl', args, { cwd: directory, encoding: 'utf8' });
    if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${error ?? stderr}`);
  };
  const key = (name) => ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', `${name}.key`];
  openssl('req', '-x509', ...key('ca'), '-out', 'ca.pem', '-days', '2', '-subj', '/CN=millrace test CA');
  for (const name of ['server', 'client']) {
    openssl('req', ...key(name), '-out', `${name}.csr`, '-subj', `/CN=${name}`);
    writeFileSync(join(directory, `${name}.ext`), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n');
    openssl('x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', `${name}.ext`, '-out', `${name}.pem`);
  }
  return Object.fromEntries(['ca.pem', 'client.pem', 'client.key'].map((name) => [name, readFileSync(join(directory, name))]));
}

/**
 * Starts a broker: {url, tlsUrl, files, ctl(), stop()}. It requires a certificate from its TLS
 * clients.
 */
export async function startBroker() {
  const folder = FOLDERS.find((f) => f && existsSync(join(f, 'rabbitmq-server')));
  if (!folder) throw new Error('RabbitMQ is not installed on this machine: run `make deps`, or install the package rabbitmq-server');
  const directory = mkdtempSync(join(tmpdir(), 'millrace-broker-'));
  const [amqp, amqps, epmdPort, dist] = await freePorts(4);
  const path = (name) => join(directory, name);
  for (const name of ['data', 'log']) mkdirSync(path(name));
  const files = certificates(directory);
  writeFileSync(path('rabbitmq.conf'), [
    `listeners.tcp.1 = 127.0.0.1:${amqp}`, `listeners.ssl.1 = 127.0.0.1:${amqps}`, `ssl_options.cacertfile = ${path('ca.pem')}`,
    `ssl_options.certfile = ${path('server.pem')}`, `ssl_options.keyfile = ${path('server.key')}`, 'ssl_options.verify = verify_peer',
    'ssl_options.fail_if_no_peer_cert = true', 'disk_free_limit.absolute = 10MB', 'log.console = false', 'log.file = rabbit.log', '',
  ].join('\n'));
  writeFileSync(path('enabled_plugins'), '[].\n');
  writeFileSync(path('inetrc'), `{host, {127,0,0,1}, ["localhost", "${hostname()}"]}.\n{lookup, [file, native]}.\n`);
  const env = {
    PATH: process.env.PATH, LANG: 'C.UTF-8', HOME: directory, ERL_EPMD_PORT: String(epmdPort), ERL_EPMD_ADDRESS: '127.0.0.1', ERL_INETRC: path('inetrc'),
    ERL_FLAGS: '-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}', RABBITMQ_NODENAME: 'millrace@localhost',
    RABBITMQ_CONF_ENV_FILE: path('none'), RABBITMQ_CONFIG_FILE: path('rabbitmq.conf'), RABBITMQ_ADVANCED_CONFIG_FILE: path('none.config'),
    RABBITMQ_ENABLED_PLUGINS_FILE: path('enabled_plugins'), RABBITMQ_MNESIA_BASE: path('data'), RABBITMQ_LOG_BASE: path('log'),
    RABBITMQ_DIST_PORT: String(dist),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+S 2:2 +B i +sbwt none +sbwtdcpu none +sbwtdio none', RUNNING_UNDER_SYSTEMD: 'true',
  };
  const epmd = spawn(existsSync(join(folder, 'epmd')) ? join(folder, 'epmd') : 'epmd', ['-port', String(epmdPort), '-address', '127.0.0.1'], { env, stdio: 'ignore' });
  const node = spawn(join(folder, 'rabbitmq-server'), { cwd: directory, env, stdio: 'ignore' });
  const exited = new Promise((resolve) => node.once('exit', resolve));
  const kill = () => {
    node.kill('SIGKILL');
    epmd.kill('SIGKILL');
  };
  const abandon = () => {
    kill();
    rmSync(directory, { recursive: true, force: true });
  };
  const end = () => process.exit(1); // which calls abandon
  process.once('exit', abandon);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.once(signal, end);
  const stop = async () => {
    kill();
    await exited;
    abandon();
    process.off('exit', abandon);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.off(signal, end);
  };
  /** Runs rabbitmqctl. */
  const ctl = (...args) => {
    const { status, stdout, stderr, error } = spawnSync(join(folder, 'rabbitmqctl'), args, { cwd: directory, env, encoding: 'utf8' });
    if (status !== 0) throw new Error(`rabbitmqctl ${args.join(' ')}: ${error ?? ''}${stdout}${stderr}`);
  };
  const url = `amqp://guest:guest@127.0.0.1:${amqp}/`;
  for (const until = Date.now() + START_LIMIT; ; await sleep(100)) {
    try {
      await (await amqplib.connect(url)).close();
      return { url, tlsUrl: `amqps://guest:guest@127.0.0.1:${amqps}/`, files, ctl, stop };
    } catch (error) {
      if (node.exitCode === null && Date.now() < until) continue;
      const log = existsSync(path('log/rabbit.log')) ? readFileSync(path('log/rabbit.log'), 'utf8').slice(-2_000) : '(no log)';
      await stop();
      throw new Error(`the broker does not start: ${error.message}\n${log}`, { cause: error });
    }
  }
}

/**
 * Starts a proxy for a URL. hold() holds back the broker's answers until release(). sent() returns
 * what clients have sent. returns() is how often the broker returned messages.
 */
export async function startProxy(url) {
  const target = new URL(url);
  const sockets = new Set();
  let held = false;
  let said = '';
  let returns = 0;
  const server = createServer((client) => {
    const broker = connect(Number(target.port), '127.0.0.1');
    const waiting = [];
    const pair = { client, broker, flush: () => waiting.splice(0).forEach((chunk) => client.write(chunk)) };
    sockets.add(pair);
    client.on('data', (chunk) => {
      said += chunk.toString('latin1');
      broker.write(chunk);
    });
    broker.on('data', (chunk) => {
      if (chunk.includes('NO_ROUTE')) returns++;
      if (held) waiting.push(chunk);
      else client.write(chunk);
    });
    for (const [one, other] of [[client, broker], [broker, client]]) {
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(pair);
        other.destroy();
      });
    }
  });
  const port = await listen(server);
  return {
    url: Object.assign(new URL(url), { port: String(port) }).toString(),
    sent: () => said,
    returns: () => returns,
    hold() {
      held = true;
    },
    release() {
      held = false;
      for (const pair of sockets) pair.flush();
    },
    close() {
      server.close();
      for (const { client, broker } of sockets) [client, broker].forEach((socket) => socket.destroy());
    },
  };
}
