/** The test helpers for `import`. */
export { Attempt, Fake, Inline } from './testing.js';
export type * from './testing.js';
