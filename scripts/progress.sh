#!/usr/bin/env bash
# Reads what `go build -v` writes: counts the modules that are downloaded and the packages that are compiled, each on one line of a
# terminal or on a line now and then elsewhere, and passes on everything else.
set -euo pipefail

modules=0
packages=0
counted= # what the terminal's last line counts

# count WHAT N STEP: elsewhere than on a terminal, each STEP of them has a line.
count() {
	local what=$1 n=$2 step=$3
	if [[ -t 2 ]]; then
		if [[ $counted && $counted != "$what" ]]; then echo >&2; fi
		printf '\r  %d %s' "$n" "$what" >&2
		counted=$what
	elif ((n % step == 0)); then
		echo "  $n $what" >&2
	fi
}

while IFS= read -r line; do
	if [[ $line == 'go: downloading '* ]]; then
		modules=$((modules + 1))
		count 'modules downloaded' "$modules" 20
	elif [[ $line =~ ^[A-Za-z0-9._~/-]+$ ]]; then
		packages=$((packages + 1))
		count 'packages compiled' "$packages" 100
	else
		if [[ $counted ]]; then echo >&2; fi
		counted=
		echo "$line" >&2
	fi
done
if [[ $counted ]]; then echo >&2; fi
