// @ts-check
// Everything with which the UI is drawn, from one module.
import { Component, h, render, Fragment } from '../../vendor/preact.js';
import htm from '../../vendor/htm.js';

export { Component, h, render, Fragment };
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from '../../vendor/preact-hooks.js';
export { batch, signal, computed, effect, useSignal, useComputed, untracked } from '../../vendor/signals.js';

/**
 * Control characters, and characters that are invisible or change the direction of the text (DI,
 * Default_Ignorable_Code_Point, has most of these). They are shown as escapes: two names that differ
 * in such characters must not look alike.
 */
const hidden = /(?![\t\n\r])[\p{Cc}\p{DI}\p{Zl}\p{Zp}\u2800\ufff9-\ufffb]/gu;
/** Returns the escape of a character. @param {string} c */
function escapeOf(c) {
  const hex = c.codePointAt(0).toString(16).padStart(4, '0');
  return hex.length > 4 ? `\\u{${hex}}` : '\\u' + hex;
}
/** @param {any} text */
export const visible = (text) => (typeof text === 'string' && text.search(hidden) >= 0 ? text.replace(hidden, escapeOf) : text);

/** @param {any} child @returns {any} */
const shown = (child) => (Array.isArray(child) ? child.map(shown) : visible(child));

/** @type {(type: any, props: any, ...children: any[]) => any} */
function element(type, props, ...children) {
  if (props?.title) props.title = shown(props.title);
  return h(type, props, ...children.map(shown));
}

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(/** @type {any} */ (element));

/** Joins class names, without the false ones. @param {...any} names */
export const cx = (...names) => names.filter(Boolean).join(' ');
