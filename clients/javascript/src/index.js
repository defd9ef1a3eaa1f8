'use strict';

/** Millrace for Node: enqueue jobs with a Client, run them with a Worker. */
const { Client } = require('./client.js');
const { defineJob } = require('./define.js');
const {
  BulkError, Cancelled, Closed, Discard, HandBack, Invalid, Kill, MillraceError, RetryIn, Refused, Stopping, Timeout, Unconfirmed, Unreachable,
} = require('./errors.js');
const { Job } = require('./job.js');
const { Worker } = require('./worker.js');

module.exports = {
  BulkError, Cancelled, Client, Closed, Discard, HandBack, Invalid, Job, Kill, MillraceError, RetryIn, Refused, Stopping, Timeout, Unconfirmed,
  Unreachable, Worker, defineJob,
};
