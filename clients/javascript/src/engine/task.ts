import type { Channel, ConsumeMessage } from 'amqplib';
import type { Engine, Running } from './engine.js';
import type { Lane } from './lane.js';
import { keyOf } from './ledger.js';
import type { Session } from './session.js';
import { Pauses, answer, pause, type Watched } from '../connection.js';
import { messageOf } from '../errors.js';
import { properties } from '../format.js';
import { attempt } from '../log.js';
import { expire, judge, poisoned, unknownClass, type Outcome, type Verdict } from '../outcome.js';
import type { Times } from '../outbox.js';
import { parseJob, type Delivered } from '../parse.js';
import { Lost } from '../publisher.js';

/** A delivery that waits. */
export interface Arrival {
  queue: string;
  message: ConsumeMessage;
  priority: number;
  at: number;
}

/** The processing of one delivery. */
export class Task implements Running {
  #channel: Watched<Channel>;
  #message: ConsumeMessage;
  #claimed = false; // it is being settled
  #suspect = false; // its begin is written to the ledger, and then its end
  #settled = false;
  #waiting: (() => void) | undefined; // called when it is settled
  readonly engine: Engine;
  readonly lane: Lane;
  readonly session: Session;
  readonly queue: string;
  id = 0; // until the engine adds it
  job: Delivered | undefined; // until it has begun
  since: number | undefined; // when it was given to its handler
  abortedAs: 'cancelled' | 'stopping' | undefined;
  verdictGiven = false;
  failed = false;
  died = false;

  constructor(lane: Lane, session: Session, channel: Watched<Channel>, arrival: Arrival) {
    this.engine = session.engine;
    this.lane = lane;
    this.session = session;
    this.queue = arrival.queue;
    this.#channel = channel;
    this.#message = arrival.message;
  }

  /** Resolves when the task is settled. It has room for one caller. */
  settling(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#settled) resolve();
      else this.#waiting = resolve;
    });
  }

  #done(): void {
    this.#settled = true;
    this.#waiting?.();
    this.engine.release(this);
  }

  /** Returns whether the delivery is lost, so that the broker delivers the job again. */
  isLost(): boolean {
    return this.#channel.gone || this.session.connection.gone;
  }

  /** Processes the delivery up to its outcome. */
  begin(): void {
    try {
      this.job = parseJob(this.#message.content, this.queue, this.#message.properties);
    } catch (error) {
      this.engine.log('error', 'a message is no job, it is rejected', { queue: this.queue, error: messageOf(error) });
      this.settle({ then: 'reject' });
      return;
    }
    if (this.#message.fields.redelivered && this.engine.config.maxDeaths > 0) this.#investigate(this.job);
    else this.start(this.job, 0);
  }

  async #investigate(job: Delivered): Promise<void> {
    this.#suspect = true;
    const deaths = await this.session.ledger.begin(this, job);
    if (deaths === undefined) this.settle({ then: 'requeue' });
    else this.start(job, deaths);
  }

  /** Waits while the delivery is held. Resolves to false if it is lost, or the worker stops. */
  pause(ms: number): Promise<boolean> {
    return pause(ms, this.#channel.lost, this.session.lost, this.engine.stopped.promise);
  }

  start(job: Delivered, deaths: number): void {
    const { config } = this.engine;
    const now = Date.now();
    // These end without a handler.
    if (config.maxDeaths > 0 && deaths >= config.maxDeaths) this.#end(job, poisoned(job, deaths, now), now, now);
    else if (job.expiresAt && job.expiresAt < now) this.#end(job, expire(job, now), now, now);
    else if (!config.classes.has(job.class)) this.#end(job, judge(job, unknownClass(job.class), { now }), now, now);
    else {
      this.since = now;
      this.engine.dispatch(this);
    }
  }

  /** Called when the handler has ended. */
  verdict(verdict: Verdict & Times): void {
    const job = this.job!;
    this.verdictGiven = true;
    this.failed = verdict.kind !== 'success';
    this.#end(job, judge(job, verdict, { now: verdict.end, stopping: this.engine.stopped.is }), verdict.begin, verdict.end);
  }

  #end(job: Delivered, outcome: Outcome, begin: number, end: number): void {
    if (this.#claimed) {
      this.engine.release(this); // it was handed back
      return;
    }
    const { next } = outcome;
    this.settle(outcome, next && this.engine.ended(this, { ...outcome, next }));
    if (outcome.then !== 'requeue') this.engine.metrics.add(job, outcome, begin, end);
  }

  /**
   * Settles an outcome after the failure hooks: publishes the record, waits for the confirm, and
   * only then acknowledges.
   */
  settle(outcome: Outcome, hooks?: Promise<void>): void {
    if (this.#claimed) {
      this.engine.release(this); // it was handed back
      return;
    }
    this.#claimed = true;
    if (outcome.record || hooks) this.#conclude(outcome, hooks);
    else this.#answer(outcome, true);
  }

  async #conclude(outcome: Outcome, hooks: Promise<void> | undefined): Promise<void> {
    await hooks;
    this.#answer(outcome, !outcome.record || (await this.#publish(outcome as Outcome & { stream: string; record: Buffer })));
  }

  #answer(outcome: Outcome, known: boolean): void {
    if (known) {
      answer(this.#channel, outcome.then, this.#message);
      if (outcome.died) this.engine.died(this, outcome.died);
    }
    this.#done();
    if (this.#suspect && this.job && outcome.then !== 'requeue') this.engine.writeEnd(keyOf(this.job));
  }

  /**
   * Publishes a record until it is confirmed. Resolves to false if the delivery is lost, because
   * then the broker delivers the job again.
   */
  async #publish({ stream, record }: { stream: string; record: Buffer }): Promise<boolean> {
    const job = this.job!;
    const message = { key: stream, body: record, properties: properties(job.jid, job.class, job.priority, job.headers['traceparent']) };
    for (const pauses = new Pauses(); ; ) {
      try {
        await this.session.publisher.publish(message);
        return true;
      } catch (error) {
        if (error instanceof Lost || this.isLost()) return false;
        this.engine.log('error', 'the broker does not take what became of a job; it is tried again', { jid: job.jid, stream, error: messageOf(error) });
      }
      await pause(pauses.next(), this.#channel.lost, this.session.lost);
      if (this.isLost()) return false;
    }
  }

  /** Requeues a job that has not ended. */
  handBack(): void {
    if (this.#claimed) return;
    this.#claimed = true;
    if (this.since && this.job) this.engine.log('warn', 'job handed back, its handler did not end within the stop timeout', attempt(this.job));
    answer(this.#channel, 'requeue', this.#message);
    this.#done();
  }
}
