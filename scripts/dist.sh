#!/usr/bin/env bash
# Builds everything for installations without a compiler: an archive for each system, a Debian
# package for each Linux, and their SHA256SUMS.
#
#   scripts/dist.sh FOLDER [OS/ARCH...]
#
# One commit and one Go version give the same bytes on every machine: paths are trimmed, and times
# are those of the commit. Without git, VERSION and SOURCE_DATE_EPOCH give the version and the time.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
(($#)) || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

version=${VERSION:-$(scripts/version.sh)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export CGO_ENABLED=0 TZ=UTC LC_ALL=C
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
built=()
host=$(go env GOHOSTOS)/$(go env GOHOSTARCH)

build() { # build BINARY
	go build -v -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$1" ./cmd/millrace 2>&1 | scripts/progress.sh
}

# Every archive has these files besides the binary, which writes them itself.
common() {
	echo "Building millrace ${version#v} …"
	GOOS=${host%/*} GOARCH=${host#*/} build "$work/millrace"
	mkdir -p "$work/common/completions"
	"$work/millrace" man --dir "$work/common/man/man1"
	"$work/millrace" completion bash >"$work/common/completions/millrace.bash"
	"$work/millrace" completion zsh >"$work/common/completions/_millrace"
	"$work/millrace" completion fish >"$work/common/completions/millrace.fish"
	install -m 644 LICENSE "$work/common/"
}

archive() { # archive OS ARCH
	local name=millrace_${version#v}_$1_$2
	echo "Making $name …"
	cp -r "$work/common" "$work/$name"
	if [[ $1/$2 == "$host" ]]; then
		cp "$work/millrace" "$work/$name/"
	else
		GOOS=$1 GOARCH=$2 build "$work/$name/millrace"
	fi
	GOOS=$1 GOARCH=$2 scripts/licenses.sh >"$work/$name/THIRD-PARTY-LICENSES"
	if [[ $1 == linux ]]; then
		install -D -m 644 deploy/millrace.service "$work/$name/systemd/millrace.service"
	fi
	tar --create --directory "$work" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX "$name" | gzip -9 --no-name >"$folder/$name.tar.gz"
	built+=("$name.tar.gz")
	if [[ $1 != linux ]]; then
		return
	elif command -v dpkg-deb >/dev/null; then
		built+=("$(scripts/deb.sh "$work/$name" "$folder" "$version" "$2")")
	else
		echo "There is no dpkg-deb here: no Debian package for $2." >&2
	fi
}

common
for target in "$@"; do
	archive "${target%/*}" "${target#*/}"
done
cd "$folder"
sha256sum "${built[@]}" >SHA256SUMS
