// @ts-check
// The frame of every page: header, navigation, banners.
import { cx, html, useComputed, useLayoutEffect, useState } from '../core/h.js';
import { connection, newVersion, retry } from '../core/api.js';
import { now, skew } from '../core/clock.js';
import { brief } from '../core/format.js';
import { whenIdle } from '../core/idle.js';
import { watchKeys } from '../core/keys.js';
import { polling } from '../core/live.js';
import { overlays } from '../core/overlays.js';
import { lag, overview, replaying } from '../core/overview.js';
import { nav } from '../core/prefs.js';
import { paused } from '../core/paused.js';
import { link, route } from '../core/router.js';
import { whoami } from '../core/session.js';
import { Icon } from './icon.js';
import { Banner } from './states.js';
import { failed, Toasts } from './toast.js';
import { common, frame as words } from '../core/words.js';

/** @type {[string, [string, string, string, ((o: any) => number|undefined)?, string?][]][]} */
export const groups = [
  [words.work, [
    ['dashboard', 'dashboard', common.dashboard], ['job-queues', 'queue', common.queues, (o) => o.queues?.total], ['jobs', 'rows', common.jobs],
    ['scheduled-jobs', 'clock', common.scheduled, (o) => o.sets['scheduled-jobs']?.total],
    ['periodic-jobs', 'periodic', common.periodic], ['limits', 'limit', common.limits],
    ['governed-queues', 'governed', common.governed], ['unique-keys', 'key', common.uniqueKeys], ['retries', 'retry', common.retries, (o) => o.sets.retries?.total],
    ['dead-jobs', 'dead', common.dead, (o) => o.sets['dead-jobs']?.total],
    ['gated-jobs', 'gated', common.blocked, (o) => o.sets['gated-jobs']?.total || undefined],
  ]],
  [words.insight, [['job-metrics', 'chart', common.metrics], ['live', 'live', common.live]]],
  [common.workers, [['worker-processes', 'worker', common.processes, (o) => o.processes.running]]],
  [common.system, [
    ['operations', 'ops', common.operations],
    ['rejected', 'rejected', words.rejected, (o) => Object.values(o.rejected).reduce((n, r) => n + r.kept, 0) || undefined, 'bad'],
    ['health', 'health', common.health], ['api-docs', 'api', common.httpApi],
  ]],
];

/** @param {{children: any}} p */
export function Shell({ children }) {
  useLayoutEffect(() => watchKeys(openBox), []);
  // Loaded before the user needs it.
  useLayoutEffect(() => whenIdle(() => { import('./palette.js').catch(() => {}); }), []);
  return html`<a class="sr" href="#main" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); document.getElementById('main').focus(); }}>${words.skipToContent}</a>
    <${Header} /><${Nav} />
    <main id="main" tabindex="-1"><div class="page"><${Banners} />${children}</div></main>
    ${overlays.value.map((Over) => html`<${Over} />`)}<${Toasts} />`;
}

/** Opens the palette, which is loaded at the first use. @param {'openPalette'|'openKeys'} open */
const openBox = (open) => import('./palette.js').then((p) => p[open](), failed);

/**
 * Returns the look of an environment's name, so that users do not take production for staging.
 * eu-production is production, pre-prod is not.
 * @param {string} name
 */
const envLook = (name) => (/(?<![a-z]|(pre|non)[^a-z])(prod|live)/i.test(name) ? 'bad' : /(?<![a-z])(stag|test|qa|uat|pre|non)/i.test(name) ? 'warn' : 'info');

/**
 * Returns how the page is kept up to date.
 * @returns {[string, string, string]} a word, its look, and its meaning
 */
function freshness() {
  if (!connection.value.up) return [words.offline, 'bad', words.millraceDoesNotAnswer];
  if (paused.value) return [common.paused, 'off', words.updatesArePaused];
  return polling.value ? [words.polling, 'warn', words.updatedEveryFewSeconds] : [common.live, '', words.updatedLive];
}

function Header() {
  const [word, look, meaning] = freshness();
  const env = whoami.value?.environment;
  route.value; // reads the route, because the link must lead to the present range
  return html`<header class="top">
    <a class="brand" href=${link('dashboard')} aria-label=${words.toTheDashboard}><img src=${assets + 'static/icon.svg'} alt="" width="28" height="28" />
      <span class="name">${common.millrace}</span></a>
    ${env && html`<span class=${'pill env ' + envLook(env)} title=${env}><span class="cut">${env}</span></span>`}
    <${Lag} />
    <button class="search" onClick=${() => openBox('openPalette')}><${Icon} name="search" small /><span>${words.search}</span>
      <kbd>${/Mac/.test(navigator.platform) ? '⌘ K' : words.searchKeys}</kbd></button>
    <button class=${'live ' + look} aria-pressed=${String(!paused.value)} title=${meaning} onClick=${() => { paused.value = !paused.value; }}>
      <i></i><span class="word">${word}</span><span class="sr">${words.updates}</span></button>
    <${User} />
  </header>`;
}

