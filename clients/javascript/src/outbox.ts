import type { Failure, Next, Verdict } from './outcome.js';
import type { Delivered } from './parse.js';
import type { Credentials } from './types.js';

/** The members of a job that the thread of the handlers gets. */
const FIELDS = ['text', 'jid', 'class', 'queue', 'retryCount', 'priority', 'tags', 'headers', 'timeout', 'backtrace'] as const;

/** A job as the thread of the handlers has it. */
export type JobData = Pick<Delivered, (typeof FIELDS)[number]>;

/** The end of an attempt that did not end well. */
export interface End {
  next: Next;
  failed?: boolean;
  reason?: string;
  after?: number;
  due?: number;
  error?: Failure;
}

/** When a handler began and ended, in ms. */
export interface Times {
  begin: number;
  end: number;
}

export type Level = 'info' | 'warn' | 'error';
export type Fields = Record<string, unknown>;

/** A message from the engine to the thread of the handlers. */
export type ToHandlers =
  | { t: 'run'; id: number; job: JobData }
  | { t: 'abort'; id: number; why: 'cancelled' | 'stopping' }
  | { t: 'ended'; id: number; job: Delivered | undefined; outcome: End; wait: boolean }
  | { t: 'died'; id: number; job: Delivered | undefined; error: Failure }
  | { t: 'forget'; id: number }
  | { t: 'stopping' }
  | { t: 'log'; level: Level; text: string; fields?: Fields }
  | { t: 'hook'; name: 'startup' | 'quiet' | 'shutdown' }
  | { t: 'ask'; id: number }
  | { t: 'end'; error?: string };

/** A message from the thread of the handlers to the engine. */
export type ToEngine =
  | { t: 'verdict'; id: number; verdict: Verdict & Times }
  | { t: 'hooked'; name: string }
  | { t: 'credentials'; id: number; credentials?: Credentials; error?: string }
  | { t: 'quiet' }
  | { t: 'stop' };

/** All that a thread sends in one turn: jobs or good ends as a flat array, and messages. */
export type Batch<M> = [flat: unknown[], messages: M[]];
const JOB = FIELDS.length + 1;
const END = 3;

/**
 * Sends messages from one thread of a worker to the other. All messages of one turn of the event
 * loop go together, because one message costs both threads more than a quick job. Jobs and their
 * good ends are in one flat array, which is copied faster than objects.
 */
export class Outbox<M> {
  #send: (batch: Batch<M>) => void;
  #flat: unknown[] = [];
  #messages: M[] = [];
  #due = false;

  constructor(send: (batch: Batch<M>) => void) {
    this.#send = send;
  }

  /** Sends a message. */
  post(message: M): void {
    this.#messages.push(message);
    this.#schedule();
  }

  /** Sends a job to run. */
  run(id: number, job: JobData): void {
    this.#flat.push(id);
    for (const field of FIELDS) this.#flat.push(job[field]);
    this.#schedule();
  }

  /** Sends that a job has ended well. */
  ended(id: number, begin: number, end: number): void {
    this.#flat.push(id, begin, end);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#due) return;
    this.#due = true;
    setImmediate(() => this.flush());
  }

  flush(): void {
    if (!this.#due) return;
    this.#due = false;
    this.#send([this.#flat, this.#messages]);
    this.#flat = [];
    this.#messages = [];
  }
}

/** Yields the jobs of a batch, and its other messages. */
export function* jobs([flat, messages]: Batch<ToHandlers>): Generator<ToHandlers> {
  for (let i = 0; i < flat.length; i += JOB) {
    const job: Record<string, unknown> = {};
    FIELDS.forEach((field, f) => {
      job[field] = flat[i + 1 + f];
    });
    yield { t: 'run', id: flat[i] as number, job: job as unknown as JobData };
  }
  yield* messages;
}

/** Yields the good ends of a batch, and its other messages. */
export function* ends([flat, messages]: Batch<ToEngine>): Generator<ToEngine> {
  for (let i = 0; i < flat.length; i += END) {
    yield { t: 'verdict', id: flat[i] as number, verdict: { kind: 'success', begin: flat[i + 1] as number, end: flat[i + 2] as number } };
  }
  yield* messages;
}
