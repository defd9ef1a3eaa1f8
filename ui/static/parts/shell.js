// @ts-check
// The frame of every page: header, navigation, banners.
import { html, useComputed, useLayoutEffect, useRef, useState } from '../core/h.js';
import { connection, newVersion, retry } from '../core/api.js';
import { now, serverNow, skew } from '../core/clock.js';
import { brief, count, seconds } from '../core/format.js';
import { lag, overview, replaying } from '../core/overview.js';
import { density, nav, theme, times } from '../core/prefs.js';
import { paused } from '../core/paused.js';
import { link, prefix, route } from '../core/router.js';
import { signOut, whoami } from '../core/session.js';
import { Dialogs } from './dialog.js';
import { Icon } from './icon.js';
import { openKeys, openPalette, Palette } from './palette.js';
import { Segments } from './states.js';
import { Toasts } from './toast.js';

/** @type {[string, [string, string, string, ((o: any) => number|undefined)?, string?][]][]} */
export const groups = [
  ['Work', [['job-queues', 'dashboard', 'Dashboard'], ['jobs', 'rows', 'Jobs'],
    ['scheduled-jobs', 'clock', 'Scheduled', (o) => o.sets['scheduled-jobs']?.total], ['retries', 'retry', 'Retries', (o) => o.sets.retries?.total], ['dead-jobs', 'dead', 'Dead', (o) => o.sets['dead-jobs']?.total],
    ['gated-jobs', 'clock', 'No queue yet', (o) => o.sets['gated-jobs']?.total || undefined]]],
  ['Insight', [['job-metrics', 'chart', 'Metrics'], ['live', 'live', 'Live']]],
  ['Workers', [['worker-processes', 'worker', 'Processes', (o) => o.processes.running]]],
  ['System', [['operations', 'ops', 'Operations'], ['rejected', 'rejected', 'Rejected', (o) => Object.values(o.rejected).reduce((n, r) => n + r.kept, 0) || undefined, 'bad'], ['health', 'health', 'Health'], ['api-docs', 'api', 'HTTP API']]],
];

/** @param {{children: any}} p */
export function Shell({ children }) {
  return html`<a class="sr" href="#main" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); document.getElementById('main').focus(); }}>To the content</a>
    <${Header} /><${Nav} />
    <main id="main" tabindex="-1"><div class="page"><${Banners} />${children}</div></main>
    <${Dialogs} /><${Palette} /><${Toasts} />`;
}

function Header() {
  const o = overview.value;
  return html`<header class="top">
    <a class="brand" href=${link('job-queues')} aria-label="Millrace, to the dashboard"><img src=${assets + 'static/icon.svg'} alt="" width="28" height="28" /><span class="name">Millrace</span></a>
    ${o && html`<span class="pill v">${o.product_version}</span>`}
    ${whoami.value?.environment && html`<span class="pill env">${whoami.value.environment}</span>`}
    <${Lag} />
    <button class="search" onClick=${openPalette}><${Icon} name="search" small /><span>Search</span><kbd>${/Mac/.test(navigator.platform) ? '⌘' : 'Ctrl'} K</kbd></button>
    <button class=${'live' + (paused.value ? ' off' : '')} aria-pressed=${String(!paused.value)} title=${paused.value ? 'Updates are held back' : 'Updates as they come'} onClick=${() => { paused.value = !paused.value; }}>
      <i></i><span>${paused.value ? 'Paused' : 'Live'}</span><span class="sr">updates</span></button>
    <${User} />
  </header>`;
}

/** Where this file came from, the page's other files are. */
export const assets = new URL('../../', import.meta.url).pathname;

/** How far what is shown is behind the streams. */
function Lag() {
  const o = overview.value;
  if (!o) return null;
  const l = lag.value;
  if (replaying.value) return html`<span class="pill info">catching up</span>`;
  const look = l > 60 ? 'bad' : l > 5 ? 'warn' : '';
  const at = o.views?.streams?.find((/** @type {any} */ s) => s.stream === 'job_journal')?.position;
  return l < 1 && !look ? null : html`<span class=${'pill ' + look} title=${at === undefined ? '' : 'journal read to offset ' + count(at)}>${seconds(l)} behind</span>`;
}

