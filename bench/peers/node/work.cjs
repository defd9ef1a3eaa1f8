// What the programs of BullMQ and pg-boss share: the work, and the log of their handlers.
'use strict';

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');

const work = JSON.parse(process.env.PEER_WORK);
const log = fs.openSync(work.log, 'a');

// note writes that a job begins (b) or ends (e). Linux shares this clock among processes.
function note(what, id, key) {
  fs.writeSync(log, `${what} ${id} ${key} ${process.pid} ${process.hrtime.bigint()}\n`);
}

// handle runs one job.
async function handle({ id, key }) {
  note('b', id, key);
  await sleep(work.sleep_ms);
  note('e', id, key);
}

// jobs are the jobs that are enqueued.
function jobs() {
  return Array.from({ length: work.jobs }, (_, i) => ({ id: i, key: i % work.keys }));
}

// unique enqueues every second job twice, by several producers at the same time. enqueue returns
// whether the job was accepted.
async function unique(enqueue) {
  let next = 0;
  let accepted = 0;
  const producer = async () => {
    for (let i = next++; i < work.jobs; i = next++) {
      if (await enqueue(Math.floor(i / 2), i)) accepted++;
    }
  };
  const begin = process.hrtime.bigint();
  await Promise.all(Array.from({ length: work.producers }, producer));
  console.log(JSON.stringify({ seconds: Number(process.hrtime.bigint() - begin) / 1e9, accepted }));
}

// run calls the function of the role. A role that returns ends the program.
function run(roles) {
  roles[process.argv[2]]().then(stay => stay || process.exit(0), err => {
    console.error(err);
    process.exit(1);
  });
}

// ready says that the program consumes, and keeps it running.
function ready() {
  console.log('ready');
  return true;
}

module.exports = { work, handle, jobs, unique, run, ready };
