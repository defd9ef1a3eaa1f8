import type { Decision, Unique } from './types.js';

/** Which job has a key. A job that is over has it until a time, in ms. */
interface Taken {
  jid: string;
  until: number;
  over: boolean;
}

/** A unique job as tests have it. */
interface UniqueJob {
  jid: string;
  gate?: { unique?: Unique };
}

/** Returns the value at a path, in an array of its own, or an empty array if there is none. */
function part(job: unknown, path: string): unknown[] {
  let value = job;
  for (const step of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return [];
    value = (value as Record<string, unknown>)[step];
  }
  return [value];
}

/** Orders the members of objects, so that equal values have equal texts. */
const ordered = (_: string, value: unknown): unknown => (typeof value === 'object' && value !== null && !Array.isArray(value)
  ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value);

function keyOf(job: UniqueJob, { key, by = ['class', 'queue', 'args'] }: Unique): string {
  if (key !== undefined) return `key:${key}`;
  return `by:${JSON.stringify([...new Set(by)].toSorted().map((path) => [path, part(job, path)]), ordered)}`;
}

/** The keys of unique jobs in a test. Nothing is put off there, so `wait` and `max` do nothing. */
export class Keys {
  #taken = new Map<string, Taken>();

  /**
   * Gives a job its key, or returns which job has it. `replace` removes a job that waits, and returns
   * whether it did.
   */
  decide(job: UniqueJob, replace: (jid: string) => boolean): Decision {
    const unique = job.gate?.unique;
    if (!unique) return { jid: job.jid, duplicate: false };
    const key = keyOf(job, unique);
    const holder = this.#taken.get(key);
    if (holder && (!holder.over || Date.now() < holder.until) && !(unique.on === 'replace' && replace(holder.jid))) return { jid: holder.jid, duplicate: true };
    this.#taken.set(key, { jid: job.jid, until: Date.now() + (unique.for ?? 0) * 1000, over: false });
    return { jid: job.jid, duplicate: false };
  }

  /** Frees the key of a job that has it only while it waits. */
  begins(job: UniqueJob): void {
    if (job.gate?.unique?.while === 'waiting') this.ends(job);
  }

  /** Frees the key of a job, if it does not have it for a longer time. */
  ends(job: UniqueJob): void {
    const unique = job.gate?.unique;
    const holder = unique && this.#taken.get(keyOf(job, unique));
    if (holder?.jid === job.jid) holder.over = true;
  }

  /** Frees all keys. */
  clear(): void {
    this.#taken.clear();
  }
}
