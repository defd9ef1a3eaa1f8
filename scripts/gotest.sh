#!/usr/bin/env bash
# Runs go test, with the given arguments, on the packages that standard input names.
#
# If RERUN is set, as in CI, failed tests are run once more, unless there are many. They are listed
# at the end in any case: a test that passes only the second time has a fault, or has found one.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=$(sort | awk '/\/(scheduler|cmd\/millrace|internal\/readmetest)$/ { print; next } { rest = rest $0 "\n" } END { printf "%s", rest }') # the slowest packages come first
[[ $packages ]] || exit 0
arguments=(-shuffle=on -timeout 30m -p "$(($(nproc) + 1))" "$@") # most tests wait most of the time
if [[ ! ${RERUN:-} ]]; then
	# shellcheck disable=SC2086 # a word for each package
	exec go test "${arguments[@]}" $packages
fi
version=v1.13.0
gotestsum=$PWD/.cache/bin/gotestsum-$version
if [[ ! -x $gotestsum ]]; then
	echo "installing gotestsum $version into .cache/bin"
	mkdir -p .cache/bin
	GOBIN=$PWD/.cache/bin go install gotest.tools/gotestsum@$version
	mv .cache/bin/gotestsum "$gotestsum"
fi
exec "$gotestsum" --format pkgname --format-hide-empty-pkg --rerun-fails=1 --rerun-fails-max-failures=10 \
	--packages="$(xargs <<<"$packages")" -- "${arguments[@]}"
