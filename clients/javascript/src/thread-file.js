'use strict';

const { existsSync } = require('node:fs');
const { createRequire } = require('node:module');
const { dirname, join } = require('node:path');

const NAMES = ['millrace-thread.js', 'millrace-thread.mjs', 'millrace-thread.cjs'];
const MISSING = `millrace: ${NAMES[0]} is not found. A bundle needs it as a second file: make millrace-jobs/thread an entry of its own, ` +
  'or keep millrace-jobs out of the bundle. See "Bundlers" in the README';

/**
 * The file that the engine's thread runs. It is beside this one, or beside the bundle that has this one; or a bundle has left it in
 * node_modules.
 */
function threadFile(given, program = process.argv[1]) {
  if (given !== undefined) return given;
  const beside = [typeof __dirname === 'string' ? __dirname : undefined, program && dirname(program)].filter(Boolean);
  const found = beside.flatMap((directory) => NAMES.map((name) => join(directory, name))).find((file) => existsSync(file));
  if (found) return found;
  for (const directory of [...beside, process.cwd()]) {
    try {
      return createRequire(join(directory, 'any')).resolve('millrace-jobs/thread');
    } catch {
      // It is not installed there.
    }
  }
  throw new Error(MISSING);
}

module.exports = { threadFile };
