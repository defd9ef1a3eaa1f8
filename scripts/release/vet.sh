#!/usr/bin/env bash
# Runs go vet's checks on the packages of the binary and of the Go client, for each system that a
# release is for, and for a 32-bit processor:
#
#   scripts/release/vet.sh GOLANGCI-LINT
#
# golangci-lint can leave the tests out, which use system calls of Linux. go vet cannot.
set -euo pipefail
cd "$(dirname "$0")/../.."

root=$(go list -m -f '{{.Dir}}' | sed -n 1p)
export CGO_ENABLED=0
for target in linux/amd64 linux/arm darwin/arm64 windows/amd64; do
	export GOOS=${target%/*} GOARCH=${target#*/}
	mapfile -t packages < <(go list -deps -f '{{with .Module}}{{if .Main}}{{$.Dir}}{{end}}{{end}}' ./cmd/millrace ./clients/go/... ./clients/go/otelmillrace)
	"$1" run --allow-serial-runners --tests=false --enable-only=govet "${packages[@]/#$root/.}"
	echo "detail: $target"
done
