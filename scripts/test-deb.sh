#!/usr/bin/env bash
# Installs the Debian package of a release in bare root directories of Debian, and starts it there:
#
#   scripts/test-deb.sh RELEASE_FOLDER [DEBIAN_RELEASE...]
#
# The releases are bookworm and forky by default. In each, the package is installed without a broker,
# where `millrace up` must print the command that installs one, and with the broker that it
# recommends, where the first job of `millrace up` must be done within 10 seconds. MILLRACE_TEST_SLOW
# makes that limit so many times longer, for a machine that is busy. A purge must leave nothing.
#
# Needs root. No service is started.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/debian.bash

if (($# == 0)); then
	echo "usage: $0 RELEASE_FOLDER [DEBIAN_RELEASE...]" >&2
	exit 2
fi
deb=$(ls "$1"/millrace_*_"$(dpkg --print-architecture)".deb)
shift
(($#)) || set -- bookworm forky
limit=$((10 * ${MILLRACE_TEST_SLOW:-1}))
work=$(mktemp -d)
up=
trap 'if [[ $up ]]; then kill "$up" 2>/dev/null || true; wait "$up" || true; fi; rm -rf "$work"' EXIT

fail() {
	echo "$0: $*" >&2
	exit 1
}

# files ROOT: what may be left by a package.
files() {
	(cd "$1" && find etc usr/bin usr/share usr/lib/systemd var/lib \( -path var/lib/dpkg -o -path var/lib/apt \) -prune -o -print) | sort
}

# inside runs a program in a root directory: "${inside[@]}" ROOT PROGRAM ARGUMENT... It is no
# function, so that in the background its process is that of the program.
# shellcheck disable=SC2016 # the inner shell expands it
inside=(unshare --mount bash -euc '
	root=$1
	shift
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	export HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin
	exec chroot "$root" "$@"' -)

without_broker() {
	local root=$1 log=$2 said
	mkdir -p "$root/usr/lib/systemd" "$root/var/lib/private"
	files "$root" >"$work/before"
	in_root "$root" "$log" apt-get install -y -qq --no-install-recommends /tmp/millrace.deb
	"${inside[@]}" "$root" millrace version | grep -q '^millrace v' || fail "millrace version does not run"
	said=$("${inside[@]}" "$root" millrace up 2>&1) && fail "millrace up starts without a broker"
	[[ $said == *'apt-get install rabbitmq-server'* ]] || fail "millrace up does not say what to install: $said"
	mkdir -p "$root/var/lib/private/millrace" # as systemd makes it for the service
	[[ ! -e $root/etc/systemd/system/multi-user.target.wants/millrace.service ]] || fail "the package enables the service"
	in_root "$root" "$log" apt-get purge -y -qq millrace
	files "$root" >"$work/after"
	diff "$work/before" "$work/after" || fail "a purge leaves files"
}

with_broker() {
	local root=$1 log=$2 begun took
	in_root "$root" "$log" apt-get install -y -qq /tmp/millrace.deb
	"${inside[@]}" "$root" dpkg-query --show rabbitmq-server >/dev/null || fail "the broker is not installed with the package"
	if "${inside[@]}" "$root" sh -c 'command -v gcc go python3 node ruby java' >&2; then fail "the package needs a compiler or a language"; fi
	begun=$(date +%s%N)
	"${inside[@]}" "$root" millrace up >"$work/up" 2>&1 &
	up=$!
	until grep -qE 'processed [1-9]' "$work/up"; do
		kill -0 "$up" 2>/dev/null || { cat "$work/up" >&2 && up= && fail "millrace up has ended"; }
		took=$((($(date +%s%N) - begun) / 1000000))
		((took < limit * 1000)) || { cat "$work/up" >&2 && fail "no job is done after $limit s"; }
		sleep 0.1
	done
	took=$((($(date +%s%N) - begun) / 1000000))
	echo "  first job of millrace up: $took ms"
	kill -TERM "$up"
	wait "$up" || fail "millrace up ends with exit code $?"
	up=
	in_root "$root" "$log" apt-get purge -y -qq millrace
	if "${inside[@]}" "$root" sh -c 'command -v millrace'; then fail "a purge leaves the program"; fi
}

for release in "$@"; do
	echo "Installing ${deb##*/} in a bare Debian $release …"
	root=$work/$release
	debian_root "$release" "$root" "$work/$release.log"
	cp "$deb" "$root/tmp/millrace.deb"
	without_broker "$root" "$work/$release.log"
	with_broker "$root" "$work/$release.log"
done
