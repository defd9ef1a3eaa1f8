// Package readmetest checks that the documents are correct. It has only tests.
//
// Every block of README.md, of the tutorials and of docs/without-a-library.md has an info string
// that names a file (```python file=worker.py), and is run:
//
//   - The quick start and the tutorials run with a `millrace up`. The tests compare the output with
//     the page.
//   - The programs without a library run with a broker and a sidecar, with a producer in each
//     language. The lines of the shell blocks run one by one.
//
// Links between documents must lead to a heading. Flags, environment variables, metrics, routes and
// tests that a document names must exist.
package readmetest
