// @ts-check
// Filters in words.
import { absolute } from './format.js';
import { timeOf } from './times.js';
import { common } from './words.js';

/**
 * Returns the text of a filter by error.
 * @param {string} value an error class, or a fingerprint
 * @param {any} [group] the error of a fingerprint, as the API has it
 * @returns {string}
 */
export const errorText = (value, group) => (group?.fingerprint === value ? common.errorIn(group) : value);

/**
 * Returns the text of a filter.
 * @param {Record<string, any>} filter
 * @param {any} [group] the error of a fingerprint in it
 */
export const filterText = (filter, group) => Object.entries(filter)
  .map(([k, v]) => `${k}: ${k === 'from' || k === 'to' ? absolute(timeOf(v)) : k === 'error' ? errorText(v, group) : v}`).join(', ');
