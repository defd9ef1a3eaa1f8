import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changed, difference, linesOf } from '../static/core/difference.js';

const changesOf = (was, is) => changed(difference(was, is)).map((l) => (l.left ? `… ${l.left}` : l.sign + l.text));

test('lines make up the text, and end behind commas between members', () => {
  assert.deepEqual(linesOf('["a, b", 1,{"c":"\\",","d":2}]'), ['["a, b", ', '1,', '{"c":"\\",",', '"d":2}]']);
  assert.deepEqual(linesOf('[\r\n  1,\r\n  2\n]\n'), ['[\r\n', '  1,\r\n', '  2\n', ']\n']);
  assert.deepEqual(linesOf('["open, \\\n1,2'), ['["open, \\\n', '1,', '2']);
  assert.deepEqual(linesOf(''), []);
});

test('what differs is what has to go and to come, and no more', () => {
  assert.deepEqual(changesOf('["a",9007199254740993,3]', '["a",9007199254740995,3]'), [' ["a",', '-9007199254740993,', '+9007199254740995,', ' 3]']);
  assert.deepEqual(changesOf('[1,2,3,4,5]', '[1,3,4,0,5]'), [' [1,', '-2,', ' 3,', ' 4,', '+0,', ' 5]']);
  assert.deepEqual(changesOf('', '[]'), ['+[]']);
  assert.deepEqual(changesOf('[]', ''), ['-[]']);
  assert.deepEqual(changesOf('a\na\na\n', 'a\na\n'), [' a\n', ' a\n', '-a\n']);
});

test('any two texts are in their difference', () => {
  const dice = (n) => (seed = (seed * 48271) % 2147483647) % n;
  let seed = 11;
  for (let i = 0; i < 300; i++) {
    const [was, is] = [0, 1].map(() => Array.from({ length: dice(12) }, () => 'ab,"\n\\'[dice(6)]).join(''));
    const lines = difference(was, is);
    const without = (/** @type {string} */ sign) => lines.filter((l) => l.sign !== sign).map((l) => l.text).join('');
    assert.equal(without('+'), was);
    assert.equal(without('-'), is);
    if (was === is) assert.ok(lines.every((l) => l.sign === ' '));
  }
});

test('what did not change is left out, but for what stands beside a change', () => {
  const many = Array.from({ length: 20 }, (_, i) => i + ',');
  const other = many.with(10, 'ten,');
  assert.deepEqual(changesOf(many.join(''), other.join('')), ['… 8', ' 8,', ' 9,', '-10,', '+ten,', ' 11,', ' 12,', '… 7']);
});

test('what is too large is not compared, and what is not is so in time', () => {
  assert.equal(difference('x'.repeat(64 * 1024 + 1), 'x'), null);
  assert.equal(difference('1,'.repeat(2001), '1,'), null);
  const lines = (/** @type {number} */ from) => Array.from({ length: 2000 }, (_, i) => `"item ${from + i}",`).join('');
  const began = performance.now();
  assert.equal(difference(lines(0), lines(5000)).length, 4000);
  assert.ok(performance.now() - began < 2000);
});
