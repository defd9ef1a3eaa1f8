import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { ApiError, NotFound, Unconfirmed, Unreachable } from './errors.js';
import { tlsOptions } from './tls.js';
import type { TlsOptions } from './types.js';

const DEFAULT_API_URL = 'http://guest:guest@127.0.0.1:15680';
const TIMEOUT = 10; // s
const UNKNOWN: string = undefined!; // the jid of an error that concerns no job
const PAGE = 500; // queues or jobs in one answer
const SETS = ['scheduled-jobs', 'retries', 'dead-jobs', 'gated-jobs'] as const;

export interface InspectorOptions {
  /**
   * http://user:password@host:port, or https://. The user is one of the broker's. Default
   * http://guest:guest@127.0.0.1:15680.
   */
  url?: string;
  /** Replaces user and password, if the sidecar has tokens. */
  token?: string;
  /** How many seconds a call may take. Default 10. */
  timeout?: number;
  /** For https:// URLs. */
  tls?: TlsOptions;
}

/** A job that waits outside of its queue. */
export interface FoundEntry {
  jid: string;
  set: (typeof SETS)[number];
  /** When it is due, or when it died. */
  at: Date;
  class: string;
  queue: string;
  /** How many attempts have failed. */
  attempt: number;
  /** The published record, with the job as its member `job`. */
  record: { [name: string]: any };
}

/** An attempt that a worker reported. */
export interface FoundRun {
  /** When it ended. */
  at: Date;
  class: string;
  queue: string;
  status: 'success' | 'failed' | 'dead' | 'discarded' | 'expired';
  /** From 1; 0 if the worker did not report it. */
  attempt: number;
  errorClass?: string;
}

/** A job. Without an entry it is in its queue, runs, or has ended. */
export interface FoundJob {
  jid: string;
  entries: FoundEntry[];
  /** The newest first. */
  runs: FoundRun[];
}

/** How full a queue is. */
export interface QueueSize {
  name: string;
  /** running, idle, no_consumers, paused, or a state of the broker. */
  state: string;
  /** How many jobs wait in it. */
  ready: number;
  /** How many jobs workers have; null if the broker does not report it. */
  running: number | null;
  /** How many jobs of this queue wait elsewhere. */
  scheduled: number;
  retries: number;
  dead: number;
}

