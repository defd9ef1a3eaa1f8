// @ts-check
// Keys without Ctrl.
import { shortcuts } from './prefs.js';

/** Whether a key is the page's: not a field's, not a dialog's, and nobody else's yet. @param {KeyboardEvent} e */
export const forPage = (e) => shortcuts.value !== 'off' && !e.ctrlKey && !e.metaKey && !e.altKey && !e.defaultPrevented && !document.querySelector('dialog[open]')
  && !(/** @type {Element} */ (e.target).closest?.('input:not([type=checkbox]),textarea,select'));
