// @ts-check
// Requests to the API. An answer is kept both parsed and as text: records are shown exactly as they
// were sent.
import { signal } from './h.js';
import { encodePart, prefix, queryText } from './router.js';
import { frame as words } from './words.js';

/** @typedef {{status: number, data: any, text: string, headers: Headers}} Answer */

/** An error that the API answered, or the lack of an answer. */
export class ApiError extends Error {
  /** @param {number} status 0: the sidecar was not reached @param {any} body */
  constructor(status, body) {
    super(body?.reason || words.millraceDoesNotAnswer);
    this.status = status;
    this.code = body?.error || 'unreachable';
    this.reason = this.message;
    this.requestID = body?.request_id || '';
    this.body = body || {};
  }
}

/** Whether the sidecar is reached, and when it is tried again. */
export const connection = signal({ up: true, retryAt: 0, since: 0 });
/** Increases when everything is to be read again, such as when the connection is back. */
export const generation = signal(0);
/** Whether no user is signed in. */
export const signedOut = signal(false);
/** The version of the sidecar, if it is not the version of this page. */
export const newVersion = signal('');
let version = '';

/**
 * Returns the path of an API route.
 * @param {string} path such as "retries"
 * @param {string|string[]} [part]
 * @param {any} [query]
 */
export function apiPath(path, part, query) {
  let at = prefix + '/api/' + path;
  for (const p of [].concat(part ?? [])) at += '/' + encodePart(p);
  const text = queryText(query);
  return text ? at + '?' + text : at;
}

/**
 * How many milliseconds a GET waits for its answer, because a connection may be lost without an
 * error. All routes that are requested answer immediately.
 */
const patience = 20_000;

/**
 * @param {string} url
 * @param {{method?: string, body?: any, signal?: AbortSignal, reason?: string, quiet?: boolean,
 *   headers?: Record<string, string>}} [how]
 * @returns {Promise<Answer>}
 */
export async function ask(url, how = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: 'application/json', ...how.headers };
  if (how.body !== undefined) headers['Content-Type'] = 'application/json';
  if (how.reason) headers['X-Reason'] = encodeReason(how.reason);
  const late = new AbortController();
  const limit = how.method ? 0 : setTimeout(() => late.abort(), patience);
  let response, text;
  try {
    response = await fetch(url, {
      method: how.method || 'GET', headers, signal: how.signal ? AbortSignal.any([how.signal, late.signal]) : late.signal, credentials: 'same-origin',
      body: how.body === undefined ? undefined : typeof how.body === 'string' ? how.body : JSON.stringify(how.body),
    });
    text = await response.text();
  } catch (e) {
    if (how.signal?.aborted) throw e;
    lost();
    throw new ApiError(0, null);
  } finally {
    clearTimeout(limit);
  }
  const data = parse(text);
  if (fromProxy(response, data)) {
    lost();
    throw new ApiError(0, null);
  }
  found(response);
  if (response.status === 401 && !how.quiet) signedOut.value = true;
  if (!response.ok) throw new ApiError(response.status, data ?? { error: 'http_' + response.status, reason: words.answerWas(response.status) });
  return { status: response.status, data, text, headers: response.headers };
}

/**
 * Encodes a reason for a header, as UTF-8 bytes, which the sidecar decodes.
 * @param {string} reason
 */
const encodeReason = (reason) => String.fromCharCode(...new TextEncoder().encode(reason.replace(/\p{Cc}/gu, ' ').slice(0, 1000)));

/**
 * Returns whether a proxy answers that it does not reach the sidecar. The sidecar's own errors have
 * a reason.
 * @param {Response} response
 * @param {any} data
 */
const fromProxy = (response, data) => [502, 503, 504].includes(response.status) && !data?.reason;

/** @param {string} text */
function parse(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/** @param {Response} response */
function found(response) {
  const v = response.headers.get('Millrace-Version') || '';
  if (version && v && v !== version) newVersion.value = v;
  version ||= v;
  if (!connection.value.up) {
    connection.value = { up: true, retryAt: 0, since: 0 };
    generation.value++;
  }
}

let wait = 1000;
let timer = 0;

/** Called when the sidecar is not reached: tries again after growing pauses. */
function lost() {
  if (!connection.value.up && connection.value.retryAt > Date.now()) return;
  wait = connection.value.up ? 1000 : Math.min(wait * 2, 30_000);
  connection.value = { up: false, retryAt: Date.now() + wait, since: connection.value.since || Date.now() };
  clearTimeout(timer);
  timer = setTimeout(retry, wait);
}

/** Tries to reach the sidecar now. @param {boolean} [doubt] also if it seems to be reached */
export async function retry(doubt) {
  if (connection.value.up && !doubt) return;
  if (!connection.value.up) connection.value = { ...connection.value, retryAt: 0 };
  await ask(prefix + '/api/whoami', { quiet: true }).catch(() => {});
}

/**
 * Returns the curl command for the same request.
 * @param {string} url
 * @param {{method?: string, body?: any}} [how]
 */
export function curlOf(url, how = {}) {
  const quote = (/** @type {string} */ s) => "'" + s.replaceAll("'", "'\\''") + "'";
  let text = 'curl -u USER';
  if (how.method) text += ' -X ' + how.method;
  text += ' ' + quote(new URL(url, location.origin).href);
  if (how.body !== undefined) text += " -H 'Content-Type: application/json' -d " + quote(JSON.stringify(how.body));
  return text;
}
