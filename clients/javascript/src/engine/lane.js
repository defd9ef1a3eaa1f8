'use strict';

const { Attachment } = require('./attachment.js');
const { Pauses, pause } = require('../connection.js');

/** A pool of slots for some queues. It outlives connections: a job whose delivery is lost keeps its slot until it ends. */
class Lane {
  busy = 0;

  constructor(engine, { name, queues, weights, concurrency }) {
    this.engine = engine;
    this.name = name;
    this.queues = queues;
    this.weights = weights;
    this.concurrency = concurrency;
    this.attachment = undefined;
  }

  /** As much as can run; twice that where queues are chosen from, so that the next job of the first one is at hand in time. */
  get prefetch() {
    return this.queues.length === 1 ? this.concurrency : 2 * this.concurrency;
  }

  /** Consumes on a connection until it is lost, on one channel after the other. */
  async serve(session) {
    for (const pauses = new Pauses(); !session.ending(); ) {
      const began = Date.now();
      try {
        this.attachment = await Attachment.open(this, session);
        throw await this.attachment.channel.lost;
      } catch (error) {
        this.attachment?.end();
        this.attachment = undefined;
        if (session.ending()) return;
        this.engine.log('warn', 'a lane has lost its channel, it opens another', { lane: this.name, error: error.message });
      }
      if (Date.now() - began > 10_000) pauses.reset();
      await pause(pauses.next(), session.lost);
    }
  }

  /** Something is paused or resumed, or the worker is quiet. */
  changed() {
    this.attachment?.adjust();
  }

  /** A slot is free. */
  freed() {
    this.attachment?.pump();
  }
}

module.exports = { Lane };
