import assert from 'node:assert/strict';
import { test } from 'node:test';
import { below, itemTexts, memberText, ownText, read, without } from '../static/core/rawjson.js';

test('what is shown of a record is what was written', () => {
  const record = '{ "b": 9007199254740993, "1":1e400,\n "a": ["\\u00e9", "]}\\"" , {}], "millrace": {"offset": 1}}';
  assert.equal(memberText(record, 'b'), '9007199254740993');
  assert.equal(memberText(record, 'a'), '["\\u00e9", "]}\\"" , {}]');
  assert.equal(memberText(record, 'missing'), '');
  assert.equal(ownText(record), '{ "b": 9007199254740993, "1":1e400,\n "a": ["\\u00e9", "]}\\"" , {}]}');
  assert.deepEqual(itemTexts('{"items":[{"x":1},\n[2]],"n":3}', 'items'), ['{"x":1}', '[2]']);
  assert.deepEqual(itemTexts('[1.10, "a"]'), ['1.10', '"a"']);
});

test('a member is taken out wherever it stands', () => {
  assert.equal(without('{"jid":"a","class":"C"}', 'jid'), '{"class":"C"}');
  assert.equal(without('{"class":"C", "jid" : "jid", "x":"jid"}', 'jid'), '{"class":"C", "x":"jid"}');
  assert.equal(without('{"class":"C","jid":"a"}', 'jid'), '{"class":"C"}');
  assert.equal(without('{"jid":1}', 'jid'), '{}');
  assert.equal(without('{"class":"C"}', 'jid'), '{"class":"C"}');
});

test('what is not JSON is shown as it is', () => {
  for (const text of ['', '{', '[1,]', '{"a"}', '"open', '{"a":1}x', '['.repeat(5000)]) assert.equal(read(text), null, text.slice(0, 10));
});

test('a position is shown as JSONPath', () => {
  assert.equal(below('args', 0), 'args[0]');
  assert.equal(below('args[0]', '"user"'), 'args[0].user');
  assert.equal(below('', '"größe_2"'), 'größe_2');
  assert.equal(below('', 3), '[3]');
  for (const name of ['"user-id"', '"2nd"', '""', '"a.b"', '"a\\u0062"']) assert.equal(below('args', name), `args[${name}]`);
});
