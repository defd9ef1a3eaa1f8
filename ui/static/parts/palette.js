// @ts-check
// The palette finds everything by name: pages, queues, classes, processes, a job's ID, commands.
// This file also has the list of keys.
import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { goTo } from '../core/keys.js';
import { overlays, register } from '../core/overlays.js';
import { density, shortcuts, theme } from '../core/prefs.js';
import { paused } from '../core/paused.js';
import { link, navigate } from '../core/router.js';
import { mayAct, onSignOut } from '../core/session.js';
import { openEnqueue } from './enqueue.js';
import { Icon } from './icon.js';
import { common, frame, palette as words } from '../core/words.js';

const shown = signal('');
export const openPalette = () => { shown.value = 'palette'; };
export const openKeys = () => { shown.value = 'keys'; };
onSignOut(() => { shown.value = ''; });

/** @typedef {{icon: string, text: string, hint: string, run: () => void}} Entry */

/** @type {[string, string, string][]} page, icon, name */
const pages = [
  ['dashboard', 'dashboard', common.dashboard], ['job-queues', 'queue', common.queues], ['jobs', 'rows', common.jobs],
  ['scheduled-jobs', 'clock', common.scheduledJobs], ['periodic-jobs', 'periodic', common.periodicJobs], ['limits', 'limit', common.limits],
  ['governed-queues', 'governed', common.governedQueues], ['unique-keys', 'key', common.uniqueKeys],
  ['retries', 'retry', common.retries], ['dead-jobs', 'dead', common.deadJobs], ['gated-jobs', 'gated', common.blockedJobs], ['job-metrics', 'chart', common.metrics], ['live', 'live', common.live],
  ['worker-processes', 'worker', common.workerProcesses], ['operations', 'ops', common.operations], ['rejected', 'rejected', common.rejectedRecords],
  ['health', 'health', common.health], ['api-docs', 'api', common.httpApi],
];
/** Returns the keys that lead to a page: g and a letter. @param {string} page */
const letter = (page) => 'g ' + Object.keys(goTo).find((k) => goTo[k] === page);

/** @returns {Entry[]} */
const fixed = () => [
  ...pages.map(([page, icon, text]) => ({ icon, text, hint: letter(page), run: () => navigate(link(page)) })),
  ...(mayAct.value ? [{ icon: 'plus', text: common.enqueueAJob, hint: '', run: openEnqueue }] : []),
  { icon: 'storm', text: common.retriesByError, hint: '', run: () => navigate(link('retries', [], { view: 'storm' })) },
  ...['light', 'dark', 'system'].map((t) => ({ icon: t === 'light' ? 'sun' : t === 'dark' ? 'moon' : 'monitor', text: words.theme(t), hint: '', run: () => { theme.value = t; } })),
  density.value === 'compact' ? { icon: 'rows', text: words.rows(words.comfortable), hint: '', run: () => { density.value = 'comfortable'; } }
    : { icon: 'rows', text: words.rows(words.compact), hint: '', run: () => { density.value = 'compact'; } },
  { icon: paused.value ? 'play' : 'pause', text: paused.value ? words.resumeUpdates : words.pauseUpdates, hint: 'p', run: () => { paused.value = !paused.value; } },
  { icon: 'keys', text: common.keyboardShortcuts, hint: '?', run: openKeys },
];

function Palette() {
  return shown.value === 'palette' ? html`<${Box} />` : shown.value === 'keys' ? html`<${Keys} />` : null;
}
register(overlays, Palette);

/** Returns the names, which are requested when the palette opens. @returns {Entry[]} */
function useNames() {
  const [names, set] = useState(/** @type {Entry[][]} */ ([[], [], [], [], [], []]));
  useEffect(() => {
    let ended = false;
    /** @type {(icon: string, page: string, name: string, hint: string) => Entry} */
    const to = (icon, page, name, hint) => ({ icon, text: name, hint, run: () => navigate(link(page, name)) });
    /** @type {[string, (d: any) => Entry[]][]} */
    const asks = [['job-queues', (d) => d.map((q) => to('queue', 'job-queues', q.name, words.queue))],
      ['job-metrics', (d) => d.classes.filter((c) => !c.other).map((c) => to('chart', 'job-metrics', c.name, words.class))],
      ['processes', (d) => d.map((p) => to('worker', 'worker-processes', p.identity, p.state))],
      ['periodic-jobs', (d) => d.map((j) => to('periodic', 'periodic-jobs', j.name, words.periodic))],
      ['limits', (d) => d.map((l) => to('limit', 'limits', l.name, words.limit))],
      ['governed-queues', (d) => d.map((q) => to('governed', 'governed-queues', q.name, words.governed))]];
    // In this order, regardless of the order of the answers.
    asks.forEach(async ([path, read], i) => {
      const answer = await ask(apiPath(path, [], ['job-queues', 'processes'].includes(path) ? { limit: 500 } : {})).catch(() => null);
      if (answer && !ended) set((all) => Object.assign([...all], { [i]: read(answer.data) }));
    });
    return () => { ended = true; };
  }, []);
  return useMemo(() => names.flat(), [names]);
}