/** The path of the page's files, which is the path of this file. */
export const assets = new URL('../../', import.meta.url).pathname;

/** How much the shown data lags behind the streams. */
function Lag() {
  const o = overview.value;
  if (!o) return null;
  const l = lag.value;
  if (replaying.value) return html`<span class="pill info">${common.catchingUp}</span>`;
  const look = l > 60 ? 'bad' : l > 5 ? 'warn' : '';
  const at = o.views?.streams?.find((s) => s.stream === 'job_journal')?.position;
  return l < 1 && !look ? null : html`<span class=${'pill ' + look} title=${at === undefined ? '' : words.readTo(at)}>${common.behindBy(l)}</span>`;
}

/** The content of the menu is loaded when it is first opened. */
function User() {
  const [open, setOpen] = useState(false);
  const [Menu, setMenu] = useState(/** @type {any} */ (null));
  const name = whoami.value?.name || words.noSignIn;
  const flip = () => {
    setOpen(!open);
    if (!Menu) import('./menu.js').then((m) => setMenu(() => m.Menu), failed);
  };
  return html`<span class="holds"><button class="avatar" aria-label=${words.menuOf(name)} aria-expanded=${String(open)} onClick=${flip}>${(whoami.value?.name || '–').slice(0, 1)}</button>
    ${open && Menu && html`<${Menu} close=${() => setOpen(false)} openKeys=${() => openBox('openKeys')} />`}</span>`;
}

function Nav() {
  const o = overview.value;
  const here = route.value.parts[0];
  const narrow = nav.value === 'narrow';
  // On phones the navigation is a row that scrolls.
  useLayoutEffect(() => document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }), [here]);
  return html`<nav class="side" aria-label=${words.main}>${groups.map(([title, pages]) => html`<p class="g" key=${title} aria-hidden="true"><span>${title}</span></p>
    ${pages.map(([page, icon, text, n, look]) => html`<a key=${page} href=${link(page)} title=${text} aria-current=${here === page ? 'page' : undefined}>
      <${Icon} name=${icon} /><span class="t">${text}</span>${count(o && n?.(o), look)}</a>`)}`)}
    <button class="fold" title=${narrow ? words.expand : words.collapse} aria-pressed=${String(narrow)}
      onClick=${() => { nav.value = narrow ? 'wide' : 'narrow'; }}><${Icon} name="fold" /><span class="t">${words.collapse}</span></button>
  </nav>`;
}

/** @param {number|null|undefined} n @param {string} [look] */
const count = (n, look) => n !== undefined && n !== null && html`<span class=${cx('n', look)}>${brief(n)}</span>`;

function Banners() {
  const c = connection.value;
  const left = useComputed(() => (now.value, Math.max(0, Math.ceil((c.retryAt - Date.now()) / 1000))));
  const o = overview.value;
  const tryNow = html`<button class="btn small" onClick=${() => retry()}>${words.tryNow}</button>`;
  const reload = html`<button class="btn small" onClick=${() => location.reload()}>${words.reload}</button>`;
  const review = html`<a class="btn small" href=${link('health')}>${words.review}</a>`;
  return html`
    ${!c.up && html`<${Banner} look="bad" icon="alert" tools=${tryNow}>${words.unreachable(c.retryAt ? words.nextAttempt(left) : words.connecting)}<//>`}
    ${newVersion.value && html`<${Banner} look="info" icon="info" tools=${reload}>${words.updated(newVersion.value)}<//>`}
    ${o && replaying.value && html`<${Banner} look="info" icon="info">${words.reading}<//>`}
    ${o?.broker && !o.broker.connected && html`<${Banner} look="bad" icon="alert">${words.brokerLost}<//>`}
    ${o?.scheduler?.blocked && html`<${Banner} look="bad" icon="alert">${words.blocked(o.scheduler.blocked)}<//>`}
    ${Object.keys(o?.journal?.held || {}).length > 0 && html`<${Banner} icon="warn" tools=${review}>${words.journalGap}<//>`}
    ${Math.abs(skew.value) > 5 && html`<${Banner} icon="clock">${words.clockDiffers(skew.value)}<//>`}`;
}
