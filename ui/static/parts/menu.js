// @ts-check
// The menu of the round button: the signed-in user, and the preferences of this browser.
import { html, useLayoutEffect, useRef } from '../core/h.js';
import { overview } from '../core/overview.js';
import { density, theme, times } from '../core/prefs.js';
import { signOut, whoami } from '../core/session.js';
import { Icon } from './icon.js';
import { Segments } from './states.js';
import { common, frame, menu as words } from '../core/words.js';

/** @type {[string, import('../../vendor/signals.js').Signal<string>, [string, string][]][]} */
const choices = [
  [words.theme, theme, [['light', words.light], ['dark', words.dark], ['system', common.system]]],
  [common.rows, density, [['comfortable', words.comfortable], ['compact', words.compact]]],
  [words.times, times, [['relative', words.relative], ['local', words.local], ['utc', 'UTC']]],
];

/** @param {{close: () => void, openKeys: () => void}} p */
export function Menu({ close, openKeys }) {
  const w = whoami.value;
  const box = useRef(null);
  useLayoutEffect(() => {
    const away = (e) => { if (!box.current?.parentElement.contains(e.target)) close(); };
    const escape = (e) => { if (e.key === 'Escape') close(); };
    document.addEventListener('pointerdown', away);
    document.addEventListener('keydown', escape);
    return () => {
      document.removeEventListener('pointerdown', away);
      document.removeEventListener('keydown', escape);
    };
  }, []);
  return html`<div class="menu" ref=${box} role="group" aria-label=${words.menu}>
    <div class="label"><div class="strong own">${w?.name || frame.noSignIn}</div>${words.account(w?.role || '', w?.read_only, w?.vhost || '/')}
      ${overview.value && html`<div>${words.version(overview.value.product_version)}</div>`}</div><hr />
    ${choices.map(([label, value, options]) => html`<div class="label">${label}</div>
      <${Segments} label=${label} value=${value.value} onChange=${(/** @type {string} */ v) => { value.value = v; }} options=${options} />`)}<hr />
    <button class="item" onClick=${() => { close(); openKeys(); }}><${Icon} name="keys" />${common.keyboardShortcuts}</button>
    ${w?.auth !== 'none' && html`<button class="item" onClick=${signOut}><${Icon} name="out" />${words.signOut}</button>`}
  </div>`;
}
