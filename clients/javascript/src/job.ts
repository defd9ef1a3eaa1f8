import { MEMBERS, traceparent } from './format.js';
import type { JobData } from './outbox.js';
import { items, members } from './scan.js';
import type { Parsed } from './types.js';

/** A job, as its handler gets it. */
export class Job<A extends readonly unknown[] = any> {
  #text: string;
  #args: Parsed<A> | undefined;
  #fields: { readonly [name: string]: any } | undefined;
  #stopping: AbortSignal;
  #controller: AbortController | undefined;
  readonly jid: string;
  readonly class: string;
  /** The queue that it came from. */
  readonly queue: string;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  /** How often it failed. */
  readonly retryCount: number;
  readonly priority: number;
  readonly tags: string[];
  /** The headers of the message. */
  readonly headers: { [name: string]: unknown };

  /** A worker makes its jobs; tests make them with millrace-jobs/testing. */
  constructor(data: JobData, stopping: AbortSignal) {
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

  /** The args as JSON.parse reads them. Integers beyond 2⁵³ lose digits: see rawArgs. */
  get args(): Parsed<A> {
    this.#args ??= (JSON.parse(this.#text).args ?? []) as Parsed<A>;
    return this.#args;
  }

  /** The JSON text of each arg, for example for BigInt(job.rawArgs[0]). */
  get rawArgs(): string[] {
    const { found } = members(this.#text);
    const args = found.findLast((m) => m.name === 'args');
    const text = args ? this.#text.slice(args.begin, args.end) : '';
    return text.startsWith('[') ? items(text) : [];
  }

  /** The program's own members of the job, such as a tenant, as the option `fields` set them. */
  get fields(): { readonly [name: string]: any } {
    this.#fields ??= Object.fromEntries(Object.entries(JSON.parse(this.#text)).filter(([name]) => !MEMBERS.has(name)));
    return this.#fields;
  }

  /** The body of the job, byte for byte. */
  get raw(): Buffer {
    return Buffer.from(this.#text);
  }

  /**
   * Aborted when the worker begins to stop. The job may continue until `cancelled` is aborted, at
   * the end of the stop timeout.
   */
  get stopping(): AbortSignal {
    return this.#stopping;
  }

  /** Aborted when the job must end. Its reason is a Timeout, a Cancelled or a Stopping. */
  get cancelled(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  /** The job's W3C trace context, if it has one. */
  get traceparent(): string | undefined {
    return traceparent(this.headers?.traceparent);
  }

  /** @internal */
  cancel(reason: Error): void {
    if (this.cancelled.aborted) return;
    this.#controller?.abort(reason);
  }

  /** @internal */
  get cause(): unknown {
    return this.#controller?.signal.reason;
  }
}
