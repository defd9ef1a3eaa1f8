import type { Channel, ConsumeMessage } from 'amqplib';
import type { Engine } from './engine.js';
import { Hand } from './hand.js';
import type { Lane, Source } from './lane.js';
import { ensureQueue } from './queues.js';
import type { Session } from './session.js';
import { Task, type Arrival } from './task.js';
import { Pauses, answer, close, openChannel, pause, type Watched } from '../connection.js';
import { messageOf } from '../errors.js';
import { QUEUE_PREFIX } from '../format.js';

const PATIENCE = 5_000; // ms that a delivery may wait while the lane is busy with other queues
const SHARE_EVERY = 1_000;

/** A consumer of a queue. It is not current while it is being cancelled. */
interface Consumer {
  current: boolean;
  tag: string | undefined;
}

/** A lane on one channel. */
class Attachment implements Source {
  #consumers: (Consumer | undefined)[]; // by queue; undefined while it is not consumed
  #adjusting: boolean[]; // by queue; whether it is being consumed or cancelled
  #resting: boolean[]; // by queue; whether it was given back, until a slot is free
  #hand: Hand<Arrival>;
  #timer: NodeJS.Timeout | undefined;
  readonly engine: Engine;
  readonly lane: Lane;
  readonly session: Session;
  readonly channel: Watched<Channel>;

  static async open(lane: Lane, session: Session): Promise<Attachment> {
    const channel = await openChannel(session.connection);
    await channel.prefetch(lane.prefetch);
    return new Attachment(lane, session, channel);
  }

  constructor(lane: Lane, session: Session, channel: Watched<Channel>) {
    this.engine = session.engine;
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
    // While the session ends, acknowledgements may still come.
    if (!this.session.ending()) close(this.channel);
  }

  /** Starts the consumers that are wanted, and cancels the others. */
  adjust(): void {
    this.lane.queues.forEach((_, q) => this.#adjustOne(q));
  }

  #wanted(q: number): boolean {
    return !this.engine.quieted && !this.engine.paused.has(this.lane.queues[q]!) && !this.#resting[q];
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
        this.engine.log('warn', 'a queue is not consumed', { queue: this.lane.queues[q], error: messageOf(error) });
        close(this.channel); // the lane opens another channel
      }
    } finally {
      this.#adjusting[q] = false;
    }
  }

  async #consume(q: number): Promise<void> {
    const name = this.lane.queues[q]!;
    if (!(await ensureQueue(this.session, name, () => this.#wanted(q) && !this.channel.gone))) return;
    const consumer: Consumer = { current: true, tag: undefined };
    // Set before the answer: deliveries come with it, in the same turn.
    this.#consumers[q] = consumer;
    const { consumerTag } = await this.channel.consume(QUEUE_PREFIX + name, (message) => this.#arrived(q, consumer, message));
    consumer.tag = consumerTag;
    this.engine.consuming();
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
      // The broker ended it, perhaps because the queue was deleted.
      if (consumer.current) close(this.channel);
    } else if (!consumer.current || !this.#wanted(q)) {
      answer(this.channel, 'requeue', message); // the delivery was on its way
    } else {
      this.#hand.put(q, { queue: this.lane.queues[q]!, message, priority: message.properties.priority ?? 0, at: Date.now() });
      this.pump();
    }
  }

  /** Begins the deliveries that may begin. There is no other place that begins one. */
  pump(): void {
    while (this.#hand.count > 0 && this.lane.busy < this.lane.concurrency && !this.channel.gone && !this.engine.quieted) {
      const task = new Task(this.lane, this.session, this.channel, this.#hand.take());
      this.engine.add(task);
      task.begin();
    }
  }

  /**
   * Gives back queues whose deliveries wait too long because the lane is busy with others. Consumes
   * such queues again when the lane has a free slot.
   */
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

/** Consumes a lane on a connection until it is lost. Opens a new channel when one is lost. */
export async function serve(lane: Lane, session: Session): Promise<void> {
  for (const pauses = new Pauses(); !session.ending(); ) {
    const began = Date.now();
    let attachment: Attachment | undefined;
    try {
      lane.source = attachment = await Attachment.open(lane, session);
      throw await attachment.channel.lost;
    } catch (error) {
      attachment?.end();
      lane.source = undefined;
      if (session.ending()) return;
      session.engine.log('warn', 'a lane has lost its channel, it opens another', { lane: lane.name, error: messageOf(error) });
    }
    if (Date.now() - began > 10_000) pauses.reset();
    await pause(pauses.next(), session.lost);
  }
}
