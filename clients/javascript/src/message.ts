import { isUtf8 } from 'node:buffer';
import { isDate, isUint8Array } from 'node:util/types';
import type { NewJob } from './define.js';
import { shortText } from './format.js';
import type { Message, MessageOptions, MessageProperties } from './types.js';
import { check, isCount, shallow } from './write.js';

const CLASS = 'millrace.Message';
const QUEUE = 'millrace.messages';

function short(value: unknown, name: string): string {
  check(typeof value === 'string' && shortText(value) !== undefined, `${name} is no text of at most 255 bytes`);
  return value as string;
}

function expiration(value: unknown): string {
  check(typeof value === 'string' && /^\d{1,255}$/.test(value), "expiration is no text of milliseconds, such as '60000'");
  return value as string;
}

const number = (least: number, most: number) => (value: unknown, name: string) => {
  check(isCount(value) && value >= least && value <= most, `${name} is ${value}, ${least} to ${most} are allowed`);
  return value;
};

function timestamp(value: unknown): number {
  check(isDate(value) && value.getTime() >= 0, 'timestamp is no Date since 1970');
  return Math.floor((value as Date).getTime() / 1000);
}

function headers(value: unknown): unknown {
  check(typeof value === 'object' && value !== null && !Array.isArray(value), 'headers are no object');
  shallow(() => checkHeader(value));
  return value;
}

/** Throws Invalid if JSON does not have exactly this value, as far as toJSON does not check that. */
function checkHeader(value: unknown): void {
  if (typeof value === 'number') {
    check(!Number.isInteger(value) || Number.isSafeInteger(value), `the header ${value} may not be exact: pass a BigInt or a text`);
  } else if (typeof value === 'bigint') {
    check(BigInt.asIntN(64, value) === value, `the header ${value} needs more than 64 bits`);
  } else if (Array.isArray(value)) {
    value.forEach(checkHeader);
  } else if (typeof value === 'object' && value !== null) {
    check(!('toJSON' in value), `a header has a ${value.constructor?.name}, which JSON does not have: pass a text or a number`);
    for (const [name, inner] of Object.entries(value)) {
      short(name, 'the name of a header');
      checkHeader(inner);
    }
  }
}

type Encode = (value: unknown, name: string) => unknown;

/** The name of each property in a record, and the function that checks and encodes it. */
const PROPERTIES: { [name in keyof Required<MessageProperties>]: [string, Encode] } = {
  contentType: ['content_type', short],
  contentEncoding: ['content_encoding', short],
  correlationId: ['correlation_id', short],
  replyTo: ['reply_to', short],
  messageId: ['message_id', short],
  type: ['type', short],
  appId: ['app_id', short],
  expiration: ['expiration', expiration],
  deliveryMode: ['delivery_mode', number(1, 2)],
  priority: ['priority', number(0, 255)],
  timestamp: ['timestamp', timestamp],
  headers: ['headers', headers],
};

function encodeProperties(properties: MessageProperties): Record<string, unknown> {
  const encoded: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(properties)) {
    check(Object.hasOwn(PROPERTIES, name), `there is no property ${name}`);
    const [member, encode] = PROPERTIES[name as keyof MessageProperties];
    if (value !== undefined) encoded[member] = encode(value, name);
  }
  return encoded;
}

function encodeBody(body: unknown): { body: string } | { body_base64: string } {
  if (typeof body === 'string') return { body };
  check(isUint8Array(body), 'body is no string, Buffer or Uint8Array');
  const bytes = Buffer.from(body);
  return isUtf8(bytes) ? { body: bytes.toString() } : { body_base64: bytes.toString('base64') };
}

/** Returns the job that delivers a message. Throws Invalid if the message breaks a rule. */
export function delivery(message: Message, options: MessageOptions): NewJob & { options: MessageOptions } {
  const { exchange, routingKey = '', body = '', properties, ...others } = message;
  const [unknown] = Object.keys(others);
  check(unknown === undefined, `a message has no ${unknown}`);
  for (const name of ['queue', 'limited', 'limitKey', 'unique']) check(!(name in options), `a message has no option ${name}`);
  const encoded = {
    exchange: short(exchange, 'exchange'), routing_key: short(routingKey, 'routingKey'), ...encodeBody(body),
    ...(properties && { properties: encodeProperties(properties) }),
  };
  return { class: CLASS, args: [encoded], options: { ...options, queue: QUEUE } as MessageOptions };
}
