import { close, openChannel, pause, type Connection } from './connection.js';
import { DIRECT_REPLY, LEADER, parse } from './format.js';
import { Lost, Returned } from './publisher.js';
import { newJid, toJSON } from './write.js';

const NO_LEADER = 'no sidecar leads right now';

/** A command to the leader. */
export interface Command {
  id?: string;
  command: string;
  slot?: string;
  process?: string;
  definitions?: unknown;
}

/**
 * Sends a command, and resolves to the leader's answer. Rejects with Returned if it is known that
 * the leader has done nothing, and with Lost if that is not known.
 */
export async function ask(connection: Connection, command: Command, ms: number): Promise<any> {
  try {
    const channel = await openChannel(connection);
    try {
      const answer = new Promise<any>((resolve, reject) => {
        channel.on('return', () => resolve({ status: 503 }));
        channel.consume(DIRECT_REPLY, (message) => resolve(message ? parse(message.content) : {}), { noAck: true }).catch(reject);
      });
      answer.catch(() => {}); // the channel may be lost first
      channel.publish('', LEADER, Buffer.from(toJSON(command)), { mandatory: true, contentType: 'application/json', replyTo: DIRECT_REPLY, correlationId: command.id ?? newJid() });
      if (await pause(ms, answer, channel.lost)) throw new Lost('the leader did not answer');
      const reply = await Promise.race([answer, channel.lost.then((cause) => Promise.reject(new Lost('connection lost', { cause })))]);
      if (reply.status === 503) throw new Returned(reply.reason ? `${NO_LEADER}: ${reply.reason}` : NO_LEADER);
      return reply;
    } finally {
      await close(channel);
    }
  } catch (error) {
    throw error instanceof Returned || error instanceof Lost ? error : new Lost('connection lost', { cause: error });
  }
}
