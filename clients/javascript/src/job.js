'use strict';

const { MEMBERS } = require('./format.js');
const { items, members } = require('./scan.js');

/** What a handler works on. */
class Job {
  #text;
  #args;
  #fields;
  #stopping;
  #controller;

  constructor(data, stopping) {
    this.#text = data.text;
    this.#stopping = stopping;
    this.jid = data.jid;
    this.class = data.class;
    this.queue = data.queue;
    this.attempt = data.retryCount + 1;
    this.retryCount = data.retryCount;
    this.priority = data.priority;
    this.tags = data.tags;
    this.headers = data.headers;
  }

  /** The args as JSON.parse reads them: integers beyond 2⁵³ lose digits, see rawArgs. */
  get args() {
    this.#args ??= JSON.parse(this.#text).args ?? [];
    return this.#args;
  }

  /** The args as they are spelled, a JSON text for each. */
  get rawArgs() {
    const { found } = members(this.#text);
    const args = found.findLast((m) => m.name === 'args');
    const text = args ? this.#text.slice(args.begin, args.end) : '';
    return text.startsWith('[') ? items(text) : [];
  }

  /** The job's own members, which the option `fields` wrote: a tenant, a locale. */
  get fields() {
    this.#fields ??= Object.fromEntries(Object.entries(JSON.parse(this.#text)).filter(([name]) => !MEMBERS.has(name)));
    return this.#fields;
  }

  /** The job byte for byte. */
  get raw() {
    return Buffer.from(this.#text);
  }

  /** Aborted when the worker begins to stop. The job may go on until `cancelled` is. */
  get stopping() {
    return this.#stopping;
  }

  /** Aborted when the job has to end: its time is over, it was cancelled, or the worker's stop timeout is over. */
  get cancelled() {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  /** The job's W3C trace context, if it has one. */
  get traceparent() {
    return this.headers?.traceparent;
  }

  /** @internal */
  cancel(reason) {
    if (this.cancelled.aborted) return;
    this.#controller.abort(reason);
  }

  /** @internal */
  get cause() {
    return this.#controller?.signal.reason;
  }
}

module.exports = { Job };
