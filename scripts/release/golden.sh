#!/usr/bin/env bash
# Writes the golden files of the Helm chart again: scripts/release/golden.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/release.sh 0.0.0-test "$work/dist" chart
export GOWORK=off CGO_ENABLED=0 MILLRACE_DIST=$work/dist MILLRACE_HELM=$work/helm
go -C scripts/release build -o "$work/" helm.sh/helm/v3/cmd/helm
go -C scripts/release test -count=1 ./disttest -run '^TestChartIsUnchanged$' -update
