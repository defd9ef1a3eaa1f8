'use strict';

const { Hand } = require('./hand.js');
const { Task } = require('./task.js');
const { answer, close, openChannel } = require('../connection.js');
const { QUEUE_PREFIX } = require('../format.js');

const PATIENCE = 5_000; // ms that a delivery waits at hand before others may have it
const SHARE_EVERY = 1_000;

/** A lane on one channel. */
class Attachment {
  #consumers; // by queue: {tag, current}, or nothing while it is not consumed
  #adjusting; // by queue: it is being consumed or cancelled
  #resting; // by queue: given back for others, until a slot is idle
  #hand;
  #timer;

  static async open(lane, session) {
    const channel = await openChannel(session.connection);
    await channel.prefetch(lane.prefetch);
    return new Attachment(lane, session, channel);
  }

  constructor(lane, session, channel) {
    this.lane = lane;
    this.session = session;
    this.channel = channel;
    this.#consumers = lane.queues.map(() => undefined);
    this.#adjusting = lane.queues.map(() => false);
    this.#resting = lane.queues.map(() => false);
    this.#hand = new Hand(lane.queues, lane.weights);
    if (lane.queues.length > 1) this.#timer = setInterval(() => this.#share(), SHARE_EVERY);
    this.adjust();
  }

  end() {
    clearInterval(this.#timer);
    if (!this.session.ending()) close(this.channel); // acknowledgements may be to come while it ends
  }

  /** Consumes what is to be consumed, and cancels what is not. */
  adjust() {
    this.lane.queues.forEach((_, q) => this.#adjustOne(q));
  }

  #wanted(q) {
    const { engine } = this.lane;
    return !engine.quieted && !engine.paused.has(this.lane.queues[q]) && !this.#resting[q];
  }

  async #adjustOne(q) {
    if (this.#adjusting[q]) return;
    this.#adjusting[q] = true;
    try {
      while (!this.channel.gone && this.#wanted(q) !== (this.#consumers[q] !== undefined)) {
        await (this.#wanted(q) ? this.#consume(q) : this.#cancel(q));
      }
    } catch (error) {
      if (!this.session.ending()) {
        this.lane.engine.log('warn', 'a queue is not consumed', { queue: this.lane.queues[q], error: error.message });
        close(this.channel); // the lane opens another
      }
    } finally {
      this.#adjusting[q] = false;
    }
  }

  async #consume(q) {
    const name = this.lane.queues[q];
    if (!(await this.session.ensureQueue(name, () => this.#wanted(q) && !this.channel.gone))) return;
    const consumer = { current: true, tag: undefined };
    // Set before the answer: deliveries come with it, in one go.
    this.#consumers[q] = consumer;
    const { consumerTag } = await this.channel.consume(QUEUE_PREFIX + name, (message) => this.#arrived(q, consumer, message));
    consumer.tag = consumerTag;
    this.lane.engine.consuming();
  }

  async #cancel(q) {
    const consumer = this.#consumers[q];
    consumer.current = false;
    this.#consumers[q] = undefined;
    for (const { message } of this.#hand.empty(q)) answer(this.channel, 'requeue', message);
    await this.channel.cancel(consumer.tag);
  }

  #arrived(q, consumer, message) {
    if (!message) {
      if (consumer.current) close(this.channel); // the broker ended it: the queue was deleted, perhaps
    } else if (!consumer.current || !this.#wanted(q)) {
      answer(this.channel, 'requeue', message); // it was on its way
    } else {
      this.#hand.put(q, { queue: this.lane.queues[q], message, priority: message.properties.priority ?? 0, at: Date.now() });
      this.pump();
    }
  }

  /** Begins what can begin. All that begins comes through here. */
  pump() {
    while (this.#hand.count > 0 && this.lane.busy < this.lane.concurrency && !this.channel.gone && !this.lane.engine.quieted) {
      const task = new Task(this, this.#hand.take());
      this.lane.engine.add(task);
      task.begin();
    }
  }

  /** Gives back what waits for long because the lane is busy with other queues, and takes it up again when it is idle. */
  #share() {
    const idle = this.#hand.count === 0 && this.lane.busy < this.lane.concurrency;
    this.lane.queues.forEach((_, q) => {
      const oldest = this.#hand.oldest(q);
      if (idle) this.#resting[q] = false;
      else if (oldest !== undefined && Date.now() - oldest > PATIENCE) this.#resting[q] = true;
    });
    this.adjust();
  }
}

module.exports = { Attachment };
