#!/usr/bin/env bash
# Runs every fuzz target for the time given, one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT

fuzz() { # target, time, package
	go test -run '^$' -fuzz "^$1\$" -fuzztime "$2" "$3" </dev/null 2>&1 | tee "$log"
}

# Go now and then takes the end of the time, while a worker is busy, for a failure: it says this, and has no input that failed.
timed_out() {
	grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"
}

# Looked for as text: `go test -list` would build the tests of all packages.
grep -ro --include='*_test.go' --exclude-dir=node_modules --exclude-dir=.cache '^func Fuzz[A-Za-z0-9_]*' . | sort |
	while IFS=: read -r file target; do
		target=${target#func }
		echo "== $(dirname "$file") $target"
		fuzz "$target" "$1" "$(dirname "$file")" || { timed_out && fuzz "$target" "$1" "$(dirname "$file")"; }
	done
