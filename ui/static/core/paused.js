// @ts-check
import { signal } from './h.js';

/** Live updates are held back. */
export const paused = signal(false);
