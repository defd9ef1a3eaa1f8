#!/usr/bin/env bash
# Runs go mod tidy for all Go modules, with the client in this tree instead of the version that
# go.mod requires, which may not be released yet. So go.sum gets no checksum of that version. The
# release adds it (see CONTRIBUTING.md).
set -euo pipefail
cd "$(dirname "$0")/.."

client=github.com/millrace-jobs/millrace/clients/go
export GOWORK=off

# tidy FOLDER PATH tidies a module that requires the client, which is at that path from the folder.
tidy() (
	cd "$1"
	trap 'go mod edit -dropreplace $client' EXIT
	go mod edit -replace "$client=$2"
	go mod tidy
)

(cd clients/go && go mod tidy)
tidy clients/go/otelmillrace ..
tidy . ./clients/go
