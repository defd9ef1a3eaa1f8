// @ts-check
import { html, useEffect, useRef, useState } from '../core/h.js';
import { clock, count, seconds } from '../core/format.js';
import { onTopic, source } from '../core/live.js';
import { link, route, setQuery } from '../core/router.js';
import { Empty, State, Title } from '../parts/states.js';
import { Icon } from '../parts/icon.js';

/** Rows that are kept. */
const most = 5000;
/** Rows that are drawn. */
const drawn = 300;
let last = 0;

export default function Live() {
  const text = (route.value.query.get('text') || '').toLowerCase();
  const [stopped, setStopped] = useState(false);
  const [missed, setMissed] = useState(0);
  const box = useRef(null);
  const ring = useRef(/** @type {any[]} */ ([]));
  const [, draw] = useState(0);
  useEffect(() => onTopic('jobs', (e) => {
    if (!e) return;
    setMissed((n) => n + (e.missed || 0) + (e.items ? 0 : 200));
    for (const row of e.items || []) ring.current.push({ ...row, key: String(++last) });
    if (ring.current.length > most) ring.current.splice(0, ring.current.length - most);
    draw((n) => n + 1);
  }), []);
  const held = useRef(/** @type {any[]|null} */ (null));
  if (!stopped) held.current = null;
  else held.current ||= ring.current.slice();
  const rows = (held.current || ring.current).filter((r) => !text || `${r.class} ${r.queue} ${r.jid} ${r.what} ${r.error_class || ''} ${r.worker || ''}`.toLowerCase().includes(text)).slice(-drawn);
  useEffect(() => { if (!stopped && box.current) box.current.scrollTop = box.current.scrollHeight; });
  return html`<${Title} title="Live"><button class="btn small" onClick=${() => setStopped(!stopped)} aria-pressed=${String(stopped)}><${Icon} name=${stopped ? 'play' : 'pause'} small />${stopped ? 'Go on' : 'Hold'}</button><button class="btn small" onClick=${() => { ring.current = []; held.current = null; draw((n) => n + 1); }}>Clear</button><//>
    <section class="card flush" aria-label="Job runs as they come"><div class="toolbar"><input class="in small grow" type="search" data-filter placeholder="Filter by class, queue, id, status, error, worker" aria-label="Filter runs" value=${route.value.query.get('text') || ''} onInput=${(/** @type {any} */ e) => setQuery({ text: e.target.value }, { replace: true })} />
      <span class="dim small">${rows.length} shown of ${count(ring.current.length)}${missed ? html` · <span class="warn">${count(missed)} came too fast to be shown</span>` : ''}</span></div>
      ${source.value !== 'events' && !ring.current.length ? html`<${Empty} icon="live" title="Waiting for events"><p>Single runs come over a WebSocket, as they happen. If nothing comes, a proxy may not let it through.</p><//>`
        : html`<div class="feed" ref=${box} tabindex="0" role="log" aria-label="Runs" onScroll=${(/** @type {any} */ e) => { const el = e.currentTarget; if (!stopped && el.scrollHeight - el.scrollTop - el.clientHeight > 80) setStopped(true); }}>
          ${rows.map((r) => html`<div key=${r.key} class="row wrap"><span class="dim">${clock(r.at, true)}</span><span style=${{ minWidth: '6rem' }}><${State} state=${r.what} /></span><a class="strong" href=${link('jobs', r.jid)}>${r.class}</a><a class="dim" href=${link('job-queues', r.queue || 'default')}>${r.queue}</a>
            ${r.run_ms !== undefined && html`<span>${seconds(r.run_ms / 1000)}</span>`}${r.error_class && html`<span class="bad">${r.error_class}</span>`}<span class="dim">${r.jid}</span></div>`)}
          ${!rows.length && html`<${Empty} icon="live" title=${text ? 'Nothing that matches has run' : 'Nothing has run yet'} />`}</div>`}</section>`;
}
