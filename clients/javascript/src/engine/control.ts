import type { Engine } from './engine.js';
import { close, openChannel, pause, type Connection } from '../connection.js';
import { messageOf } from '../errors.js';
import { CONTROL, LEADER } from '../format.js';
import { newJid } from '../write.js';

const ASK_TIMEOUT = 2_000; // ms
const DIRECT_REPLY = 'amq.rabbitmq.reply-to';

/** Parses a message as JSON. An invalid one has no members. */
export function parse(body: Buffer): any {
  try {
    return JSON.parse(body.toString()) ?? {};
  } catch {
    return {};
  }
}

/**
 * Declares the exclusive queue of this process, follows its commands, and resolves to the queue's
 * name.
 */
export async function listen(engine: Engine, connection: Connection): Promise<string> {
  const channel = await openChannel(connection);
  const { queue } = await channel.assertQueue('', { exclusive: true, durable: false });
  await channel.consume(queue, (message) => message && engine.obey(parse(message.content)), { noAck: true });
  const binding = await openChannel(connection); // it closes if the exchange does not exist
  try {
    await binding.bindQueue(queue, CONTROL, '');
  } catch (error) {
    engine.log('warn', 'commands do not reach this worker', { error: messageOf(error) });
  }
  await close(binding);
  return queue;
}

/** Asks the leader which queues are paused. Without an answer, nothing changes. */
export async function askPaused(engine: Engine, connection: Connection): Promise<string[]> {
  const channel = await openChannel(connection);
  try {
    const answer = new Promise<any>((resolve) => {
      channel.on('return', () => resolve(undefined));
      channel.consume(DIRECT_REPLY, (message) => resolve(message && parse(message.content)), { noAck: true }).catch(resolve);
    });
    const ask = Buffer.from(JSON.stringify({ id: newJid(), command: 'state' }));
    channel.publish('', LEADER, ask, { mandatory: true, contentType: 'application/json', replyTo: DIRECT_REPLY, correlationId: newJid() });
    await pause(ASK_TIMEOUT, answer, channel.lost);
    const said = await Promise.race([answer, undefined]);
    return said?.status === 200 && Array.isArray(said.paused) ? said.paused : [...engine.paused];
  } catch {
    return [...engine.paused];
  } finally {
    await close(channel);
  }
}
