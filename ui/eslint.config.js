import js from '@eslint/js';
import globals from 'globals';
import words from './words-rule.js';

export default [
  { ignores: ['node_modules/', 'vendor/'] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: 'module', globals: { ...globals.browser } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'max-len': ['error', 200],
      'max-lines': ['error', { max: 300, skipComments: true }],
      'no-var': 'error',
      'prefer-const': 'error',
      'no-empty': ['error', { allowEmptyCatch: true }],
    },
  },
  { files: ['test/**', '*.config.js'], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
  {
    // Stories may use only what a person has.
    files: ['test/stories.js'],
    rules: {
      'no-restricted-imports': ['error', { patterns: [{ group: ['*', '!node:assert', '!node:assert/strict'], message: 'the stories have what person.js gives them' }] }],
      'no-restricted-globals': ['error', 'fetch', 'process', 'XMLHttpRequest', 'WebSocket', 'EventSource', 'globalThis', 'global', 'window'],
      'no-restricted-syntax': ['error', 'ImportExpression'],
    },
  },
  {
    // All texts that people read are in two files.
    files: ['static/**'],
    ignores: ['static/core/words.js', 'static/core/pagewords.js', 'static/core/format.js', 'static/core/rawjson.js', 'static/parts/icon.js', 'static/theme.js'],
    plugins: { millrace: { rules: { words } } },
    rules: { 'millrace/words': 'error' },
  },
  { files: ['static/core/words.js', 'static/core/pagewords.js'], rules: { 'max-lines': 'off' } },
  { files: ['static/theme.js'], rules: { 'no-var': 'off', 'no-unused-vars': 'off' } },
];
