// The package as npm would publish it, in projects of other kinds.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const home = fileURLToPath(new URL('..', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'millrace-package-'));
after(() => rmSync(root, { recursive: true }));

function run(command, args, cwd = root) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  assert.equal(status, 0, `${command} ${args.join(' ')}: ${error ?? ''}${stdout}${stderr}`);
  return stdout;
}

/** Returns a project into which the packed archive is installed. */
function project(name, files) {
  const directory = join(root, name);
  const installed = join(directory, 'node_modules', 'millrace-jobs');
  mkdirSync(installed, { recursive: true });
  const archive = run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', root], home).trim();
  run('tar', ['xzf', join(root, archive), '--strip-components=1', '-C', installed]);
  for (const each of ['amqplib', '@types']) symlinkSync(join(home, 'node_modules', each), join(directory, 'node_modules', each));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    writeFileSync(join(directory, file), text);
  }
  return directory;
}

test('the archive has the licence, and no more than what is needed', () => {
  const [{ files }] = JSON.parse(run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], home));
  const names = files.map((file) => file.path);
  assert.deepEqual(names.filter((name) => !/^dist\/[\w/-]+\.(m?js|d\.m?ts)$/.test(name)).sort(), ['LICENSE', 'README.md', 'package.json']);
  assert.equal(readFileSync(join(home, 'LICENSE'), 'utf8'), readFileSync(join(home, '../../LICENSE'), 'utf8'));
});

test('what is exported is what is declared, for require and for import', async () => {
  for (const [name, file] of [['index', 'millrace-jobs'], ['testing', 'millrace-jobs/testing'], ['otel', 'millrace-jobs/otel'], ['nest', 'millrace-jobs/nest']]) {
    const text = readFileSync(join(home, 'dist', `${name}.d.mts`), 'utf8');
    const declared = new Set(text.match(/^export \{([^}]*)\}/m)[1].split(',').map((each) => each.trim()).filter(Boolean));
    assert.deepEqual(Object.keys(createRequire(import.meta.url)(file)).sort(), [...declared].sort());
    assert.deepEqual(Object.keys(await import(file)).sort(), [...declared].sort());
  }
});

const stops = `
  const silent = { info() {}, warn: () => worker.stop(), error() {} };
  const worker = new Worker({ url: 'amqp://guest:guest@127.0.0.1:1/', logger: silent });
  worker.run().then(() => console.log('stopped'), (error) => console.log(error.message));
`;

test('CommonJS and ES modules have the same classes, also where Node cannot require an ES module', () => {
  const directory = project('modules', {
    'a.cjs': `const { Discard, Worker } = require('millrace-jobs');
      const { Fake } = require('millrace-jobs/testing');
      import('millrace-jobs').then((esm) => console.log(esm.Discard === Discard, esm.Worker === Worker, typeof Fake));`,
    'b.cjs': `const { Worker } = require('millrace-jobs'); ${stops}`,
  });
  // A Node that does not know the flag does not have the feature. Jest does not have it either.
  const flag = '--no-experimental-require-module';
  const flags = process.allowedNodeEnvironmentFlags.has('--experimental-require-module') ? [flag] : [];
  assert.equal(run(process.execPath, [...flags, 'a.cjs'], directory), 'true true function\n');
  assert.equal(run(process.execPath, [...flags, 'b.cjs'], directory), 'stopped\n');
});

// A test for Jest. Jest runs it in a context that has classes of its own, such as Error and Date.
const inJest = `
  test('a worker of the test helpers', async () => {
    const worker = new Worker();
    const ran = [];
    worker.handle('Greet', async (job) => { ran.push([...job.args, job.attempt]); });
    worker.handle('Fail', async () => { throw new TypeError('on purpose'); });
    await new Inline(worker).enqueue('Greet', ['Ann']);
    const fake = new Fake(worker);
    await fake.enqueueAt(new Date(), 'Greet', [new Date(0)]);
    await fake.drain();
    expect(ran).toEqual([['Ann', 1], ['1970-01-01T00:00:00.000Z', 1]]);
    await fake.enqueue('Fail');
    await expect(fake.drain()).rejects.toThrow(TypeError);
    await expect(fake.enqueue('')).rejects.toThrow(Invalid);
  });

  test('a client without a broker', async () => {
    const client = new Client({ url: 'amqp://guest:guest@127.0.0.1:1/', failFast: true });
    await expect(client.enqueue('Greet')).rejects.toThrow(Unreachable);
    await client.close();
  });

  test('the thread of a worker', async () => {
    const worker = new Worker({ url: 'amqp://guest:guest@127.0.0.1:1/', logger: { info() {}, warn: () => worker.stop(), error() {} } });
    await worker.run();
  });
`;

