// @ts-check
// The classes or queues whose rows are ticked. One chart has a line for each. The URL has their
// names, each at the position of its colour.
import { html } from '../core/h.js';
import { apiPath, ask } from '../core/api.js';
import { brief } from '../core/format.js';
import { useResource } from '../core/resource.js';
import { route, setQuery } from '../core/router.js';
import { Chart, palette } from './chart.js';
import { deploys, PerStep, ran, stepText, zoom } from './charts.js';
import { Card, Failure } from './states.js';
import { charts as words } from '../core/words.js';

/** @typedef {'class'|'queue'} Kind the kind of the ticked rows */

/** More lines cannot be distinguished. */
const most = 8;

/** Escapes commas, which separate names. @param {string} name */
const written = (name) => name.replace(/[%,]/g, (c) => encodeURIComponent(c));
/** @param {string} text */
const meant = (text) => text.replace(/%2C|%25/g, (c) => decodeURIComponent(c));

/**
 * Returns the names by position. A free position is empty, so that the others keep their colours.
 * @returns {string[]}
 */
export function tickedNow() {
  const all = (route.value.query.get('show') || '').split(',').slice(0, most).map(meant);
  return all.map((name, i) => (all.indexOf(name) === i ? name : ''));
}

/** @param {string[]} names */
const full = (names) => names.filter(Boolean).length >= most;

/** Ticks a class or queue, or unticks it. @param {string} name */
export function flip(name) {
  const names = tickedNow();
  const at = names.indexOf(name);
  if (at >= 0) names[at] = '';
  else if (full(names)) return;
  else names[names.includes('') ? names.indexOf('') : names.length] = name;
  setQuery({ show: names.map(written).join(',').replace(/,+$/, '') });
}

/** @param {{kind: Kind, name: string, ticked: string[]}} p */
export function Tick({ kind, name, ticked }) {
  const at = ticked.indexOf(name);
  const not = at < 0 && full(ticked);
  return html`<input type="checkbox" aria-label=${words.showInChart(name)} title=${not ? words.atMost[kind](most) : ''} disabled=${not} checked=${at >= 0}
    style=${{ accentColor: at < 0 ? '' : palette[at] }} onChange=${() => flip(name)} />`;
}

/**
 * Requests the metrics of all of them together, so that all lines have the same range.
 * @param {Kind} kind
 * @param {string[]} names
 * @param {any} range
 * @param {string|null} queue
 */
function useEach(kind, names, range, queue) {
  const of = { from: Math.floor(range.from), to: Math.ceil(range.to), step: range.step };
  const urls = names.map((name) => (kind === 'queue' ? apiPath('job-metrics', [], { queue: name, ...of }) : apiPath('job-metrics', name, { queue, ...of })));
  const read = async (/** @type {string} */ _, how) => {
    const answers = await Promise.all(urls.map((url) => ask(url, how)));
    return { data: new Map(names.map((name, i) => [name, answers[i].data])), text: answers.map((a) => a.text).join('\n') };
  };
  return useResource(urls.join(' '), { every: 10_000, read });
}

/**
 * How many jobs of each there were, step by step.
 * @param {{kind: Kind, names: string[], range: any, queue: string|null}} p `names`: by position
 */
export function Ticked({ kind, names, range, queue }) {
  const all = useEach(kind, names.filter(Boolean), range, queue);
  const any = all.data?.values().next().value;
  const x = (any?.series || []).map((s) => s.at);
  // A name that was ticked just now has no line before its answer.
  const line = (/** @type {string} */ name, /** @type {number} */ i) => {
    const points = all.data?.get(name)?.series || [];
    return { label: name, colour: palette[i], values: x.map((/** @type {number} */ _, /** @type {number} */ n) => (points[n] ? ran(points[n]) : null)) };
  };
  const untick = html`<button class="btn small" onClick=${() => setQuery({ show: '' })}>${words.allOf[kind]}</button>`;
  return html`<${Card} title=${words.throughputBy[kind]} class="sticky" tools=${html`<${PerStep} d=${any} />${untick}`}>
    <${Failure} error=${all.error} at=${all.data ? all.at : 0} refresh=${all.refresh} />
    <${Chart} of=${all} title=${words.jobsOfEachPer[kind](stepText(any?.step_seconds))} sync="page" format=${brief} marks=${deploys(any)} onZoom=${zoom}
      from=${range.from} to=${range.to} x=${x} series=${names.map(line).filter((s) => s.label)} /><//>`;
}
