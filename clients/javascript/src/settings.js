'use strict';

const { queueName, queueNameFault } = require('./format.js');
const { DEFAULT_URL, splitHosts } = require('./hosts.js');
const { tlsOptions } = require('./tls.js');
const { VERSION } = require('./version.js');

const DEFAULTS = { concurrency: 5, tag: '', stopTimeout: 25, maxDeaths: 3, declare: true, heartbeat: 10, version: `millrace-js ${VERSION}` };
const NAMES = new Set([...Object.keys(DEFAULTS), 'url', 'queues', 'lanes', 'labels', 'logger', 'thread', 'tls']);

function check(ok, what) {
  if (!ok) throw new TypeError(`millrace: ${what}`);
}

/** Queues in an array are strict, in an object weighted. */
function lane({ name, queues, concurrency = DEFAULTS.concurrency }) {
  const strict = Array.isArray(queues);
  const names = (strict ? queues : Object.keys(queues)).map(queueName);
  const weights = strict ? undefined : Object.values(queues);
  check(names.length > 0 && new Set(names).size === names.length, `lane ${name} needs queues, each once`);
  for (const q of names) check(!queueNameFault(q), `lane ${name}: ${queueNameFault(q)}`);
  check(!weights || weights.every((w) => Number.isFinite(w) && w > 0), `lane ${name}: weights are numbers above 0`);
  check(Number.isInteger(concurrency) && concurrency > 0 && concurrency <= 32_767, `lane ${name}: concurrency is ${concurrency}`);
  return { name, queues: names, weights, concurrency };
}

/**
 * The configuration of a worker, complete and checked.
 *
 * @param {any} given
 */
function settings(given) {
  for (const name of Object.keys(given)) check(NAMES.has(name), `there is no option ${name}`);
  /** @type {any} */
  const set = Object.fromEntries(Object.entries(given).filter(([name, value]) => value !== undefined && name !== 'logger'));
  const { tls, queues, lanes = [], concurrency, ...rest } = { ...DEFAULTS, ...set };
  const urls = splitHosts('url' in given ? given.url : DEFAULT_URL);
  for (const name of ['stopTimeout', 'maxDeaths', 'heartbeat']) check(Number.isFinite(rest[name]) && rest[name] >= 0, `${name} is ${rest[name]}`);
  check(rest.heartbeat > 0, 'heartbeat is 0');
  check(!rest.tag.includes(':'), `the tag ${rest.tag} has a colon`);
  const own = queues ?? (lanes.length ? undefined : ['default']);
  const all = [...(own ? [{ name: 'default', queues: own, concurrency }] : []), ...lanes].map(lane);
  check(new Set(all.map(({ name }) => name)).size === all.length, 'two lanes have one name');
  return { ...rest, urls, tls: tlsOptions(tls, urls), lanes: all };
}

module.exports = { settings };
