#!/usr/bin/env bash
# Prints the licences of the third-party code in the binary: Go's library, the modules for GOOS and
# GOARCH, and the files in ui/vendor.
set -euo pipefail
cd "$(dirname "$0")/.."

print() { # print NAME FILE...
	printf '\n==== %s\n\n' "$1"
	shift
	cat "$@"
}

echo 'The binary millrace contains parts of these projects, under these licences.'
print Go "$(go env GOROOT)/LICENSE"
go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/millrace | sort -u |
	while read -r module version dir; do
		mapfile -t files < <(find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) ! -name '*.csv' | sort)
		((${#files[@]})) || { echo "$module has no licence that can be found" >&2 && exit 1; }
		print "$module $version" "${files[@]}"
	done
for file in ui/vendor/LICENSE-*; do
	print "${file#*LICENSE-}" "$file"
done
