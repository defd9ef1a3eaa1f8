// @ts-check
// The component for all tables. Rows do not move while the pointer is over them or some are
// selected, so that a click always hits the intended row.
import { Component, cx, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../core/h.js';
import { whenIdle } from '../core/idle.js';
import { forPage } from '../core/keys.js';
import { hiddenColumns } from '../core/prefs.js';
import { Icon } from './icon.js';
import { common, table as words } from '../core/words.js';

/**
 * @typedef {{id: string, label: string, cell: (row: any) => any, sort?: ((row: any) => any)|string,
 *   right?: boolean, class?: string, always?: boolean, off?: boolean, wide?: boolean, head?:
 *   boolean}} Column `sort`: the value by which rows are sorted here, or the API's name if the API
 *   sorts; `off`: hidden by default; `wide`: hidden if there is little room
 */
/** @typedef {{chosen: Map<string, any>, set: (m: Map<string, any>) => void}} Selection */

/** A list with this many rows on all its pages has them closer together. */
const many = 100;

/** @param {string} table @param {Column[]} columns */
export function shownColumns(table, columns) {
  const kept = JSON.parse(hiddenColumns.value || '{}')[table];
  return columns.filter((c) => c.always || !(kept ? kept.includes(c.id) : c.off));
}

/** @param {any[]} rows @param {Column[]} columns @param {string} sort @param {boolean} reverse */
export function sorted(rows, columns, sort, reverse) {
  const by = columns.find((c) => c.id === sort)?.sort;
  if (typeof by !== 'function') return rows;
  const all = rows.map((r) => [by(r), r]);
  all.sort(([a], [b]) => (a === b ? 0 : a === null || a === undefined ? 1 : b === null || b === undefined ? -1 : (a < b ? -1 : 1) * (reverse ? -1 : 1)));
  return all.map(([, r]) => r);
}

/**
 * Returns the rows as they were when the user pointed at the table or selected a row, or asked for
 * another order.
 * @param {any[]} rows
 * @param {(r: any) => string} key
 * @param {boolean} still
 * @param {string} order
 * @param {number} count how many rows the list has on all its pages, if that is known
 */
export function useStill(rows, key, still, order, count = 0) {
  const kept = useRef(/** @type {any[]} */ ([]));
  const was = useRef(order);
  if (!still || !kept.current.length || was.current !== order) kept.current = rows;
  was.current = order;
  const fresh = new Map(rows.map((r) => [key(r), r]));
  // If none of the old rows is left, no click can hit a wrong row.
  if (still && !kept.current.some((r) => fresh.has(key(r)))) kept.current = rows;
  const size = useRef(0); // rows that are kept keep their height too
  if (kept.current === rows) size.current = Math.max(rows.length, count);
  const before = new Set(kept.current.map(key));
  const shown = still ? kept.current.map((r) => fresh.get(key(r)) || r) : rows;
  return {
    rows: shown,
    dense: size.current >= many,
    gone: new Set(still ? kept.current.map(key).filter((k) => !fresh.has(k)) : []),
    more: still ? rows.filter((r) => !before.has(key(r))).length : 0,
    show: () => { kept.current = rows; },
  };
}

/**
 * @param {{id: string, caption: string, columns: Column[], rows: any[], rowKey: (r: any) => string,
 *   loading?: boolean, sort?: string, reverse?: boolean, onSort?: (id: string, reverse: boolean) =>
 *   void, unsortable?: string, selection?: Selection, label?: (r: any) => string, acts?: (r: any)
 *   => any, empty?: any, foot?: any, open?: (r: any) => void, keys?: (key: string, row: any) =>
 *   boolean|void, still?: boolean, dim?: boolean, busy?: boolean, of?: string, steady?: boolean,
 *   count?: number}} p `unsortable`: why there is no other order; `steady`: the content of a row
 *   depends only on that row; `of`: the request that the rows answer; `busy`: another request is
 *   pending; `count`: how many rows the list has on all its pages
 */
export function Table(p) {
  const columns = shownColumns(p.id, p.columns);
  const [over, setOver] = useState(false);
  const [, setShown] = useState(0);
  const [at, setAt] = useState('');
  const body = useRef(null);
  const chosen = p.selection?.chosen;
  const still = useStill(p.rows || [], p.rowKey, p.still !== false && !!(over || chosen?.size), `${p.sort} ${p.reverse} ${p.of}`, p.count);
  const rows = still.rows;
  const drawn = useRef(rows);
  drawn.current = rows;
  const first = useScreenful(rows);
  const skeleton = useSkeleton(!!p.loading && !rows.length);
  const last = useRef('');
  // Keys may come faster than drawings. The last selection counts, even if it is not drawn yet.
  const picked = useRef(chosen);
  picked.current = chosen;
  const pick = (row, /** @type {boolean} */ on, /** @type {boolean} */ range) => {
    const next = new Map(picked.current);
    const rows = drawn.current; // a row may have been drawn when there were others
    const ids = rows.map(p.rowKey);
    const [a, b] = [ids.indexOf(last.current), ids.indexOf(p.rowKey(row))];
    const these = range && a >= 0 ? rows.slice(Math.min(a, b), Math.max(a, b) + 1) : [row];
    for (const r of these) {
      if (on) next.set(p.rowKey(r), r);
      else next.delete(p.rowKey(r));
    }
    last.current = p.rowKey(row);
    picked.current = next;
    p.selection.set(next);
  };
  useRowKeys(p, rows, at, setAt, pick, body, picked);
  const shown = columns.map((c) => c.id).join() + !!p.acts + !!p.selection;
  const draw = (/** @type {any} */ row) => {
    const k = p.rowKey(row);
    return html`<${p.steady ? Steady : Row} key=${k} k=${k} shown=${shown} row=${row} columns=${columns} p=${p} on=${!!chosen?.has(k)} at=${k === at}
      gone=${still.gone.has(k)} pick=${pick} />`;
  };
  return html`<div class=${cx('scroll', p.busy && 'busy')} tabindex="-1" aria-busy=${p.busy ? 'true' : undefined}
      onPointerEnter=${() => setOver(true)} onPointerLeave=${() => setOver(false)}>
    ${still.more > 0 && html`<button class="btn small newpill" onClick=${() => { still.show(); setShown((n) => n + 1); }}>
      <${Icon} name="up" small />${words.showNew(still.more)}</button>`}
    <table class=${cx('t', p.dim && 'stale', still.dense && 'dense')}>
      <caption>${p.caption}</caption>
      <thead><tr>
        ${p.selection && html`<${SelectAll} selection=${p.selection} rows=${rows} rowKey=${p.rowKey} />`}
        ${columns.map((c) => html`<${Header} key=${c.id} c=${c} p=${p} />`)}
        ${p.acts && html`<th scope="col" class="acts"><span class="sr">${common.actions}</span></th>`}
      </tr></thead>
      <tbody ref=${body}>
        ${skeleton && [0, 1, 2, 3, 4, 5].map((i) => html`<${Placeholder} key=${i} i=${i} columns=${columns} p=${p} />`)}
        ${first.map(draw)}
      </tbody>
      ${p.foot && rows.length > 0 && html`<tfoot>${p.foot}</tfoot>`}
    </table>
    ${!p.loading && !rows.length && p.empty}
  </div>`;
}

/** @param {{selection: Selection, rows: any[], rowKey: (r: any) => string}} p */
function SelectAll({ selection: { chosen, set }, rows, rowKey }) {
  const all = rows.length > 0 && rows.every((r) => chosen.has(rowKey(r)));
  const some = !all && rows.some((r) => chosen.has(rowKey(r)));
  const turn = (e) => {
    const next = new Map(chosen);
    for (const r of rows) {
      if (e.target.checked) next.set(rowKey(r), r);
      else next.delete(rowKey(r));
    }
    set(next);
  };
  return html`<th scope="col" class="pick"><input type="checkbox" aria-label=${words.selectAllOnThisPage} checked=${all}
    ref=${(el) => { if (el) el.indeterminate = some; }} onChange=${turn} /></th>`;
}

/** The name of a column. A click sorts by it, where that is done. @param {{c: Column, p: any}} a */
function Header({ c, p }) {
  const sorts = c.sort && p.onSort;
  const here = p.sort === c.id;
  const turn = () => p.onSort(c.id, here ? !p.reverse : !!c.right);
  return html`<th scope="col" class=${cx(c.right && 'r', c.wide && 'wide')}
      aria-sort=${sorts ? (here ? (p.reverse ? 'descending' : 'ascending') : 'none') : undefined}>
    ${sorts ? html`<button title=${here ? undefined : p.unsortable} onClick=${turn}>${c.label}
      ${(here || !p.unsortable) && html`<${Icon} small name=${!here ? 'sort' : p.reverse ? 'down' : 'up'} />`}</button>` : c.label}</th>`;
}

/** A row whose answer is awaited. @param {{i: number, columns: Column[], p: any}} a */
const Placeholder = ({ i, columns, p }) => html`<tr class="sk" aria-hidden="true">${p.selection && html`<td class="pick"></td>`}
  ${columns.map((c, j) => html`<td class=${cx(c.wide && 'wide')}><span style=${{ width: 40 + ((i * 7 + j * 23) % 50) + '%' }}></span></td>`)}
  ${p.acts && html`<td></td>`}</tr>`;

/** @param {any} p */
function Row({ k, row, columns, p, on, at, gone, pick }) {
  return html`<tr class=${cx(on && 'on', at && 'at', gone && 'gone')} data-key=${k} aria-selected=${p.selection ? String(on) : undefined}>
    ${p.selection && html`<td class="pick"><input type="checkbox" aria-label=${words.select(p.label ? p.label(row) : k)} checked=${on}
      onClick=${(e) => pick(row, e.target.checked, e.shiftKey)} /></td>`}
    ${columns.map((/** @type {Column} */ c) => (c.head ? html`<th scope="row" class=${cx(c.right && 'r', c.class)}>${c.cell(row)}</th>`
      : html`<td class=${cx(c.right && 'r', c.class, c.wide && 'wide')}>${c.cell(row)}</td>`))}
    ${p.acts && html`<td class="acts">${!gone && p.acts(row)}</td>`}
  </tr>`;
}

/** A row that is drawn again only if it has changed. */
class Steady extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    return ['row', 'on', 'at', 'gone', 'shown'].some((k) => next[k] !== this.props[k]);
  }

  render() {
    return Row(this.props);
  }
}