function User() {
  const [open, setOpen] = useState(false);
  const w = whoami.value;
  const box = useRef(null);
  useLayoutEffect(() => {
    if (!open) return undefined;
    const close = (/** @type {any} */ e) => { if (!box.current?.contains(e.target) || e.key === 'Escape') setOpen(false); };
    const esc = (/** @type {any} */ e) => { if (e.key === 'Escape') setOpen(false); };
    document.addEventListener('pointerdown', close);
    document.addEventListener('keydown', esc);
    return () => {
      document.removeEventListener('pointerdown', close);
      document.removeEventListener('keydown', esc);
    };
  }, [open]);
  const name = w?.name || 'anyone';
  return html`<span class="holds" ref=${box}><button class="avatar" aria-label=${'Menu of ' + name} aria-expanded=${String(open)} onClick=${() => setOpen(!open)}>${name.slice(0, 1)}</button>
    ${open && html`<div class="menu" role="group" aria-label="Menu">
      <div class="label"><div class="strong" style=${{ color: 'var(--text)' }}>${name}</div>${w?.role || ''}${w?.read_only ? ' · read-only' : ''} · vhost ${w?.vhost || '/'}</div><hr />
      <div class="label">Theme</div><${Segments} label="Theme" value=${theme.value} onChange=${(/** @type {string} */ v) => { theme.value = v; }} options=${[['light', 'Light'], ['dark', 'Dark'], ['system', 'System']]} />
      <div class="label">Rows</div><${Segments} label="Rows" value=${density.value} onChange=${(/** @type {string} */ v) => { density.value = v; }} options=${[['comfortable', 'Comfortable'], ['compact', 'Compact']]} />
      <div class="label">Times</div><${Segments} label="Times" value=${times.value} onChange=${(/** @type {string} */ v) => { times.value = v; }} options=${[['relative', 'Relative'], ['local', 'Local'], ['utc', 'UTC']]} /><hr />
      <button class="item" onClick=${() => { setOpen(false); openKeys(); }}><${Icon} name="keys" />Keyboard</button>
      ${w?.auth !== 'none' && html`<button class="item" onClick=${signOut}><${Icon} name="out" />Sign out</button>`}
    </div>`}</span>`;
}

function Nav() {
  const o = overview.value;
  const here = route.value.parts[0];
  return html`<nav class="side" aria-label="Main">${groups.map(([title, pages]) => html`<p class="g" key=${title} aria-hidden="true"><span>${title}</span></p>
    ${pages.map(([page, icon, text, n, look]) => { const value = o && n?.(o); return html`<a key=${page} href=${link(page)} title=${text} aria-current=${here === page ? 'page' : undefined}>
      <${Icon} name=${icon} /><span class="t">${text}</span>${value !== undefined && value !== null && html`<span class=${'n ' + (look || '')}>${brief(value)}</span>`}</a>`; })}`)}
    <button class="fold" title=${nav.value === 'narrow' ? 'Widen' : 'Collapse'} aria-pressed=${String(nav.value === 'narrow')} onClick=${() => { nav.value = nav.value === 'narrow' ? 'wide' : 'narrow'; }}><${Icon} name="fold" /><span class="t">Collapse</span></button>
  </nav>`;
}

function Banners() {
  const c = connection.value;
  const left = useComputed(() => (now.value, Math.max(0, Math.ceil((c.retryAt - Date.now()) / 1000))));
  const o = overview.value;
  return html`
    ${!c.up && html`<div class="banner bad" role="alert"><${Icon} name="alert" /><span>The sidecar is out of reach. What is shown may be old. ${c.retryAt ? html`Trying again in ${left} s.` : 'Trying …'}</span>
      <div class="tools"><button class="btn small" onClick=${() => retry()}>Try now</button></div></div>`}
    ${newVersion.value && html`<div class="banner info" role="status"><${Icon} name="info" /><span>The sidecar is now version ${newVersion.value}; this page is older.</span><div class="tools"><button class="btn small" onClick=${() => location.reload()}>Reload</button></div></div>`}
    ${o && replaying.value && html`<div class="banner info" role="status"><${Icon} name="info" /><span>The view is being read from the streams: what is shown is not complete yet, and actions on many jobs are off.</span></div>`}
    ${o?.broker && !o.broker.connected && html`<div class="banner bad" role="alert"><${Icon} name="alert" /><span>The sidecar has lost its connection to the broker.</span></div>`}
    ${o?.scheduler?.blocked && html`<div class="banner bad" role="alert"><${Icon} name="alert" /><span>The broker takes no messages: ${o.scheduler.blocked}</span></div>`}
    ${o && Object.keys(o.journal?.held || {}).length > 0 && html`<div class="banner" role="status"><${Icon} name="warn" /><span>The journal had a gap: due jobs are held until somebody decides.</span><div class="tools"><a class="btn small" href=${link('health')}>Decide</a></div></div>`}
    ${Math.abs(skew.value) > 5 && html`<div class="banner" role="status"><${Icon} name="clock" /><span>This computer's clock and the sidecar's are ${seconds(Math.abs(skew.value))} apart. Times are the sidecar's.</span></div>`}`;
}

export { prefix, serverNow };
