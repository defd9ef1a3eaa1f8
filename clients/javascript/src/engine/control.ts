import type { Engine } from './engine.js';
import { close, openChannel, type Connection } from '../connection.js';
import { messageOf } from '../errors.js';
import { CONTROL, parse } from '../format.js';
import { ask, type Command } from '../leader.js';
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

/** What the leader answers to a command; undefined if it does not carry out the command. */
async function said(connection: Connection, command: Command): Promise<any> {
  try {
    const reply = await ask(connection, command, ASK_TIMEOUT);
    return reply.status === 200 ? reply : undefined;
  } catch {
    return undefined; // without an answer, or without a leader
  }
}

/**
 * Asks the leader which queues are paused, and resolves to the epoch below which jobs must be
 * claimed. Without an answer, nothing changes and the epoch is unknown.
 */
export async function askState(engine: Engine, connection: Connection): Promise<number | undefined> {
  const state = await said(connection, { id: newJid(), command: 'state' });
  if (Array.isArray(state?.paused)) engine.learnPaused(state.paused);
  return state && Number(state.claim_below ?? 0);
}

/** Asks the leader whether the job of a slot may run. Without an answer, it is unknown. */
export async function claim(engine: Engine, connection: Connection, slot: string): Promise<'run' | 'drop' | undefined> {
  const reply = await said(connection, { command: 'claim', slot, process: engine.identity });
  return reply?.claim === 'run' || reply?.claim === 'drop' ? reply.claim : undefined;
}
