#!/usr/bin/env bash
# Builds a release twice, compares the bytes, and tests what was built, as root: installs the Debian
# package in bare root directories, runs the programs for other processors under emulation, renders
# the Helm chart, and starts the image's program.
#
#   scripts/test-packages.sh [RELEASE_FOLDER]
#
# With a folder, it tests that release and builds none. It takes Debian's packages from the mirror
# that apt is set up for, or from DEBIAN_MIRROR.
set -euo pipefail
cd "$(dirname "$0")/.."

if ((EUID != 0)); then
	echo "$0: root directories of Debian take root: run it with sudo" >&2
	exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if (($#)); then
	release=$(cd "$1" && pwd)
else
	release=$work/first
	scripts/release.sh 0.0.0-test "$release"
	scripts/release.sh 0.0.0-test "$work/second"
	if ! diff "$release/SHA256SUMS" "$work/second/SHA256SUMS"; then
		echo "$0: these files differ between two builds of one commit" >&2
		exit 1
	fi
	echo "Two builds have the same bytes."
fi

export GOWORK=off CGO_ENABLED=0 MILLRACE_DIST=$release MILLRACE_HELM=$work/helm
echo "Compiling helm, actionlint and the tests …"
go -C scripts/release build -o "$work/" helm.sh/helm/v3/cmd/helm github.com/rhysd/actionlint/cmd/actionlint
"$work/actionlint" -shellcheck= -pyflakes= .github/workflows/*.yml
go -C scripts/release vet ./...
go -C scripts/release test -count=1 -timeout 30m ./...
scripts/test-deb.sh "$release"