/** How many rows fit on a large screen. */
const screenful = 40;

/**
 * Returns the rows to draw. In a long table, the first ones are drawn before the others.
 * @param {any[]} rows
 */
function useScreenful(rows) {
  const [all, setAll] = useState(false);
  const long = rows.length > screenful;
  useEffect(() => (long && !all ? whenIdle(() => setAll(true)) : undefined), [long, all]);
  return all || !long ? rows : rows.slice(0, screenful);
}

/**
 * Returns whether to show a placeholder. There is none for a fast answer, because it would flash.
 * @param {boolean} wanted
 */
function useSkeleton(wanted) {
  const [shown, set] = useState(false);
  useEffect(() => {
    if (!wanted) {
      set(false);
      return undefined;
    }
    const t = setTimeout(() => set(true), 150);
    return () => clearTimeout(t);
  }, [wanted]);
  return wanted && shown;
}

/**
 * j and k go from row to row, x selects, Enter opens.
 * @param {any} p
 * @param {any[]} rows
 * @param {string} at
 * @param {(k: string) => void} setAt
 * @param {any} pick
 * @param {any} body
 * @param {any} picked
 */
function useRowKeys(p, rows, at, setAt, pick, body, picked) {
  const now = useRef(null);
  now.current = { p, rows, at, pick };
  useLayoutEffect(() => {
    const key = (/** @type {KeyboardEvent} */ e) => {
      const { p, rows, at, pick } = now.current;
      if (!forPage(e) || !body.current?.isConnected || (!p.open && !p.selection)) return;
      const i = rows.findIndex((r) => p.rowKey(r) === at);
      const to = e.key === 'j' ? i + 1 : e.key === 'k' ? Math.max(0, i - 1) : -1;
      if (to >= 0 && to < rows.length) {
        now.current.at = p.rowKey(rows[to]);
        setAt(now.current.at);
        body.current.children[to]?.scrollIntoView({ block: 'nearest' });
        return;
      }
      const row = rows[i];
      if (!row || e.repeat) return; // one key press is one action
      if (e.key === 'x' && p.selection) pick(row, !picked.current.has(at), false);
      else if (e.key === 'Enter' && p.open && !(/** @type {Element} */ (e.target).closest('a,button'))) p.open(row);
      else if (p.keys?.(e.key, row)) e.preventDefault();
    };
    document.addEventListener('keydown', key);
    return () => document.removeEventListener('keydown', key);
  }, []);
}