test('tests run in Jest, with require and with import', () => {
  const names = ['{ Client, Invalid, Unreachable, Worker }', '{ Fake, Inline }'];
  const directory = project('jest', {
    'package.json': '{}',
    'a.test.cjs': `const ${names[0]} = require('millrace-jobs'); const ${names[1]} = require('millrace-jobs/testing'); ${inJest}`,
    'b.test.mjs': `import ${names[0]} from 'millrace-jobs'; import ${names[1]} from 'millrace-jobs/testing'; ${inJest}`,
  });
  const jest = join(home, '../../.cache/jest/node_modules/jest/bin/jest.js');
  assert.ok(existsSync(jest), 'make test-javascript installs Jest');
  const said = run(process.execPath, ['--experimental-vm-modules', jest, '--ci', '--json', '--cacheDirectory', join(root, 'jest-cache')], directory);
  assert.equal(JSON.parse(said).numPassedTests, 6);
});

test('TypeScript finds the types with every module resolution, and refuses what would be refused at run time', () => {
  const typed = readFileSync(new URL('types/consumer.ts', import.meta.url), 'utf8');
  const directory = project('typescript', { 'a.mts': typed, 'a.cts': typed, 'a.ts': typed });
  const check = (version, ...args) => run(process.execPath, [join(home, 'node_modules', version, 'bin', 'tsc'), '--noEmit', '--strict',
    '--skipLibCheck', String(version === 'typescript5'), '--target', 'es2023', '--types', 'node', ...args], directory);
  check('typescript5', '--module', 'commonjs', '--moduleResolution', 'node10', 'a.ts');
  check('typescript5', '--module', 'node16', '--moduleResolution', 'node16', 'a.mts', 'a.cts');
  check('typescript5', '--module', 'esnext', '--moduleResolution', 'bundler', 'a.ts');
  check('typescript', '--module', 'nodenext', 'a.mts', 'a.cts');
});

test('a worker runs from a bundle', async () => {
  const directory = project('bundled', { 'src/app.js': `import { Worker } from 'millrace-jobs'; ${stops}` });
  const bundle = (format, more) => build({
    absWorkingDir: directory, bundle: true, platform: 'node', format, outdir: 'dist', logLevel: 'error', ...more,
    ...(format === 'esm' && { outExtension: { '.js': '.mjs' }, banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' } }),
  });
  const alone = (name, ...files) => {
    for (const file of files) cpSync(join(directory, 'dist', file), join(root, name, file), { recursive: true });
    return run(process.execPath, [files[0]], join(root, name));
  };

  await bundle('cjs', { entryPoints: ['src/app.js'] });
  assert.equal(run(process.execPath, ['dist/app.js'], directory), 'stopped\n', 'the thread runs from node_modules');
  assert.match(alone('forgotten', 'app.js'), /millrace-thread.js is not found.*make millrace-jobs\/thread an entry of its own/);

  // The README's command, with this program.
  const [line] = readFileSync(join(home, 'README.md'), 'utf8').match(/^esbuild .*$/m);
  const [, ...args] = line.replace('src/worker.js', 'src/app.js').split(' ');
  run(join(home, 'node_modules/.bin/esbuild'), [...args, '--log-level=error'], directory);
  assert.equal(alone('command', 'app.js', 'millrace-thread.js'), 'stopped\n');

  const entryPoints = { app: 'src/app.js', 'millrace-thread': 'millrace-jobs/thread' };
  await bundle('cjs', { entryPoints });
  assert.equal(alone('commonjs', 'app.js', 'millrace-thread.js'), 'stopped\n');
  await bundle('esm', { entryPoints });
  assert.equal(alone('modules-alone', 'app.mjs', 'millrace-thread.mjs'), 'stopped\n');
});

test('a worker refuses the thread of another version', async () => {
  const directory = project('versions', {
    'old.js': `Object.assign(require('millrace-jobs/package.json'), { version: '0.0.1' }); require('millrace-jobs/thread');`,
    'late.js': `const { Worker } = require('millrace-jobs');
      new Worker({ url: 'amqp://127.0.0.1:1', thread: require.resolve('./old.js') }).run().catch((error) => console.log(error.message));`,
  });
  assert.match(run(process.execPath, ['late.js'], directory), /the worker is of version [\d.]+, and the file of its thread of version 0\.0\.1/);
});
