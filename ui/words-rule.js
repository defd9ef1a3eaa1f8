// An ESLint rule: all texts that people read are in static/core/words.js or pagewords.js, not in the pages, so that each thing has one name.

/** Attributes that people read or hear. */
const read = new Set(['title', 'label', 'aria-label', 'placeholder', 'alt', 'caption', 'what', 'summary']);
/** Attributes whose values are never text. */
const never = new Set(['class', 'id', 'style', 'href', 'd', 'key', 'name', 'icon']);
/** Members whose values people read. */
const members = new Set(['label', 'title', 'verb', 'text', 'hint', 'did', 'toText', 'placeholder', 'summary']);

const letters = /\p{L}/u;
/** A word with a capital, two words, or a word that is put before or behind something. */
const sentence = /^[A-Z][a-z]|[A-Za-z]{2,}[,:;.’']? [a-z]{2,}|^ [a-z]{2,}|[a-z]{2,} $/;
/** Keys, headers and the like, which only look like words. */
const others = /^(?:Arrow(?:Up|Down|Left|Right)|Enter|Escape|Backspace|Tab|Home|End|Shift|Accept|Content-Type|Millrace-Version|X-Reason)$|sans-serif$|^-H '/;
/** What these are given is no text. */
const calls = /^(?:cx|closest|querySelector(?:All)?|addEventListener|matchMedia|matches|getItem|get|set|has|startsWith|endsWith|includes|split|join|replaceAll|replace|createElement|setAttribute)$/;

/** @param {string} text */
const reads = (text) => sentence.test(text) && !others.test(text.trim());

/** Percentiles are names of their own. @param {string} text */
const isName = (text) => /^p\d+$/.test(text);

/** The attribute that an expression of a template is the value of; '' if it stands between tags. @param {any} template @param {number} index */
function attributeOf(template, index) {
  const before = template.quasis.slice(0, index + 1).map((/** @type {any} */ q) => q.value.raw).join('\0');
  return inTag(before) ? /([\w-]+)=["']?$/.exec(before)?.[1] || '' : '';
}

/** Whether a place of a template is within a tag. @param {string} before */
const inTag = (before) => before.lastIndexOf('<') > before.replaceAll('=>', '  ').lastIndexOf('>');

/** Text between tags, and attributes that people read, that stand in a template. @param {any} node @returns {{text: string, from: number, to: number, attribute: string, whole: boolean}[]} */
export function textsOf(node) {
  const found = [];
  let before = '';
  node.quasi.quasis.forEach((/** @type {any} */ q, /** @type {number} */ n) => {
    const raw = q.value.raw;
    const start = q.range[0] + 1;
    const parts = /<\/?|\/?>|([\w-]+)="([^"]*)"|[^<>]+?(?=<|>|[\w-]+="|$)/gs;
    let tag = inTag(before);
    for (const m of raw.matchAll(parts)) {
      const at = start + m.index;
      if (m[0][0] === '<') tag = true;
      else if (m[0].endsWith('>') && tag) tag = false;
      else if (tag) {
        if (m[1] && read.has(m[1]) && letters.test(m[2])) found.push({ text: m[2], from: at + m[1].length + 2, to: at + m[0].length - 1, attribute: m[1], whole: true });
      } else if (letters.test(m[0].replace(/&\w+;|\\u[0-9a-f]{4}/g, ''))) {
        const [first, last] = [m.index === 0 && n > 0, m.index + m[0].length === raw.length && n < node.quasi.quasis.length - 1];
        found.push({ text: m[0], from: at, to: at + m[0].length, attribute: '', whole: !first && !last });
      }
    }
    before += raw + '\0';
  });
  return found;
}

/** Whether a string is text that people read. @param {any} node @param {string} text */
export function isText(node, text) {
  if (!/\p{L}{2}|^\p{Lu}/u.test(text) && !reads(text) || isName(text)) return false;
  let from = node;
  let alone = true; // it is what an expression gives, not a part of something else
  for (let at = node.parent; at; from = at, at = at.parent) {
    if (at.type === 'CallExpression' && at.callee.name === 'plural' && alone) return true;
    if (/^(?:Import|Export)(?!DefaultDecl|NamedDecl)/.test(at.type) && at.source === from) return false;
    if (at.type === 'Property') return at.value === from && (members.has(at.key.name) || (reads(text) && !never.has(at.key.name)));
    if (at.type === 'BinaryExpression' && /^(?:[=!]==?|in)$/.test(at.operator)) return false;
    if (at.type === 'SwitchCase' || (at.type === 'MemberExpression' && at.property === from)) return false;
    if (at.type === 'CallExpression' && at.callee !== from && calls.test(at.callee.property?.name || at.callee.name || '')) return false;
    if (at.type === 'TemplateLiteral' && at.parent.type === 'TaggedTemplateExpression') {
      const index = at.expressions.indexOf(from);
      if (at.quasis[index].value.raw.endsWith('<')) return false; // the name of an element
      const attribute = attributeOf(at, index);
      const said = reads(text) || (alone && /^[a-z]{2,}$/.test(text));
      return attribute ? (read.has(attribute) && alone) || (reads(text) && !never.has(attribute)) : said;
    }
    alone &&= at.type === 'ConditionalExpression' || at.type === 'LogicalExpression';
    if (/Function|Statement|Declaration/.test(at.type)) break;
  }
  return reads(text);
}

export default {
  meta: { type: 'problem', schema: [], messages: { own: '“{{text}}” belongs in static/core/words.js or pagewords.js' } },
  create: (/** @type {any} */ context) => {
    const report = (/** @type {any} */ node, /** @type {string} */ text) => context.report({ node, messageId: 'own', data: { text: text.trim().slice(0, 60) } });
    return {
      TaggedTemplateExpression(/** @type {any} */ node) {
        if (node.tag.name === 'html') for (const t of textsOf(node)) context.report({ loc: { start: context.sourceCode.getLocFromIndex(t.from),
          end: context.sourceCode.getLocFromIndex(t.to) }, messageId: 'own', data: { text: t.text.trim().slice(0, 60) } });
      },
      Literal(/** @type {any} */ node) {
        if (typeof node.value === 'string' && isText(node, node.value)) report(node, node.value);
      },
      TemplateLiteral(/** @type {any} */ node) {
        if (node.parent.type === 'TaggedTemplateExpression') return;
        const text = node.quasis.map((/** @type {any} */ q) => q.value.cooked).join('0');
        if (isText(node, text)) report(node, text);
      },
    };
  },
};
