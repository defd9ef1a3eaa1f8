#!/usr/bin/env bash
# The version that the binary carries: the tag, or the commit, or "dev" outside of git.
set -euo pipefail
cd "$(dirname "$0")/.."
git describe --tags --match "v*" --always --dirty 2>/dev/null || echo dev
