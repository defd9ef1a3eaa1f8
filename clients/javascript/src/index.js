'use strict';

/** Millrace for Node: enqueue jobs with a Client, run them with a Worker, find and change them with an Inspector. */
const { Client } = require('./client.js');
const { defineJob } = require('./define.js');
const {
  ApiError, BulkError, Cancelled, Closed, Discard, HandBack, Invalid, Kill, MillraceError, NotFound, RetryIn, Refused, Stopping, Timeout,
  Unconfirmed, Unreachable,
} = require('./errors.js');
const { Inspector } = require('./inspector.js');
const { Job } = require('./job.js');
const { Worker } = require('./worker.js');

module.exports = {
  ApiError, BulkError, Cancelled, Client, Closed, Discard, HandBack, Inspector, Invalid, Job, Kill, MillraceError, NotFound, RetryIn, Refused,
  Stopping, Timeout, Unconfirmed, Unreachable, Worker, defineJob,
};
