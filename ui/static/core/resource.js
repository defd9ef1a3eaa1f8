// @ts-check
// What a page shows of the API: asked when it is first needed, and again while somebody looks. What was there stays while it is asked anew.
import { useEffect, useMemo, useRef, useState } from './h.js';
import { apiPath, ask, connection, generation, signedOut } from './api.js';
import { onTopic, source } from './live.js';
import { paused } from './paused.js';

/** Changes that follow each other closely are asked for together: milliseconds. */
const gather = 1500;
/** With events, asking by the clock is for what they may have missed. */
const rarely = 30_000;

/** @typedef {{data: any, text: string, error: any, loading: boolean, stale: boolean, at: number, url: string, refresh: () => void}} Resource stale: what is there answers another question */

/** How many one answer holds. */
const whole = 500;

/** All of a list that is short enough to be had whole: a thousand. @param {string} path @param {any} how */
export function useAll(path, how) {
  const a = useResource(apiPath(path, [], { page: 1, page_size: whole }), how);
  const b = useResource(a.data?.total_count > whole ? apiPath(path, [], { page: 2, page_size: whole }) : null, how);
  const data = useMemo(() => a.data && [...a.data.items, ...(b.data?.items || [])], [a.data, b.data]);
  return { ...a, data };
}

/** @param {string|null} url null: nothing is asked @param {{every?: number, topic?: string, keep?: boolean}} [how] every: milliseconds; 0: once.
 * @returns {Resource} */
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
    let next = Infinity; // after how long it is asked once more: something changed meanwhile
    // One question at a time: where changes come faster than answers, to begin anew at each would never end.
    const load = async (wait = 0) => {
      clearTimeout(timer);
      if (asking) {
        next = Math.min(next, wait);
        return;
      }
      asking = true;
      set((s) => (s.loading || s.url === url ? s : { ...s, loading: true }));
      try {
        const a = await ask(url, { signal: stop.signal });
        // What says the same is not drawn again.
        if (!stop.signal.aborted) set((s) => (s.text === a.text && s.url === url && !s.error && !s.loading ? Object.assign(s, { at: Date.now() }) : { data: a.data, text: a.text, error: null, loading: false, at: Date.now(), url }));
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
      timer = setTimeout(() => { began = Date.now(); tick(); }, Math.max(0, began + gather - Date.now()));
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
