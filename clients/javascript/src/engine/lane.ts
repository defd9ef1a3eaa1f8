import { Attachment } from './attachment.js';
import type { Engine } from './engine.js';
import type { Session } from './session.js';
import { Pauses, pause } from '../connection.js';
import { messageOf } from '../errors.js';
import type { LaneSettings } from '../settings.js';

/**
 * A number of slots for some queues. It outlives connections: a job whose delivery is lost keeps
 * its slot until it ends.
 */
export class Lane {
  busy = 0;
  readonly engine: Engine;
  readonly name: string;
  readonly queues: string[];
  readonly weights: number[] | undefined;
  readonly concurrency: number;
  attachment: Attachment | undefined;

  constructor(engine: Engine, { name, queues, weights, concurrency }: LaneSettings) {
    this.engine = engine;
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

  /** Consumes on a connection until it is lost. Opens a new channel when one is lost. */
  async serve(session: Session): Promise<void> {
    for (const pauses = new Pauses(); !session.ending(); ) {
      const began = Date.now();
      try {
        this.attachment = await Attachment.open(this, session);
        throw await this.attachment.channel.lost;
      } catch (error) {
        this.attachment?.end();
        this.attachment = undefined;
        if (session.ending()) return;
        this.engine.log('warn', 'a lane has lost its channel, it opens another', { lane: this.name, error: messageOf(error) });
      }
      if (Date.now() - began > 10_000) pauses.reset();
      await pause(pauses.next(), session.lost);
    }
  }

  /** Reacts when a queue was paused or resumed, or the worker became quiet. */
  changed(): void {
    this.attachment?.adjust();
  }

  /** Called when a slot is free. */
  freed(): void {
    this.attachment?.pump();
  }
}
