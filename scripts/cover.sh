#!/usr/bin/env bash
# Runs the tests, and prints the share of statements that each package's own tests execute. It fails
# if the total is below the limit. The profile is in coverage/ (go tool cover
# -html=coverage/all.out).
set -euo pipefail
cd "$(dirname "$0")/.."

limit=90
mkdir -p coverage
# The benchmarks, the conformance runner with its workers, and the examples are left out. They are
# not shipped, and running them is their test.
(($#)) || set -- ./... ./clients/go/...
mapfile -t packages < <(go list "$@" | grep -vE '/bench(/|$)|/conformance(/|$)|/examples/')
go test -timeout 30m -coverprofile=coverage/all.out "${packages[@]}" >coverage/test.log || {
	cat coverage/test.log
	exit 1
}

# A line of the profile: file.go:from,to statements times
awk -v limit="$limit" -v module="$(GOWORK=off go list -m)/" '
	NR == 1 { next }
	{
		file = $1; sub(/:[^:]*$/, "", file)
		package = file; sub(/\/[^\/]*$/, "", package); sub(module, "", package)
		all[package] += $2
		if ($3 > 0) covered[package] += $2
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
