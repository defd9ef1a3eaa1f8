#!/usr/bin/env bash
# Writes SHA256SUMS, the checksum of each file in a folder: scripts/release/sums.sh FOLDER
set -euo pipefail
cd "$1"

sums=$(find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs --delimiter='\n' sha256sum)
echo "$sums" >SHA256SUMS
