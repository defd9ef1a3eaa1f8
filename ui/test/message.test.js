import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyOf, messageOf, nameOfJob, toExchange } from '../static/core/message.js';

/** Returns the job of a message. @param {any} message */
const of = (message) => ({ class: 'millrace.Message', args: [message] });

test('a message is called by where it goes, and other jobs by their class', () => {
  assert.equal(nameOfJob(of({ exchange: 'orders', routing_key: 'order.unpaid' })), 'orders → order.unpaid');
  assert.equal(nameOfJob(of({ exchange: 'orders' })), 'orders');
  assert.equal(nameOfJob(of({ exchange: '', routing_key: 'mails' })), 'mails');
  assert.equal(nameOfJob(of({ exchange: '' })), 'the default exchange');
  for (const odd of [{}, null, 'text', { exchange: 5 }]) assert.equal(nameOfJob(of(odd)), 'millrace.Message');
  assert.equal(nameOfJob({ class: 'Mail', args: [{ exchange: 'orders' }] }), 'Mail');
  assert.equal(nameOfJob(undefined, 'Mail'), 'Mail');
  assert.equal(nameOfJob(undefined), '');
  assert.equal(messageOf({ class: 'millrace.Message', args: {} }), null);
  assert.deepEqual(toExchange('a:b'), { class: 'millrace.Message', args: '0.exchange:a:b' });
});

test('a body is shown as text if it is text', () => {
  assert.deepEqual(bodyOf({ body: 'hé' }), { text: 'hé', size: 3 });
  assert.deepEqual(bodyOf({}), { text: '', size: 0 });
  assert.deepEqual(bodyOf({ body_base64: 'aMOp' }), { text: 'hé', size: 3 });
  assert.deepEqual(bodyOf({ body_base64: 'AQD/' }), { size: 3 });
  assert.deepEqual(bodyOf({ body_base64: 'AGFi' }), { size: 3 });
  assert.deepEqual(bodyOf({ body_base64: 'no base64!' }), { text: '', size: 0 });
});
