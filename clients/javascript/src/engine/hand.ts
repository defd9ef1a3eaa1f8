/** What a lane with several queues has at hand, by queue. */
export class Hand<T extends { priority: number; at: number }> {
  #waiting: T[][];
  #weights: number[] | undefined;
  count = 0;

  constructor(queues: string[], weights: number[] | undefined) {
    this.#waiting = queues.map(() => []);
    this.#weights = weights;
  }

  /** Adds a delivery behind those of its priority. */
  put(queue: number, arrival: T): void {
    const list = this.#waiting[queue]!;
    let at = list.length;
    while (at > 0 && list[at - 1]!.priority < arrival.priority) at--;
    list.splice(at, 0, arrival);
    this.count++;
  }

  /** Removes what is to begin next: of the first queue that has something, or of one that is drawn by weight. */
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

  /** Removes all of one queue. */
  empty(queue: number): T[] {
    const list = this.#waiting[queue]!;
    this.#waiting[queue] = [];
    this.count -= list.length;
    return list;
  }

  /** When the longest waiting of a queue arrived, or nothing. */
  oldest(queue: number): number | undefined {
    const list = this.#waiting[queue]!;
    return list.length ? Math.min(...list.map((a) => a.at)) : undefined;
  }
}
