// @ts-check
import { signal } from './h.js';

/** Whether live updates are held back. */
export const paused = signal(false);