function Box() {
  const [text, setText] = useState('');
  const [chosen, choose] = useState('');
  const box = useRef(null);
  const names = useNames();
  const close = () => { shown.value = ''; };
  // Immediately, not after the next frame: until then, keys would go to the page below.
  useLayoutEffect(() => { box.current.showModal(); }, []);
  const found = useMemo(() => match([...fixed(), ...names], text), [text, names]);
  // By name, not by position: names still arrive while the user chooses.
  const at = Math.max(0, found.findIndex((e) => nameOf(e) === chosen));
  const run = (/** @type {Entry|undefined} */ e) => {
    close();
    e?.run();
  };
  const key = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      if (found.length) choose(nameOf(found[(at + (e.key === 'ArrowDown' ? 1 : found.length - 1)) % found.length]));
    } else if (e.key === 'Enter') {
      e.preventDefault();
      run(found[at]);
    }
  };
  useEffect(() => { document.getElementById('pal-' + at)?.scrollIntoView({ block: 'nearest' }); }, [at]);
  return html`<dialog ref=${box} class="pal" aria-label=${words.searchAndCommands} onCancel=${close} onClose=${close} onClick=${(/** @type {Event} */ e) => e.target === box.current && close()}>
    <input role="combobox" aria-label=${words.searchAndCommands} aria-expanded="true" aria-controls="pal-list" aria-activedescendant=${'pal-' + at}
      placeholder=${words.findBy} value=${text} onInput=${(e) => { setText(e.target.value); choose(''); }} onKeyDown=${key} autofocus />
    <ul id="pal-list" role="listbox" aria-label=${words.results}>${found.map((e, i) => html`
      <li id=${'pal-' + i} role="option" aria-selected=${String(i === at)} onClick=${() => run(e)} onPointerMove=${() => choose(nameOf(e))}>
        <${Icon} name=${e.icon} /><span class="cut">${e.text}</span><span class="dim small nowrap">${e.hint}</span></li>`)}</ul>
  </dialog>`;
}

/** @param {Entry} e */
const nameOf = (e) => e.hint + ' ' + e.text;

/** @param {Entry[]} all @param {string} text */
function match(all, text) {
  const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((e) => parts.every((w) => (e.text + ' ' + e.hint).toLowerCase().includes(w))).slice(0, 40);
  const t = text.trim();
  if (t && !/\s/.test(t)) found.push({ icon: 'search', text: t, hint: words.openTheJob, run: () => navigate(link('jobs', t)) });
  if (t) for (const [page, name] of Object.entries(common.inSmall)) found.push({ icon: 'search', text: t, hint: words.findIn(name), run: () => navigate(link(page, [], { text: t })) });
  return found;
}

function Keys() {
  const box = useRef(null);
  const close = () => { shown.value = ''; };
  useLayoutEffect(() => { box.current.showModal(); }, []);
  /** @type {[string, string][]} */
  const rows = [
    [words.searchAndCommands, frame.searchKeys], [common.filter, '/'], [words.nextAndPreviousRow, 'j k'], [words.selectRow, 'x'],
    [words.openRow, 'Enter'], [words.retryOrRunRow, 'r'], [words.deleteRow, '#'], [words.previousAndNextPage, '[ ]'], [words.pauseUpdates, 'p'],
    [words.lightOrDark, 't'], [common.keyboardShortcuts, '?'], ...pages.map(([page, , name]) => /** @type {[string, string]} */ ([name, letter(page)])),
  ];
  return html`<dialog ref=${box} class="wide" aria-label=${common.keyboardShortcuts} onClose=${close}
    onClick=${(/** @type {Event} */ e) => e.target === box.current && close()}><div class="inside"><h2>${common.keyboardShortcuts}</h2>
    <div class="keys">${rows.map(([what, k]) => html`<div><span>${what}</span><span class="row">${k.split(' ').map((c) => html`<kbd>${c}</kbd>`)}</span></div>`)}</div>
    <label class="check"><input type="checkbox" checked=${shortcuts.value === 'on'} onChange=${(e) => { shortcuts.value = e.target.checked ? 'on' : 'off'; }} />${words.singleKeyShortcuts}</label>
    <div class="ends"><button class="btn primary" onClick=${close}>${words.close}</button></div></div></dialog>`;
}
