// Characters that cannot be seen are shown as escapes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { visible } from '../static/core/h.js';

/** Returns the code points of ranges. @param {...[number, number]} ranges */
const from = (...ranges) => ranges.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i));

test('control, invisible and direction-changing characters are escaped', () => {
  const hidden = from([0, 8], [0xb, 0xc], [0xe, 0x1f], [0x7f, 0x9f], [0xad, 0xad], [0x34f, 0x34f], [0x61c, 0x61c], [0x115f, 0x1160], [0x17b4, 0x17b5], [0x180b, 0x180f],
    [0x200b, 0x200f], [0x2028, 0x202e], [0x2060, 0x206f], [0x2800, 0x2800], [0x3164, 0x3164], [0xfe00, 0xfe0f], [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff9, 0xfffb]);
  for (const c of hidden) assert.equal(visible(`a${String.fromCodePoint(c)}b`), `a\\u${c.toString(16).padStart(4, '0')}b`);
  assert.equal(visible('a\u{e0041}\u{1d173}b'), 'a\\u{e0041}\\u{1d173}b');
  assert.equal(visible('\u200f\u200fa'), '\\u200f\\u200fa');
});

test('all other characters are shown as they are', () => {
  const text = 'line\n\ttab – „Zoë“ 1\u00a0000\u202f€ إرسال תור 見た हिन्दी 👩🏽 é \u0301 ﷺ';
  assert.equal(visible(text), text);
  for (const other of [7, null, undefined]) assert.equal(visible(other), other);
});
