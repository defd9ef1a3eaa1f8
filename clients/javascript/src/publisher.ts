import type { ConfirmChannel, Options } from 'amqplib';
import { openConfirmChannel, type Connection, type Watched } from './connection.js';
import { Refused } from './errors.js';
import { DIRECT_REPLY, parse } from './format.js';

const WINDOW = 1000;

/** The channel or connection is gone. It is unknown whether the message arrived. */
export class Lost extends Error {}

/** The broker returned the message because no queue takes it. The broker has not stored it. */
export class Returned extends Refused {}

/**
 * A message to publish, and where to publish it. Without an exchange, the key names the queue or
 * stream.
 */
export interface Publication {
  exchange?: string;
  key: string;
  body: Buffer;
  properties: Options.Publish;
}

/** A channel in confirm mode. */
export class Publisher {
  #channel: Watched<ConfirmChannel>;
  #sent = 0;
  #returned = new Map<string, string>();
  #free = WINDOW;
  #waiting: (() => void)[] = [];
  #why: (Error & { code?: number }) | undefined;
  #replies = new Map<string, (reply: any) => void>(); // that the leader still owes
  #listening: Promise<unknown> | undefined;
  lost: Promise<Error>;

  static async open(connection: Connection): Promise<Publisher> {
    return new Publisher(await openConfirmChannel(connection));
  }

  constructor(channel: Watched<ConfirmChannel>) {
    this.#channel = channel;
    this.lost = channel.lost;
    channel.on('error', (error: Error & { code?: number }) => {
      this.#why = error;
    });
    channel.on('return', ({ fields, properties }) => {
      const { replyCode, replyText, exchange, routingKey } = fields as typeof fields & { replyCode: number; replyText: string };
      this.#returned.set(String(properties.correlationId), `${replyCode} ${replyText}: exchange "${exchange}", routing key "${routingKey}"`);
    });
  }

  get gone(): boolean {
    return this.#channel.gone;
  }

  /**
   * Publishes {exchange, key, body, properties}. Resolves when the broker has the message. Rejects
   * with Refused, Returned or Lost.
   */
  async publish(message: Publication, reply?: (reply: any) => void): Promise<void> {
    if (this.#free > 0) this.#free--;
    // An ending publish passes on its place.
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      await this.#send(message, reply);
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }

  /**
   * Publishes, and resolves to a promise of the leader's answer when the broker has the message. The
   * promise rejects with Lost if no answer can come any more.
   */
  async ask(message: Publication): Promise<{ answer: Promise<any> }> {
    this.#listening ??= this.#channel.consume(DIRECT_REPLY, (reply) => {
      if (reply) this.#replies.get(String(reply.properties.correlationId))?.(parse(reply.content));
    }, { noAck: true }).catch((cause: unknown) => Promise.reject(new Lost('connection lost', { cause })));
    await this.#listening;
    let resolve!: (reply: any) => void;
    const answer = Promise.race([
      new Promise<any>((resolved) => (resolve = resolved)),
      this.lost.then((cause) => Promise.reject(new Lost('connection lost', { cause }))),
    ]);
    answer.catch(() => {}); // the message may be published again
    await this.publish(message, resolve);
    return { answer };
  }

  #send({ exchange = '', key, body, properties }: Publication, reply?: (reply: any) => void): Promise<void> {
    const id = String(++this.#sent);
    if (reply) this.#replies.set(id, reply);
    return new Promise((resolve, reject) => {
      const answered = (error: Error | null) => {
        const why = this.#returned.get(id);
        this.#returned.delete(id);
        if (why) reject(new Returned(why));
        else if (!error) resolve();
        else reject(this.#unanswered(error, exchange));
      };
      try {
        this.#channel.publish(exchange, key, body, { ...properties, correlationId: id, ...(reply && { replyTo: DIRECT_REPLY }) }, answered);
      } catch (error) {
        reject(error instanceof TypeError ? error : new Lost('connection lost', { cause: error }));
      }
    });
  }

  #unanswered(error: Error, exchange: string): Error {
    if (error.message === 'message nacked') return new Refused('it answered nack: the queue is full or unavailable, try again later');
    // If no sidecar has been here, the exchange does not exist, and the broker closes the channel.
    if (exchange && (this.#why?.code === 403 || this.#why?.code === 404)) return new Refused(this.#why.message);
    return new Lost('connection lost', { cause: this.#why ?? error });
  }
}
