// @ts-check
import { html, useState } from '../core/h.js';
import { apiPath } from '../core/api.js';
import { useResource } from '../core/resource.js';
import { link, prefix } from '../core/router.js';
import { common } from '../core/words.js';
import { apiDocs as words } from '../core/pagewords.js';
import { CopyCurl, Failure, Segments, Title } from '../parts/states.js';
import { TryIt } from '../parts/tryit.js';

/** Follows a reference within the document. @param {any} doc @param {any} it @returns {any} */
function at(doc, it) {
  for (let n = 0; it?.$ref && n < 20; n++) it = it.$ref.slice(2).split('/').reduce((d, /** @type {string} */ k) => d?.[k.replaceAll('~1', '/').replaceAll('~0', '~')], doc);
  return it;
}

export default function ApiDocs() {
  const r = useResource(link('api-docs/openapi.json'), { every: 0 });
  const [text, setText] = useState('');
  const doc = r.data;
  const all = operationsOf(doc);
  const found = all.filter((o) => !text || (o.method + ' ' + o.path + ' ' + (o.op.summary || '')).toLowerCase().includes(text.toLowerCase()));
  const tags = (doc?.tags || []).filter((t) => found.some((o) => o.op.tags?.includes(t.name)));
  return html`<${Title} title=${common.httpApi} badge=${doc ? all.length : null}><a class="btn small" href=${apiPath('openapi.yaml')} target="_blank">${words.contract}</a><//>
    <${Failure} error=${r.error} refresh=${r.refresh} />
    ${doc && html`<div class="grid"><section class="card" aria-label=${words.about}><div class="stack"><p>${code(doc.info.description)}</p>
          <p class="dim">${words.base} <code>${location.origin + prefix}</code></p>
          <input class="in" type="search" data-filter placeholder=${words.filterByPathOrPurpose} aria-label=${words.filterRoutes}
            value=${text} onInput=${(e) => setText(e.target.value)} /></div></section>
      ${tags.map((t) => html`<section key=${t.name} class="card flush ops" aria-label=${t.name}>
        <div class="head"><h2>${t.name}</h2><span class="dim small">${t.description}</span></div>
        ${found.filter((o) => o.op.tags?.includes(t.name)).map((o) => html`<${Operation} key=${o.method + o.path} doc=${doc} o=${o} />`)}</section>`)}</div>`}`;
}

const methods = ['get', 'post', 'put', 'patch', 'delete'];

/** Returns all operations of the contract. @param {any} doc */
function operationsOf(doc) {
  const of = ([path, ops]) => methods.filter((m) => ops[m]).map((method) => ({ path, method, op: ops[method], shared: ops.parameters || [] }));
  return Object.entries(doc?.paths || {}).flatMap(of);
}

/** Shows words between backticks as code. @param {string} [text] */
const code = (text) => (text || '').split('`').map((part, i) => (i % 2 ? html`<code>${part}</code>` : part));

