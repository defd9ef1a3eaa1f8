// @ts-check
import { html, useEffect, useRef, useState } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { clock, seconds } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { link, route, setQuery } from '../core/router.js';
import { Empty, State, Title } from '../parts/states.js';
import { Icon } from '../parts/icon.js';

/** Rows that are kept. */
const most = 5000;
/** Rows that are drawn. */
const drawn = 300;

export default function Live() {
  const text = (route.value.query.get('text') || '').toLowerCase();
  const [stopped, setStopped] = useState(false);
  const [missed, setMissed] = useState(0);
  const box = useRef(null);
  const ring = useRef({ rows: /** @type {any[]} */ ([]), known: new Set() });
  const [, draw] = useState(0);
  const runs = useResource(stopped ? null : apiPath('jobs', [], { limit: 500 }), { topic: 'jobs', every: 2000 });
  useEffect(() => {
    const all = (Array.isArray(runs.data) ? runs.data : runs.data?.items || []).slice().reverse();
    const r = ring.current;
    let fresh = 0;
    for (const row of all) {
      const key = [row.jid, row.at, row.what || row.status, row.attempt].join();
      if (r.known.has(key)) continue;
      r.known.add(key);
      r.rows.push({ ...row, key });
      fresh++;
    }
    if (fresh === all.length && r.rows.length > fresh) setMissed((n) => n + 1);
    while (r.rows.length > most) r.known.delete(r.rows.shift().key);
    draw((n) => n + 1);
  }, [runs.text]);
  const rows = ring.current.rows.filter((r) => !text || `${r.class} ${r.queue} ${r.jid} ${r.status || r.what} ${r.error_class || ''} ${r.worker || ''}`.toLowerCase().includes(text)).slice(-drawn);
  useEffect(() => { if (!stopped && box.current) box.current.scrollTop = box.current.scrollHeight; });
  const missing = runs.error?.status === 404 || runs.error?.status === 405 || runs.error?.status === 501;
  return html`<${Title} title="Live"><button class="btn small" onClick=${() => setStopped(!stopped)} aria-pressed=${String(stopped)}><${Icon} name=${stopped ? 'play' : 'pause'} small />${stopped ? 'Go on' : 'Hold'}</button><button class="btn small" onClick=${() => { ring.current = { rows: [], known: new Set() }; draw((n) => n + 1); }}>Clear</button><//>
    <section class="card flush" aria-label="Job runs as they come"><div class="toolbar"><input class="in small grow" type="search" data-filter placeholder="Filter by class, queue, id, status, error, worker" aria-label="Filter runs" value=${route.value.query.get('text') || ''} onInput=${(/** @type {any} */ e) => setQuery({ text: e.target.value }, { replace: true })} />
      <span class="dim small">${rows.length} shown of ${ring.current.rows.length}${missed ? html` · <span class="warn">more came than are shown</span>` : ''}</span></div>
      ${missing ? html`<${Empty} icon="live" title="This sidecar does not tell of single runs"><p>It has no route that lists recent runs yet: see <a href=${link('job-metrics')}>metrics</a>.</p><//>`
        : html`<div class="feed" ref=${box} tabindex="0" role="log" aria-label="Runs" onScroll=${(/** @type {any} */ e) => { const el = e.currentTarget; if (!stopped && el.scrollHeight - el.scrollTop - el.clientHeight > 80) setStopped(true); }}>
          ${rows.map((r) => html`<div key=${r.key} class="row wrap"><span class="dim">${clock(r.at || r.finished_at, true)}</span><span style=${{ minWidth: '6rem' }}><${State} state=${r.status || r.what} /></span><a class="strong" href=${link('jobs', r.jid)}>${r.class}</a><a class="dim" href=${link('job-queues', r.queue || 'default')}>${r.queue}</a>
            ${r.run_ms !== undefined && html`<span>${seconds(r.run_ms / 1000)}</span>`}${r.error_class && html`<span class="bad">${r.error_class}</span>`}<span class="dim">${r.jid}</span></div>`)}
          ${!rows.length && html`<${Empty} icon="live" title=${text ? 'Nothing that matches has run' : 'Nothing has run yet'} />`}</div>`}</section>`;
}
