'use strict';

const { watched } = require('./connection.js');
const { Refused } = require('./errors.js');

const WINDOW = 1000;

/** The channel or connection is gone, and what became of a message is not known. */
class Lost extends Error {}

/** A channel in confirm mode. */
class Publisher {
  #channel;
  #sent = 0;
  #returned = new Map();
  #free = WINDOW;
  #waiting = [];
  #why;

  static async open(connection) {
    return new Publisher(watched(await connection.createConfirmChannel()));
  }

  constructor(channel) {
    this.#channel = channel;
    this.lost = channel.lost;
    channel.on('error', (error) => {
      this.#why = error;
    });
    channel.on('return', ({ fields, properties }) => {
      const { replyCode, replyText, exchange, routingKey } = fields;
      this.#returned.set(properties.correlationId, `${replyCode} ${replyText}: exchange "${exchange}", routing key "${routingKey}"`);
    });
  }

  get gone() {
    return this.#channel.gone;
  }

  /** Publishes {exchange, key, body, properties}. Ends when the broker has the message; else with Refused or Lost. */
  async publish(message) {
    if (this.#free > 0) this.#free--;
    else await new Promise((resolve) => this.#waiting.push(resolve)); // whoever ends hands its place over
    try {
      await this.#send(message);
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }

  #send({ exchange = '', key, body, properties }) {
    const id = String(++this.#sent);
    return new Promise((resolve, reject) => {
      const answered = (error) => {
        const why = this.#returned.get(id);
        this.#returned.delete(id);
        if (why) reject(new Refused(why));
        else if (!error) resolve(undefined);
        else reject(this.#unanswered(error, exchange));
      };
      try {
        this.#channel.publish(exchange, key, body, { ...properties, correlationId: id }, answered);
      } catch (error) {
        reject(error instanceof TypeError ? error : new Lost('connection lost', { cause: error }));
      }
    });
  }

  #unanswered(error, exchange) {
    if (error.message === 'message nacked') return new Refused('it answered nack');
    // Without the exchange no sidecar has been here; the broker ends the channel for it.
    if (exchange && [403, 404].includes(this.#why?.code)) return new Refused(this.#why.message);
    return new Lost('connection lost', { cause: this.#why ?? error });
  }
}

module.exports = { Lost, Publisher };
