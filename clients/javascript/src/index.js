'use strict';

/** Millrace for Node: enqueue jobs with a Client, run them with a Worker. */
const { Client } = require('./client.js');
const {
  Cancelled, Discard, HandBack, Incomplete, Invalid, Kill, MillraceError, RetryIn, Refused, Stopping, Timeout, Unconfirmed, Unreachable,
} = require('./errors.js');
const { Job } = require('./job.js');
const { Worker } = require('./worker.js');

module.exports = {
  Cancelled, Client, Discard, HandBack, Incomplete, Invalid, Job, Kill, MillraceError, RetryIn, Refused, Stopping, Timeout, Unconfirmed,
  Unreachable, Worker,
};
