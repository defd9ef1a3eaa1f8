// @ts-check
// What lies over a page. A module that draws such a thing registers it here, so that the first load needs none of them.
import { signal } from './h.js';

/** @type {import('../../vendor/signals.js').Signal<any[]>} components that the frame draws: dialogs and the palette */
export const overlays = signal([]);
/** @type {import('../../vendor/signals.js').Signal<any[]>} components that the notifications draw above their own */
export const notes = signal([]);

/** @param {typeof overlays} where @param {any} component */
export const register = (where, component) => { where.value = [...where.value, component]; };
