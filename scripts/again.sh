#!/usr/bin/env bash
# Runs a command. If it fails and RERUN is set, as in CI, says so and runs it once more.
set -euo pipefail
if "$@"; then exit; fi
if [[ ! ${RERUN:-} ]]; then exit 1; fi
printf '\nFailed: %s\nrunning it once more\n' "$*"
exec "$@"