/** @param {{doc: any, o: any}} p */
function Operation({ doc, o }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(e) => setOpen(e.target.open)}><summary><span class=${'method ' + o.method}>${o.method.toUpperCase()}</span>
    <code class="strong anywhere">${o.path}</code><span class="dim">${code(o.op.summary)}</span></summary>${open && html`<${Body} doc=${doc} o=${o} />`}</details>`;
}

/** @param {{doc: any, o: any}} p */
function Body({ doc, o }) {
  const params = [...o.shared, ...(o.op.parameters || [])].map((p) => at(doc, p)).filter(Boolean);
  const body = at(doc, o.op.requestBody)?.content?.['application/json'];
  const answers = Object.entries(o.op.responses || {});
  const [code, setCode] = useState(answers[0]?.[0] || '');
  const answer = at(doc, o.op.responses?.[code]);
  const media = Object.values(answer?.content || {})[0];
  return html`<div class="body">${o.op.description && html`<p>${o.op.description}</p>`}
    ${params.length > 0 && html`<div class="stack"><p class="small strong">${words.parameters}</p>
      <dl class="facts">${params.map((p) => html`<${Parameter} doc=${doc} p=${p} />`)}</dl></div>`}
    ${body && html`<div class="stack"><p class="small strong">${words.body}</p><${Content} doc=${doc} of=${body} /></div>`}
    <div class="stack"><div class="row wrap"><p class="small strong">${words.responses}</p>
        <${Segments} label=${common.status} value=${code} onChange=${setCode} options=${answers.map(([c]) => [c, c])} />
        <${CopyCurl} url=${prefix + o.path} method=${o.method === 'get' ? undefined : o.method.toUpperCase()} body=${exampleOf(doc, body)} /></div>
      <p class="dim">${answer?.description}</p>${media && html`<${Content} doc=${doc} of=${media} />`}</div>
    ${canTry(doc, o) && html`<${TryIt} path=${o.path} params=${params.filter((p) => p.in !== 'header').map((p) => ({ ...p, usual: at(doc, p.schema)?.default }))} />`}</div>`;
}

/**
 * Returns whether an operation reads, and answers at once with JSON.
 * @param {any} doc
 * @param {any} o
 */
const canTry = (doc, o) => o.method === 'get' && o.path.startsWith('/api/') && 'application/json' in (at(doc, o.op.responses?.[200])?.content || {});

/** @param {{doc: any, p: any}} a */
const Parameter = ({ doc, p }) => html`<dt><code>${p.name}</code> <span class="small">${words.placeOf(p.in, p.required)}</span></dt>
  <dd>${p.description || ''} <span class="dim small">${typeText(doc, p.schema, 0)}</span></dd>`;

/**
 * Returns the first example of a body.
 * @param {any} doc
 * @param {any} of the body in one media type
 */
const exampleOf = (doc, of) => at(doc, Object.values(of?.examples || {})[0])?.value;

/**
 * The form of a body, and an example of it.
 * @param {{doc: any, of: any}} p `of`: the body in one media type
 */
function Content({ doc, of }) {
  const example = exampleOf(doc, of);
  return html`<pre class="code" tabindex="0">${typeText(doc, of.schema, 0)}</pre>
    ${example !== undefined && html`<p class="small strong">${words.example}</p>
      <pre class="code" tabindex="0">${typeof example === 'string' ? example : JSON.stringify(example, null, 2)}</pre>`}`;
}

/**
 * Returns a schema in short form: what a value looks like.
 * @param {any} doc
 * @param {any} schema
 * @param {number} depth
 * @returns {string}
 */
function typeText(doc, schema, depth) {
  const s = at(doc, schema);
  if (!s) return words.anything;
  if (depth > 5) return '…';
  if (s.oneOf || s.anyOf) return (s.oneOf || s.anyOf).map((x) => typeText(doc, x, depth)).join(' | ');
  if (s.allOf) return s.allOf.map((x) => typeText(doc, x, depth)).join(' & ');
  if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(' | ');
  if (s.type === 'array') return '[' + typeText(doc, s.items, depth) + ', …]';
  if (s.type === 'object' || s.properties) {
    const pad = '  '.repeat(depth + 1);
    const all = Object.entries(s.properties || {});
    if (!all.length) return s.additionalProperties && s.additionalProperties !== true ? `{…: ${typeText(doc, s.additionalProperties, depth + 1)}}` : '{…}';
    return '{\n' + all.map(([k, v]) => `${pad}${k}${s.required?.includes(k) ? '' : '?'}: ${typeText(doc, v, depth + 1)}${note(doc, v)}`).join('\n') + '\n' + '  '.repeat(depth) + '}';
  }
  return (s.type || words.anything) + (s.nullable ? ' | null' : '');
}

/** @param {any} doc @param {any} v */
const note = (doc, v) => { const d = v?.description || at(doc, v)?.description; return d ? '   // ' + d : ''; };
