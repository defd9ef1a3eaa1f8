/** The version of this library. Bundlers include the file. */
export const { version: VERSION } = require('../package.json') as { version: string };
