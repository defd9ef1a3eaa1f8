// The UI's texts are in two files. The linter refuses them elsewhere, and each text is used.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { RuleTester } from 'eslint';
import rule from '../words-rule.js';
import * as pages from '../static/core/pagewords.js';
import * as shared from '../static/core/words.js';

const root = new URL('../static/', import.meta.url);
/** @type {Record<string, any>} */
const words = { ...shared, ...pages };

test('the linter finds what people read, and nothing else', () => {
  const own = (/** @type {string} */ code) => ({ code, errors: 1 });
  new RuleTester({ languageOptions: { ecmaVersion: 2024, sourceType: 'module' } }).run('words', rule, {
    valid: [
      'html`<p class="dim small">${words.hello}</p>`',
      "html`<button class=${on ? 'btn small' : 'btn primary'} aria-label=${words.stop(name)} onClick=${() => press('stop')}>${words.stop} · ${count(n)}</button>`",
      "html`<${at ? 'a' : 'div'} title=${name} />`",
      "if (e.key === 'ArrowDown') box.querySelector('input[type=text]').focus();",
      "const looks = { failed: ['alert', 'bad'], no_consumers: ['warn', 'warn'] };",
      "ask(apiPath('dead-jobs', [jid, 'retry'], { offset }), { method: 'POST' });",
      "const p = { label: 'p95', id: 'p95' };",
    ],
    invalid: [
      own('html`<p>No dead jobs</p>`'), own('html`<p>${n} jobs wait in ${queue}</p>`'), own('html`<${Card} title="Dead jobs" />`'), own('html`<input placeholder="Find" />`'),
      own("html`<b>${on ? 'paused' : words.live}</b>`"), own("html`<button title=${on ? 'Stop' : words.go} />`"), own("html`<i aria-label=${'Slots of ' + name} />`"),
      own("const columns = [{ id: 'jid', label: 'ID' }];"), own("toast('Record dismissed');"), own('toast(`${n} jobs moved`);'), own("plural(n, 'job');"),
      own("const titles = { retries: 'Retry' };"), own("confirm({ title: words.sure, body: html`<p>It ends.</p>` });"),
    ],
  });
});

test('every text is used, and none is missing', () => {
  const files = ['app.js', ...['core', 'parts', 'pages'].flatMap((dir) => readdirSync(new URL(dir, root)).map((name) => `${dir}/${name}`))].filter((name) => !name.endsWith('words.js'));
  const wrong = [];
  const used = new Set();
  for (const file of files) {
    const code = readFileSync(new URL(file, root), 'utf8').replace(/^import (?!.*words\.js).*$/gm, '');
    const imported = [...code.matchAll(/^import \{ (.*) \} from '.*words\.js';$/gm)].flatMap((m) => m[1].split(', '));
    for (const [group, as = group] of imported.map((name) => name.split(' as '))) {
      for (const [, key] of code.replace(/^import .*$/gm, '').matchAll(new RegExp(`\\b${as}\\.(\\w+)`, 'g'))) {
        used.add(`${group}.${key}`);
        if (!(key in words[group])) wrong.push(`${file} says ${group}.${key}, which is not there`);
      }
    }
  }
  for (const [group, all] of Object.entries(words)) for (const key of Object.keys(all)) if (!used.has(`${group}.${key}`)) wrong.push(`nothing says ${group}.${key}`);
  assert.deepEqual(wrong, []);
});

/** Returns all texts. @param {any} of @returns {string[]} */
const texts = (of) => (typeof of === 'string' || typeof of === 'function' ? [String(of)] : Object.values(of).flatMap(texts));

/** Texts over which operators stumbled. */
const old = [
  'needs a look', 'everything that was done', 'how far', 'what became', 'what was before', 'waits nowhere', 'nothing is known', 'was the last', 'the one before',
  'taken back', 'by hand', 'as it was due', 'came again', 'in doubt', 'ends where it is', 'left as it is', 'how many took', 'time in all', 'deaths an hour',
  'attempts that failed', 'the same error', 'at its head', 'to peek takes', 'drop all jobs', 'for it later', 'what waits in', 'to which', 'all of them',
  'this touches', 'told to be', 'several versions', 'runs nothing', 'has been heard', 'is reached', 'takes messages', 'have been read', 'leads and answers',
  'late by', 'as this computer', 'done since', 'done in all', 'off the list', 'in this time', 'nothing is dead', 'nothing fails', 'that match, of', 'search on',
  'empty by now', 'out of reach', 'user of the broker', 'without ctrl', 'let everything', 'held and due', 'not for you', 'not there', 'did not work',
  'before the first', 'left out', 'oldest waits', 'the newest', 'of that is', '\\} later',
];

