// @ts-check
// A job's timeline.
import { html, useState } from '../core/h.js';
import { millis, seconds } from '../core/format.js';
import { link } from '../core/router.js';
import { mayAct } from '../core/session.js';
import { storyOf } from '../core/story.js';
import { undoOne } from './actions.js';
import { Difference } from './difference.js';
import { Icon } from './icon.js';
import { Card } from './states.js';
import { Time } from './time.js';
import { common, ops, story as words } from '../core/words.js';

/** @param {{d: any, done: () => void}} p */
export function Story({ d, done }) {
  const facts = storyOf(d);
  return html`<${Card} title=${words.timeline}><ol class="line">
    ${d.older_than_kept && html`<li class="dim">${words.noEarlierHistory}</li>`}
    ${facts.map((f, i) => html`<${Line} key=${i} fact=${f} before=${facts[i - 1]} jid=${d.jid} done=${done} />`)}</ol><//>`;
}

/**
 * @param {{fact: import('../core/story.js').Fact, before?: import('../core/story.js').Fact, jid:
 *   string, done: () => void}} p
 */
function Line({ fact, before, jid, done }) {
  const { event, run } = fact;
  const process = run?.worker || (event?.identity !== '*' && event?.identity);
  const past = !['waits', 'leased'].includes(fact.what);
  const gap = before && fact.at - before.at > 1 && past;
  return html`<li class=${fact.look}><div class="strong">${fact.text}</div>
    <div class="dim small anywhere"><${Time} at=${fact.at} past=${past} />${gap && words.after(seconds(fact.at - before.at))}
      ${event?.set ? ' · ' + (ops.sets[event.set] || event.set) : ''}
      ${event?.other && words.keyOf(html`<a class="mono" href=${link('jobs', event.other)}>${event.other}</a>`)}
      ${process && html` · <a href=${link('worker-processes', process)}>${process}</a>`}${event?.actor && words.by(event.actor)}
      ${event?.operation && html` · <a href=${link('operations')}>${words.partOfAnOperation}</a>`}
      ${span(words.ran, run?.duration_ms)}${run?.attempt > 1 ? '' : span(words.waited, run?.wait_ms)}</div>
    ${event?.reason && html`<div class="small anywhere">“${event.reason}”</div>`}
    ${run?.error_class && html`<div class="bad small anywhere">${run.error_class}</div>`}
    ${event?.changes && html`<${Changes} changes=${event.changes} />`}
    ${fact.undo && mayAct.value && html`<button class="btn small" onClick=${() => undoOne(event.set, jid, event.offset, done)}>
      <${Icon} name="undo" small />${common.undo}</button>`}</li>`;
}

/**
 * The changes of a job. Arguments may be long, so they are shown on request.
 * @param {{changes: {member: string, was: string, is: string}[]}} p
 */
function Changes({ changes }) {
  const [open, setOpen] = useState(false);
  const args = changes.find((c) => c.member === 'args');
  const rest = changes.filter((c) => c !== args);
  const value = (/** @type {string} */ of, /** @type {string} */ text) => html`<${Value} of=${of} text=${text} />`;
  return html`${rest.map((c) => html`<div class="small anywhere" key=${c.member}>
      ${words.members[c.member] || c.member}: ${value(c.member, c.was)} → ${value(c.member, c.is)}</div>`)}
    ${args && html`<button class="linkish small" aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>
        ${open ? words.hideTheChangedArguments : words.showTheChangedArguments}</button>
      ${open && html`<${Difference} was=${args.was} is=${args.is} />`}`}`;
}

/** @param {{of: string, text: string}} p */
const Value = ({ of, text }) => (of === 'at' ? html`<${Time} at=${Number(text)} />` : html`<span class="strong">${of === 'queue' ? JSON.parse(text) : text}</span>`);

/** @param {(time: string) => string} text @param {number|null|undefined} ms */
const span = (text, ms) => (ms === null || ms === undefined ? '' : text(millis(ms)));
