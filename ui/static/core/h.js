// @ts-check
// One place for what everything is drawn with.
import { Component, h, render, Fragment } from '../../vendor/preact.js';
import htm from '../../vendor/htm.js';

export { Component, h, render, Fragment };
export { useEffect, useLayoutEffect, useMemo, useRef, useState, useCallback } from '../../vendor/preact-hooks.js';
export { signal, computed, effect, batch, useSignal, useComputed, useSignalEffect, untracked } from '../../vendor/signals.js';

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(/** @type {any} */ (h));

/** Class names, of which those that are false are left out. @param {...any} names */
export const cx = (...names) => names.filter(Boolean).join(' ');
