const MEMORY = 72 * 3600; // s that a dead process, or a job that never ended, is remembered

/** A job's jid and a hash of its bytes. */
export interface Key {
  jid: string;
  body: string;
}

/**
 * A record of the stream. Other programs may write there too, so a member may be missing or have
 * another type.
 */
export type BeginRecord = Partial<Key> & { type?: string; process?: string; at?: unknown; queue?: string; queues?: unknown; blames?: string };

interface Process {
  queue: string;
  queues: unknown[];
  opened: number;
  heard: number;
  died?: number;
  closed?: boolean;
}

interface Suspect {
  processes: Set<string>;
  heard: number;
}

const keyOf = ({ jid, body }: Partial<Key>): string => `${body} ${jid}`;

/**
 * The fold of the stream jobs.begins: which processes live, and in which of them redelivered jobs
 * began.
 */
export class Begins {
  #processes = new Map<string, Process>();
  #suspects = new Map<string, Suspect>();
  #records = 0;

  /** Folds one record. Skips invalid ones. */
  apply(record: BeginRecord | null | undefined): void {
    if (typeof record?.process !== 'string' || !record.process) return;
    this.#records++;
    const at = typeof record.at === 'number' ? record.at : 0;
    const process = this.#processes.get(record.process);
    switch (record.type) {
      case 'opened':
        this.#processes.set(record.process, {
          queue: record.queue as string, queues: Array.isArray(record.queues) ? record.queues : [], opened: this.#records, heard: at,
        });
        break;
      case 'died':
        if (process && process.died === undefined) process.died = process.heard = at;
        break;
      case 'closed':
        if (process) Object.assign(process, { closed: true, heard: at });
        break;
      case 'begun':
        this.#begun(record, record.process, at);
        break;
      case 'ended':
        this.#suspects.delete(keyOf(record));
    }
    if (this.#records % 1000 === 0) this.#forget(at - MEMORY);
  }

  #begun(record: BeginRecord, process: string, at: number): void {
    const key = keyOf(record);
    const suspect: Suspect = this.#suspects.get(key) ?? { processes: new Set(), heard: at };
    suspect.heard = at;
    suspect.processes.add(process);
    if (record.blames) suspect.processes.add(record.blames);
    this.#suspects.set(key, suspect);
  }

  #forget(before: number): void {
    for (const [key, s] of this.#suspects) if (s.heard < before) this.#suspects.delete(key);
    for (const [id, p] of this.#processes) {
      if ((p.closed || p.died !== undefined) && p.heard < before) this.#processes.delete(id);
    }
  }

  #dead(process: Process, gone: Set<string>): boolean {
    return !process.closed && (process.died !== undefined || gone.has(process.queue));
  }

  /**
   * Returns the exclusive queues of the processes that count for a job and may be dead, by process.
   * If such a queue does not exist, its process is dead.
   */
  maybeDead(job: Key, queue: string, self: string): Map<string, string> {
    const found = new Map<string, string>();
    const suspect = this.#suspects.get(keyOf(job));
    for (const [id, p] of this.#processes) {
      if (id === self || p.closed || p.died !== undefined) continue;
      if (suspect ? suspect.processes.has(id) : p.queues.includes(queue)) found.set(id, p.queue);
    }
    return found;
  }

  /**
   * Returns the process that is blamed for the earlier delivery of an unknown job, or ''. It is the
   * process that opened last, of the dead ones that consumed the job's queue and did not die before
   * the job was enqueued.
   */
  blame(job: Key, queue: string, self: string, enqueuedAt: number, gone: Set<string>): string {
    if (this.#suspects.has(keyOf(job))) return '';
    let latest = 0;
    let name = '';
    for (const [id, p] of this.#processes) {
      if (id === self || !this.#dead(p, gone) || !p.queues.includes(queue) || p.opened < latest) continue;
      if (p.died !== undefined && enqueuedAt && p.died < enqueuedAt) continue;
      latest = p.opened;
      name = id;
    }
    return name;
  }

  /** Counts the dead processes in which a job began. */
  deaths(job: Key, self: string, gone: Set<string>): number {
    let n = 0;
    for (const id of this.#suspects.get(keyOf(job))?.processes ?? []) {
      const p = this.#processes.get(id);
      if (id !== self && p && this.#dead(p, gone)) n++;
    }
    return n;
  }
}
