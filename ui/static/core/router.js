// @ts-check
// The URL is the state. The path is the page, and the query is its content, in the words of the
// API.
import { signal } from './h.js';

/** The prefix of all paths, without a slash at its end. */
export const prefix = new URL(document.baseURI).pathname.replace(/\/$/, '');

/** @typedef {{path: string, parts: string[], query: URLSearchParams}} Route */

/** @returns {Route} */
function read() {
  const path = location.pathname.startsWith(prefix + '/') ? location.pathname.slice(prefix.length) : '/';
  const parts = path.split('/').slice(1).map(unescapePart);
  return { path, parts, query: new URLSearchParams(location.search) };
}

/** @param {string} part */
function unescapePart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = signal(read());

/**
 * Returns whether a page's charts show a range of time.
 * @param {string} page
 * @param {string} [part]
 */
const ranged = (page, part) => page === 'dashboard' || page === 'job-metrics' || (page === 'job-queues' && part !== undefined);

/**
 * Returns the range of this page, for a link to another page with a range.
 * @param {string} page
 * @param {string} [part]
 */
function rangeFor(page, part) {
  const { parts, query } = route.peek();
  return ranged(page, part) && ranged(parts[0], parts[1]) ? Object.fromEntries(['range', 'from', 'to'].map((k) => [k, query.get(k)])) : {};
}

/**
 * Returns the path of a page, with its prefix. Parts are escaped.
 * @param {string} page
 * @param {string|string[]} [part]
 * @param {Record<string, any>|URLSearchParams} [query]
 */
export function link(page, part, query) {
  const parts = [].concat(part ?? []);
  const at = [prefix + '/' + page, ...parts.map(encodePart)].join('/');
  const text = queryText(query instanceof URLSearchParams ? query : { ...rangeFor(page, parts[0]), ...query });
  return text ? at + '?' + text : at;
}

/**
 * Escapes a part of a path. Browsers remove segments that are only dots, also escaped ones, which
 * cannot be prevented.
 * @param {any} part
 */
export const encodePart = (part) => encodeURIComponent(String(part));

/** @param {Record<string, any>|URLSearchParams} [query] */
export function queryText(query) {
  if (!query) return '';
  const all = query instanceof URLSearchParams ? [...query] : Object.entries(query);
  return new URLSearchParams(all.filter(([, v]) => v !== undefined && v !== null && v !== '').map(([k, v]) => [k, String(v)])).toString();
}

/** @param {string} to @param {{replace?: boolean}} [how] */
export function navigate(to, how = {}) {
  const before = location.pathname;
  history[how.replace ? 'replaceState' : 'pushState'](null, '', to);
  route.value = read();
  if (location.pathname !== before) {
    scrollTo(0, 0);
    requestAnimationFrame(() => document.getElementById('main')?.focus({ preventScroll: true }));
  }
}

/**
 * Changes which rows a list shows. The list begins at its first page.
 * @param {Record<string, any>} changes
 */
export const setFilter = (changes) => setQuery({ ...changes, page: '', next: '' });

/**
 * Changes parts of the query. Empty ones are removed.
 * @param {Record<string, any>} changes
 * @param {{replace?: boolean}} [how]
 */
export function setQuery(changes, how) {
  const query = new URLSearchParams(location.search);
  for (const [k, v] of Object.entries(changes)) {
    if (v === undefined || v === null || v === '' || v === false) query.delete(k);
    else query.set(k, String(v));
  }
  const text = query.toString();
  navigate(location.pathname + (text ? '?' + text : ''), how);
}

addEventListener('popstate', () => { route.value = read(); });

/** Returns whether a click opens its link in this tab. @param {MouseEvent} e */
export const plain = (e) => !(e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey);

// Links remain links: they can be opened in another tab. A plain click stays on the page.
document.addEventListener('click', (e) => {
  const a = /** @type {HTMLAnchorElement|null} */ (/** @type {Element} */ (e.target).closest?.('a[href]'));
  if (!a || e.defaultPrevented || !plain(e)) return;
  if (a.target || a.hasAttribute('download') || a.origin !== location.origin) return;
  if (!a.pathname.startsWith(prefix + '/') || a.pathname.startsWith(prefix + '/api/') || a.pathname === prefix + '/metrics') return;
  if (a.getAttribute('href').startsWith('#')) return;
  e.preventDefault();
  navigate(a.pathname + a.search + a.hash);
});
