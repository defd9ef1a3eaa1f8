#!/usr/bin/env bash
# Runs the tests and prints the share of statements that each package's own tests execute; those of
# httpapi also count for the packages below it, which they reach through the server. Fails when the
# total is below the limit. The profile stays in coverage/ (go tool cover -html=coverage/all.out).
set -euo pipefail
cd "$(dirname "$0")/.."

limit=90
mkdir -p coverage
# The benchmarks, the conformance runner with its workers, and the examples are left out. They are
# not shipped, and running them is their test.
(($#)) || set -- ./... ./clients/go/... ./clients/go/otelmillrace
mapfile -t packages < <(go list "$@" | grep -vE '/bench(/|$)|/conformance(/|$)|/examples/')
mapfile -t below < <(printf '%s\n' "${packages[@]}" | grep -E '/httpapi(/|$)')
mapfile -t others < <(printf '%s\n' "${packages[@]}" | grep -vE '/httpapi(/|$)')
cover() { # profile, arguments
	go test -timeout 30m -coverprofile="coverage/$1" "${@:2}" >>coverage/test.log || {
		cat coverage/test.log
		exit 1
	}
}
: >coverage/test.log
echo "mode: set" >coverage/all.out
if ((${#others[@]})); then
	cover others.out "${others[@]}"
	tail -n +2 coverage/others.out >>coverage/all.out
fi
if ((${#below[@]})); then
	cover httpapi.out -coverpkg=./httpapi/... "${below[@]}"
	tail -n +2 coverage/httpapi.out >>coverage/all.out
fi

# A line of the profile: file.go:from,to statements times
awk -v limit="$limit" -v module="$(GOWORK=off go list -m)/" '
	NR == 1 { next }
	{
		file = $1; sub(/:[^:]*$/, "", file)
		package = file; sub(/\/[^\/]*$/, "", package); sub(module, "", package)
		if (!($1 in seen)) all[package] += $2 # several tests may reach a statement
		seen[$1]
		if ($3 > 0 && !($1 in reached)) { covered[package] += $2; reached[$1] }
	}
	END {
		for (p in all) {
			printf "%-28s %6d %6.1f %%%s\n", p, all[p], 100 * covered[p] / all[p], covered[p] / all[p] < limit / 100 ? "  below " limit : "" | "sort"
			total += all[p]; done += covered[p]
		}
		close("sort")
		printf "%-28s %6d %6.1f %%\n", "total", total, 100 * done / total
		exit done / total < limit / 100
	}' coverage/all.out
