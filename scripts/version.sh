#!/usr/bin/env bash
# Prints the version for the binary: the tag, or the commit, or "dev" without git.
set -euo pipefail
cd "$(dirname "$0")/.."
git describe --tags --match "v*" --always --dirty 2>/dev/null || echo dev
