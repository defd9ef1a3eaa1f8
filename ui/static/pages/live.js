// @ts-check
import { html, useEffect, useLayoutEffect, useRef, useState } from '../core/h.js';
import { clock, millis, short } from '../core/format.js';
import { onTopic, source } from '../core/live.js';
import { link, route, setQuery } from '../core/router.js';
import { common } from '../core/words.js';
import { live as words } from '../core/pagewords.js';
import { Empty, Title } from '../parts/states.js';
import { Icon } from '../parts/icon.js';

/** How many rows are kept. */
const most = 5000;
/**
 * How many rows are drawn while the feed is paused for reading. While it runs, only the visible
 * ones are drawn.
 */
const held = 300;
/** Milliseconds between two drawings: people do not read faster. */
const pace = 500;
const rowHeight = 22;

const looks = { success: 'ok', succeeded: 'ok', failed: 'warn', dead: 'bad', buried: 'bad', killed: 'bad', deleted: 'bad', started: 'info' };
/**
 * Draws an event into the line of an older one: to change a line is cheaper than to make one.
 * @param {any} r
 * @param {number} i
 */
const line = (r, i) => html`<div key=${i} class="run"><span class="dim">${clock(r.at, true)}</span>
  <span class=${looks[r.what] || 'dim'}>${r.what}</span><a class="strong cut" href=${link('jobs', r.jid)}>${r.class || common.job}</a>
  ${r.queue ? html`<a class="dim cut" href=${link('job-queues', r.queue)}>${r.queue}</a>` : html`<span></span>`}
  <span class="num">${r.duration_ms ? millis(r.duration_ms) : ''}</span><span class="dim" title=${r.jid}>${r.jid.slice(0, 8)}</span>
  <span class="dim cut" title=${r.worker}>${r.worker || ''}</span><span class="bad cut">${short(r.error_class) || ''}</span></div>`;

/** The events, in a ring buffer, and when they are drawn. */
function useRing() {
  const ring = useRef(/** @type {any[]} */ ([]));
  const [missed, setMissed] = useState(0);
  const [, draw] = useState(0);
  useEffect(() => {
    let timer = 0, more = 0;
    const show = () => {
      timer = 0;
      setMissed((n) => n + more);
      more = 0;
      draw((n) => n + 1);
    };
    const off = onTopic('jobs', (e) => {
      if (!e) return;
      more += (e.missed || 0) + (e.items ? 0 : 200);
      ring.current.push(...e.items || []);
      if (ring.current.length > most) ring.current.splice(0, ring.current.length - most);
      timer ||= setTimeout(show, ring.current.length > 50 ? pace : 0);
    });
    return () => {
      off();
      clearTimeout(timer);
    };
  }, []);
  return { ring, missed, redraw: () => draw((n) => n + 1) };
}

export default function Live() {
  const text = (route.value.query.get('text') || '').toLowerCase();
  const [stopped, setStopped] = useState(false);
  const [over, setOver] = useState(false);
  // Nothing moves under the pointer here either: a click would open another job.
  const still = stopped || over;
  const { ring, missed, redraw } = useRing();
  const box = useRef(null);
  const kept = useRef(/** @type {any[]|null} */ (null));
  const last = useRef(/** @type {any} */ (null));
  if (!still) kept.current = null;
  else kept.current ||= ring.current.slice(0, ring.current.lastIndexOf(last.current) + 1 || undefined);
  const all = kept.current || ring.current;
  const found = text ? all.filter((r) => `${r.class} ${r.queue} ${r.jid} ${r.what} ${r.error_class || ''} ${r.worker || ''}`.toLowerCase().includes(text)) : all;
  const rows = found.slice(-(still ? held : Math.ceil((box.current?.clientHeight || 600) / rowHeight) + 1));
  if (!still) last.current = ring.current.at(-1);
  const was = useRef(still);
  // This runs before any listener sees the new height. Only then does a distance from the end mean
  // that the user scrolled.
  useLayoutEffect(() => {
    if ((!still || !was.current) && box.current) box.current.scrollTop = box.current.scrollHeight;
    was.current = still;
  });
  const clear = () => {
    ring.current = [];
    kept.current = null;
    redraw();
  };
  const scrolled = ({ currentTarget: el }) => {
    if (!stopped && el.scrollHeight - el.scrollTop - el.clientHeight > 80) setStopped(true);
  };
  const more = missed ? html` · <span class="warn">${words.missed(missed)}</span>` : '';
  return html`<${Title} title=${common.live}><button class="btn small" onClick=${() => setStopped(!stopped)} aria-pressed=${String(stopped)}>
        <${Icon} name=${stopped ? 'play' : 'pause'} small />${stopped ? common.resume : common.pause}</button>
      <button class="btn small" onClick=${clear}>${common.clear}</button><//>
    <section class="card flush" aria-label=${words.liveRuns}><div class="toolbar">
      <input class="in small grow" type="search" data-filter placeholder=${words.filterBy} aria-label=${words.filterRuns}
        value=${route.value.query.get('text') || ''} onInput=${(e) => setQuery({ text: e.target.value }, { replace: true })} />
      <span class="dim small">${words.shownOf(rows.length, ring.current.length)}${more}${over && !stopped ? words.pausedHere : ''}</span></div>
      ${source.value !== 'events' && !ring.current.length ? html`<${Empty} icon="live" title=${words.waitingForEvents}><p>${words.howRunsArrive}</p><//>`
        : html`<div class="feed" ref=${box} tabindex="0" role="log" aria-label=${words.runs}
            onPointerEnter=${() => setOver(true)} onPointerLeave=${() => setOver(false)} onScroll=${scrolled}>
          ${rows.map(line)}
          ${!rows.length && html`<${Empty} icon="live" title=${text ? common.noMatchingRuns : common.noRunsYet} />`}</div>`}</section>`;
}
