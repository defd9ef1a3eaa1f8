// Package readmetest holds the documents to their word. It has tests only.
//
// Every block of README.md, of the tutorials and of docs/without-a-library.md has an info string that names a file (```python
// file=worker.py), and is run. Quick start and tutorials are followed beside a `millrace up`, and what the page shows is compared with what
// appears; the programs without a library run against a broker with a sidecar beside it, with a producer in each language, the shell
// blocks line by line. Links between documents must lead somewhere; flags, environment variables, metrics, routes and tests that a document
// names must exist.
package readmetest
