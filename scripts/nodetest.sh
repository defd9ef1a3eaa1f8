#!/usr/bin/env bash
# Runs node --test in the working directory: nodetest.sh REPORTER FILES.
#
# If RERUN is set, as in CI, failed tests are run once more, unless there are many, and are listed in
# any case.
set -euo pipefail
reporter=$1
shift
results=$(mktemp)
trap 'rm -f "$results"' EXIT
run() {
	node --test --test-reporter="$reporter" --test-reporter-destination=stdout \
		--test-reporter=tap --test-reporter-destination="$results" "$@"
}
if run "$@"; then exit; fi
if [[ ! ${RERUN:-} ]]; then exit 1; fi
mapfile -t failed < <(sed -nE '/^ *not ok [0-9]+ - /{s///; s/\\([\\#])/\1/g; p}' "$results" | sort -u)
printf '\nFailed:\n'
printf '%s\n' "${failed[@]}"
if ((${#failed[@]} == 0 || ${#failed[@]} > 10)); then exit 1; fi
echo "running them once more"
# A file fails by itself if an error comes after its tests have passed.
files=()
tests=()
for name in "${failed[@]}"; do
	if [[ -f $name ]]; then files+=("$name"); else tests+=("$name"); fi
done
if ((${#files[@]})); then run "${files[@]}"; fi
if ((${#tests[@]} == 0)); then exit; fi
names=$(printf '%s\n' "${tests[@]}" | sed -E 's/[][\\.*^$+?(){}|/]/\\&/g' | paste -sd '|')
run --test-name-pattern="^($names)\$" "$@"
passed=$(grep -E '^ *ok ' "$results" | grep -vc ' # SKIP')
((passed >= ${#tests[@]})) || { echo "only $passed of ${#tests[@]} tests were found again" && exit 1; }
