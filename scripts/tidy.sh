#!/usr/bin/env bash
# Runs go mod tidy on both Go modules, with the client as it is here in place of the version that go.mod requires, which may not be
# released yet. So go.sum gets no sum of that version: the release writes it (see CONTRIBUTING.md).
set -euo pipefail
cd "$(dirname "$0")/.."

client=github.com/millrace-jobs/millrace/clients/go
export GOWORK=off
(cd clients/go && go mod tidy)
trap 'go mod edit -dropreplace $client' EXIT
go mod edit -replace "$client=./clients/go"
go mod tidy
