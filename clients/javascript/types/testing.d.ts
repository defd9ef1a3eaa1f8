/** Test helpers that need no broker. */
import type { ClientMiddleware, HandlerOptions, Handler, Json, NewJob, PublishOptions, WorkerMiddleware } from './index.js';

/** A job that was enqueued and has not run. */
export interface Enqueued {
  jid: string;
  class: string;
  args: any;
  queue: string;
  /** When it is due, if it is scheduled. */
  at?: Date;
  /** The job as it would be published. */
  raw: Buffer;
}

declare class Testing {
  /** Registers the handler of a class. */
  handle(className: string, handler: Handler, options?: HandlerOptions): this;
  /** Adds middleware around publishes. */
  use(middleware: ClientMiddleware): this;
  /** Adds middleware around handlers. */
  useWorker(middleware: WorkerMiddleware): this;
  enqueue(className: string, args?: Json[], options?: PublishOptions): Promise<string | null>;
  enqueueAt(at: Date, className: string, args?: Json[], options?: PublishOptions): Promise<string | null>;
  enqueueIn(seconds: number, className: string, args?: Json[], options?: PublishOptions): Promise<string | null>;
  enqueueBulk(jobs: NewJob[]): Promise<(string | null)[]>;
  close(): Promise<void>;
}

/** In place of a Client: enqueue runs the handler at once, and its error is the caller's. */
export class InlineClient extends Testing {}

/** In place of a Client: enqueue collects. */
export class FakeClient extends Testing {
  /** What was enqueued and has not run, in order; of one class, if named. */
  jobs(className?: string): Enqueued[];
  /** Runs what is there, and what that enqueues. Gives how many ran. */
  drain(): Promise<number>;
  /** Forgets what is there. */
  clear(): void;
}
