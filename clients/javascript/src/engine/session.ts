import type { Channel, Options } from 'amqplib';
import { askState, listen } from './control.js';
import type { Engine } from './engine.js';
import { heartbeat } from './heartbeat.js';
import { Ledger } from './ledger.js';
import { close, openChannel, pause, type Connection, type Watched } from '../connection.js';
import { BEGINS, HEARTBEATS } from '../format.js';
import { Publisher } from '../publisher.js';

const SETTLE_TIME = 2_000; // ms for what may be lost, and for the end

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
  ledger!: Ledger;
  claimBelow: number | undefined; // jobs of earlier epochs must be claimed; undefined if that is unknown

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
    this.ledger = new Ledger(this.engine, this.connection, this.lost, (body) => this.publish(BEGINS, body));
    await this.ledger.open(await listen(this.engine, this.connection));
    this.claimBelow = await askState(this.engine, this.connection);
  }

  /**
   * Returns whether channels must not be closed one by one, because the connection is lost or is
   * being closed.
   */
  ending(): boolean {
    return this.#closing || this.connection.gone || this.publisher.gone || this.metricsChannel.gone;
  }

  /** Resolves when the worker has stopped. Throws if the connection is lost. */
  async run(): Promise<void> {
    const { engine } = this;
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
      await engine.awaitAcks(this.lost);
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
}
