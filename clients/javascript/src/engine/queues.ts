import type { Session } from './session.js';
import { close, exists, openChannel, pause } from '../connection.js';
import { messageOf } from '../errors.js';
import { MAX_PRIORITY, QUEUE_PREFIX } from '../format.js';

const QUEUE_EVERY = 1_000; // ms between checks for a missing queue

/**
 * Waits until a queue exists, after declaring a missing one. It does not declare an existing
 * queue, which may have other arguments. Resolves to false if the queue is not wanted any more.
 */
export async function ensureQueue(session: Session, name: string, wanted: () => boolean): Promise<boolean> {
  const { engine, connection } = session;
  const full = QUEUE_PREFIX + name;
  for (let first = true; ; first = false) {
    if (await exists(connection, full)) return wanted();
    if (engine.config.declare) {
      await declare(session, full);
      if (await exists(connection, full)) return wanted();
    }
    if (first) engine.log('warn', 'a queue does not exist yet', { queue: name });
    await pause(QUEUE_EVERY, session.lost, engine.stopped.promise);
    if (!wanted() || session.ending()) return false;
  }
}

/**
 * Declares a classic queue with priorities. It sets the type only if the virtual host has another
 * default type. Elsewhere the queue then equals the queues that other programs declare.
 */
async function declare(session: Session, queue: string): Promise<void> {
  try {
    await declareWith(session, queue, {}).catch((error) => {
      if (error.code !== 406) throw error;
      return declareWith(session, queue, { 'x-queue-type': 'classic' });
    });
  } catch (error) {
    session.engine.log('warn', 'a queue could not be declared', { queue, error: messageOf(error) });
  }
}

/** Declares on a channel of its own, because a refusal closes the channel. */
async function declareWith(session: Session, queue: string, more: Record<string, string>): Promise<void> {
  const channel = await openChannel(session.connection);
  try {
    await channel.assertQueue(queue, { durable: true, maxPriority: MAX_PRIORITY, arguments: more });
  } finally {
    await close(channel);
  }
}
