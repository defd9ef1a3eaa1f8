#!/usr/bin/env bash
# Checks that the machine has the named tools, or all of them: go node npm python git make. Reports
# what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()

# want NAME MINIMUM WHERE VERSION: VERSION is the installed version, or empty.
want() {
	local name=$1 minimum=$2 where=$3 version=$4
	if [[ -z $version ]]; then
		missing+=("$name $minimum or newer is not installed ($where)")
	elif [[ $(printf '%s\n%s\n' "$minimum" "$version" | sort -V | head -n 1) != "$minimum" ]]; then
		missing+=("$name $version is too old, $minimum or newer is needed ($where)")
	fi
}

# numbers COMMAND...: the first dotted number in the output of the command.
numbers() { { "$@" 2>/dev/null || true; } | { grep -oE '[0-9]+(\.[0-9]+)+' || true; } | head -n 1; }

(($#)) || set -- go node npm python git make
for tool in "$@"; do
	case $tool in
	go) want Go 1.26 https://go.dev/dl "$(numbers go version)" ;;
	node) want Node 20 https://nodejs.org "$(numbers node --version)" ;;
	npm) want npm 9 'it comes with Node' "$(numbers npm --version)" ;;
	python) want Python 3.11 'package python3' "$(numbers python3 --version)" ;;
	git) want git 2 'package git' "$(numbers git --version)" ;;
	make) want make 4 'package make' "$(numbers make --version)" ;;
	*) echo "$0: unknown tool $tool" >&2 && exit 2 ;;
	esac
done

if ((${#missing[@]})); then
	printf 'missing: %s\n' "${missing[@]}" >&2
	exit 1
fi
