// @ts-check
// The dialog that enqueues a job.
import { html } from '../core/h.js';
import { apiPath, ask, generation } from '../core/api.js';
import { serverNow } from '../core/clock.js';
import { local } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { ArgsField, dueField, kindOf } from './actions.js';
import { confirm } from './dialog.js';
import { Segments } from './states.js';
import { toast } from './toast.js';
import { actions, common, enqueue as words } from '../core/words.js';

/**
 * Asks for a job, and enqueues it. All attempts of one dialog have the same key, so that the job is
 * enqueued once, also if an answer is lost.
 * @param {string} [queue]
 */
export function enqueue(queue = 'default') {
  let key = newKey();
  const send = async (/** @type {any} */ v) => {
    try {
      const { data } = await ask(apiPath('jobs'), { method: 'POST', headers: { 'Idempotency-Key': key }, body: jobOf(v) });
      toast(actions.done(`${v.class.trim()} ${data.jid.slice(0, 8)}`, v.later ? words.scheduled : actions.enqueued), { to: link('jobs', data.jid), toText: actions.show });
      setTimeout(() => { generation.value++; }, 300);
    } catch (e) {
      if (e.status !== 409) throw e;
      // An earlier attempt enqueued another job, but its answer was lost.
      key = newKey();
      throw new Error(words.alreadyEnqueued, { cause: e });
    }
  };
  return confirm({
    title: common.enqueueAJob, verb: common.enqueue, wide: true, send, check: faultOf,
    value: { class: '', queue, args: '[]', later: false, at: '', priority: '', retry: '', tags: '' },
    fields: (put, v) => html`<${Fields} put=${put} v=${v} />`,
  });
}

/** Returns a random key. Over plain HTTP, browsers have no crypto.randomUUID. */
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');

/** Returns what is wrong in the fields, or ''. @param {any} v */
function faultOf(v) {
  if (!v.class.trim()) return words.enterAClass;
  if (!v.queue.trim()) return actions.enterAQueue;
  if (kindOf(v.args) !== 'array') return words.argumentsMustBeAnArray;
  if (v.later && Number.isNaN(Date.parse(v.at))) return actions.enterADateAndTime;
  if (!/^(\d|10)?$/.test(v.priority)) return words.priorityMustBe;
  return /^\d*$/.test(v.retry) ? '' : words.retriesMustBe;
}

/** Returns the job as JSON, with the arguments exactly as they are in the field. @param {any} v */
function jobOf(v) {
  const parts = [`"class":${JSON.stringify(v.class.trim())}`, `"args":${v.args}`, `"queue":${JSON.stringify(v.queue.trim())}`];
  if (v.later) parts.push(`"at":${Date.parse(v.at) / 1000}`);
  if (v.priority) parts.push(`"priority":${v.priority}`);
  if (v.retry) parts.push(`"retry":${Number(v.retry)}`);
  const tags = v.tags.split(',').map((/** @type {string} */ t) => t.trim()).filter(Boolean);
  if (tags.length) parts.push(`"tags":${JSON.stringify(tags)}`);
  return '{' + parts.join(',') + '}';
}

/** @param {{put: (v: any) => void, v: any}} p */
function Fields({ put, v }) {
  const queues = useResource(apiPath('job-queues', [], { limit: 500 }), { every: 0 });
  const metrics = useResource(apiPath('job-metrics'), { every: 0 });
  const classes = (metrics.data?.classes || []).filter((c) => !c.other);
  const typed = (/** @type {string} */ name) => (e) => put({ ...v, [name]: e.target.value });
  const offer = (/** @type {string} */ id, /** @type {any[]} */ all) => html`<datalist id=${id}>${all.map(({ name }) => html`<option value=${name} />`)}</datalist>`;
  return html`<label class="field"><span>${common.class}</span>
      <input class="in" list="known-classes" autocomplete="off" spellcheck=${false} value=${v.class} onInput=${typed('class')} /></label>
    <label class="field"><span>${common.queue}</span>
      <input class="in" list="known-queues" autocomplete="off" spellcheck=${false} value=${v.queue} onInput=${typed('queue')} /></label>
    ${offer('known-classes', classes)}${offer('known-queues', queues.data || [])}
    <${ArgsField} put=${put} v=${v} />
    <details><summary class="strong">${words.more}</summary><div class="stack"><${When} put=${put} v=${v} />
      <div class="row low"><label class="field grow"><span>${common.priority}</span>
          <input class="in" inputmode="numeric" placeholder="0" value=${v.priority} onInput=${typed('priority')} /></label>
        <label class="field grow"><span>${words.maximumRetries}</span>
          <input class="in" inputmode="numeric" placeholder="25" value=${v.retry} onInput=${typed('retry')} /></label></div>
      <label class="field"><span>${common.tags} <span class="dim">${words.commas}</span></span>
        <input class="in" autocomplete="off" value=${v.tags} onInput=${typed('tags')} /></label></div></details>`;
}

/** @param {{put: (v: any) => void, v: any}} p */
function When({ put, v }) {
  const turn = (/** @type {string} */ to) => put({ ...v, later: to === 'later', at: v.at || local(serverNow() + 3600) });
  return html`<div class="field"><span>${words.when}</span><div>
      <${Segments} label=${words.when} value=${v.later ? 'later' : 'now'} onChange=${turn} options=${[['now', common.now], ['later', words.atATime]]} /></div></div>
    ${v.later && dueField(put, v)}`;
}
