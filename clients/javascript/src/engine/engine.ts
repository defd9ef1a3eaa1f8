import { randomBytes } from 'node:crypto';
import type { Key } from './begins.js';
import { Lane } from './lane.js';
import { Metrics } from './metrics.js';
import { hostname, pause } from '../connection.js';
import { seconds } from '../format.js';
import { Hosts } from '../hosts.js';
import type { Failure, Outcome, Next, Verdict } from '../outcome.js';
import type { End, Fields, Level, Times } from '../outbox.js';
import type { Delivered } from '../parse.js';
import type { Settings } from '../settings.js';
import type { Credentials } from '../types.js';

const LAST_CALL = 500; // ms that handlers have to end after their signals
const SETTLE_TIME = 2_000; // ms that outcomes in progress may take when the worker ends
/**
 * A prefetch with which a consumer never has so many acknowledgements on their way that RabbitMQ
 * holds some back. A channel passes 32 acknowledgements on to a quorum queue at a time. It forgets
 * those that it holds back when it closes, and their jobs run again.
 */
const FEW_ACKS = 24;
const ACK_TIME = 1_000; // ms that the broker gets for the last acknowledgements of other consumers
const OWED_KEPT = 10_000; // jobs whose end no connection could write

/** The configuration of a worker, for its engine. */
export type EngineSettings = Omit<Settings, 'thread' | 'credentials'> & {
  /** Whether the host gives credentials. */
  credentials: boolean;
  /** The version of the host's library. */
  library: string;
  classes: Set<string>;
  failureHooks: boolean;
};

/** The processing of one delivery, as the engine sees it. */
export interface Running {
  id: number; // 0 until the engine adds it
  readonly lane: Lane;
  readonly queue: string;
  readonly job: Delivered | undefined; // until it has begun
  readonly since: number | undefined; // when it was given to its handler
  abortedAs: 'cancelled' | 'stopping' | undefined;
  readonly verdictGiven: boolean;
  readonly failed: boolean;
  died: boolean;
  /** Called when the handler has ended. */
  verdict(verdict: Verdict & Times): void;
  /** Requeues a job that has not ended. */
  handBack(): void;
  /** Resolves when it is settled. It has room for one caller. */
  settling(): Promise<void>;
}

/** The thread of the handlers, as the engine sees it. */
export interface Host {
  run(task: Running): void;
  abort(task: Running, why: 'cancelled' | 'stopping'): void;
  ended(task: Running, outcome: End, wait: boolean): Promise<void> | undefined;
  died(task: Running, error: Failure): void;
  forget(task: { id: number }): void;
  stopping(): void;
  log(level: Level, text: string, fields?: Fields): void;
  hook(name: 'startup' | 'quiet' | 'shutdown'): Promise<void>;
  /** Asks for the credentials of a connection. */
  credentials(): Promise<Credentials>;
}

/** A message on jobs.control. */
export interface Command {
  op?: string;
  identity?: string;
  queue?: string;
  jid?: string;
}

/** Returns an error without its backtrace, which the other thread has. */
const shortened = (error: Failure): Failure => ({ errorClass: error.errorClass, message: error.message });

/** An event that happens once, and can be awaited. */
class Once {
  is = false;
  set!: () => void;
  readonly promise: Promise<undefined>;

  constructor() {
    this.promise = new Promise((resolve) => {
      this.set = () => {
        this.is = true;
        resolve(undefined);
      };
    });
  }
}

/**
 * What all parts of a worker share, except its handlers. The handlers run in another thread, that
 * of the program, so that they cannot harm the connection. The host is that thread.
 */
export class Engine {
  process = randomBytes(8).toString('hex');
  hostname = hostname();
  startedAt = seconds();
  stopped = new Once();
  quieted = false;
  paused = new Set<string>();
  running = new Map<number, Running>(); // by id
  #owed: Key[] = []; // of jobs whose end the next connection must write
  #writeEnd!: (key: Key) => Promise<void>; // on the latest connection
  #hurried = new Once();
  #lastId = 0;
  #idle: (() => void)[] = [];
  #consuming = false;
  readonly config: EngineSettings;
  readonly host: Host;
  readonly identity: string;
  readonly hosts: Hosts;
  readonly metrics: Metrics;
  readonly lanes: Lane[];
  readonly queues: string[];
  /** Sends a heartbeat, while there is a connection. */
  beat: (() => void) | undefined;

  constructor(config: EngineSettings, host: Host) {
    this.config = config;
    this.host = host;
    this.identity = `${this.hostname}:${process.pid}${config.tag && `:${config.tag}`}`;
    this.hosts = new Hosts(config.urls, config.tls, config.credentials ? () => host.credentials() : undefined);
    this.metrics = new Metrics(this.identity);
    this.lanes = config.lanes.map((lane) => new Lane(lane));
    this.queues = [...new Set(this.lanes.flatMap((l) => l.queues))];
  }

