'use strict';

const { Pauses, answer, pause } = require('../connection.js');
const { properties } = require('../format.js');
const { attempt } = require('../log.js');
const { expire, judge, poisoned, unknownClass } = require('../outcome.js');
const { parseJob } = require('../parse.js');
const { Lost } = require('../publisher.js');

/** One delivery on its way through the worker. */
class Task {
  #channel;
  #message;
  #claimed = false; // somebody settles it
  #suspect = false; // it was written down in the ledger
  #settled = false;
  #waiting; // is called when it is settled

  constructor(attachment, arrival) {
    this.engine = attachment.lane.engine;
    this.lane = attachment.lane;
    this.session = attachment.session;
    this.queue = arrival.queue;
    this.#channel = attachment.channel;
    this.#message = arrival.message;
  }

  /** A promise that its outcome is known to the broker, or never will be. For one caller: few tasks are ever waited for. */
  settling() {
    return new Promise((resolve) => {
      if (this.#settled) resolve(undefined);
      else this.#waiting = resolve;
    });
  }

  #done() {
    this.#settled = true;
    this.#waiting?.();
    this.engine.release(this);
  }

  /** The broker has given the job to somebody else. */
  isLost() {
    return this.#channel.gone || this.session.connection.gone;
  }

  /** Takes the delivery from its beginning to its end. */
  begin() {
    try {
      this.job = parseJob(this.#message.content, this.queue, this.#message.properties);
    } catch (error) {
      this.engine.log('error', 'a message is no job, it is rejected', { queue: this.queue, error: error.message });
      this.settle({ then: 'reject' });
      return;
    }
    if (this.#message.fields.redelivered && this.engine.config.maxDeaths > 0) this.#investigate();
    else this.start(0);
  }

  async #investigate() {
    this.#suspect = true;
    const deaths = await this.session.ledger.begin(this);
    if (deaths === undefined) this.settle({ then: 'requeue' });
    else this.start(deaths);
  }

  /** Waits while the delivery is held. False: it is lost, or the worker stops. */
  pause(ms) {
    return pause(ms, this.#channel.lost, this.session.lost, this.engine.stopped.promise);
  }

  start(deaths) {
    const { config } = this.engine;
    const now = Date.now();
    // These end without a handler.
    if (config.maxDeaths > 0 && deaths >= config.maxDeaths) this.#end(poisoned(this.job, deaths, now), now, now);
    else if (this.job.expiresAt && this.job.expiresAt < now) this.#end(expire(this.job, now), now, now);
    else if (!config.classes.has(this.job.class)) this.#end(judge(this.job, unknownClass(this.job.class), { now }), now, now);
    else {
      this.since = now;
      this.engine.dispatch(this);
    }
  }

  /** The handler has ended. */
  verdict(verdict) {
    this.verdictGiven = true;
    this.failed = verdict.kind !== 'success';
    this.#end(judge(this.job, verdict, { now: verdict.end, stopping: this.engine.stopped.is }), verdict.begin, verdict.end);
  }

  #end(outcome, begin, end) {
    if (this.#claimed) {
      this.engine.release(this); // it was handed back
      return;
    }
    this.settle(outcome, outcome.next && this.engine.ended(this, outcome));
    if (outcome.then !== 'requeue') this.engine.metrics.add(this.job, outcome, begin, end);
  }

  /** Makes an outcome known, after the failure hooks: first its record, confirmed, and only then the acknowledgement. */
  settle(outcome, hooks) {
    if (this.#claimed) {
      this.engine.release(this); // it was handed back
      return;
    }
    this.#claimed = true;
    if (outcome.record || hooks) this.#conclude(outcome, hooks);
    else this.#answer(outcome, true);
  }

  async #conclude(outcome, hooks) {
    await hooks;
    this.#answer(outcome, !outcome.record || (await this.#publish(outcome)));
  }

  #answer(outcome, known) {
    if (known) {
      answer(this.#channel, outcome.then, this.#message);
      if (outcome.died) this.engine.died(this, outcome.died);
    }
    this.#done();
    if (this.#suspect && this.job) this.session.ledger.ended(this.job).catch(() => this.engine.owed.push(this.job));
  }

  /** Gets a record confirmed, however long that takes. Gives up when the delivery is lost: then the job comes again by itself. */
  async #publish({ stream, record }) {
    const { job } = this;
    const message = { key: stream, body: record, properties: properties(job.jid, job.class, job.priority, job.headers.traceparent) };
    for (const pauses = new Pauses(); ; ) {
      try {
        await this.session.publisher.publish(message);
        return true;
      } catch (error) {
        if (error instanceof Lost || this.isLost()) return false;
        this.engine.log('error', 'the broker does not take what became of a job; it is tried again', { jid: job.jid, stream, error: error.message });
      }
      await pause(pauses.next(), this.#channel.lost, this.session.lost);
      if (this.isLost()) return false;
    }
  }

  /** Gives a job back that has not ended. */
  handBack() {
    if (this.#claimed) return;
    this.#claimed = true;
    if (this.since) this.engine.log('info', 'job handed back', attempt(this.job));
    answer(this.#channel, 'requeue', this.#message);
    this.#done();
  }
}

module.exports = { Task };
