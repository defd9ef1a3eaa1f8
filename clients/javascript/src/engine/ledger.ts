import { createHash } from 'node:crypto';
import type { ConsumeMessage } from 'amqplib';
import { Begins, type BeginRecord, type Key } from './begins.js';
import type { Engine } from './engine.js';
import { answer, close, exists, openChannel, pause, type Connection } from '../connection.js';
import { messageOf } from '../errors.js';
import { BEGINS, seconds } from '../format.js';
import type { Delivered } from '../parse.js';

// Milliseconds that a broker takes at most to remove the exclusive queue of a dead process, after
// it has begun to deliver that process's jobs again.
const AFTERMATH = 500;
// Milliseconds that a process may take to reconnect, before a job is buried for its death.
const GRACE = 10_000;
const READ_BACK = 30_000; // ms that a record may take to come back from the stream

/** A redelivered job, whose delivery may be lost while it waits for the ledger. */
interface Held {
  /** Waits while the delivery is held. Resolves to false if it is lost, or the worker stops. */
  pause(ms: number): Promise<boolean>;
  isLost(): boolean;
}

export const keyOf = (job: Delivered): Key => ({ jid: job.jid, body: createHash('sha256').update(job.text).digest('hex').slice(0, 16) });

/**
 * Reads and writes the stream jobs.begins, from which workers find jobs that kill their workers:
 * docs/client-contract.md, "Poison jobs". Without the stream, it lets every job begin.
 */
export class Ledger {
  #engine: Engine;
  #connection: Connection;
  #lost: Promise<Error>;
  #write: (body: Buffer) => Promise<void>;
  #begins = new Begins();
  #gone = new Set<string>();
  #waiting = new Map<string, (() => void)[]>();
  usable = false;

  /** `lost` resolves when the worker's connection is lost. `write` publishes to the stream. */
  constructor(engine: Engine, connection: Connection, lost: Promise<Error>, write: (body: Buffer) => Promise<void>) {
    this.#engine = engine;
    this.#connection = connection;
    this.#lost = lost;
    this.#write = write;
  }

  get #self(): string {
    return this.#engine.process;
  }

  /**
   * Writes that this process lives, whose exclusive queue is `control`, and begins to read. It reads
   * second, because a reader of an empty stream keeps LavinMQ busy.
   */
  async open(control: string): Promise<void> {
    if (this.#engine.config.maxDeaths <= 0) return;
    try {
      const opened = this.#publish({ type: 'opened', identity: this.#engine.identity, queue: control, queues: this.#engine.queues });
      if (await pause(READ_BACK, opened)) throw new Error('the broker does not confirm');
      await this.#read();
      this.usable = true;
    } catch (error) {
      this.#engine.log('warn', 'jobs that kill their workers are not found: there is no stream for it', { stream: BEGINS, error: messageOf(error) });
    }
  }

  /** Writes that this process has no jobs any more. */
  async close(): Promise<void> {
    // Otherwise it counts as dead: one of three.
    if (this.usable) await this.#publish({ type: 'closed' }).catch(() => {});
  }

  async #read(): Promise<void> {
    const channel = await openChannel(this.#connection);
    await channel.prefetch(500);
    const read = (message: ConsumeMessage | null): void => {
      if (!message) {
        close(channel);
        return;
      }
      this.#apply(message.content);
      answer(channel, 'ack', message);
    };
    await channel.consume(BEGINS, read, { arguments: { 'x-stream-offset': 'first' } });
    channel.lost.then(() => {
      this.usable = false;
    });
  }

  #apply(body: Buffer): void {
    let record: BeginRecord | null;
    try {
      record = JSON.parse(body.toString());
    } catch {
      return; // of another program
    }
    this.#begins.apply(record);
    if (record?.type !== 'begun' || record.process !== this.#self) return;
    const key = `${record.body} ${record.jid}`;
    for (const resolve of this.#waiting.get(key) ?? []) resolve();
    this.#waiting.delete(key);
  }

  #publish({ type, ...record }: { type: string; [name: string]: unknown }): Promise<void> {
    return this.#write(Buffer.from(JSON.stringify({ type, process: this.#self, ...record, at: seconds() })));
  }

  /**
   * Writes that a redelivered job begins. Resolves to the number of processes that died while they
   * ran it. Resolves to undefined if the job must not begin, because the worker stops or has lost
   * the delivery.
   */
  async begin(delivery: Held, job: Delivered): Promise<number | undefined> {
    if (!this.usable) return 0;
    if (!(await delivery.pause(AFTERMATH))) return undefined;
    const key = keyOf(job);
    const gone = await this.#look(key, job.queue);
    const blames = this.#begins.blame(key, job.queue, this.#self, job.enqueuedAt / 1000, gone);
    const read = this.#expect(key);
    try {
      await this.#publish({ type: 'begun', ...key, blames });
    } catch (error) {
      this.#engine.log('warn', 'a job begins that was delivered before, and that cannot be written down', { jid: job.jid, error: messageOf(error) });
      return delivery.isLost() ? undefined : 0;
    }
    if (await pause(READ_BACK, read, this.#lost)) return 0;
    if (delivery.isLost()) return undefined;
    const deaths = await this.#count(key, job.queue);
    if (deaths < this.#engine.config.maxDeaths) return deaths;
    // Wait before the job is buried: a process that seems dead may only be reconnecting.
    if (!(await delivery.pause(GRACE))) return undefined;
    this.#gone.clear();
    return this.#count(key, job.queue);
  }

  /** Writes that a job has ended whose begin was written. */
  ended(key: Key): Promise<void> {
    return this.#publish({ type: 'ended', ...key });
  }

  #expect({ jid, body }: Key): Promise<void> {
    const key = `${body} ${jid}`;
    return new Promise((resolve) => {
      this.#waiting.set(key, [...(this.#waiting.get(key) ?? []), resolve]);
    });
  }

  async #count(key: Key, queue: string): Promise<number> {
    return this.#begins.deaths(key, this.#self, await this.#look(key, queue));
  }

  /** Checks which of the processes that count for a job are dead. Writes newly found deaths. */
  async #look(key: Key, queue: string): Promise<Set<string>> {
    for (const [process, exclusive] of this.#begins.maybeDead(key, queue, this.#self)) {
      if (this.#gone.has(exclusive) || (await exists(this.#connection, exclusive).catch(() => true))) continue;
      this.#gone.add(exclusive);
      await this.#publish({ type: 'died', process }).catch(() => {});
    }
    return this.#gone;
  }
}
