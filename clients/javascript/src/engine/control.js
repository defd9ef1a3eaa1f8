'use strict';

const { close, openChannel, pause } = require('../connection.js');
const { CONTROL, LEADER } = require('../format.js');
const { newJid } = require('../write.js');

const ASK_TIMEOUT = 2_000; // ms
const DIRECT_REPLY = 'amq.rabbitmq.reply-to';

function parse(body) {
  try {
    return JSON.parse(body.toString()) ?? {};
  } catch {
    return {};
  }
}

/** Declares the exclusive queue of this process and obeys what comes. Gives the queue's name. */
async function listen(session) {
  const { engine } = session;
  const channel = await openChannel(session.connection);
  const { queue } = await channel.assertQueue('', { exclusive: true, durable: false });
  await channel.consume(queue, (message) => message && engine.obey(parse(message.content)), { noAck: true });
  const binding = await openChannel(session.connection); // it breaks if there is no such exchange
  try {
    await binding.bindQueue(queue, CONTROL, '');
  } catch (error) {
    engine.log('warn', 'commands do not reach this worker', { error: error.message });
  }
  await close(binding);
  return queue;
}

/** Asks the leader which queues are paused. Without an answer, what the worker knew holds. */
async function askPaused(session) {
  const channel = await openChannel(session.connection);
  try {
    const answer = new Promise((resolve) => {
      channel.on('return', () => resolve(undefined));
      channel.consume(DIRECT_REPLY, (message) => resolve(message && parse(message.content)), { noAck: true }).catch(resolve);
    });
    const ask = Buffer.from(JSON.stringify({ id: newJid(), command: 'state' }));
    channel.publish('', LEADER, ask, { mandatory: true, contentType: 'application/json', replyTo: DIRECT_REPLY, correlationId: newJid() });
    await pause(ASK_TIMEOUT, answer, channel.lost);
    const said = await Promise.race([answer, undefined]);
    return said?.status === 200 && Array.isArray(said.paused) ? said.paused : [...session.engine.paused];
  } catch {
    return [...session.engine.paused];
  } finally {
    await close(channel);
  }
}

module.exports = { listen, askPaused };
