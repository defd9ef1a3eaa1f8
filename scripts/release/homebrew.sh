#!/usr/bin/env bash
# Writes Homebrew's formula of a release into the folder with its archives and SHA256SUMS:
#
#   scripts/release/homebrew.sh VERSION FOLDER
#
# The formula is deploy/homebrew/millrace.rb, with the version and the checksums filled in.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=$1 folder=$2
edits=(-e '1,/^$/d' -e "s/@VERSION@/$version/g")
for system in darwin_arm64 darwin_amd64 linux_arm64 linux_amd64; do
	archive=millrace_${version}_$system.tar.gz
	sum=$(awk -v name="$archive" '$2 == name { print $1 }' "$folder/SHA256SUMS")
	if [[ ! $sum ]]; then
		echo "$0: SHA256SUMS has no $archive: build it first" >&2
		exit 1
	fi
	edits+=(-e "s/@$system@/$sum/")
done
sed "${edits[@]}" deploy/homebrew/millrace.rb >"$folder/millrace.rb"
