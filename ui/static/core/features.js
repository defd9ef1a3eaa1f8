// @ts-check
// The features of this sidecar's API, from its own contract. A page may be newer than the sidecar.
import { signal } from './h.js';
import { ask } from './api.js';
import { link } from './router.js';

/**
 * @type {import('../../vendor/signals.js').Signal<any>} the paths of the contract; null until it
 *   has been read
 */
const paths = signal(null);
let asked = false;

/**
 * Returns whether the API has a route, and a parameter of it. The answer is false until the
 * contract has been read.
 * @param {string} path
 * @param {string} method
 * @param {string} [parameter]
 */
export function has(path, method, parameter) {
  if (!asked) {
    asked = true;
    ask(link('api-docs/openapi.json')).then(({ data }) => { paths.value = data.paths; }, () => { asked = false; });
  }
  const route = paths.value?.[path];
  return !!route?.[method] && (!parameter || [...(route.parameters || []), ...(route[method].parameters || [])].some((p) => p.name === parameter || p.$ref?.endsWith('/' + parameter)));
}
