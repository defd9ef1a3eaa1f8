#!/usr/bin/env bash
# Runs go test, with the given arguments, on the packages that standard input names: AT_ONCE of them
# at a time. At the end it lists what failed, or appends that to the file SUMMARY.
#
# If RERUN is set, as in CI, tests run in a random order. Failed ones are run once more, unless there
# are many, and are listed in any case: a test that passes only the second time has a fault, or has
# found one. Otherwise the order is fixed, so that go test does not repeat what has not changed.
set -euo pipefail
cd "$(dirname "$0")/.."

# The packages that take longest come first, so that none of them runs alone at the end.
slowest='scheduler cmd/millrace internal/readmetest streams broker clients/gotest internal/doctor bench httpapi internal/chaos internal/devup'
all=$(sort)
packages=$({
	for name in $slowest; do grep -E "/$name\$" <<<"$all" || true; done
	echo "$all"
} | awk '!listed[$0]++')
[[ $packages ]] || exit 0
arguments=(-timeout 30m -p "${AT_ONCE:-$(($(nproc) + 1))}" "$@") # most tests wait most of the time
if [[ ! ${RERUN:-} ]]; then
	output=$(mktemp)
	trap 'rm -f "$output"' EXIT
	status=0
	# shellcheck disable=SC2086 # a word for each package
	go test "${arguments[@]}" $packages | tee "$output" || status=$?
	if ((status)); then
		{
			printf '\nFailed:\n'
			grep -E '^ *--- FAIL|^FAIL\s|^panic:' "$output" || true
		} >>"${SUMMARY:-/dev/stdout}"
	fi
	exit "$status"
fi
version=v1.13.0
gotestsum=$PWD/.cache/bin/gotestsum-$version
if [[ ! -x $gotestsum ]]; then
	echo "installing gotestsum $version into .cache/bin"
	mkdir -p .cache/bin
	new=$(mktemp -d .cache/bin/gotestsum-XXXXXX) # another run of this script may install it too
	GOBIN=$PWD/$new go install gotest.tools/gotestsum@$version
	mv "$new/gotestsum" "$gotestsum"
	rmdir "$new"
fi

# The linters have the checks of go vet. The compiler collects its garbage less often, which saves a
# seventh of its time; the tests collect theirs as usual.
GOGC=400 exec "$gotestsum" --format pkgname --format-hide-empty-pkg --rerun-fails=1 --rerun-fails-max-failures=10 \
	--packages="$(xargs <<<"$packages")" -- -vet=off -exec 'env -u GOGC' -shuffle=on "${arguments[@]}"
