// The modules of src, and what they import, also only for types.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import ts from 'typescript5';

const home = fileURLToPath(new URL('../src', import.meta.url));
const modules = new Map();
for (const file of readdirSync(home, { recursive: true, encoding: 'utf8' }).filter((name) => /\.m?ts$/.test(name))) {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(home, file), 'utf8'));
  const own = importedFiles.map(({ fileName }) => fileName).filter((name) => name.startsWith('.'));
  modules.set(file, own.map((name) => normalize(join(file, '..', name)).replace(/js$/, 'ts')));
}

/** Returns a circle of modules that a path of imports leads into, or undefined. */
function circle(file, path = [], done = new Set()) {
  if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
  if (done.has(file)) return undefined;
  for (const imported of modules.get(file)) {
    const found = circle(imported, [...path, file], done);
    if (found) return found;
  }
  done.add(file);
  return undefined;
}

test('no modules import each other in a circle', () => {
  assert.ok(modules.get('engine/task.ts').includes('engine/session.ts'), 'imports of types count too');
  for (const file of modules.keys()) assert.equal(circle(file)?.join(' imports '), undefined);
});
