/** The test helpers for `import`. */
import testing from './testing.js';

export const { FakeClient, InlineClient } = testing;
