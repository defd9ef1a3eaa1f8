#!/usr/bin/env bash
# Reads the output of `go build -v`, and counts the downloaded modules and the compiled packages. On
# a terminal it shows each count in one line. Elsewhere it prints a line from time to time. It
# passes on all other output.
set -euo pipefail

modules=0
packages=0
counted= # the subject of the terminal's last line

# count WHAT N STEP: prints a line for each STEP of them, if this is not a terminal.
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
