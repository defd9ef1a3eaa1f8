import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { Invalid } from '../dist/errors.js';
import { Job } from '../dist/job.js';
import { parseJob } from '../dist/parse.js';
import { prepare, toJSON } from '../dist/write.js';

test('what JSON says reaches it unchanged', () => {
  const value = { a: [1, -0.5, 'é😀\u2028', null, true, { b: undefined, c: [] }], d: new Date(0) };
  assert.equal(toJSON(value), JSON.stringify(value));
  assert.equal(toJSON([2n ** 70n, -1n]), '[1180591620717411303424,-1]');
});

test('what JSON cannot say is refused, not changed', () => {
  const circle = [];
  circle.push(circle);
  for (const bad of [NaN, -Infinity, undefined, () => {}, Symbol('x'), '\ud800', { '\udc00': 1 }, new Map(), new Set(), circle]) {
    assert.throws(() => toJSON([bad]), Invalid);
  }
  assert.throws(() => toJSON(new Array(3)), Invalid, 'holes');
});

test('what JSON.stringify would empty is refused, with what to write instead', () => {
  const bad = [
    [new Error('x'), /no Error: pass error.message/], [new Map(), /no Map/], [new Set(), /no Set/], [Promise.resolve(), /no Promise: await it/],
    [/x/, /no RegExp/], [new Uint8Array(2), /no binary data/], [new ArrayBuffer(2), /no binary data/], [undefined, /write null/],
    [runInNewContext('new Error("of another realm")'), /no Error/], [new Date('no date'), /no invalid Date: write null/],
    [new Map().values(), /no iterator: pass \[\.\.\.iterator\]/], [(function* one() {})(), /no iterator/], [new URLSearchParams('a=1'), /no iterator/],
  ];
  for (const [value, message] of bad) {
    for (const args of [[value], [{ deep: [value] }]]) assert.throws(() => prepare({ class: 'A', args }), (e) => e instanceof Invalid && message.test(e.message));
  }
  class Mine {
    a = 1;
  }
  class Axios extends Error {
    toJSON = () => ({ code: 7 });
  }
  assert.equal(toJSON([new Mine(), new Axios('x'), Object('text'), Object(7), Buffer.from('a')]), '[{"a":1},{"code":7},"text",7,{"type":"Buffer","data":[97]}]');
});

test('a handler reads the members of its job that are its own', () => {
  const fields = { tenant: 'acme', locale: { a: [1] }, ['__proto__']: 1 };
  const { body } = prepare({ class: 'A', args: [1], options: { fields, tags: ['x'], retry: 3, timeout: 1, dead: false, backtrace: 2, priority: 1 } });
  const job = new Job(parseJob(body, 'q'), new AbortController().signal);
  assert.deepEqual(Object.entries(job.fields), Object.entries(fields));
  assert.deepEqual(new Job(parseJob(Buffer.from('{"class":"A"}'), 'q'), job.stopping).fields, {});
});

test('a handler gets the trace context of its job, and nothing that is none', () => {
  const traced = (traceparent) => new Job(parseJob(Buffer.from('{"class":"A"}'), 'q', { headers: { traceparent } }), new AbortController().signal).traceparent;
  assert.equal(traced('00-1-2-01'), '00-1-2-01');
  for (const bad of [undefined, 17, Buffer.from('00-1-2-01'), '', 'a\nb', 'x'.repeat(256)]) assert.equal(traced(bad), undefined);
});

test('options that are wrong are refused', () => {
  const bad = {
    queue: 7, retry: 1.5, priority: '1', tags: 'x', jid: '', expiresAt: 1700000000, timeout: -1, dead: 0, backtrace: -1, fields: { jid: 1 }, quue: 'q',
  };
  for (const [name, value] of Object.entries(bad)) {
    assert.throws(() => prepare({ class: 'A', options: { [name]: value } }), Invalid, name);
  }
  assert.throws(() => prepare({ class: 'A', at: 12 }), Invalid);
  assert.throws(() => prepare({ class: 'A', args: ['x'.repeat(16 * 1024 * 1024)] }), Invalid);
});

test('big integers survive from producer to handler', () => {
  const { body } = prepare({ class: 'A', args: [12345678901234567890n, 'a]b', { n: 1 }], at: undefined });
  const job = new Job(parseJob(body, 'q'), new AbortController().signal);
  assert.deepEqual(job.rawArgs, ['12345678901234567890', '"a]b"', '{"n":1}']);
  assert.equal(BigInt(job.rawArgs[0]), 12345678901234567890n);
  assert.deepEqual(job.args[2], { n: 1 });
  assert.deepEqual(job.raw, body);
});

test('a job without args, or with other things than an array', () => {
  const job = (text) => new Job(parseJob(Buffer.from(text), 'q'), new AbortController().signal);
  assert.deepEqual([job('{"class":"A"}').args, job('{"class":"A"}').rawArgs], [[], []]);
  assert.deepEqual([job('{"class":"A","args":null}').args, job('{"class":"A","args":{"a":1}}').rawArgs], [[], []]);
  assert.deepEqual(job('{"class":"A","args":{"a":1}}').args, { a: 1 });
});

test('members that parsers differ about make a job undecodable', () => {
  for (const text of ['{"class":"A","class":"B"}', '{"cl\\u0061ss":"A"}', '{"class":"A","queue":"\\ud800"}', '\ufeff{"class":"A"}']) {
    assert.throws(() => parseJob(Buffer.from(text), 'q'), text);
  }
  assert.equal(parseJob(Buffer.from('{"class":"A","x":1,"x":2}'), 'q').class, 'A');
  const last = new Job(parseJob(Buffer.from('{"class":"A","args":[1],"args":[2]}'), 'q'), new AbortController().signal);
  assert.deepEqual([last.args, last.rawArgs], [[2], ['2']]);
});
