import { METRICS, seconds } from '../format.js';
import type { Outcome } from '../outcome.js';
import type { Delivered } from '../parse.js';

type Send = (stream: string, body: Buffer) => unknown;

const KEPT = 10_000;
const AT_ONCE = 500;
const AFTER = 1_000; // ms
const LONGEST_WAIT = 1e12; // ms; a longer wait means that a clock is wrong

/**
 * Collects one record for each job, and sends them in arrays. Adding a record never blocks. A
 * record that does not fit is dropped and counted.
 */
export class Metrics {
  #identity: string;
  #records: object[] = [];
  #send: Send | undefined;
  #timer: NodeJS.Timeout | undefined;
  dropped = 0;

  constructor(identity: string) {
    this.#identity = identity;
  }

  add(job: Delivered, outcome: Pick<Outcome, 'status' | 'errorClass'>, begin: number, end: number): void {
    if (this.#records.length >= KEPT) {
      this.dropped++;
      return;
    }
    const wait = Math.max(Math.floor(begin - job.enqueuedAt), 0);
    this.#records.push({
      type: 'job_metric', timestamp: seconds(end), job_class: job.class, queue: job.queue, duration_ms: Math.max(Math.round(end - begin), 0),
      status: outcome.status, worker_identity: this.#identity, jid: job.jid,
      ...(job.enqueuedAt && job.retryCount === 0 && wait <= LONGEST_WAIT && { wait_ms: wait }),
      attempt: job.attempt, ...(outcome.errorClass && { error_class: outcome.errorClass.toWellFormed() }),
    });
    if (this.#records.length >= AT_ONCE) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), AFTER);
  }

  /** Sets the function that sends. It takes a stream and a body, and throws if it cannot send. */
  attach(send: Send): void {
    this.#send = send;
    this.flush();
  }

  detach(): void {
    this.#send = undefined;
  }

  /** Sends all records, if there is a connection. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#send && this.#records.length > 0) {
      const batch = this.#records.slice(0, AT_ONCE);
      try {
        this.#send(METRICS, Buffer.from(JSON.stringify(batch)));
      } catch {
        this.detach(); // the next connection sends them
        return;
      }
      this.#records.splice(0, AT_ONCE);
    }
  }

  get waiting(): object[] {
    return this.#records;
  }
}
