'use strict';

const { lookup } = require('node:dns/promises');
const { brokerUrl, dial, pause, unwelcome } = require('./connection.js');

const LOOKUP_TIMEOUT = 3_000;
const PORTS = { 'amqp://': 5672, 'amqps://': 5671 };
const EMPTY_HOST = "the broker's URL has an empty host: write amqp://user:password@a,b/vhost";
const ANY_PORT = /^[0-9]{1,5}$/;

/** The hosts of a broker, and which of them took this client last. */
class Hosts {
  #urls;
  #tls;
  #url;
  #address;
  #lost = false; // that connection has been used: it is gone when the next one is wanted

  /** Takes a URL for each host, as splitHosts gives them, and TLS options. */
  constructor(urls, tls) {
    this.#urls = urls;
    this.#tls = tls;
  }

  /** Connects to the first host that takes us, and tries each of them, and each of their addresses, once. Throws Unreached. */
  async dial(name) {
    const failures = [];
    for (const url of tryOrder(this.#urls, this.#url, this.#lost)) {
      for (const address of await this.#addresses(url, failures)) {
        try {
          const connection = await dial(url, address, name, this.#tls);
          this.#url = url;
          this.#address = address.address;
          this.#lost = true;
          return connection;
        } catch (error) {
          failures.push({ host: address.address, error });
        }
      }
    }
    this.#lost = false;
    throw new Unreached(failures);
  }

  /** The addresses of the host of a URL, in the order in which to try them. */
  async #addresses(url, failures) {
    const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
    const looking = lookup(host, { all: true });
    try {
      if (await pause(LOOKUP_TIMEOUT, looking)) throw new Error('no answer in time');
      const found = await looking;
      const order = tryOrder(found.map((a) => a.address), this.#address, this.#lost);
      return order.map((address) => found.find((a) => a.address === address));
    } catch (error) {
      looking.catch(() => {}); // it may fail later
      failures.push({ host, error });
      return [];
    }
  }
}

/** No host took us. */
class Unreached extends Error {
  constructor(failures) {
    super(failures.map(({ host, error }) => `${host}: ${error.message}`).join('; '));
    this.unwelcome = failures.some(({ error }) => unwelcome(error));
  }
}

/** The order in which to try hosts, or addresses: the last good one first, but last when its connection was just lost; the others shuffled. */
function tryOrder(all, good, lost) {
  const others = all.filter((one) => one !== good);
  for (let i = others.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [others[i], others[j]] = [others[j], others[i]];
  }
  if (others.length === all.length) return others;
  return lost ? [...others, good] : [good, ...others];
}

function fail(text) {
  throw new TypeError(`millrace: ${text}`);
}

/** The broker where none is named. */
const DEFAULT_URL = 'amqp://guest:guest@127.0.0.1:5672/';

/**
 * A URL for each host of a URL, or of an array of URLs. Each may be several, with commas between them. A TypeError says what is wrong, and
 * never shows the password.
 */
function splitHosts(urls) {
  const found = new Map(); // by host and port
  let rest; // of all URLs, what is not host and port
  for (const url of [urls].flat().flatMap((text) => String(text).split(/,\s*(?=amqps?:\/\/)/).map((part) => part.trim()))) {
    const parts = /^(amqps?:\/\/)([^/?#]*)([^]*)$/.exec(url);
    if (!parts) fail("the broker's URL must begin with amqp:// or amqps://");
    const [, scheme, authority, tail] = parts;
    const at = authority.lastIndexOf('@') + 1;
    const before = scheme + authority.slice(0, at);
    if (url.endsWith(',')) fail(EMPTY_HOST); // it would count as the virtual host's
    if (at === 0 && tail.includes('@')) fail("the broker's URL has an @ behind a /, ? or #: write these characters as %40, %2F, %3F and %23");
    const one = before + (tail === '/' ? '' : tail);
    rest ??= one;
    if (rest !== one) fail("the broker's URLs may differ in host and port only");
    for (const text of (authority.slice(at) || 'localhost').split(',')) {
      const host = withPort(text.trim(), scheme);
      found.set(host, before + host + tail);
    }
  }
  if (found.size === 0) fail('no URL of a broker is given');
  for (const url of found.values()) brokerUrl(url);
  return [...found.values()];
}

/** A host with its port, or with that of the scheme. */
function withPort(text, scheme) {
  if (/^(:[^:]*)?$/.test(text)) fail(EMPTY_HOST);
  const bare = !text.startsWith('[') && text.split(':').length > 2;
  const parts = /^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([^]*))?$/.exec(text);
  if (bare || !parts) fail(`the broker's URL has an invalid host: "${text}"${bare ? ' (an IPv6 address needs brackets)' : ''}`);
  const [, host, port] = parts;
  if (port === undefined) return `${host}:${PORTS[scheme]}`;
  if (!ANY_PORT.test(port) || Number(port) < 1 || Number(port) > 65_535) {
    fail(`the port of host "${host}" must be a number from 1 to 65535, not "${port}"`);
  }
  return text;
}

module.exports = { DEFAULT_URL, Hosts, Unreached, tryOrder, splitHosts };
