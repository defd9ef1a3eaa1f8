/** Of this library. Bundlers take the file along. */
export const { version: VERSION } = require('../package.json') as { version: string };
