// @ts-check
// Why a job waits: the limits that count it, and the jobs that hold their slots.
import { html } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { count } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link } from '../core/router.js';
import { Card, Failure, State } from './states.js';
import { Time } from './time.js';
import { common } from '../core/words.js';
import { whywaits as words } from '../core/pagewords.js';

/** How many of the jobs that hold slots are shown. */
const most = 5;

/** @param {{jid: string}} p */
export function WhyWaits({ jid }) {
  const why = useResource(apiPath('jobs', [jid, 'limits']), { topic: 'jobs', every: 4000, keep: false });
  const d = why.data;
  if (why.error?.status === 404) return null; // it has begun
  return html`<${Card} title=${words.title}><${Failure} error=${why.error} refresh=${why.refresh} />
    ${d?.undecided && html`<p class="warn strong">${words.undecided}</p>`}
    ${d?.governed && html`<${OfQueue} g=${d.governed} />`}
    ${d?.unserved && html`<p class="warn strong">${words.unserved}</p>`}
    ${d && html`<p class="dim">${d.limits.some((l) => l.blocks) || isFull(d.governed) || d.unserved ? words.ahead(d.ahead) : words.notHeldBack}</p>
      <ul class="att">${d.limits.map((l) => html`<${One} key=${l.limit} l=${l} />`)}</ul>`}<//>`;
}

/** Whether a governed queue has as many jobs as it may. @param {any} q */
const isFull = (q) => q?.ahead > 0 && q.out >= q.ahead;

/** What holds back all jobs of its governed queue. @param {{g: any}} p */
const OfQueue = ({ g }) => html`${words.queueState[g.state] && html`<p class="warn strong">${words.queueState[g.state]}</p>`}
  ${g.paused && html`<p class="warn strong">${words.queuePaused}</p>`}
  <p class=${isFull(g) ? 'warn strong' : 'dim'}>${words.outOf(g.out, g.ahead)}</p>`;

/** What a limit says of the job. @param {any} l */
function says(l) {
  const slots = l.of > 0 ? words.used(l.used, l.of, l.key || l.queue || l.class) : words.countsOnly(l.used);
  return html`${slots}${l.opens && html` · ${words.opens(html`<${Time} at=${l.opens} />`)}`}`;
}

/** @param {{l: any}} p */
function One({ l }) {
  const [state, text] = l.paused ? ['paused', common.paused] : l.blocks ? ['held', words.holdsBack] : ['ok', words.hasRoom];
  const rest = l.used - Math.min(most, l.held_by.length);
  return html`<li><div class="grow"><div class="row wrap"><a class="anywhere" href=${link('limits', l.limit)}>${l.limit}</a><${State} state=${state} text=${text} /></div>
    <div class="dim small anywhere">${says(l)}</div>
    ${l.blocks && l.held_by.length > 0 && html`<ul class="small" aria-label=${words.heldBy(l.limit)}>${l.held_by.slice(0, most).map((s) => html`<li key=${s.slot}>
      <a class="mono cut" title=${s.jid} href=${link('jobs', s.jid)}>${s.jid}</a> <span class="dim nowrap">${words.since(html`<${Time} at=${s.at} past />`)}</span></li>`)}
      ${rest > 0 && html`<li><a href=${link('limits', l.limit)}>${words.more(count(rest))}</a></li>`}</ul>`}</div></li>`;
}
