'use strict';

const MEMORY = 72 * 3600; // s that a dead process, or a job that never ended, is remembered

const keyOf = (jid, body) => `${body} ${jid}`;

/** The fold of the stream jobs.begins: which processes live, and in which of them jobs began that were delivered before. */
class Begins {
  #processes = new Map();
  #suspects = new Map();
  #records = 0;

  /** Folds one record. What is none is skipped. */
  apply(record) {
    if (typeof record?.process !== 'string' || !record.process) return;
    this.#records++;
    const at = typeof record.at === 'number' ? record.at : 0;
    const process = this.#processes.get(record.process);
    switch (record.type) {
      case 'opened':
        this.#processes.set(record.process, {
          queue: record.queue, queues: Array.isArray(record.queues) ? record.queues : [], opened: this.#records, heard: at,
        });
        break;
      case 'died':
        if (process && process.died === undefined) process.died = process.heard = at;
        break;
      case 'closed':
        if (process) Object.assign(process, { closed: true, heard: at });
        break;
      case 'begun':
        this.#begun(record, at);
        break;
      case 'ended':
        this.#suspects.delete(keyOf(record.jid, record.body));
    }
    if (this.#records % 1000 === 0) this.#forget(at - MEMORY);
  }

  #begun(record, at) {
    const key = keyOf(record.jid, record.body);
    const suspect = this.#suspects.get(key) ?? { processes: new Set() };
    suspect.heard = at;
    suspect.processes.add(record.process);
    if (record.blames) suspect.processes.add(record.blames);
    this.#suspects.set(key, suspect);
  }

  #forget(before) {
    for (const [key, s] of this.#suspects) if (s.heard < before) this.#suspects.delete(key);
    for (const [id, p] of this.#processes) {
      if ((p.closed || p.died !== undefined) && p.heard < before) this.#processes.delete(id);
    }
  }

  #dead(process, gone) {
    return !process.closed && (process.died !== undefined || gone.has(process.queue));
  }

  /** The exclusive queues by which to find out whether processes live that matter for a job: process → queue. */
  doubtful({ jid, body }, queue, self) {
    const found = new Map();
    const suspect = this.#suspects.get(keyOf(jid, body));
    for (const [id, p] of this.#processes) {
      if (id === self || p.closed || p.died !== undefined) continue;
      if (suspect ? suspect.processes.has(id) : p.queues.includes(queue)) found.set(id, p.queue);
    }
    return found;
  }

  /** The process that is to have begun a job first of which nothing is known: of the dead that consumed its queue, the last opened. */
  blame({ jid, body }, queue, self, enqueuedAt, gone) {
    if (this.#suspects.has(keyOf(jid, body))) return '';
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

  /** How many dead processes a job began in. */
  deaths({ jid, body }, self, gone) {
    let n = 0;
    for (const id of this.#suspects.get(keyOf(jid, body))?.processes ?? []) {
      const p = this.#processes.get(id);
      if (id !== self && p && this.#dead(p, gone)) n++;
    }
    return n;
  }
}

module.exports = { Begins };
