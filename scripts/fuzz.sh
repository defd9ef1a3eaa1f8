#!/usr/bin/env bash
# Runs every fuzz target for the given time, one after another. Under ten seconds there is no time to
# learn from coverage. So the script does not compile the targets again with instrumentation for it,
# which takes a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$(go env GOCACHE)/fuzz

# If the time ends while a worker is busy, Go sometimes reports a failure. Then the log has this
# message and no failing input.
timed_out() {
	grep -q 'context deadline exceeded' "$work/log" && ! grep -q 'Failing input' "$work/log"
}

instrumented=(-fuzz .)
[[ $1 =~ ^[0-9]s$ ]] && instrumented=()

# Finds the targets as text: `go test -list` would build the tests of all packages.
targets=$(grep -ro --include='*_test.go' --exclude-dir=node_modules --exclude-dir=.cache --exclude-dir=.build '^func Fuzz[A-Za-z0-9_]*' . | sort)
for folder in $(cut -d : -f 1 <<<"$targets" | xargs -n 1 dirname | sort -u); do
	go test -c "${instrumented[@]}" -o "$work/test" "$folder"
	package=$(go list "$folder")
	fuzz() { # target, time
		(cd "$folder" && exec "$work/test" -test.run '^$' -test.fuzz "^$1\$" -test.fuzztime "$2" -test.fuzzcachedir "$cache/$package") </dev/null 2>&1 | tee "$work/log"
	}
	for target in $(grep "^$folder/[^/]*:" <<<"$targets" | sed 's/.*func //'); do
		echo "== $folder $target"
		fuzz "$target" "$1" || { timed_out && fuzz "$target" "$1"; }
	done
done
