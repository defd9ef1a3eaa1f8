import type { ConsumeMessage } from 'amqplib';
import { seconds } from '../format.js';
import type { Outcome } from '../outcome.js';

/** The outcome of a job that ran elsewhere, or that another copy stands for. */
export const DROPPED: Outcome = { then: 'ack' };

/** Returns the slot that a delivery holds, or undefined if limits do not count its job. */
export function slotOf({ properties: { headers } }: ConsumeMessage): string | undefined {
  const slot: unknown = headers?.['millrace-slot'];
  return typeof slot === 'string' && slot !== '' ? slot : undefined;
}

/**
 * Returns whether the job of a slot may have begun before: it was delivered before, it was fired
 * again, the leader says so, or it was fired before this connection was made.
 */
export function mustClaim({ fields, properties }: ConsumeMessage, below: number | undefined): boolean {
  const { 'millrace-claim': asked, 'millrace-op': op, 'millrace-epoch': epoch } = properties.headers ?? {};
  return fields.redelivered || asked !== undefined || op === 'refired' || below === undefined || Number(epoch ?? 0) < below;
}

/**
 * Returns whether a job has ended: its delivery does not go back to its queue, and was not dropped.
 */
export const ends = ({ then, status }: Outcome): boolean => then === 'reject' || (then === 'ack' && status !== undefined);

/** Returns the record that frees a slot. */
export const endRecord = (slot: string, process: string): Buffer => Buffer.from(JSON.stringify({ type: 'ended', slot, process, at: seconds() }));
