import js from '@eslint/js';
import globals from 'globals';

export default [
  { ignores: ['node_modules/', 'vendor/'] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: 'module', globals: { ...globals.browser } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'max-lines': ['error', { max: 300, skipComments: true }],
      'no-var': 'error',
      'prefer-const': 'error',
      'no-empty': ['error', { allowEmptyCatch: true }],
    },
  },
  { files: ['test/**', '*.config.js'], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
  {
    // The stories are told with what a person has: no way leads around that.
    files: ['test/stories.js'],
    rules: {
      'no-restricted-imports': ['error', { patterns: [{ group: ['*', '!node:assert', '!node:assert/strict'], message: 'the stories have what person.js gives them' }] }],
      'no-restricted-globals': ['error', 'fetch', 'process', 'XMLHttpRequest', 'WebSocket', 'EventSource', 'globalThis', 'global', 'window'],
      'no-restricted-syntax': ['error', 'ImportExpression'],
    },
  },
  { files: ['static/theme.js'], rules: { 'no-var': 'off', 'no-unused-vars': 'off' } },
];
