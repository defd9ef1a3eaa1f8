'use strict';

const { hostname: osHostname } = require('node:os');
const amqplib = require('amqplib');

const HEARTBEAT = 10; // s, of AMQP
const DIAL_TIMEOUT = 3_000; // ms to connect and to log in
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;

const hostname = () => osHostname() || 'localhost';

/** How long to wait between attempts, in ms: doubled each time, and not the same for everybody. */
class Pauses {
  #next = 0;

  next() {
    this.#next = Math.min(Math.max(2 * this.#next, FIRST_PAUSE), LONGEST_PAUSE);
    return this.#next * (0.5 + Math.random() / 2);
  }

  reset() {
    this.#next = 0;
  }
}

/** Waits, or until one of the promises is settled. True if the time passed. */
async function pause(ms, ...unless) {
  let timer;
  const passed = new Promise((resolve) => {
    timer = setTimeout(() => resolve(true), ms);
  });
  try {
    return (await Promise.race([passed, ...unless.map((p) => p.then(() => false))])) === true;
  } finally {
    clearTimeout(timer);
  }
}

/** A URL of one host with our heartbeat, or a TypeError. */
function brokerUrl(url) {
  const parsed = new URL(url);
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', String(HEARTBEAT));
  return parsed.toString();
}

/**
 * Connects once, to an address of the URL's host, whose name TLS checks, with TLS options. The connection gets `lost`, a promise of why it ended, which is
 * settled when it has; and `gone`, whether it has.
 */
async function dial(url, address, name, tls) {
  const opening = amqplib.connect(brokerUrl(url), {
    ...tls, noDelay: true, timeout: DIAL_TIMEOUT, clientProperties: { connection_name: name },
    lookup: (_, { all }, found) => (all ? found(null, [address]) : found(null, address.address, address.family)),
  });
  if (await pause(DIAL_TIMEOUT, opening)) {
    opening.then((late) => close(watched(late)), () => {});
    throw new Error('no answer in time');
  }
  const connection = await opening;
  gather(/** @type {any} */ (connection).connection?.stream);
  return watched(connection);
}

/**
 * Has all that is written to a socket in one go leave in one call to the system: amqplib writes each frame by itself, and for an
 * acknowledgement that call costs more than all else.
 */
function gather(socket) {
  if (!socket?.cork) return;
  const write = socket.write;
  socket.write = (...chunk) => {
    if (socket.writableCorked === 0) {
      socket.cork();
      process.nextTick(() => socket.uncork());
    }
    return write.apply(socket, chunk);
  };
}

/** Gives a connection or channel `lost` and `gone`, and hears its errors, which would end the process if nobody did. */
function watched(emitter) {
  let why = new Error('closed');
  emitter.gone = false;
  emitter.on('error', (error) => {
    why = error;
  });
  emitter.lost = new Promise((resolve) => {
    emitter.on('close', (error) => {
      emitter.gone = true;
      resolve(error instanceof Error ? error : why);
    });
  });
  return emitter;
}

const openChannel = async (connection) => watched(await connection.createChannel());

/** Closes a connection or channel, whatever state it is in, and waits for that at most so long. */
async function close(closable, ms = 2_000) {
  if (closable.gone) return;
  try {
    await pause(ms, closable.close(), closable.lost);
  } catch {
    // It was closed already.
  }
}

/** Answers a delivery. Where its channel is gone, or about to be, the broker gives the job to somebody else. */
function answer(channel, then, message) {
  if (channel.gone) return;
  try {
    if (then === 'ack') channel.ack(message);
    else if (then === 'reject') channel.reject(message, false);
    else channel.nack(message, false, true);
  } catch {
    // Its connection is closing.
  }
}

/** Whether the broker will not have us, however often we ask. */
const unwelcome = (error) => error?.unwelcome ?? /ACCESS[-_]REFUSED|NOT[-_]ALLOWED|\b403\b|\b530\b/.test(String(error?.message));

module.exports = { hostname, Pauses, pause, brokerUrl, dial, watched, openChannel, close, answer, unwelcome };