const NO_CONNECTION = new Set<string | undefined>(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

/** The sidecar's answers about a job, an attempt and a queue: docs/api.md. */
interface EntryAnswer {
  jid?: string;
  job?: { jid?: string };
  millrace: { set?: FoundEntry['set']; at: number; class: string; queue: string; attempt: number };
  [name: string]: unknown;
}
interface RunAnswer {
  at: number;
  class: string;
  queue: string;
  status: FoundRun['status'];
  attempt: number;
  error_class?: string;
}
type QueueAnswer = Omit<QueueSize, 'running'> & { unacked: number | null };

const time = (seconds: number): Date => new Date(seconds * 1000);

function entry({ millrace, ...record }: EntryAnswer, jid: string, set: FoundEntry['set']): FoundEntry {
  const { at, class: name, queue, attempt } = millrace;
  return { jid, set, at: time(at), class: name, queue, attempt, record };
}

function run({ at, class: name, queue, status, attempt, error_class: errorClass }: RunAnswer): FoundRun {
  return { at: time(at), class: name, queue, status, attempt, errorClass };
}

function size({ name, state, ready, unacked, scheduled, retries, dead }: QueueAnswer): QueueSize {
  return { name, state, ready, running: unacked, scheduled, retries, dead };
}

/** Returns the error for an answer. */
function refusal(status: number, text: string): Error {
  let said: { error: string; reason: string } | undefined;
  try {
    said = JSON.parse(text);
  } catch {
    // This is not the answer of a sidecar.
  }
  if (typeof said?.error !== 'string') said = { error: 'unknown', reason: 'this is no answer of a sidecar' };
  if (status === 504) return new Unconfirmed(said.reason, UNKNOWN);
  return new (status === 404 ? NotFound : ApiError)(status, said.error, said.reason);
}

/**
 * Finds jobs and acts on them, over the REST API of a sidecar.
 *
 * Every method may reject with:
 *
 * - ApiError: the sidecar refuses the request
 * - NotFound: there is no such job or queue
 * - Unreachable: no sidecar was reached
 * - Unconfirmed: there was no answer. The action may have been done, and it is safe to repeat it
 */
export class Inspector {
  #url: URL;
  #authorization: string;
  #timeout: number;
  #tls: TlsOptions | undefined;

  constructor(options: InspectorOptions = {}) {
    const { url, token, timeout = TIMEOUT, tls, ...others } = { url: DEFAULT_API_URL, ...options };
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) throw new TypeError(`millrace: there is no option ${unknown}`);
    if (!(Number.isFinite(timeout) && timeout > 0)) throw new TypeError(`millrace: timeout is ${timeout}`);
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    if (!parsed || !['http:', 'https:'].includes(parsed.protocol)) {
      throw new TypeError("millrace: the sidecar's URL must be http://user:password@host:port, or https://");
    }
    this.#url = parsed;
    const credentials = `${decodeURIComponent(this.#url.username)}:${decodeURIComponent(this.#url.password)}`;
    this.#authorization = token ? `Bearer ${token}` : `Basic ${Buffer.from(credentials).toString('base64')}`;
    this.#timeout = timeout;
    this.#tls = tlsOptions(tls, [this.#url.href], 'https://');
  }

  /**
   * Finds a job: where it waits, and how its attempts ended. Rejects with NotFound if it is not
   * known.
   */
  async find(jid: string): Promise<FoundJob> {
    const { entries, runs = [] } = await this.#call<{ entries: EntryAnswer[]; runs?: RunAnswer[] }>('GET', ['jobs', jid]);
    return { jid, entries: entries.map((item) => entry(item, jid, item.millrace.set!)), runs: runs.map(run) };
  }

  /**
   * Finds the jobs with a tag that wait outside of their queues: those that are scheduled, wait for
   * a retry, are dead, or wait until their queue exists. It asks the sidecar for some at a time. A
   * job that moves meanwhile may come twice. Records over 64 KiB are not searched.
   */
  async *findByTag(tag: string): AsyncGenerator<FoundEntry, void, void> {
    for (const set of SETS) {
      const query = new URLSearchParams({ tag, page: '1', page_size: String(PAGE) });
      for (;;) {
        const { items, next } = await this.#call<{ items: EntryAnswer[]; next: string | null }>('GET', [set], undefined, `?${query}`);
        for (const item of items) yield entry(item, item.jid ?? item.job?.jid ?? '', set);
        if (next === null) break;
        query.set('next', next);
      }
    }
  }

  /** Deletes a job that is scheduled, waits for a retry, or is dead. */
  async delete(jid: string): Promise<void> {
    await this.#call('DELETE', ['jobs', jid]);
  }

  /**
   * Asks the worker that runs a job to cancel it, which aborts its signal `cancelled`. Rejects with
   * NotFound if no worker reports that it runs the job.
   */
  async cancel(jid: string): Promise<void> {
    await this.#call('POST', ['jobs', jid, 'cancel']);
  }

  /** Puts a job that waits for a retry, or is dead, into its queue now. */
  async retry(jid: string): Promise<void> {
    await this.#call('POST', [await this.#set(jid, 'retries', 'dead-jobs'), jid, 'retry']);
  }

  /** Sets when a scheduled job, or a retry, is due. */
  async reschedule(jid: string, at: Date): Promise<void> {
    if (!(at instanceof Date) || Number.isNaN(at.getTime())) throw new TypeError('millrace: the time is no valid Date');
    await this.#call('PATCH', [await this.#set(jid, 'scheduled-jobs', 'retries'), jid], { at: at.getTime() / 1000 });
  }

  /** Resolves to how full a queue is. */
  async queue(name: string): Promise<QueueSize> {
    return size(await this.#call('GET', ['job-queues', name]));
  }

  /** Resolves to all queues, by name. */
  async queues(): Promise<QueueSize[]> {
    const all: QueueSize[] = [];
    for (;;) {
      const page = await this.#call<QueueAnswer[]>('GET', ['job-queues'], undefined, `?limit=${PAGE}&offset=${all.length}`);
      all.push(...page.map(size));
      if (page.length < PAGE) return all;
    }
  }

  /** Resolves to the set in which a job waits, out of some sets. */
  async #set(jid: string, ...sets: FoundEntry['set'][]): Promise<string> {
    const { entries } = await this.find(jid);
    const found = entries.find(({ set }) => sets.includes(set));
    if (!found) throw new NotFound(404, 'not_found', `job ${jid} is not in ${sets.join(' or ')}`);
    return found.set;
  }

  async #call<T = any>(method: string, path: string[], body?: object, query = ''): Promise<T> {
    const address = `${this.#url.pathname.replace(/\/$/, '')}/api/${path.map(encodeURIComponent).join('/')}${query}`;
    const { status, text } = await this.#send(method, address, body === undefined ? undefined : JSON.stringify(body));
    if (status >= 300) throw refusal(status, text);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /** Sends a request, and resolves to its answer. */
  #send(method: string, path: string, body: string | undefined): Promise<{ status: number; text: string }> {
    const { protocol, hostname, port } = this.#url;
    const headers = { authorization: this.#authorization, ...(body !== undefined && { 'content-type': 'application/json' }) };
    const signal = AbortSignal.timeout(this.#timeout * 1000);
    const options = { method, path, hostname: hostname.replace(/^\[|\]$/g, ''), port, headers, signal, ...this.#tls };
    return new Promise((resolve, reject) => {
      const failed = (error: NodeJS.ErrnoException) => {
        const where = `${protocol}//${hostname}:${port}`;
        reject(NO_CONNECTION.has(error.code)
          ? new Unreachable(`no sidecar at ${where}: ${error.message}`, { cause: error })
          : new Unconfirmed(`no answer from the sidecar at ${where}: ${error.message}`, UNKNOWN, { cause: error }));
      };
      const request = (protocol === 'https:' ? httpsRequest : httpRequest)(options, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString() }));
        answer.on('error', failed);
      });
      request.on('error', failed);
      request.end(body);
    });
  }
}
