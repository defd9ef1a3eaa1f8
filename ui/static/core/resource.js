// @ts-check
// Data of the API that a page shows. It is requested at the first use, and again while the page is
// visible. The old data stays during a request.
import { useEffect, useRef, useState } from './h.js';
import { apiPath, ask, connection, generation, signedOut } from './api.js';
import { onTopic, source } from './live.js';
import { paused } from './paused.js';

/** How many milliseconds to wait for further changes before one request for all of them. */
const gather = 1500;
/** With events, polling only finds what the events missed. */
const rarely = 30_000;

/**
 * @typedef {{data: any, text: string, error: any, loading: boolean, stale: boolean, at: number,
 *   url: string, refresh: () => void}} Resource `stale`: the data answers another question
 */

/** How many items one answer has, and how many a complete list may have. */
const size = 500;
const most = 10_000;
/** A longer list needs so many requests that changes alone do not cause them. */
const long = 1000;

/**
 * Reads a list page by page. An item that moves from one page to another meanwhile is there once.
 * @param {string} url its first page
 * @param {any} how
 */
async function readAll(url, how) {
  const answers = [await ask(url, how)];
  const total = answers[0].data.total_count;
  while (answers.length * size < Math.min(total, most)) answers.push(await ask(url.replace('page=1&', `page=${answers.length + 1}&`), how));
  const items = [...new Map(answers.flatMap((a) => a.data.items).map((i) => [i.name ?? i.identity, i])).values()];
  return { data: { items, total }, text: answers.map((a) => a.text).join('\n') };
}

/**
 * Returns all items of a list, up to a limit. `left` is how many more there are.
 * @param {string|null} path null: nothing is requested
 * @param {any} how
 */
export function useAll(path, how) {
  const [much, setMuch] = useState(false);
  const url = path && apiPath(path, [], { page: 1, page_size: size });
  const a = useResource(url, { ...how, read: readAll, ...(much ? { topic: undefined, every: 15_000 } : {}) });
  useEffect(() => setMuch(a.data?.total > long), [a.data]);
  return { ...a, url: url || '', data: a.data?.items ?? null, left: Math.max(0, (a.data?.total || 0) - most) };
}

/**
 * @param {string|null} url null: nothing is requested
 * @param {{every?: number, topic?: string, keep?: boolean, read?: (url: string, how: any) =>
 *   Promise<{data: any, text: string}>}} [how] `every`: milliseconds, 0 for once; `read`: the
 *   function that requests the data
 * @returns {Resource}
 */
export function useResource(url, how = {}) {
  const every = how.every ?? 5000;
  const [state, set] = useState({ data: null, text: '', error: null, loading: !!url, at: 0, url: '' });
  const again = useRef(() => {});
  const born = generation.value;
  const out = signedOut.value;
  useEffect(() => {
    if (!url || out) return undefined;
    const stop = new AbortController();
    let timer = 0;
    let asking = false;
    let next = Infinity; // ms until the next request, because something changed during this one
    // One request at a time: if changes come faster than answers, a restart at each change would
    // never end.
    const load = async (wait = 0) => {
      clearTimeout(timer);
      if (asking) {
        next = Math.min(next, wait);
        return;
      }
      asking = true;
      set((s) => (s.loading || s.url === url ? s : { ...s, loading: true }));
      try {
        const a = await (how.read || ask)(url, { signal: stop.signal });
        // An answer with the same text is not drawn again.
        const same = (/** @type {any} */ s) => s.text === a.text && s.url === url && !s.error && !s.loading;
        const fresh = { data: a.data, text: a.text, error: null, loading: false, at: Date.now(), url };
        if (!stop.signal.aborted) set((s) => (same(s) ? Object.assign(s, { at: fresh.at }) : fresh));
      } catch (error) {
        if (!stop.signal.aborted) set((s) => ({ ...s, error, loading: false, data: how.keep === false || s.url !== url && error.status ? null : s.data }));
      }
      asking = false;
      if (next === Infinity) plan();
      else if (!stop.signal.aborted) timer = setTimeout(load, next);
      next = Infinity;
    };
    const plan = () => {
      clearTimeout(timer);
      if (!stop.signal.aborted && every) timer = setTimeout(tick, how.topic && source.peek() === 'events' ? Math.max(every, rarely) : every);
    };
    const tick = () => (paused.value || document.hidden || !connection.value.up ? plan() : load(gather));
    const shown = () => { if (!document.hidden && every && !paused.value) load(); };
    again.current = () => load();
    load();
    document.addEventListener('visibilitychange', shown);
    let began = Date.now();
    const changed = () => {
      if (paused.peek() || document.hidden) return;
      clearTimeout(timer);
      if (asking) next = Math.min(next, gather); // the answer may be older
      else timer = setTimeout(() => { began = Date.now(); tick(); }, Math.max(0, began + gather - Date.now()));
    };
    const off = how.topic ? onTopic(how.topic, changed) : () => {};
    return () => {
      clearTimeout(timer);
      stop.abort();
      off();
      document.removeEventListener('visibilitychange', shown);
    };
  }, [url, every, born, out, how.topic]);
  return { ...state, stale: !!state.data && state.url !== url, refresh: () => again.current() };
}
