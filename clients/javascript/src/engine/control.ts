import type { Engine } from './engine.js';
import { close, openChannel, type Connection } from '../connection.js';
import { messageOf } from '../errors.js';
import { CONTROL } from '../format.js';
import { ask, parse } from '../leader.js';
import { newJid } from '../write.js';

const ASK_TIMEOUT = 2_000; // ms

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
  try {
    const said = await ask(connection, { id: newJid(), command: 'state' }, ASK_TIMEOUT);
    if (said.status === 200 && Array.isArray(said.paused)) return said.paused;
  } catch {
    // Without an answer, or without a leader.
  }
  return [...engine.paused];
}
