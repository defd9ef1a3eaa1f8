// @ts-check
// Keys without Ctrl, and the key that opens the palette.
import { paused } from './paused.js';
import { shortcuts, theme } from './prefs.js';
import { link, navigate } from './router.js';
import { common } from './words.js';

/**
 * Returns whether the page should handle a key. It should not if a field or a dialog has the focus,
 * or the key is already handled.
 * @param {KeyboardEvent} e
 */
export const forPage = (e) => shortcuts.value !== 'off' && !e.ctrlKey && !e.metaKey && !e.altKey && !e.defaultPrevented && !document.querySelector('dialog[open]')
  && !(/** @type {Element} */ (e.target).closest?.('input:not([type=checkbox]),textarea,select'));

/** The page to which each letter leads after g. @type {Record<string, string>} */
export const goTo = {
  d: 'dashboard', q: 'job-queues', b: 'jobs', s: 'scheduled-jobs', p: 'periodic-jobs', i: 'limits', v: 'governed-queues', k: 'unique-keys', r: 'retries', x: 'dead-jobs', u: 'gated-jobs',
  m: 'job-metrics', l: 'live', w: 'worker-processes', o: 'operations', j: 'rejected', h: 'health', a: 'api-docs',
};

const dark = () => getComputedStyle(document.documentElement).colorScheme === 'dark' || (theme.value === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
/** @param {string} label */
const press = (label) => /** @type {any} */ (document.querySelector(`[aria-label="${label}"]`))?.click();

/**
 * Handles keys before tables do, because the key after g is not for a row. The result stops this.
 * @param {(box: 'openPalette'|'openKeys') => void} open
 */
export function watchKeys(open) {
  let afterG = -Infinity;
  const filter = (/** @type {number} */ tries) => {
    const box = /** @type {HTMLElement} */ (document.querySelector('[data-filter]'));
    if (box) box.focus();
    else if (tries) setTimeout(filter, 100, tries - 1); // the page may still be loading
    else open('openPalette');
  };
  /** @type {Record<string, () => void>} */
  const does = {
    '/': () => filter(4), '?': () => open('openKeys'), p: () => { paused.value = !paused.value; }, t: () => { theme.value = dark() ? 'light' : 'dark'; },
    '[': () => press(common.previousPage), ']': () => press(common.nextPage),
  };
  const key = (/** @type {KeyboardEvent} */ e) => {
    if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
      e.preventDefault();
      if (!document.querySelector('dialog[open]')) open('openPalette');
      return;
    }
    if (!forPage(e) || e.repeat || e.key === 'Shift') return;
    if (e.timeStamp - afterG < 1200) {
      afterG = -Infinity;
      if (e.key.length > 1) return;
      e.preventDefault();
      if (goTo[e.key]) navigate(link(goTo[e.key]));
      return;
    }
    if (e.key === 'g') afterG = e.timeStamp;
    if (e.key === '/') e.preventDefault();
    does[e.key]?.();
  };
  document.addEventListener('keydown', key, true);
  return () => document.removeEventListener('keydown', key, true);
}
