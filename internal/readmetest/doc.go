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
// In the READMEs of the client libraries, a block may also be a part of a program, without a name.
// TestFragments compiles it, checks its types or runs it. No block on these pages is indented
// instead of fenced, because no test would see it.
//
// Other tests run programs in the clients' directories that do what a page says, such as
// TestRubySurvives and TestTraces.
//
// Links between documents must lead to a heading. Flags, environment variables, metrics, routes and
// tests that a document names must exist.
package readmetest
