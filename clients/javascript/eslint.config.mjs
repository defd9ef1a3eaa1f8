import js from '@eslint/js';
import globals from 'globals';

export default [
  // ESLint does not read TypeScript. It checks the compiled sources. The compiler checks the
  // originals, with the rules in tsconfig.json.
  { ignores: ['node_modules/', '.build/', '**/*.d.ts', '**/*.d.mts'] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2023, sourceType: 'module', globals: globals.nodeBuiltin },
  },
  { files: ['dist/**/*.js'], languageOptions: { sourceType: 'commonjs', globals: globals.node } },
  {
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'max-lines': ['error', { max: 300, skipComments: true }],
      'no-var': 'error',
      'prefer-const': 'error',
    },
  },
  { files: ['dist/index.js'], rules: { 'no-var': 'off' } }, // the compiler's re-exports
];
