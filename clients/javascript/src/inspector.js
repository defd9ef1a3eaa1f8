'use strict';

const http = require('node:http');
const https = require('node:https');
const { ApiError, NotFound, Unconfirmed, Unreachable } = require('./errors.js');
const { tlsOptions } = require('./tls.js');

const DEFAULT_API_URL = 'http://guest:guest@127.0.0.1:15680';
const TIMEOUT = 10; // s
const PAGE = 500; // queues in one answer
const NO_CONNECTION = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

const time = (seconds) => new Date(seconds * 1000);

function entry({ millrace: { set, at, class: name, queue, attempt }, ...record }) {
  return { set, at: time(at), class: name, queue, attempt, record };
}

function run({ at, class: name, queue, status, attempt, error_class: errorClass }) {
  return { at: time(at), class: name, queue, status, attempt, errorClass };
}

function size({ name, state, ready, unacked, scheduled, retries, dead }) {
  return { name, state, ready, running: unacked, scheduled, retries, dead };
}

/** The error that an answer stands for. */
function refusal(status, text) {
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    // Something else than a sidecar has answered.
  }
  if (typeof said?.error !== 'string') said = { error: 'unknown', reason: 'this is no answer of a sidecar' };
  if (status === 504) return new Unconfirmed(said.reason);
  return new (status === 404 ? NotFound : ApiError)(status, said.error, said.reason);
}

/** Finds jobs and acts on them, over the REST API of a sidecar. */
class Inspector {
  #url;
  #authorization;
  #timeout;
  #tls;

  constructor(options = /** @type {any} */ ({})) {
    const { url, token, timeout = TIMEOUT, tls, ...others } = { url: DEFAULT_API_URL, ...options };
    const [unknown] = Object.keys(others);
    if (unknown !== undefined) throw new TypeError(`millrace: there is no option ${unknown}`);
    if (!(Number.isFinite(timeout) && timeout > 0)) throw new TypeError(`millrace: timeout is ${timeout}`);
    this.#url = URL.canParse(url) ? new URL(url) : undefined;
    if (!['http:', 'https:'].includes(this.#url?.protocol)) {
      throw new TypeError("millrace: the sidecar's URL must be http://user:password@host:port, or https://");
    }
    const credentials = `${decodeURIComponent(this.#url.username)}:${decodeURIComponent(this.#url.password)}`;
    this.#authorization = token ? `Bearer ${token}` : `Basic ${Buffer.from(credentials).toString('base64')}`;
    this.#timeout = timeout;
    this.#tls = tlsOptions(tls, [this.#url.href], 'https://');
  }

  /** What is known of a job: where it waits, and how its attempts ended. Rejects with NotFound if nothing is. */
  async find(jid) {
    const { entries, runs = [] } = await this.#call('GET', ['jobs', jid]);
    return { jid, entries: entries.map(entry), runs: runs.map(run) };
  }

  /** Deletes a job that is scheduled, waits for a retry, or is dead. */
  async delete(jid) {
    await this.#call('DELETE', ['jobs', jid]);
  }

  /** Asks the worker that runs a job to cancel it: its signal `cancelled` is aborted. */
  async cancel(jid) {
    await this.#call('POST', ['jobs', jid, 'cancel']);
  }

  /** Puts a job that waits for a retry, or is dead, into its queue now. */
  async retry(jid) {
    await this.#call('POST', [await this.#set(jid, 'retries', 'dead-jobs'), jid, 'retry']);
  }

  /** Sets when a scheduled job, or a retry, is due. */
  async reschedule(jid, at) {
    if (!(at instanceof Date) || Number.isNaN(at.getTime())) throw new TypeError('millrace: the time is no valid Date');
    await this.#call('PATCH', [await this.#set(jid, 'scheduled-jobs', 'retries'), jid], { at: at.getTime() / 1000 });
  }

  /** How full a queue is. */
  async queue(name) {
    return size(await this.#call('GET', ['job-queues', name]));
  }

  /** All queues, by name. */
  async queues() {
    const all = [];
    for (;;) {
      const page = await this.#call('GET', ['job-queues'], undefined, `?limit=${PAGE}&offset=${all.length}`);
      all.push(...page.map(size));
      if (page.length < PAGE) return all;
    }
  }

  /** In which of some sets a job waits. */
  async #set(jid, ...sets) {
    const { entries } = await this.find(jid);
    const found = entries.find(({ set }) => sets.includes(set));
    if (!found) throw new NotFound(404, 'not_found', `job ${jid} is not in ${sets.join(' or ')}`);
    return found.set;
  }

  async #call(method, path, body, query = '') {
    const address = `${this.#url.pathname.replace(/\/$/, '')}/api/${path.map(encodeURIComponent).join('/')}${query}`;
    const { status, text } = await this.#send(method, address, body === undefined ? undefined : JSON.stringify(body));
    if (status >= 300) throw refusal(status, text);
    return text ? JSON.parse(text) : undefined;
  }

  /** Sends a request, and resolves to its answer. */
  #send(method, path, body) {
    const { protocol, hostname, port } = this.#url;
    const headers = { authorization: this.#authorization, ...(body !== undefined && { 'content-type': 'application/json' }) };
    const signal = AbortSignal.timeout(this.#timeout * 1000);
    const options = { method, path, hostname: hostname.replace(/^\[|\]$/g, ''), port, headers, signal, ...this.#tls };
    return new Promise((resolve, reject) => {
      const failed = (error) => {
        const where = `${protocol}//${hostname}:${port}`;
        reject(NO_CONNECTION.has(error.code)
          ? new Unreachable(`no sidecar at ${where}: ${error.message}`, { cause: error })
          : new Unconfirmed(`no answer from the sidecar at ${where}: ${error.message}`, undefined, { cause: error }));
      };
      const request = (protocol === 'https:' ? https : http).request(options, (answer) => {
        const parts = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('end', () => resolve({ status: answer.statusCode, text: Buffer.concat(parts).toString() }));
        answer.on('error', failed);
      });
      request.on('error', failed);
      request.end(body);
    });
  }
}

module.exports = { Inspector };
