import type { Channel, ConsumeMessage } from 'amqplib';
import { Hand } from './hand.js';
import type { Lane } from './lane.js';
import type { Session } from './session.js';
import { Task } from './task.js';
import { answer, close, openChannel, type Watched } from '../connection.js';
import { messageOf } from '../errors.js';
import { QUEUE_PREFIX } from '../format.js';

const PATIENCE = 5_000; // ms that a delivery waits at hand before others may have it
const SHARE_EVERY = 1_000;

/** A consumer of a queue; not current once it is being cancelled. */
interface Consumer {
  current: boolean;
  tag: string | undefined;
}

/** A delivery at hand. */
export interface Arrival {
  queue: string;
  message: ConsumeMessage;
  priority: number;
  at: number;
}

/** A lane on one channel. */
export class Attachment {
  #consumers: (Consumer | undefined)[]; // by queue: nothing while it is not consumed
  #adjusting: boolean[]; // by queue: it is being consumed or cancelled
  #resting: boolean[]; // by queue: given back for others, until a slot is idle
  #hand: Hand<Arrival>;
  #timer: NodeJS.Timeout | undefined;
  readonly lane: Lane;
  readonly session: Session;
  readonly channel: Watched<Channel>;

  static async open(lane: Lane, session: Session): Promise<Attachment> {
    const channel = await openChannel(session.connection);
    await channel.prefetch(lane.prefetch);
    return new Attachment(lane, session, channel);
  }

  constructor(lane: Lane, session: Session, channel: Watched<Channel>) {
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

  end(): void {
    clearInterval(this.#timer);
    if (!this.session.ending()) close(this.channel); // acknowledgements may be to come while it ends
  }

  /** Consumes what is to be consumed, and cancels what is not. */
  adjust(): void {
    this.lane.queues.forEach((_, q) => this.#adjustOne(q));
  }

  #wanted(q: number): boolean {
    const { engine } = this.lane;
    return !engine.quieted && !engine.paused.has(this.lane.queues[q]!) && !this.#resting[q];
  }

  async #adjustOne(q: number): Promise<void> {
    if (this.#adjusting[q]) return;
    this.#adjusting[q] = true;
    try {
      while (!this.channel.gone && this.#wanted(q) !== (this.#consumers[q] !== undefined)) {
        await (this.#wanted(q) ? this.#consume(q) : this.#cancel(q));
      }
    } catch (error) {
      if (!this.session.ending()) {
        this.lane.engine.log('warn', 'a queue is not consumed', { queue: this.lane.queues[q], error: messageOf(error) });
        close(this.channel); // the lane opens another
      }
    } finally {
      this.#adjusting[q] = false;
    }
  }

  async #consume(q: number): Promise<void> {
    const name = this.lane.queues[q]!;
    if (!(await this.session.ensureQueue(name, () => this.#wanted(q) && !this.channel.gone))) return;
    const consumer: Consumer = { current: true, tag: undefined };
    // Set before the answer: deliveries come with it, in one go.
    this.#consumers[q] = consumer;
    const { consumerTag } = await this.channel.consume(QUEUE_PREFIX + name, (message) => this.#arrived(q, consumer, message));
    consumer.tag = consumerTag;
    this.lane.engine.consuming();
  }

  async #cancel(q: number): Promise<void> {
    const consumer = this.#consumers[q]!;
    consumer.current = false;
    this.#consumers[q] = undefined;
    for (const { message } of this.#hand.empty(q)) answer(this.channel, 'requeue', message);
    await this.channel.cancel(consumer.tag!);
  }

  #arrived(q: number, consumer: Consumer, message: ConsumeMessage | null): void {
    if (!message) {
      if (consumer.current) close(this.channel); // the broker ended it: the queue was deleted, perhaps
    } else if (!consumer.current || !this.#wanted(q)) {
      answer(this.channel, 'requeue', message); // it was on its way
    } else {
      this.#hand.put(q, { queue: this.lane.queues[q]!, message, priority: message.properties.priority ?? 0, at: Date.now() });
      this.pump();
    }
  }

  /** Begins what can begin. All that begins comes through here. */
  pump(): void {
    while (this.#hand.count > 0 && this.lane.busy < this.lane.concurrency && !this.channel.gone && !this.lane.engine.quieted) {
      const task = new Task(this, this.#hand.take());
      this.lane.engine.add(task);
      task.begin();
    }
  }

  /** Gives back what waits for long because the lane is busy with other queues, and takes it up again when it is idle. */
  #share(): void {
    const idle = this.#hand.count === 0 && this.lane.busy < this.lane.concurrency;
    this.lane.queues.forEach((_, q) => {
      const oldest = this.#hand.oldest(q);
      if (idle) this.#resting[q] = false;
      else if (oldest !== undefined && Date.now() - oldest > PATIENCE) this.#resting[q] = true;
    });
    this.adjust();
  }
}
