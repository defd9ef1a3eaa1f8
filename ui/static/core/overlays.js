// @ts-check
// Components that lie over a page. A module with such a component registers it here, so that the
// first load does not need the module.
import { signal } from './h.js';

/**
 * @type {import('../../vendor/signals.js').Signal<any[]>} the components that the frame draws:
 *   dialogs and the palette
 */
export const overlays = signal([]);
/**
 * @type {import('../../vendor/signals.js').Signal<any[]>} the components that the notifications
 *   draw above their own
 */
export const notes = signal([]);

/** @param {typeof overlays} where @param {any} component */
export const register = (where, component) => { where.value = [...where.value, component]; };