/** Chooses which columns are shown. @param {{id: string, columns: Column[]}} p */
export function ColumnChooser({ id, columns }) {
  const [open, setOpen] = useState(false);
  const shown = useMemo(() => new Set(shownColumns(id, columns).map((c) => c.id)), [hiddenColumns.value, id]);
  const flip = (/** @type {string} */ c) => {
    const off = columns.filter((x) => (x.id === c ? shown.has(x.id) : !shown.has(x.id))).map((x) => x.id);
    hiddenColumns.value = JSON.stringify({ ...JSON.parse(hiddenColumns.value || '{}'), [id]: off });
  };
  return html`<span class="holds" onFocusOut=${(e) => { if (!e.currentTarget.contains(e.relatedTarget)) setOpen(false); }} onKeyDown=${(e) => e.key === 'Escape' && setOpen(false)}>
    <button class="icon" aria-label=${words.columns} title=${words.columns} aria-expanded=${String(open)} onClick=${() => setOpen(!open)}><${Icon} name="columns" /></button>
    ${open && html`<div class="menu" role="group" aria-label=${words.columnsShown} tabindex="-1">
      ${columns.filter((c) => !c.always).map((c) => html`<label class="item">
        <input type="checkbox" checked=${shown.has(c.id)} onChange=${() => flip(c.id)} />${c.label}</label>`)}</div>`}
  </span>`;
}
