import { createHash } from 'node:crypto';
import type { ConsumeMessage } from 'amqplib';
import { Begins, type BeginRecord, type Key } from './begins.js';
import type { Engine } from './engine.js';
import type { Session } from './session.js';
import type { Task } from './task.js';
import { answer, close, openChannel, pause } from '../connection.js';
import { messageOf } from '../errors.js';
import { BEGINS, seconds } from '../format.js';
import type { Delivered } from '../parse.js';

const AFTERMATH = 500; // ms that a broker takes at most to remove the exclusive queue of a dead process whose jobs it hands out again
const GRACE = 10_000; // ms that a process may take to connect again before a job is buried because of its death
const READ_BACK = 30_000; // ms that a record may take to come back from the stream

export const keyOf = (job: Delivered): Key => ({ jid: job.jid, body: createHash('sha256').update(job.text).digest('hex').slice(0, 16) });

/**
 * Reads and writes the stream of begins, by which workers find jobs that kill them; docs/client-contract.md, "Poison jobs". Without the
 * stream it lets everything begin.
 */
export class Ledger {
  #session: Session;
  #engine: Engine;
  #begins = new Begins();
  #gone = new Set<string>();
  #waiting = new Map<string, (() => void)[]>();
  usable = false;

  constructor(session: Session) {
    this.#session = session;
    this.#engine = session.engine;
  }

  get #self(): string {
    return this.#engine.process;
  }

  /** Starts to read, and says that this process lives. */
  async open(): Promise<void> {
    if (this.#engine.config.maxDeaths <= 0) return;
    try {
      await this.#read();
      const opened = this.#publish({ type: 'opened', identity: this.#engine.identity, queue: this.#session.control, queues: this.#engine.queues });
      if (await pause(READ_BACK, opened)) throw new Error('the broker does not confirm');
      this.usable = true;
    } catch (error) {
      this.#engine.log('warn', 'jobs that kill their workers are not found: there is no stream for it', { stream: BEGINS, error: messageOf(error) });
    }
  }

  /** Says that this process has nothing in hand any more. */
  async close(): Promise<void> {
    if (this.usable) await this.#publish({ type: 'closed' }).catch(() => {}); // else it counts as dead: one of three
  }

  async #read(): Promise<void> {
    const channel = await openChannel(this.#session.connection);
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
      return; // somebody else's
    }
    this.#begins.apply(record);
    if (record?.type !== 'begun' || record.process !== this.#self) return;
    const key = `${record.body} ${record.jid}`;
    for (const resolve of this.#waiting.get(key) ?? []) resolve();
    this.#waiting.delete(key);
  }

  #publish({ type, ...record }: { type: string; [name: string]: unknown }): Promise<void> {
    const body = Buffer.from(JSON.stringify({ type, process: this.#self, ...record, at: seconds() }));
    return this.#session.publish(BEGINS, body);
  }

  /**
   * Writes down that a job begins which was delivered before, and counts how often that went wrong. Undefined: it must not begin, for
   * the worker stops or has lost the delivery.
   */
  async begin(task: Task, job: Delivered): Promise<number | undefined> {
    if (!this.usable) return 0;
    if (!(await task.pause(AFTERMATH))) return undefined;
    const key = keyOf(job);
    const gone = await this.#look(key, job.queue);
    const blames = this.#begins.blame(key, job.queue, this.#self, job.enqueuedAt / 1000, gone);
    const read = this.#expect(key);
    try {
      await this.#publish({ type: 'begun', ...key, blames });
    } catch (error) {
      this.#engine.log('warn', 'a job begins that was delivered before, and that cannot be written down', { jid: job.jid, error: messageOf(error) });
      return task.isLost() ? undefined : 0;
    }
    if (await pause(READ_BACK, read, this.#session.lost)) return 0;
    if (task.isLost()) return undefined;
    const deaths = await this.#count(key, job.queue);
    if (deaths < this.#engine.config.maxDeaths) return deaths;
    // It is to be buried, unless a process that seems dead was only cut off.
    if (!(await task.pause(GRACE))) return undefined;
    this.#gone.clear();
    return this.#count(key, job.queue);
  }

  /** Writes down that a job has ended whose begin was. */
  ended(job: Delivered): Promise<void> {
    return this.#publish({ type: 'ended', ...keyOf(job) });
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

  /** Finds out which of the processes that matter for a job are dead, and writes down what is new. */
  async #look(key: Key, queue: string): Promise<Set<string>> {
    for (const [process, exclusive] of this.#begins.doubtful(key, queue, this.#self)) {
      if (this.#gone.has(exclusive) || (await this.#session.exists(exclusive).catch(() => true))) continue;
      this.#gone.add(exclusive);
      await this.#publish({ type: 'died', process }).catch(() => {});
    }
    return this.#gone;
  }
}
