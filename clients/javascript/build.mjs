// Compiles src into dist, unless dist is up to date. npm runs this before it packs or installs this
// folder, before tests, and before linting.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TSC = 'node_modules/typescript/bin/tsc';
const STAMP = '.build/stamp'; // the state of src from which dist was compiled

process.chdir(fileURLToPath(new URL('.', import.meta.url)));

/**
 * Runs a command. Its output goes to stderr, because the output of `npm pack --json` is on stdout.
 */
function run(command, args, options) {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 2, 2], ...options });
  if (status === 0) return;
  console.error(`millrace-jobs: ${[command, ...args].join(' ')} failed${error ? `: ${error.message}` : ''}`);
  process.exit(1);
}

function hashOfSources() {
  const sources = readdirSync('src', { recursive: true, encoding: 'utf8' }).map((name) => join('src', name)).filter((file) => statSync(file).isFile());
  const hash = createHash('sha256');
  for (const file of [...sources.sort(), 'tsconfig.json', 'package-lock.json']) {
    hash.update(`${file}\n`).update(readFileSync(file));
  }
  return hash.digest('hex');
}

const wanted = hashOfSources();
const isDone = () => existsSync('dist') && existsSync(STAMP) && readFileSync(STAMP, 'utf8') === wanted;

if (!isDone()) {
  // When npm installs this folder into another project, it does not install the compiler.
  if (!existsSync(TSC)) run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { shell: process.platform === 'win32' });
  mkdirSync('.build', { recursive: true });
  const compiled = mkdtempSync('.build/dist-');
  process.on('exit', () => rmSync(compiled, { recursive: true, force: true }));
  run(process.execPath, [TSC, '-p', '.', '--outDir', compiled]);
  // Tests of several packages begin at the same time, so another one may have compiled first.
  if (!isDone()) {
    rmSync('dist', { recursive: true, force: true });
    renameSync(compiled, 'dist');
    writeFileSync(STAMP, wanted);
  }
}
