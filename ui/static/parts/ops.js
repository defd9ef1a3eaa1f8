// @ts-check
// The operations that this page began, with their progress until they have ended.
import { html, signal } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { serverNow } from '../core/clock.js';
import { has } from '../core/features.js';
import { plural } from '../core/format.js';
import { link } from '../core/router.js';
import { refreshOverview } from '../core/overview.js';
import { notes, register } from '../core/overlays.js';
import { mayAct, onSignOut } from '../core/session.js';
import { notify } from '../core/live.js';
import { useResource } from '../core/resource.js';
import { failed, leave, overtaken, say, toast } from './toast.js';
import { Icon } from './icon.js';
import { common, ops as words } from '../core/words.js';

/** @type {import('../../vendor/signals.js').Signal<any[]>} */
export const followed = signal([]);
onSignOut(() => { followed.value = []; });

export const verbs = words.verbs;
export const setNames = words.sets;

export const single = words.single;
/** A number of entries of a set. @param {string} set @param {number} n */
export const ofSet = (set, n) => plural(n, single[set] || words.entry, setNames[set] || set || words.entries);

/** Returns the text of an operation. @param {any} op */
export function opText(op) {
  const verb = op.action === 'undo' && op.state === 'done' ? words.restored : verbs[op.action] || op.action;
  return verb + ' ' + (op.total === undefined ? setNames[op.set] || op.set || words.entries : ofSet(op.set, op.total));
}

/** @param {any} body @returns {Promise<string|null>} its id */
export async function operate(body) {
  overtaken((of) => of.set === body.set && (!body.jids || body.jids.includes(of.jid)));
  try {
    const { data } = await ask(apiPath('operations'), { method: 'POST', body });
    follow(data.id, { ...body, id: data.id, state: 'running', done: 0, failed: 0, total: body.expected_count ?? body.jids?.length });
    return data.id;
  } catch (e) {
    failed(e);
    return null;
  }
}

/** @param {string} id @param {any} first */
export function follow(id, first) {
  followed.value = [...followed.value, { ...first, started_at: serverNow(), seen: Date.now() }];
  soon = 250;
  plan();
}

let timer = 0;
/**
 * Milliseconds until the operations are requested again. The pause grows while no event reports
 * them.
 */
let soon = 250;
/** After how many milliseconds without an event or answer the page stops waiting. */
const patience = 60_000;

function plan() {
  clearTimeout(timer);
  if (followed.value.some((o) => o.state === 'running')) timer = setTimeout(look, soon);
}

/** Requests all of them, because the list of the API may not have a new one yet. */
async function look() {
  const { data, status } = await ask(apiPath('operations')).catch((e) => ({ data: [], status: e.status }));
  const running = followed.value.filter((o) => o.state === 'running');
  const known = new Map(data.map((o) => [o.id, { ...o, seen: Date.now() }]));
  followed.value = followed.value.map((o) => known.get(o.id) || o);
  for (const o of running) {
    const op = known.get(o.id);
    if (op && op.state !== 'running') ended(op);
    // Status 0 means that the sidecar was not reached.
    else if (!op && status && Date.now() - o.seen > patience) giveUp(o);
  }
  soon = running.some((o) => known.has(o.id)) ? 500 : Math.min(soon * 2, 8000);
  plan();
}

/** @param {any} op */
function giveUp(op) {
  dismiss(op.id);
  toast(words.noAnswer(opText(op)), { bad: true, to: link('operations'), toText: common.allOperations });
}

/** @param {any} op */
function ended(op) {
  say(words.endedAs(opText(op), op.state));
  for (const topic of ['scheduled', 'retries', 'dead', 'operations']) notify(topic, op);
  refreshOverview();
  leave(() => dismiss(op.id), op.failed ? 30_000 : 12_000);
}

/** @param {string} id */
const dismiss = (id) => { followed.value = followed.value.filter((o) => o.id !== id); };

/** @param {string} id */
export async function cancelOperation(id) {
  try {
    await ask(apiPath('operations', id), { method: 'DELETE' });
    toast(words.operationStopped);
  } catch (e) {
    failed(e);
  }
}

/**
 * Returns whether an operation can be undone, also one that was stopped.
 * @param {any} op
 * @param {any[]} [all] operations that are known
 */
