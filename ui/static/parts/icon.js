// @ts-check
// Icons as strokes on 24 × 24, drawn here, without files or fonts.
import { html } from '../core/h.js';

/** @type {Record<string, string>} */
const paths = {
  dashboard: 'M4 13a8 8 0 1 1 16 0M12 13l4-4M4 17h16',
  clock: 'M12 7v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z',
  periodic: 'M5 6h14v14H5ZM5 10h14M9 3v4M15 3v4M12 13v2l2 1.500',
  limit: 'M4 5h16l-6 8v6l-4-2v-4Z',
  governed: 'M4 6h16v4H4ZM4 14h6v4H4ZM14 13v6M19 13v6',
  key: 'M8 13a5 5 0 1 0 0-10 5 5 0 0 0 0 10ZM11.500 11.500 20 20M16 16l3-3',
  next: 'M6 5l8 7-8 7ZM18 5v14',
  enqueue: 'M4 5l9 7-9 7ZM17 8v8M13 12h8',
  retry: 'M20 11a8 8 0 1 0-2.3 6.2M20 5v6h-6',
  dead: 'M9 20v-3H7l-2-2v-4a7 7 0 0 1 14 0v4l-2 2h-2v3ZM9.5 12v.5M14.5 12v.5M12 17v3',
  chart: 'M4 4v16h16M8 15l3-4 3 2 5-6',
  live: 'M3 12h4l3-8 4 16 3-8h4',
  worker: 'M5 5h14v14H5ZM9 9h6v6H9ZM9 2v3M15 2v3M9 19v3M15 19v3M2 9h3M2 15h3M19 9h3M19 15h3',
  ops: 'M9 6h11M9 12h11M9 18h11M4 6l1 1 2-2M4 12l1 1 2-2M4 18l1 1 2-2',
  rejected: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM6 6l12 12',
  health: 'M12 20s-8-4.6-8-10.5A4.5 4.5 0 0 1 12 7a4.5 4.5 0 0 1 8 2.5C20 15.400 12 20 12 20ZM7 12h3l1-2 2 4 1-2h3',
  api: 'M8 7l-5 5 5 5M16 7l5 5-5 5M14 4l-4 16',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM20 20l-4-4',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.500 1.500M17.500 17.500 19 19M19 5l-1.500 1.500M6.500 17.500 5 19',
  moon: 'M20 14.500A8.500 8.500 0 0 1 9.500 4 8.500 8.500 0 1 0 20 14.500Z',
  monitor: 'M3 5h18v11H3ZM9 20h6M12 16v4',
  check: 'M5 12.500l4.500 4.500L19 7',
  x: 'M6 6l12 12M18 6 6 18',
  plus: 'M12 5v14M5 12h14',
  play: 'M7 5l12 7-12 7Z',
  pause: 'M8 5v14M16 5v14',
  stop: 'M6 6h12v12H6Z',
  trash: 'M4 7h16M10 7V4h4v3M6 7l1 13h10l1-13M10 11v5M14 11v5',
  skull: 'M9 20v-3H7l-2-2v-4a7 7 0 0 1 14 0v4l-2 2h-2v3ZM9.500 12v.5M14.500 12v.5',
  edit: 'M4 20h4L19 9l-4-4L4 16ZM13 7l4 4',
  undo: 'M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3',
  up: 'M12 19V5M6 11l6-6 6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  left: 'M15 5l-7 7 7 7',
  right: 'M9 5l7 7-7 7',
  sort: 'M8 9l4-4 4 4M8 15l4 4 4-4',
  columns: 'M4 6h10M18 6h2M4 12h2M10 12h10M4 18h8M16 18h4M16 4v4M8 10v4M14 16v4',
  copy: 'M9 9h11v11H9ZM5 15H4V4h11v1',
  warn: 'M12 3 2 20h20ZM12 10v4M12 17v.5',
  alert: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 8v5M12 16v.5',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 11v5M12 8v.5',
  dot: 'M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Z',
  dash: 'M6 12h12',
  quiet: 'M5 9v6h4l5 4V5L9 9ZM18 9l4 6M22 9l-4 6',
  queue: 'M4 6h16v4H4ZM4 14h16v4H4Z',
  gated: 'M4 6h16v4H4ZM4 14h3M10.500 14h3M17 14h3M4 18h3M10.500 18h3M17 18h3',
  out: 'M10 4H5v16h5M14 8l4 4-4 4M8 12h10',
  download: 'M12 4v11M7 11l5 5 5-5M5 20h14',
  eye: 'M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12ZM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Z',
  rows: 'M4 5h16M4 9.700h16M4 14.300h16M4 19h16',
  keys: 'M3 6h18v12H3ZM7 10h.5M12 10h.5M17 10h.5M8 14h8',
  fold: 'M4 5h16v14H4ZM9 5v14',
  storm: 'M7 15a4 4 0 0 1 .5-8A6 6 0 0 1 19 9a3 3 0 0 1-1 6M13 11l-3 5h4l-3 5',
};

/** @param {{name: string, small?: boolean, class?: string, label?: string}} p */
export function Icon({ name, small, class: extra, label }) {
  return html`<svg class=${'i' + (small ? ' s' : '') + (extra ? ' ' + extra : '')} viewBox="0 0 24 24" role=${label ? 'img' : undefined}
    aria-label=${label} aria-hidden=${label ? undefined : 'true'} focusable="false"><path d=${paths[name] || paths.dot} /></svg>`;
}
