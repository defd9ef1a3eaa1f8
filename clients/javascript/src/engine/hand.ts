/** The waiting deliveries of a lane with several queues, by queue. */
export class Hand<T extends { priority: number; at: number }> {
  #waiting: T[][];
  #weights: number[] | undefined;
  count = 0;

  constructor(queues: string[], weights: number[] | undefined) {
    this.#waiting = queues.map(() => []);
    this.#weights = weights;
  }

  /** Adds a delivery behind all of the same or a higher priority. */
  put(queue: number, arrival: T): void {
    const list = this.#waiting[queue]!;
    let at = list.length;
    while (at > 0 && list[at - 1]!.priority < arrival.priority) at--;
    list.splice(at, 0, arrival);
    this.count++;
  }

  /**
   * Removes the next delivery to begin: from the first queue that has one, or from a queue that is
   * drawn by weight.
   */
  take(random = Math.random): T {
    const list = this.#waiting[this.#next(random)]!;
    this.count--;
    return list.shift()!;
  }

  #next(random: () => number): number {
    const weights = this.#weights;
    if (!weights) return this.#waiting.findIndex((list) => list.length > 0);
    const ready = this.#waiting.map((list, q) => ({ list, q })).filter(({ list }) => list.length > 0);
    let drawn = random() * ready.reduce((sum, { q }) => sum + weights[q]!, 0);
    for (const { q } of ready) {
      drawn -= weights[q]!;
      if (drawn < 0) return q;
    }
    return ready.at(-1)!.q;
  }

  /** Removes and returns all deliveries of a queue. */
  empty(queue: number): T[] {
    const list = this.#waiting[queue]!;
    this.#waiting[queue] = [];
    this.count -= list.length;
    return list;
  }

  /** Returns when the oldest delivery of a queue arrived, or undefined if the queue has none. */
  oldest(queue: number): number | undefined {
    const list = this.#waiting[queue]!;
    return list.length ? Math.min(...list.map((a) => a.at)) : undefined;
  }
}
