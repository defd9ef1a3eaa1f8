'use strict';

/** What a job is to the thread of the handlers. */
const FIELDS = ['text', 'jid', 'class', 'queue', 'retryCount', 'priority', 'tags', 'headers', 'timeout', 'backtrace'];
const JOB = FIELDS.length + 1;
const END = 3;

/**
 * What one thread of a worker sends the other: once in a turn of its event loop all that there is, for a message costs both of them more
 * than a quick job does. Jobs and their good ends stand in one flat array, since that is copied faster than objects are.
 */
class Outbox {
  #send;
  #flat = [];
  #messages = [];
  #due = false;

  constructor(send) {
    this.#send = send;
  }

  /** Sends a message. */
  post(message) {
    this.#messages.push(message);
    this.#schedule();
  }

  /** Sends a job that is to run. */
  run(id, job) {
    this.#flat.push(id);
    for (const field of FIELDS) this.#flat.push(job[field]);
    this.#schedule();
  }

  /** Sends that a job has ended well. */
  ended(id, begin, end) {
    this.#flat.push(id, begin, end);
    this.#schedule();
  }

  #schedule() {
    if (this.#due) return;
    this.#due = true;
    setImmediate(() => this.flush());
  }

  flush() {
    if (!this.#due) return;
    this.#due = false;
    this.#send([this.#flat, this.#messages]);
    this.#flat = [];
    this.#messages = [];
  }
}

/** The jobs of a batch, and what else it says, as messages. */
function* jobs([flat, messages]) {
  for (let i = 0; i < flat.length; i += JOB) {
    const job = {};
    FIELDS.forEach((field, f) => {
      job[field] = flat[i + 1 + f];
    });
    yield { t: 'run', id: flat[i], job };
  }
  yield* messages;
}

/** The good ends of a batch, and what else it says, as messages. */
function* ends([flat, messages]) {
  for (let i = 0; i < flat.length; i += END) {
    yield { t: 'verdict', id: flat[i], verdict: { kind: 'success', begin: flat[i + 1], end: flat[i + 2] } };
  }
  yield* messages;
}

module.exports = { Outbox, jobs, ends };