  log(level: Level, text: string, fields?: Fields): void {
    this.host.log(level, text, fields);
  }

  hook(name: 'startup' | 'quiet' | 'shutdown'): Promise<void> {
    return this.host.hook(name);
  }

  /** Called when a queue is consumed. */
  consuming(): void {
    if (this.#consuming) return;
    this.#consuming = true;
    this.hook('startup');
  }

  get state(): 'running' | 'quiet' | 'stopping' {
    if (this.stopped.is) return 'stopping';
    return this.quieted ? 'quiet' : 'running';
  }

  add(task: Running): void {
    task.id = ++this.#lastId;
    task.lane.busy++;
    this.running.set(task.id, task);
  }

  /** Frees the slot of a task. */
  release(task: Running): void {
    if (!this.running.delete(task.id)) return;
    task.lane.busy--;
    if (task.failed && !task.died) this.host.forget(task);
    task.lane.freed();
    if (this.running.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  dispatch(task: Running): void {
    this.host.run(task);
    if (task.abortedAs) this.host.abort(task, task.abortedAs);
  }

  /** Called when a handler has ended. */
  verdict(id: number, verdict: Verdict & Times): void {
    const task = this.running.get(id);
    if (task) task.verdict(verdict);
    else this.host.forget({ id }); // it was handed back
  }

  /** Sets the function that writes the ends of redelivered jobs, on a new connection. */
  writeEndsWith(writeEnd: (key: Key) => Promise<void>): void {
    this.#writeEnd = writeEnd;
    for (const key of this.#owed.splice(0)) this.writeEnd(key);
  }

  /**
   * Writes that a job has ended whose begin was written. If the connection is lost, the next one
   * writes it.
   */
  writeEnd(key: Key): void {
    this.#writeEnd(key).catch(() => {
      if (this.#owed.length < OWED_KEPT) this.#owed.push(key);
    });
  }

  /**
   * Called when an attempt did not end well. If it failed and there are failure hooks, returns a
   * promise that resolves when they have run.
   */
  ended(task: Running, { next, failed, reason, after, due, error }: Outcome & { next: Next }): Promise<void> | undefined {
    const hooks = failed === true && this.config.failureHooks;
    return this.host.ended(task, { next, failed, reason, after, due, error: error && shortened(error) }, hooks);
  }

  died(task: Running, error: Failure): void {
    task.died = true;
    this.host.died(task, shortened(error));
  }

  quiet(): void {
    if (this.quieted) return;
    this.quieted = true;
    this.changed();
    this.hook('quiet');
  }

  stop(): void {
    if (this.stopped.is) {
      this.#hurried.set();
      return;
    }
    this.stopped.set();
    this.quiet();
    this.host.stopping();
    this.changed();
  }

  changed(): void {
    for (const lane of this.lanes) lane.changed();
    this.beat?.();
  }

  /**
   * Waits until the running jobs have ended, at most for the stop timeout. Then aborts those that
   * still run.
   */
  async wait(): Promise<void> {
    if (await pause(this.config.stopTimeout * 1000, this.#none(), this.#hurried.promise) || this.#hurried.is) {
      for (const task of this.running.values()) this.#abort(task, 'stopping');
      await pause(LAST_CALL, this.#none());
    }
  }

  #none(): Promise<void> {
    if (this.running.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /** Requeues jobs that still run, and waits for outcomes in progress. */
  async handBack(): Promise<void> {
    const tasks = [...this.running.values()];
    for (const task of tasks) task.handBack();
    await pause(SETTLE_TIME, Promise.all(tasks.map((task) => task.settling())));
  }

  /**
   * Gives the broker time for the last acknowledgements before the connection is closed. Does not
   * wait if the connection is lost, or after a second stop.
   */
  async awaitAcks(lost: Promise<Error>): Promise<void> {
    if (this.lanes.some((lane) => lane.prefetch > FEW_ACKS)) await pause(ACK_TIME, lost, this.#hurried.promise);
  }

  #abort(task: Running, why: 'cancelled' | 'stopping'): void {
    task.abortedAs ??= why;
    if (task.since) this.host.abort(task, why);
  }

  learnPaused(queues: string[]): void {
    this.paused = new Set(queues);
  }

  /** Carries out a message on jobs.control. */
  obey({ op, identity, queue, jid }: Command): void {
    if (identity !== '*' && identity !== this.identity) return;
    this.log('info', 'command', { op, queue, jid });
    if (op === 'quiet') this.quiet();
    else if (op === 'stop') this.stop();
    else if (op === 'pause' || op === 'resume') {
      if (typeof queue !== 'string' || queue === '') return;
      if (op === 'pause') this.paused.add(queue);
      else this.paused.delete(queue);
      this.changed();
    } else if (op === 'cancel') {
      for (const task of this.running.values()) if (task.since && task.job?.jid === jid) this.#abort(task, 'cancelled');
    }
  }
}
