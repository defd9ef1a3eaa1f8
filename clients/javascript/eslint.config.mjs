import js from '@eslint/js';
import globals from 'globals';

export default [
  { ignores: ['node_modules/', 'types/'] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2023, sourceType: 'module', globals: globals.nodeBuiltin },
  },
  { files: ['src/**/*.js'], languageOptions: { sourceType: 'commonjs', globals: globals.node } },
  {
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'max-lines': ['error', { max: 300, skipComments: true }],
      'no-var': 'error',
      'prefer-const': 'error',
    },
  },
];
