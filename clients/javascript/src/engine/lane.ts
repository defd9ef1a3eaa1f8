import type { LaneSettings } from '../settings.js';

/** Where the deliveries of a lane come from. */
export interface Source {
  /** Starts the consumers that are wanted, and cancels the others. */
  adjust(): void;
  /** Begins the deliveries that may begin. */
  pump(): void;
}

/**
 * A number of slots for some queues. It outlives connections: a job whose delivery is lost keeps
 * its slot until it ends.
 */
export class Lane {
  busy = 0;
  readonly name: string;
  readonly queues: string[];
  readonly weights: number[] | undefined;
  readonly concurrency: number;
  source: Source | undefined; // while it has a channel

  constructor({ name, queues, weights, concurrency }: LaneSettings) {
    this.name = name;
    this.queues = queues;
    this.weights = weights;
    this.concurrency = concurrency;
  }

  /**
   * How many unacknowledged deliveries the broker sends for each queue. For one queue it is the
   * concurrency. For several queues it is twice that, so that the next job of the first queue
   * arrives in time.
   */
  get prefetch(): number {
    return this.queues.length === 1 ? this.concurrency : 2 * this.concurrency;
  }

  /** Reacts when a queue was paused or resumed, or the worker became quiet. */
  changed(): void {
    this.source?.adjust();
  }

  /** Called when a slot is free. */
  freed(): void {
    this.source?.pump();
  }
}
