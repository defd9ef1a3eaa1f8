#!/usr/bin/env bash
# Runs every fuzz target for the time given, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."

# Looked for as text: `go test -list` would build the tests of all packages.
grep -ro --include='*_test.go' --exclude-dir=node_modules --exclude-dir=.cache '^func Fuzz[A-Za-z0-9_]*' . | sort |
	while IFS=: read -r file target; do
		target=${target#func }
		echo "== $(dirname "$file") $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$(dirname "$file")" </dev/null
	done
