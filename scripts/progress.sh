#!/usr/bin/env bash
# Reads what `go build -v` writes: counts the packages on one line of a terminal, or on a line each hundred elsewhere, and
# passes on everything else.
set -euo pipefail

packages=0
counted=
while IFS= read -r line; do
	if [[ $line =~ ^[A-Za-z0-9._~/-]+$ ]]; then
		packages=$((packages + 1))
		if [[ -t 2 ]]; then
			printf '\r  %d packages compiled' "$packages" >&2
			counted=yes
		elif ((packages % 100 == 0)); then
			echo "  $packages packages compiled" >&2
		fi
	else
		if [[ $counted ]]; then echo >&2; fi
		counted=
		echo "$line" >&2
	fi
done
if [[ $counted ]]; then echo >&2; fi
