#!/usr/bin/env bash
# Installs the Debian package of a release in bare root directories of Debian, and starts it there:
#
#   scripts/test-deb.sh RELEASE_FOLDER [DEBIAN_RELEASE...]
#
# The releases are bookworm and forky by default. In each, the package is installed without a broker,
# where `millrace up` must print the command that installs one, and with the broker that it
# recommends, where the first job of `millrace up` must be done within 10 seconds. MILLRACE_TEST_SLOW
# makes that limit so many times longer, for a machine that is busy. A purge must leave nothing but
# files in /etc that are the administrator's.
#
# Needs root. No service is started. The root directories are deleted, with all processes in them.
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
trap 'if [[ $up ]]; then kill "$up" 2>/dev/null || true; wait "$up" || true; fi; end_all; rm -rf "$work"' EXIT

fail() {
	echo "$0: $*" >&2
	exit 1
}

# files ROOT: what may be left by a package.
files() {
	(cd "$1" && find etc usr/bin usr/share usr/lib/systemd var/lib \( -path var/lib/dpkg -o -path var/lib/apt \) -prune -o -print) | sort
}

# end_all ends what still runs in the root directories, such as a port mapper that the broker started.
end_all() {
	local process
	for process in /proc/[0-9]*; do
		if [[ $(readlink "$process/root") == "$work"/* ]]; then kill -KILL "${process#/proc/}" || true; fi
	done 2>/dev/null
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
	local root=$1 log=$2 said wants=$1/etc/systemd/system/multi-user.target.wants
	mkdir -p "$root/usr/lib/systemd" "$root/var/lib/private" "$wants"
	files "$root" >"$work/before"
	in_root "$root" "$log" apt-get install -y -qq --no-install-recommends /tmp/millrace.deb
	"${inside[@]}" "$root" millrace version | grep -q '^millrace v' || fail "millrace version does not run"
	said=$("${inside[@]}" "$root" millrace up 2>&1) && fail "millrace up starts without a broker"
	[[ $said == *'apt-get install rabbitmq-server'* ]] || fail "millrace up does not say what to install: $said"
	echo 'detail: without a broker, millrace up says what to install'
	compgen -G "$wants/millrace*" && fail "the package enables a service"
	# As systemd and the administrator make them.
	mkdir -p "$root/var/lib/private/millrace"
	ln -s /usr/lib/systemd/system/millrace.service "$wants/"
	ln -s /usr/lib/systemd/system/millrace-worker@.service "$wants/millrace-worker@images.service"
	touch "$root/etc/millrace/amqp-password"
	in_root "$root" "$log" apt-get purge -y -qq millrace
	rm "$root/etc/millrace/amqp-password" || fail "a purge deletes a password that the package did not bring"
	rmdir "$root/etc/millrace"
	files "$root" >"$work/after"
	diff "$work/before" "$work/after" || fail "a purge leaves files"
	echo 'detail: a purge leaves nothing'
}

with_broker() {
	local root=$1 log=$2 begun took address
	in_root "$root" "$log" apt-get install -y -qq /tmp/millrace.deb
	"${inside[@]}" "$root" dpkg-query --show rabbitmq-server >/dev/null || fail "the broker is not installed with the package"
	if "${inside[@]}" "$root" sh -c 'command -v gcc go python3 node ruby java' >&2; then fail "the package needs a compiler or a language"; fi
	begun=$(date +%s%N)
	"${inside[@]}" "$root" millrace up >"$work/up" 2>&1 &
	up=$!
	until grep -qE 'processed [1-9]' "$work/up"; do
		kill -0 "$up" 2>/dev/null || { cat "$work/up" >&2 && up= && fail "millrace up has ended"; }
		took=$((($(date +%s%N) - begun) / 1000000))
		((took < 6 * limit * 1000)) || { cat "$work/up" >&2 && fail "no job is done after $((6 * limit)) s"; }
		sleep 0.1
	done
	took=$((($(date +%s%N) - begun) / 1000000))
	echo "detail: no compiler; the first job of millrace up is done after $took ms (limit $((limit * 1000)) ms)"
	((took <= limit * 1000)) || fail 'the first job took too long: on a busy machine, set MILLRACE_TEST_SLOW'
	address=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$work/up" | sed -n 1p)
	[[ $("${inside[@]}" "$root" millrace health ready --http-addr "${address#http://}") == ready* ]] || fail "millrace health ready fails"
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
