#!/usr/bin/env bash
# Makes the packages for Debian, Fedora and Alpine from the archives for Linux that scripts/dist.sh
# has written into a folder. SHA256SUMS gets the checksum of each file in the folder.
#
#   scripts/linux-packages.sh FOLDER [deb] [rpm] [apk]
#
# nfpm makes them, a program in Go whose version is pinned by scripts/release/go.mod. The first run
# downloads and compiles it. One commit gives the same bytes each time.
set -euo pipefail
cd "$(dirname "$0")/.."

if (($# == 0)); then
	echo "usage: $0 FOLDER [deb] [rpm] [apk]" >&2
	exit 2
fi
folder=$(cd "$1" && pwd)
shift
(($#)) || set -- deb rpm apk
version=${VERSION:-$(scripts/version.sh)}
version=${version#v}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export CGO_ENABLED=0 TZ=UTC LC_ALL=C
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

shopt -s nullglob
archives=("$folder/millrace_${version}"_linux_*.tar.gz)
if ((!${#archives[@]})); then
	echo "$0: there is no archive for Linux of version $version in $folder: run scripts/dist.sh first" >&2
	exit 1
fi

GOWORK=off go -C scripts/release build -trimpath -o "$work/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm

# package_version KIND: the version in the form that the system sorts correctly. A version before
# another is marked by a tilde, or in Alpine by one of its few words. A commit is older than each
# release.
package_version() {
	case $1/$version in
	apk/[0-9]*.*-*)
		local release=${version%%-*} word
		word=$(sed -nE 's/^(alpha|beta|rc)[.-]?([0-9]*).*/\1\2/p' <<<"${version#*-}")
		echo "${release}_${word:-pre}"
		;;
	apk/[0-9]*.*) echo "$version" ;;
	apk/*) echo "0_git$(date --utc --date "@$SOURCE_DATE_EPOCH" +%Y%m%d)" ;;
	*/[0-9]*.*-*) sed 's/-/~/; s/-/./g' <<<"$version" ;;
	*/[0-9]*.*) echo "$version" ;;
	*) echo "0~${version//-/.}" ;;
	esac
}

# file_name KIND ARCH: the name of the package as the system itself forms it.
file_name() {
	case $1/$2 in
	deb/armv7) echo "millrace_${version}_armhf.deb" ;;
	deb/*) echo "millrace_${version}_$2.deb" ;;
	rpm/amd64) echo "millrace-$version-1.x86_64.rpm" ;;
	rpm/arm64) echo "millrace-$version-1.aarch64.rpm" ;;
	rpm/armv7) echo "millrace-$version-1.armv7hl.rpm" ;;
	apk/amd64) echo "millrace-$version.x86_64.apk" ;;
	apk/arm64) echo "millrace-$version.aarch64.apk" ;;
	apk/armv7) echo "millrace-$version.armv7.apk" ;;
	esac
}

# changelog: that of the Debian package, which each package must have.
changelog() {
	cat <<-END
		millrace ($(package_version deb)) unstable; urgency=medium

		  * https://github.com/millrace-jobs/millrace/blob/main/CHANGELOG.md says
		    what has changed.

		 -- $(sed -n 's/^maintainer: //p' deploy/packages/nfpm.yaml)  $(date --utc --rfc-email --date "@$SOURCE_DATE_EPOCH")
	END
}

# tree ARCHIVE: unpacks an archive, and changes what is different in a package. Prints the folder.
tree() {
	local dir=$work/${1##*/}
	mkdir "$dir"
	tar --extract --file "$1" --strip-components 1 --directory "$dir"
	gzip -9 --no-name "$dir"/man/man1/*
	cp deploy/packages/{millrace.yaml,worker.yaml,deb-copyright,lintian-overrides} "$dir/"
	changelog | gzip -9 --no-name >"$dir/changelog.gz"
	sed -i -s -e '1{/^# \/etc\/systemd/d}' -e 's#/usr/local/bin/#/usr/bin/#' "$dir"/systemd/*.service
	find "$dir" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
	echo "$dir"
}

for archive in "${archives[@]}"; do
	arch=${archive##*_linux_}
	arch=${arch%.tar.gz}
	TREE=$(tree "$archive")
	export TREE PACKAGE_ARCH=${arch/armv7/arm7}
	for kind in "$@"; do
		file=$(file_name "$kind" "$arch")
		echo "Making $file …"
		PACKAGE_RELEASE=
		if [[ $kind == rpm ]]; then PACKAGE_RELEASE=1; fi
		PACKAGE_VERSION=$(package_version "$kind")
		export PACKAGE_VERSION PACKAGE_RELEASE
		scripts/quietly.sh "$work/nfpm" package --config deploy/packages/nfpm.yaml --packager "$kind" --target "$folder/$file"
	done
done
scripts/release/sums.sh "$folder"
