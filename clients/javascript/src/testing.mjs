/** The test helpers for `import`. */
import testing from './testing.js';

export const { Attempt, Fake, Inline } = testing;
