import { lookup } from 'node:dns/promises';
import { brokerUrl, dial, pause, unwelcome, type Address, type Connection } from './connection.js';
import { messageOf } from './errors.js';
import type { Credentials, TlsOptions } from './types.js';

const LOOKUP_TIMEOUT = 3_000;
const ASK_TIMEOUT = 30_000; // ms that the function for credentials may take
const PORTS: Record<string, number> = { 'amqp://': 5672, 'amqps://': 5671 };
const EMPTY_HOST = "the broker's URL has an empty host: write amqp://user:password@a,b/vhost";
const ANY_PORT = /^[0-9]{1,5}$/;

/** Returns the user of the next connection. */
export type Ask = () => Credentials | Promise<Credentials>;

interface HostFailure {
  host: string;
  error: unknown;
}

/** The hosts of a broker. It remembers the host to which this client connected last. */
export class Hosts {
  #urls: string[];
  #tls: TlsOptions | undefined;
  #ask: Ask | undefined;
  #url: string | undefined;
  #address: string | undefined;
  // Whether the last attempt connected; then a new attempt means that the connection was lost.
  #lost = false;
  #asked: Promise<Credentials> | undefined; // the program's pending answer

  /**
   * Takes a URL for each host (see splitHosts), TLS options, and a function that returns the
   * credentials of each connection.
   */
  constructor(urls: string[], tls?: TlsOptions, ask?: Ask) {
    this.#urls = urls;
    this.#tls = tls;
    this.#ask = ask;
  }

  /**
   * Connects to the first host that accepts. It tries each address of each host once. Throws
   * Unreached if none accepts, and NoCredentials if the program gives none. When `ended` is
   * settled, it stops waiting for credentials.
   */
  async dial(name: string, ended: Promise<void> = new Promise(() => {})): Promise<Connection> {
    const user = await this.#user(ended);
    const failures: HostFailure[] = [];
    for (const url of tryOrder(this.#urls, this.#url, this.#lost)) {
      for (const address of await this.#addresses(url, failures)) {
        try {
          const connection = await dial(url, address, name, this.#tls, user);
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

  /**
   * Resolves to the credentials that the program gives for this connection, or to undefined if
   * those of the URL are used. While a call of the program's function is pending, no other is made.
   * So a function that hangs costs one call, however many attempts to connect fail.
   */
  async #user(ended: Promise<void>): Promise<Credentials | undefined> {
    if (!this.#ask) return undefined;
    this.#asked ??= askFor(this.#ask).finally(() => {
      this.#asked = undefined;
    });
    const asked = this.#asked;
    asked.catch(() => {}); // it may fail later
    const closed = ended.then(() => {
      throw new Error('the client is closed');
    });
    try {
      if (await pause(ASK_TIMEOUT, asked, closed)) throw new Error(`no answer in ${ASK_TIMEOUT / 1000} s`);
      return await Promise.race([asked, closed]);
    } catch (error) {
      throw new NoCredentials(`credentials: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Resolves to the addresses of the URL's host, in the order in which to try them. */
  async #addresses(url: string, failures: HostFailure[]): Promise<Address[]> {
    const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
    const looking = lookup(host, { all: true });
    try {
      if (await pause(LOOKUP_TIMEOUT, looking)) throw new Error('no answer in time');
      const found = await looking;
      const order = tryOrder(found.map((a) => a.address), this.#address, this.#lost);
      return order.flatMap((address) => found.find((a) => a.address === address) ?? []);
    } catch (error) {
      looking.catch(() => {}); // it may fail later
      failures.push({ host, error });
      return [];
    }
  }
}

/** No host accepted a connection. */
export class Unreached extends Error {
  readonly unwelcome: boolean;

  constructor(failures: HostFailure[]) {
    super(failures.map(({ host, error }) => `${host}: ${messageOf(error)}`).join('; '));
    this.unwelcome = failures.some(({ error }) => unwelcome(error));
  }
}

/**
 * The program gave no credentials. The client asks again for the next connection, even if the error
 * looks like a refusal by the broker.
 */
class NoCredentials extends Error {
  readonly unwelcome = false;
}

/** Asks for credentials, and checks them. */
export async function askFor(ask: Ask): Promise<Credentials> {
  const { username, password } = ((await ask()) ?? {}) as Partial<Credentials>;
  if (typeof username !== 'string' || typeof password !== 'string') {
    throw new TypeError('the function must return { username, password }, both strings');
  }
  return { username, password };
}

/**
 * Returns the order in which to try hosts or addresses. The last good one is first, or last if its
 * connection was just lost. The others are in random order.
 */
export function tryOrder(all: string[], good: string | undefined, lost: boolean): string[] {
  const others = all.filter((one) => one !== good);
  for (let i = others.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [others[i], others[j]] = [others[j]!, others[i]!];
  }
  if (good === undefined || others.length === all.length) return others;
  return lost ? [...others, good] : [good, ...others];
}

function fail(text: string): never {
  throw new TypeError(`millrace: ${text}`);
}

/** The URL that is used if none is given. */
export const DEFAULT_URL = 'amqp://guest:guest@127.0.0.1:5672/';

/**
 * Returns a URL for each host of a URL or an array of URLs. Each text may contain several URLs,
 * separated by commas. Throws TypeError with the reason, and never with the password.
 */
export function splitHosts(urls: string | string[]): string[] {
  const found = new Map<string, string>(); // by host and port
  let rest: string | undefined; // the part without host and port, which all URLs must share
  for (const url of [urls].flat().flatMap((text) => String(text).split(/,\s*(?=amqps?:\/\/)/).map((part) => part.trim()))) {
    const parts = /^(amqps?:\/\/)([^/?#]*)([^]*)$/.exec(url);
    if (!parts) fail("the broker's URL must begin with amqp:// or amqps://");
    const [, scheme = '', authority = '', tail = ''] = parts;
    const at = authority.lastIndexOf('@') + 1;
    const before = scheme + authority.slice(0, at);
    if (url.endsWith(',')) fail(EMPTY_HOST); // the comma would become part of the virtual host
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

/** Returns a host with its port, or with the default port of the scheme. */
function withPort(text: string, scheme: string): string {
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
