// @ts-check
// The button that enqueues a job. Its dialog is loaded when it is first opened.
import { html } from '../core/h.js';
import { mayAct } from '../core/session.js';
import { Icon } from './icon.js';
import { failed } from './toast.js';
import { common } from '../core/words.js';

/** @param {string} [queue] */
export const openEnqueue = (queue) => import('./newjob.js').then((m) => m.enqueue(queue), failed);

/** @param {{queue?: string}} p the queue that the dialog begins with */
export const Enqueue = ({ queue }) => mayAct.value && html`<button class="btn small" onClick=${() => openEnqueue(queue)}>
  <${Icon} name="plus" small />${common.enqueue}</button>`;
