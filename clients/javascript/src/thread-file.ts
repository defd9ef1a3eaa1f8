import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const NAMES = ['millrace-thread.js', 'millrace-thread.mjs', 'millrace-thread.cjs'];
const MISSING = `millrace: ${NAMES[0]} is not found. A bundle needs it as a second file: make millrace-jobs/thread an entry of its own, ` +
  'or keep millrace-jobs out of the bundle. See "Bundlers" in the README';

/**
 * Returns the file that the engine's thread runs. It is beside this file, or beside the bundle that
 * contains this file. If a bundle does not include it, it is in node_modules.
 */
export function threadFile(given?: string | URL, program = process.argv[1]): string | URL {
  if (given !== undefined) return given;
  const beside = [typeof __dirname === 'string' ? __dirname : undefined, program && dirname(program)].filter((directory) => !!directory) as string[];
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
