'use strict';

const { Invalid } = require('./errors.js');
const { OPTIONS } = require('./write.js');

/** A class of jobs with options of its own. Clients and workers take it in place of the class's name. */
class JobDefinition {
  constructor(className, options) {
    this.class = className;
    this.options = options;
    Object.freeze(this);
  }

  toString() {
    return this.class;
  }
}

/** Defines a class of jobs once for the code that enqueues and for the handler. The options hold where a job has none of its own. */
function defineJob(className, options = {}) {
  if (typeof className !== 'string' || className === '') throw new Invalid('a definition needs the name of a class');
  for (const name of Object.keys(options)) {
    if (!OPTIONS.has(name) || name === 'jid' || name === 'deadline') throw new Invalid(`a definition has no option ${name}`);
  }
  return new JobDefinition(className, Object.freeze({ ...options }));
}

/** A job as middleware gets it: with the name of its class, and options of its definition and its own. */
function resolved({ class: job, args = [], options = {}, ...rest }) {
  if (!(job instanceof JobDefinition)) return { class: job, args, options: { ...options }, ...rest };
  return { class: job.class, args, options: { ...job.options, ...options }, ...rest };
}

module.exports = { JobDefinition, defineJob, resolved };
