#!/usr/bin/env bash
# Builds the archives for installations without a compiler, one for each system. SHA256SUMS gets the
# checksum of each file in the folder.
#
#   scripts/dist.sh FOLDER [OS/ARCH...]
#
# One commit and one Go version give the same bytes on every machine: paths are trimmed, and times
# are those of the commit. Without git, VERSION and SOURCE_DATE_EPOCH give the version and the time.
set -euo pipefail
cd "$(dirname "$0")/.."

all=(linux/amd64 linux/arm64 linux/armv7 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64)
if (($# == 0)); then
	echo "usage: $0 FOLDER [OS/ARCH...]" >&2
	exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
(($#)) || set -- "${all[@]}"
for target in "$@"; do
	if [[ " ${all[*]} " != *" $target "* ]]; then
		echo "$0: there is no archive for $target: use ${all[*]}" >&2
		exit 2
	fi
done

version=${VERSION:-$(scripts/version.sh)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export CGO_ENABLED=0 TZ=UTC LC_ALL=C
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
host=$(go env GOHOSTOS)/$(go env GOHOSTARCH)

# for_target OS ARCH COMMAND... runs a command with Go set up for a system. GOARM has no effect on
# others.
for_target() {
	local os=$1 arch=$2
	shift 2
	GOOS=$os GOARCH=${arch/armv7/arm} GOARM=7 "$@"
}

build() { # build BINARY
	go build -v -trimpath -gcflags=all=-dwarf=false -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$1" ./cmd/millrace 2>&1 | scripts/progress.sh
}

# Every archive has these files besides the binary, which writes them itself.
common() {
	echo "Building millrace ${version#v} …"
	for_target "${host%/*}" "${host#*/}" build "$work/millrace"
	mkdir -p "$work/common/completions"
	"$work/millrace" man --dir "$work/common/man/man1"
	"$work/millrace" completion bash >"$work/common/completions/millrace.bash"
	"$work/millrace" completion zsh >"$work/common/completions/_millrace"
	"$work/millrace" completion fish >"$work/common/completions/millrace.fish"
	install -m 644 LICENSE "$work/common/"
}

archive() { # archive OS ARCH
	local name=millrace_${version#v}_$1_$2 binary=millrace
	if [[ $1 == windows ]]; then binary=millrace.exe; fi
	echo "Making $name …"
	cp -r "$work/common" "$work/$name"
	if [[ $1/$2 == "$host" ]]; then
		cp "$work/millrace" "$work/$name/$binary"
	else
		for_target "$1" "$2" build "$work/$name/$binary"
	fi
	for_target "$1" "$2" scripts/licenses.sh >"$work/$name/THIRD-PARTY-LICENSES"
	case $1 in
	linux | darwin)
		if [[ $1 == linux ]]; then install -D -m 644 -t "$work/$name/systemd" deploy/*.service; fi
		scripts/release/tar.sh "$work" "$folder/$name.tar.gz" "$name"
		;;
	windows) # which has no man, and none of these shells
		rm -r "$work/$name/man" "$work/$name/completions"
		GOWORK=off go -C scripts/release run ./zip "$work" "$name" "$folder/$name.zip"
		;;
	esac
	rm -r "${work:?}/$name"
}

common
for target in "$@"; do
	archive "${target%/*}" "${target#*/}"
done
scripts/release/sums.sh "$folder"
