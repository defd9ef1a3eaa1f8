import { queueName, queueNameFault } from './format.js';
import { DEFAULT_URL, splitHosts, type Ask } from './hosts.js';
import { tlsOptions } from './tls.js';
import type { Lane, Queues, TlsOptions, WorkerOptions } from './types.js';
import { VERSION } from './version.js';

/** A lane, complete and checked. */
export interface LaneSettings {
  name: string;
  queues: string[];
  weights: number[] | undefined;
  concurrency: number;
}

/** The configuration of a worker, complete and checked. */
export interface Settings {
  urls: string[];
  tls: TlsOptions | undefined;
  credentials: Ask | undefined;
  lanes: LaneSettings[];
  tag: string;
  labels?: { [name: string]: string };
  stopTimeout: number;
  maxDeaths: number;
  declare: boolean;
  heartbeat: number;
  version: string;
  thread?: string | URL;
}

const DEFAULTS = { concurrency: 5, tag: '', stopTimeout: 25, maxDeaths: 3, declare: true, heartbeat: 10, version: `millrace-js ${VERSION}` };
const NAMES = new Set([...Object.keys(DEFAULTS), 'url', 'queues', 'lanes', 'labels', 'logger', 'thread', 'tls', 'credentials']);

function check(ok: unknown, what: string): asserts ok {
  if (!ok) throw new TypeError(`millrace: ${what}`);
}

/** Queues in an array are strict, in an object weighted. */
function lane({ name, queues, concurrency = DEFAULTS.concurrency }: { name: string; queues: Queues; concurrency?: number }): LaneSettings {
  const strict = Array.isArray(queues);
  const names = (strict ? queues : Object.keys(queues)).map(queueName);
  const weights = strict ? undefined : Object.values(queues);
  check(names.length > 0 && new Set(names).size === names.length, `lane ${name} needs queues, each once`);
  for (const q of names) check(!queueNameFault(q), `lane ${name}: ${queueNameFault(q)}`);
  check(!weights || weights.every((w) => Number.isFinite(w) && w > 0), `lane ${name}: weights are numbers above 0`);
  check(Number.isInteger(concurrency) && concurrency > 0 && concurrency <= 32_767, `lane ${name}: concurrency is ${concurrency}`);
  return { name, queues: names, weights, concurrency };
}

/** Returns the option credentials, checked. */
export function credentialsOption(given: Ask | undefined): Ask | undefined {
  check(given === undefined || typeof given === 'function', 'credentials is no function that returns { username, password }');
  return given;
}

/** Returns the configuration of a worker, complete and checked. */
export function settings(given: WorkerOptions): Settings {
  for (const name of Object.keys(given)) check(NAMES.has(name), `there is no option ${name}`);
  const set: Omit<WorkerOptions, 'logger'> = Object.fromEntries(Object.entries(given).filter(([name, value]) => value !== undefined && name !== 'logger'));
  const { tls, credentials, queues, lanes = [], concurrency, ...rest } = { ...DEFAULTS, ...set };
  const urls = splitHosts('url' in given ? given.url! : DEFAULT_URL);
  for (const name of ['stopTimeout', 'maxDeaths', 'heartbeat'] as const) check(Number.isFinite(rest[name]) && rest[name] >= 0, `${name} is ${rest[name]}`);
  check(rest.heartbeat > 0, 'heartbeat is 0');
  check(!rest.tag.includes(':'), `the tag ${rest.tag} has a colon`);
  const own: Queues | undefined = queues ?? (lanes.length ? undefined : ['default']);
  const lanesGiven: Lane[] = [...(own ? [{ name: 'default', queues: own, concurrency }] : []), ...lanes];
  const all = lanesGiven.map(lane);
  check(new Set(all.map(({ name }) => name)).size === all.length, 'two lanes have one name');
  return { ...rest, urls, tls: tlsOptions(tls, urls), credentials: credentialsOption(credentials), lanes: all };
}
