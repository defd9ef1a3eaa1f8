// @ts-check
import { html } from '../core/h.js';

/**
 * @param {{value: string, options: [string, any][], onChange: (v: string) => void, label: string}}
 *   p
 */
export function Tabs({ value, options, onChange, label }) {
  const move = (/** @type {KeyboardEvent} */ e) => {
    const d = e.key === 'ArrowRight' ? 1 : e.key === 'ArrowLeft' ? -1 : 0;
    if (!d) return;
    const i = options.findIndex(([v]) => v === value);
    onChange(options[(i + d + options.length) % options.length][0]);
    const all = /** @type {HTMLElement} */ (e.currentTarget);
    requestAnimationFrame(() => /** @type {HTMLElement} */ (all.querySelector('[aria-selected=true]'))?.focus());
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>${options.map(([v, text]) => html`
    <button role="tab" aria-selected=${String(v === value)} tabindex=${v === value ? 0 : -1} onClick=${() => onChange(v)}>${text}</button>`)}</div>`;
}
