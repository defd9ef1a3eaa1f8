import type { Channel, Options } from 'amqplib';
import { askPaused, listen } from './control.js';
import type { Engine } from './engine.js';
import { heartbeat } from './heartbeat.js';
import { Ledger } from './ledger.js';
import { close, openChannel, pause, type Connection, type Watched } from '../connection.js';
import { messageOf } from '../errors.js';
import { HEARTBEATS, MAX_PRIORITY, QUEUE_PREFIX } from '../format.js';
import { Publisher } from '../publisher.js';

const SETTLE_TIME = 2_000; // ms for what may be lost, and for the end
const QUEUE_EVERY = 1_000; // ms between checks for a missing queue

const record = (): Options.Publish => ({ contentType: 'application/json', deliveryMode: 2, timestamp: Math.floor(Date.now() / 1000) });

/** A worker on one connection. */
export class Session {
  #closing = false;
  #timer: NodeJS.Timeout | undefined;
  #rtt: number | undefined;
  readonly engine: Engine;
  readonly connection: Connection;
  publisher!: Publisher; // for records that must arrive
  metricsChannel!: Watched<Channel>; // for metrics, whose publishes are not confirmed
  lost!: Promise<Error>;
  control!: string;
  ledger!: Ledger;

  static async open(engine: Engine): Promise<Session> {
    const connection = await engine.hosts.dial(`millrace worker ${engine.identity}`);
    const session = new Session(engine, connection);
    try {
      await session.#prepare();
      return session;
    } catch (error) {
      await close(connection);
      throw error;
    }
  }

  constructor(engine: Engine, connection: Connection) {
    this.engine = engine;
    this.connection = connection;
  }

  async #prepare(): Promise<void> {
    this.publisher = await Publisher.open(this.connection);
    this.metricsChannel = await openChannel(this.connection);
    this.lost = Promise.race([this.connection.lost, this.publisher.lost, this.metricsChannel.lost]);
    this.control = await listen(this);
    this.ledger = new Ledger(this);
    await this.ledger.open();
    this.engine.learnPaused(await askPaused(this));
    for (const job of this.engine.owed.splice(0)) this.ledger.ended(job).catch(() => {});
  }

  /**
   * Returns whether channels must not be closed one by one, because the connection is lost or is
   * being closed.
   */
  ending(): boolean {
    return this.#closing || this.connection.gone || this.publisher.gone || this.metricsChannel.gone;
  }

  /** Serves the lanes until the worker has stopped. Throws if the connection is lost. */
  async run(): Promise<void> {
    const { engine } = this;
    for (const lane of engine.lanes) lane.serve(this);
    engine.metrics.attach((stream, body) => this.metricsChannel.publish('', stream, body, record()));
    this.#timer = setInterval(() => this.beat(), engine.config.heartbeat * 1000);
    this.beat();
    try {
      const stopped = await Promise.race([this.lost, engine.stopped.promise.then(() => true)]);
      if (stopped !== true) throw stopped;
      await engine.wait();
      this.#closing = true;
      await engine.handBack();
      await this.#finish();
    } finally {
      await this.#close();
    }
  }

  /** Calls the shutdown hooks, and sends the last records and the last heartbeat. */
  async #finish(): Promise<void> {
    await this.engine.hook('shutdown');
    if (this.connection.gone) return;
    await pause(SETTLE_TIME, this.ledger.close(), this.lost);
    this.engine.metrics.flush();
    await pause(SETTLE_TIME, this.beat(), this.lost);
  }

  async #close(): Promise<void> {
    this.#closing = true;
    clearInterval(this.#timer);
    this.engine.metrics.detach();
    await close(this.connection);
  }

  publish(stream: string, body: Buffer): Promise<void> {
    return this.publisher.publish({ key: stream, body, properties: { ...record(), mandatory: true } });
  }

  /** Sends a heartbeat. It contains the round trip of the one before. */
  async beat(): Promise<void> {
    const start = performance.now();
    try {
      await this.publish(HEARTBEATS, Buffer.from(JSON.stringify(heartbeat(this.engine, this.#rtt))));
      this.#rtt = Math.round((performance.now() - start) * 1000);
    } catch {
      this.#rtt = undefined; // the next one comes later anyway
    }
  }

  /**
   * Waits until a queue exists, after declaring a missing one. It does not declare an existing
   * queue, which may have other arguments. Resolves to false if the queue is not wanted any more.
   */
  async ensureQueue(name: string, wanted: () => boolean): Promise<boolean> {
    const full = QUEUE_PREFIX + name;
    for (let first = true; ; first = false) {
      if (await this.exists(full)) return wanted();
      if (this.engine.config.declare) {
        await this.#declare(full);
        if (await this.exists(full)) return wanted();
      }
      if (first) this.engine.log('warn', 'a queue does not exist yet', { queue: name });
      await pause(QUEUE_EVERY, this.lost, this.engine.stopped.promise);
      if (!wanted() || this.ending()) return false;
    }
  }

  /**
   * Resolves to whether a queue exists. It asks on a channel of its own, because the answer may
   * close the channel.
   */
  async exists(queue: string): Promise<boolean> {
    const channel = await openChannel(this.connection);
    try {
      await channel.checkQueue(queue);
      return true;
    } catch (error) {
      const { code } = error as { code?: number };
      if (code === 404) return false;
      if (code === 405) return true; // an exclusive queue of another connection
      throw error;
    } finally {
      await close(channel);
    }
  }

  /**
   * Declares a classic queue with priorities. It sets the type only if the virtual host has another
   * default type. Elsewhere the queue then equals the queues that other programs declare.
   */
  async #declare(queue: string): Promise<void> {
    try {
      await this.#declareWith(queue, {}).catch((error) => {
        if (error.code !== 406) throw error;
        return this.#declareWith(queue, { 'x-queue-type': 'classic' });
      });
    } catch (error) {
      this.engine.log('warn', 'a queue could not be declared', { queue, error: messageOf(error) });
    }
  }

  /** Declares on a channel of its own, because a refusal closes the channel. */
  async #declareWith(queue: string, more: Record<string, string>): Promise<void> {
    const channel = await openChannel(this.connection);
    try {
      await channel.assertQueue(queue, { durable: true, maxPriority: MAX_PRIORITY, arguments: more });
    } finally {
      await close(channel);
    }
  }
}