test('no text comes back over which operators stumbled', () => {
  const found = new RegExp(old.join('|'), 'i');
  for (const text of texts(words)) assert.doesNotMatch(text, found);
});

test('the figures of waits, totals and limits have short names', () => {
  const { charts, common, dead, due, metrics, queue } = words;
  assert.deepEqual([charts.runTimeDistribution, charts.waitTimeDistribution], ['Run time distribution', 'Wait time distribution']);
  assert.deepEqual([charts.queueLatencyFirstAttempts, queue.waitTimesExcludeRetries], ['Queue latency (first attempts)', 'Wait times exclude retries']);
  assert.deepEqual([common.totalTime, metrics.max, common.oldestJob], ['Total time', 'Max', 'Oldest job']);
  assert.equal(dead.retention(1e6, 180 * 86_400, 0.0005), 'Retention: 1,000,000 jobs or 180 d · <0.1 % used');
  assert.match(dead.retention(1e6, 180 * 86_400, 0.9), / · 90 % used; the oldest are dropped first$/);
  assert.equal(due.beyond(90), '90 beyond this range');
});

test('dialogs say what happens to jobs', () => {
  const { queue, queues } = words;
  assert.equal(queues.aboutPausing(true), 'Workers take no new jobs until you resume it. Running jobs finish; new jobs keep queueing.');
  assert.equal(queues.aboutPausing(false), 'Workers take no new jobs from these queues until you resume them. Running jobs finish; new jobs keep queueing.');
  assert.equal(queue.aboutDeleting, "Deletes the queue and its jobs. This can't be undone. The queue is recreated when the next job is published.");
  assert.match(queue.aboutPeeking, /^Peeking fetches and requeues messages, which marks them as redelivered\./);
});

test('columns of operations and figures of health have the usual names', () => {
  const { common, health, operations } = words;
  assert.deepEqual([operations.operation, common.progress, common.filter, operations.target], ['Operation', 'Progress', 'Filter', 'Target']);
  assert.deepEqual([health.sinceStart, health.processedAllTime, health.inTotal(1200)], ['Since start', 'Processed, all time', '1,200 in total']);
});

test('an empty list says what would be in it', () => {
  const { common } = words;
  assert.equal(common.whatIsScheduled, 'A job with a time waits here until it is due.');
  assert.equal(common.whatIsRetried, 'A job that failed waits here until its next attempt.');
  assert.equal(common.whatIsDead, 'A job that failed and has no retries left is kept here until you retry or delete it.');
});

test('an error in a filter is short, and has its class, that of its jobs and its message', () => {
  const { errorIn } = words.common;
  assert.equal(errorIn({ error_class: 'Timeout', class: 'Sync', message: 'no answer in <n> ms' }), 'Timeout in Sync: no answer in <n> ms');
  assert.equal(errorIn({ error_class: '', class: 'Sync', message: '' }), 'Error in Sync');
  assert.equal(errorIn({ error_class: 'E'.repeat(500), class: 'Sync', message: '' }).length, 301);
});

test('what only the API calls so has plain words', () => {
  for (const text of texts(words)) assert.doesNotMatch(text, /\b(?:astray|retyped|under.way|undoing|settling|gated|anew|whoever|whatever|nobody|somebody)\b/i);
  for (const op of ['made', 'removed', 'retyped', 'astray', 'recreated', 'trimmed']) assert.ok(words.operations.ops[op], op);
  for (const state of ['under_way', 'undoing']) assert.ok(words.states.named[state], state);
  assert.equal(words.health.phases.settling, 'reconciling');
});

test('a queue without progress counts its slots in plain words', () => {
  const { saturated } = words.queue;
  assert.equal(saturated(1, 1), '1 job waits, the only slot of its workers is busy, and none has been taken for a minute or longer. The running job may hang.');
  assert.equal(saturated(3, 2), '3 jobs wait, all 2 slots of its workers are busy, and none has been taken for a minute or longer. The running jobs may hang.');
});
