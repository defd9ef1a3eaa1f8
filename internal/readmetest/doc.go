// Package readmetest holds the documents to their word. It has tests only.
//
// Every block of README.md whose info string names a file (```python file=worker.py) is taken out and run: the programs against a
// broker with a sidecar beside it, in each language, the shell blocks line by line. Links between documents must lead somewhere; flags,
// environment variables, metrics, routes and tests that a document names must exist.
package readmetest