export const undoable = (op, all = followed.value) => has('/api/operations/{id}/undo', 'post') && ['delete', 'kill', 'change'].includes(op.action)
  && !['running', 'interrupted'].includes(op.state) && op.done > 0 && (!op.undone_by || stateOfUndo(op, all) === 'cancelled');

/** Returns the state of the undo of an operation. @param {any} op @param {any[]} all */
const stateOfUndo = (op, all) => all.find((o) => o.id === op.undone_by)?.state || 'done';

/** Returns the state of an operation itself. @param {any} op */
export const ownState = (op) => (op.state === 'running' ? 'under_way' : op.state);

/** Returns the state to show, which includes a later undo. @param {any} op @param {any[]} all */
export function shownState(op, all) {
  const undo = op.undone_by ? stateOfUndo(op, all) : 'cancelled';
  return undo === 'cancelled' ? ownState(op) : undo === 'running' ? 'undoing' : 'undone';
}

/** @param {any} op */
export async function undoOperation(op) {
  try {
    const { data } = await ask(apiPath('operations', [op.id, 'undo']), { method: 'POST' });
    dismiss(op.id);
    const id = data?.id;
    if (id) follow(id, { id, action: 'undo', set: op.set, state: 'running', done: 0, failed: 0, total: op.done });
    else toast(common.undone);
  } catch (e) {
    failed(e.status === 404 || e.status === 405 ? new Error(words.cannotUndo) : e);
  }
}

/** The progress of an operation. @param {{op: any}} p */
export function Progress({ op }) {
  const dealt = op.done + op.failed + (op.skipped || 0);
  const part = op.total ? dealt / op.total : op.state === 'running' ? 0 : 1;
  const spent = (op.ended_at || serverNow()) - op.started_at;
  const pace = spent > 0.5 ? dealt / spent : 0;
  const left = op.state === 'running' && pace > 0 && op.total ? (op.total - dealt) / pace : null;
  return html`<div class="stack"><div class=${'bar' + (op.failed ? ' warn' : '')} role="progressbar" aria-label=${common.progress} aria-valuemin="0" aria-valuemax="100"
      aria-valuenow=${Math.round(Math.min(1, part) * 100)}><i style=${{ width: Math.min(1, part) * 100 + '%' }}></i></div>
    <div class="row small dim num wrap"><span>${words.doneOf(op.done, op.total)}</span>
      ${op.failed > 0 && html`<span class="bad">${words.failedOf(op.failed)}</span>`}
      ${op.skipped > 0 && html`<span class="warn" title=${(op.skips || []).map((s) => words.skip(s.count, s.reason)).join('\n')}>${words.skippedOf(op.skipped)}</span>`}
      ${left !== null && left > 1 && html`<span>${words.left(pace, left)}</span>`}</div></div>`;
}

/**
 * A link to the latest bulk operation on a set, where it can be undone.
 * @param {{set: string}} p
 */
export function LastOperation({ set }) {
  const all = useResource(apiPath('operations'), { topic: 'operations', every: 10_000 });
  const last = (all.data || []).filter((o) => o.set === set).sort((a, b) => b.started_at - a.started_at)[0];
  return last ? html`<a class="btn small" title=${opText(last)} href=${link('operations')}>${words.lastOperation}</a>` : null;
}

function OpToasts() {
  return followed.value.map((op) => html`<div key=${op.id} class=${'toast op' + (op.failed && op.state !== 'running' ? ' bad' : '')} role="group" aria-label=${opText(op)}>
    <div class="row"><span class="strong grow">${opText(op)}</span>
      ${op.state === 'running' ? mayAct.value && html`<button class="btn small" onClick=${() => cancelOperation(op.id)}>${common.stop}</button>`
        : html`<span class=${'small ' + (op.state === 'done' ? 'ok' : 'warn')}>${op.state}</span>
          ${mayAct.value && undoable(op) && html`<button class="btn small" onClick=${() => undoOperation(op)}><${Icon} name="undo" small />${common.undo}</button>`}`}
      <button class="icon" aria-label=${common.dismiss} onClick=${() => dismiss(op.id)}><${Icon} name="x" small /></button></div>
    <${Progress} op=${op} />
    ${op.last_error && html`<p class="small bad anywhere">${op.last_error}</p>`}
    <a class="small dim" href=${link('operations')}>${common.allOperations}</a>
  </div>`);
}
register(notes, OpToasts);
