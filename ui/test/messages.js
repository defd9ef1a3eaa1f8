// Delayed messages in the lists, on their own page, and by exchange.
import assert from 'node:assert/strict';
import { story } from './person.js';
import { http, until } from './sidecar.js';

const now = () => Date.now() / 1000;
const delay = (world, jid, message) => http(`${world.base}/api/jobs`, 'POST', { jid, class: 'millrace.Message', queue: 'millrace.messages', args: [message], at: now() + 90_000 });

export function messages(world) {
  story(world, 'a delayed message is found by its exchange, read, and is one of those that are counted', async (me) => {
    await delay(world, 'message-1', { exchange: 'shop.orders', routing_key: 'order.unpaid', body: '{"order": 9007199254740993}',
      properties: { content_type: 'application/json', headers: { customer: 7 } } });
    await delay(world, 'message-2', { exchange: 'shop.orders', routing_key: 'order.photo', body_base64: 'AQD/', properties_base64: 'gAAKdGV4dC9wbGFpbg==' });
    await until('both are counted', async () => (await http(`${world.base}/api/messages/exchanges`)).items.some((e) => e.exchange === 'shop.orders' && e.scheduled === 2));
    await me.go('Scheduled');
    await me.find('table', 'Delayed messages').find('link', 'shop.orders').click();
    assert.match(me.address(), /class=millrace.Message&args=0.exchange%3Ashop.orders/);
    await me.listed.reads(/^1–2 of 2 matching/);
    await me.find('table', 'scheduled jobs').find('link', 'shop.orders → order.photo').seen();
    await me.find('table', 'scheduled jobs').find('link', 'shop.orders → order.unpaid').click();

    await me.find('heading', /shop\.orders → order\.unpaid message-1/, { level: 1 }).seen();
    const message = me.find('region', 'Message');
    await message.reads(/Exchange ?shop\.orders.*Routing key ?order\.unpaid/s);
    await me.find('region', 'the properties').reads(/"content_type".*"customer"/s);
    await me.find('region', 'the body').reads(/9007199254740993/);
    await me.find('region', 'Scheduled').reads(/millrace\.Message/);
    await me.find('region', 'Arguments').reads(/"exchange"/);
    await message.find('link', 'shop.orders').click();
    await me.find('table', 'scheduled jobs').find('link', 'shop.orders → order.photo').click();
    await message.reads(/Properties ?bytes of AMQP 0-9-1, 13 B.*Body ?binary, 3 B/s);
  });
}
