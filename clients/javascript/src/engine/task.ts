import type { Channel, ConsumeMessage } from 'amqplib';
import { claim } from './control.js';
import type { Engine, Running } from './engine.js';
import type { Lane } from './lane.js';
import { keyOf } from './ledger.js';
import type { Session } from './session.js';
import { DROPPED, endRecord, ends, mustClaim, slotOf } from './slot.js';
import { Pauses, answer, pause, type Watched } from '../connection.js';
import { messageOf } from '../errors.js';
import { ENDS, properties } from '../format.js';
import { attempt } from '../log.js';
import { expire, judge, poisoned, unknownClass, type Outcome, type Verdict } from '../outcome.js';
import type { Fields, Times } from '../outbox.js';
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
  #slot: string | undefined; // of a job that limits count
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
    this.#slot = slotOf(arrival.message);
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
    if (this.#slot !== undefined && mustClaim(this.#message, this.session.claimBelow)) this.#claim(this.job, this.#slot);
    else this.#admit(this.job);
  }

  /** Asks the leader whether a job that may have begun before may run, until it has answered. */
  async #claim(job: Delivered, slot: string): Promise<void> {
    for (const pauses = new Pauses(); ; ) {
      const answer = await claim(this.engine, this.session.connection, slot);
      if (answer === 'drop') this.settle(DROPPED);
      else if (answer === 'run' && !this.#claimed && !this.isLost()) this.#admit(job);
      else if (answer === undefined && (await this.pause(pauses.next()))) continue;
      else this.settle({ then: 'requeue' });
      return;
    }
  }

  #admit(job: Delivered): void {
    if (this.#message.fields.redelivered && this.engine.config.maxDeaths > 0) this.#investigate(job);
    else this.start(job, 0);
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
   * Settles an outcome after the failure hooks: publishes the record, and the end of a job that
   * limits count. Waits for the confirms, and only then acknowledges.
   */
  settle(outcome: Outcome, hooks?: Promise<void>): void {
    if (this.#claimed) {
      this.engine.release(this); // it was handed back
      return;
    }
    this.#claimed = true;
    if (outcome.record || hooks || this.#slot !== undefined) this.#conclude(outcome, hooks);
    else this.#answer(outcome, true);
  }

  async #conclude(outcome: Outcome, hooks: Promise<void> | undefined): Promise<void> {
    await hooks;
    const recorded = !outcome.record || (await this.#publish(outcome as Outcome & { stream: string; record: Buffer }));
    this.#answer(outcome, recorded && (!ends(outcome) || (await this.#reportEnd())));
  }

  #answer(outcome: Outcome, known: boolean): void {
    if (known) {
      answer(this.#channel, outcome.then, this.#message);
      if (outcome.died) this.engine.died(this, outcome.died);
    }
    this.#done();
    if (this.#suspect && this.job && outcome.then !== 'requeue') this.engine.writeEnd(keyOf(this.job));
  }

  #publish({ stream, record }: { stream: string; record: Buffer }): Promise<boolean> {
    const job = this.job!;
    const message = { key: stream, body: record, properties: properties(job.jid, job.class, job.priority, job.headers['traceparent']) };
    return this.#untilConfirmed(() => this.session.publisher.publish(message), 'the broker does not take what became of a job; it is tried again', { jid: job.jid, stream });
  }

  /** Reports that the job has ended, if limits count it. */
  async #reportEnd(): Promise<boolean> {
    const slot = this.#slot;
    if (slot === undefined) return true;
    const body = endRecord(slot, this.engine.identity);
    return this.#untilConfirmed(() => this.session.publish(ENDS, body), 'the broker does not take that a job has ended; it is tried again', { slot });
  }

  /**
   * Repeats a publish until it is confirmed. Resolves to false if the delivery is lost, because
   * then the broker delivers the job again.
   */
  async #untilConfirmed(publish: () => Promise<void>, fault: string, fields: Fields): Promise<boolean> {
    for (const pauses = new Pauses(); ; ) {
      try {
        await publish();
        return true;
      } catch (error) {
        if (error instanceof Lost || this.isLost()) return false;
        this.engine.log('error', fault, { ...fields, error: messageOf(error) });
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
