#!/usr/bin/env bash
# Runs a command, and shows its output only if it fails.
set -euo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
code=0
"$@" >"$log" 2>&1 || code=$?
if ((code)); then
	echo "$1 failed with exit code $code:" >&2
	cat "$log" >&2
fi
exit "$code"
