// Package disttest tests what scripts/release.sh has built. The variable MILLRACE_DIST names the
// folder, and MILLRACE_HELM the program helm; `make test-packages` sets both. The tests need root,
// Debian, and the programs that scripts/test-packages.sh installs.
package disttest
