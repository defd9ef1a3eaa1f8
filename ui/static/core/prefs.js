// @ts-check
// The user's preferences, stored in the browser.
import { effect, signal } from './h.js';

/** @param {string} name @param {string} otherwise */
function kept(name, otherwise) {
  let first = otherwise;
  try {
    first = localStorage.getItem('millrace.' + name) || otherwise;
  } catch { /* the browser stores nothing */ }
  const s = signal(first);
  effect(() => {
    try {
      localStorage.setItem('millrace.' + name, s.value);
    } catch { /* the browser stores nothing */ }
  });
  return s;
}

/** system, light or dark */
export const theme = kept('theme', 'system');
/** comfortable or compact */
export const density = kept('density', 'comfortable');
/** relative, local or utc */
export const times = kept('times', 'relative');
/** wide or narrow */
export const nav = kept('nav', 'wide');
/** on or off: keys without Ctrl */
export const shortcuts = kept('shortcuts', 'on');
/** The hidden columns of each table. */
export const hiddenColumns = kept('columns', '{}');

effect(() => {
  const root = document.documentElement;
  if (theme.value === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme.value;
});
effect(() => { document.documentElement.dataset.density = density.value; });
effect(() => { document.documentElement.dataset.nav = nav.value; });

const system = matchMedia('(prefers-color-scheme: dark)');
/** Increases whenever colours have changed, for any reason. Charts then read theirs again. */
export const colours = signal(0);
system.addEventListener('change', () => { colours.value++; });
effect(() => {
  theme.value;  
  queueMicrotask(() => { colours.value++; });
});
