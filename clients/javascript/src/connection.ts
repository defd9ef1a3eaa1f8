import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { hostname as osHostname } from 'node:os';
import { connect, credentials as mechanisms, type Channel, type ChannelModel, type ConfirmChannel, type Message } from 'amqplib';
import type { Credentials, TlsOptions } from './types.js';

/**
 * A connection or channel. `lost` resolves to the reason when it has ended, and `gone` is then
 * true.
 */
export type Watched<T> = T & { lost: Promise<Error>; gone: boolean };
export type Connection = Watched<ChannelModel>;

/** An address of a host. */
export interface Address {
  address: string;
  family: number;
}

const HEARTBEAT = 10; // s, of AMQP
const DIAL_TIMEOUT = 3_000; // ms to connect and to log in
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;

export const hostname = (): string => osHostname() || 'localhost';

/**
 * The pauses between attempts, in ms. Each is twice the one before, with a random factor, so that
 * clients do not try at the same time.
 */
export class Pauses {
  #next = 0;
  #longest: number;

  constructor(longest = LONGEST_PAUSE) {
    this.#longest = longest;
  }

  next(): number {
    this.#next = Math.min(Math.max(2 * this.#next, FIRST_PAUSE), this.#longest);
    return this.#next * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#next = 0;
  }
}

/**
 * Waits for some ms, or until one of the promises is settled. Resolves to true if the time passed.
 */
export async function pause(ms: number, ...unless: Promise<unknown>[]): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(true), ms);
  });
  try {
    return (await Promise.race([passed, ...unless.map((p) => p.then(() => false))])) === true;
  } finally {
    clearTimeout(timer);
  }
}

/** Returns a URL of one host with our heartbeat. Throws TypeError if it is not one. */
export function brokerUrl(url: string): string {
  const parsed = new URL(url);
  if (!parsed.searchParams.has('heartbeat')) parsed.searchParams.set('heartbeat', String(HEARTBEAT));
  return parsed.toString();
}

/**
 * Connects once, to an address of the URL's host. TLS checks the name of the host. `user` replaces
 * the user of the URL. The connection gets `lost`, a promise of the reason for its end, and `gone`,
 * whether it has ended.
 */
export async function dial(url: string, address: Address, name: string, tls?: TlsOptions, user?: Credentials): Promise<Connection> {
  const opening = connect(brokerUrl(url), {
    ...tls, ...(user && { credentials: mechanisms.plain(user.username, user.password) }), noDelay: true, timeout: DIAL_TIMEOUT, clientProperties: { connection_name: name },
    lookup: (_: string, { all }: { all?: boolean }, found: (error: null, ...found: [Address[]] | [string, number]) => void) => (all ? found(null, [address]) : found(null, address.address, address.family)),
  });
  if (await pause(DIAL_TIMEOUT, opening)) {
    opening.then((late) => close(watched<ChannelModel>(late)), () => {});
    throw new Error('no answer in time');
  }
  const connection = await opening;
  gather((connection.connection as { stream?: Socket } | undefined)?.stream);
  return watched<ChannelModel>(connection);
}

/**
 * Collects all writes to a socket in one turn, and sends them with one system call. amqplib writes
 * each frame by itself, and for an acknowledgement that call costs more than all else.
 */
function gather(socket: Socket | undefined): void {
  if (!socket?.cork) return;
  const write = socket.write as (...chunk: unknown[]) => boolean;
  socket.write = (...chunk: unknown[]) => {
    if (socket.writableCorked === 0) {
      socket.cork();
      process.nextTick(() => socket.uncork());
    }
    return write.apply(socket, chunk);
  };
}

/**
 * Gives a connection or channel `lost` and `gone`, and handles its errors. An unhandled error event
 * would end the process.
 */
export function watched<T extends EventEmitter>(ended: T): Watched<T> {
  const emitter = ended as Watched<T>;
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

export const openChannel = async (connection: Connection): Promise<Watched<Channel>> => watched(await connection.createChannel());

/** Opens a channel in confirm mode. */
export const openConfirmChannel = async (connection: Connection): Promise<Watched<ConfirmChannel>> => watched(await connection.createConfirmChannel());

/** Closes a connection or channel in any state, and waits at most `ms` for that. */
export async function close(closable: Watched<ChannelModel | Channel>, ms = 2_000): Promise<void> {
  if (closable.gone) return;
  try {
    await pause(ms, closable.close(), closable.lost);
  } catch {
    // It was closed already.
  }
}

/**
 * Resolves to whether a queue exists. It asks on a channel of its own, because the answer may close
 * the channel.
 */
export async function exists(connection: Connection, queue: string): Promise<boolean> {
  const channel = await openChannel(connection);
  try {
    await channel.checkQueue(queue);
    return true;
  } catch (error) {
    const { code } = error as { code?: number };
    if (code === 404) return false;
    if (code === 405) return true; // an exclusive queue of another connection
    throw error;
  } finally {
    await close(channel);
  }
}

/** Answers a delivery. If its channel is closed or closing, the broker delivers the job again. */
export function answer(channel: Watched<Channel>, then: 'ack' | 'reject' | 'requeue', message: Message): void {
  if (channel.gone) return;
  try {
    if (then === 'ack') channel.ack(message);
    else if (then === 'reject') channel.reject(message, false);
    else channel.nack(message, false, true);
  } catch {
    // Its connection is closing.
  }
}

/** Returns whether the broker refuses the client, so that further attempts are useless. */
export function unwelcome(error: unknown): boolean {
  const { unwelcome: known, message } = (error ?? {}) as { unwelcome?: boolean; message?: unknown };
  return known ?? /ACCESS[-_]REFUSED|NOT[-_]ALLOWED|\b403\b|\b530\b/.test(String(message));
}
