#!/usr/bin/env bash
# Builds everything that a release consists of, on one machine and without any account:
#
#   scripts/release.sh VERSION FOLDER [PART...]
#
# VERSION is 1.2.3, or 1.2.3-rc.1 for a version before it. FOLDER must be missing or empty. The parts
# are
#
#   archives   the binary with man pages, completions and licences, for each system
#   homebrew   the formula for Homebrew, with the checksums of the archives
#   packages   the packages for Debian, Fedora and Alpine; they need the archives
#   sbom       a list of the modules in each binary, in CycloneDX's form; it needs the archives
#   image      a container image for several architectures; it needs the archives
#   plugin     the plugin for RabbitMQ
#   chart      the Helm chart
#   clients    the packages of the client libraries
#
# and by default all. SHA256SUMS has the checksum of each file. One commit gives the same bytes each
# time: paths are trimmed, and times are those of the commit.
set -euo pipefail
cd "$(dirname "$0")/.."

if (($# < 2)); then
	echo "usage: $0 VERSION FOLDER [archives] [homebrew] [packages] [sbom] [image] [plugin] [chart] [clients]" >&2
	exit 2
fi
version=${1#v} folder=$2
shift 2
(($#)) || set -- archives homebrew packages sbom image plugin chart clients

if [[ ! $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$ ]]; then
	echo "$0: invalid version \"$version\": use three numbers, such as 1.2.3, or 1.2.3-rc.1 for a version before it" >&2
	exit 2
fi
for part in "$@"; do
	case $part in
	homebrew | packages | sbom | image)
		if [[ " $* " != *" archives "* ]]; then
			echo "$0: the part $part is made from the archives: name the part archives before it" >&2
			exit 2
		fi
		;;
	archives | plugin | chart | clients) ;;
	*) echo "$0: unknown part $part" >&2 && exit 2 ;;
	esac
done
if [[ -e $folder && $(ls -A "$folder") ]]; then
	echo "$0: $folder is not empty: delete it first, because a release must not contain files of another one" >&2
	exit 1
fi
clients=$(sed -nE 's/^const Version = "(.*)"$/\1/p' clients/go/config.go)
if [[ $version != *-* && $clients != "$version" ]]; then
	echo "$0: the client libraries have version $clients: run scripts/set-version.sh $version, and commit that" >&2
	exit 1
fi
if [[ $version != *-* && $(git status --porcelain --untracked-files=no) ]]; then
	echo "$0: there are changes that are not committed: commit them, or use a version with a suffix, such as $version-test" >&2
	exit 1
fi

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
export VERSION=v$version CGO_ENABLED=0 TZ=UTC LC_ALL=C
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# tool PACKAGE: compiles a program at the version that scripts/release/go.mod has, and prints its
# path.
tool() {
	local program=$work/tools/${1##*/}
	mkdir -p "$work/tools"
	GOWORK=off go -C scripts/release build -trimpath -o "$program" "$1"
	echo "$program"
}

# unpacked: unpacks the archives, and prints the folders. Their names end with the system.
unpacked() {
	local archive
	if [[ ! -e $work/unpacked ]]; then
		mkdir "$work/unpacked"
		for archive in "$folder/millrace_${version}"_*.tar.gz; do tar --extract --file "$archive" --directory "$work/unpacked"; done
		for archive in "$folder/millrace_${version}"_*.zip; do
			[[ ! -e $archive ]] || python3 -m zipfile -e "$archive" "$work/unpacked"
		done
		chmod 755 "$work"/unpacked/*/millrace{,.exe} 2>/dev/null || true
	fi
	printf '%s\n' "$work"/unpacked/*
}

archives() {
	scripts/dist.sh "$folder"
}

homebrew() {
	echo "Making millrace.rb …"
	scripts/release/homebrew.sh "$version" "$folder"
}

packages() {
	scripts/linux-packages.sh "$folder"
}

sbom() {
	local program tree binary
	program=$(tool github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod)
	for tree in $(unpacked); do
		echo "Making ${tree##*/}.cdx.json …"
		binary=$tree/millrace
		if [[ ! -e $binary ]]; then binary+=.exe; fi
		scripts/quietly.sh "$program" bin -json -noserial -notimestamp -std -version "v$version" -output "$folder/${tree##*/}.cdx.json" "$binary"
	done
}

# The image is a folder in the layout of the OCI image specification, packed into one file.
image() {
	local program tree binaries=()
	program=$(tool ./image)
	for tree in $(unpacked); do
		case $tree in
		*_linux_*) binaries+=("${tree##*_}=$tree/millrace") ;;
		esac
	done
	echo "Making millrace_${version}_image.tar …"
	"$program" -version "$version" -revision "$(git rev-parse HEAD)" "$work/image" "${binaries[@]}"
	scripts/release/tar.sh "$work/image" "$folder/millrace_${version}_image.tar" blobs index.json oci-layout
}

plugin() {
	scripts/plugin.sh "$folder"
}

# In the repository, the chart has links to the alerts and the dashboard.
chart() {
	echo "Making millrace-chart-$version.tgz …"
	mkdir "$work/chart"
	cp -rL deploy/helm/millrace "$work/chart/"
	sed -i -e "s/^version: .*/version: $version/" -e "s/^appVersion: .*/appVersion: \"$version\"/" "$work/chart/millrace/Chart.yaml"
	scripts/release/tar.sh "$work/chart" "$folder/millrace-chart-$version.tgz" millrace
}

clients() {
	echo "Building the packages of the client libraries, version $clients …"
	scripts/packages.sh "$folder"
}

for part in "$@"; do "$part"; done

scripts/release/sums.sh "$folder"
