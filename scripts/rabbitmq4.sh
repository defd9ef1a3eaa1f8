#!/usr/bin/env bash
# Sets RabbitMQ 4 up, from Debian forky, in .cache/rabbitmq4: a root folder of its own, and in bin/ the three programs that a private node
# is made of. MILLRACE_TEST_RABBITMQ=.cache/rabbitmq4/bin then has the tests and `millrace up` run that RabbitMQ, each on free ports of
# 127.0.0.1, as they run the installed one. Prints that folder; where it is there already that is all.
#
# Needs root: debootstrap and chroot do. Nothing is mounted for longer than a program runs, and nothing is seen outside of it.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$PWD/.cache/rabbitmq4
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

if [[ -e $dir/ready ]]; then
	echo "$dir/bin"
	exit
fi
if [[ $(id -u) != 0 ]]; then
	echo "setting RabbitMQ 4 up takes root (for debootstrap and chroot): run 'sudo scripts/rabbitmq4.sh'" >&2
	exit 1
fi
if [[ ! ${DEBOOTSTRAP_DIR:-} ]] && ! command -v debootstrap >/dev/null; then
	echo "installing debootstrap" >&2
	scripts/apt-install.sh debootstrap >&2
fi

rm -rf "$dir"
mkdir -p "$dir/bin"
echo "setting RabbitMQ 4 up in .cache/rabbitmq4, from Debian forky (once; takes some minutes, and 600 MB)" >&2
# forky is made as sid is; an older debootstrap knows no more than that. It leaves /proc mounted.
script=${DEBOOTSTRAP_DIR:-/usr/share/debootstrap}/scripts/sid
unshare --mount "${DEBOOTSTRAP:-debootstrap}" --variant=minbase forky "$dir/root" "$mirror" "$script" >"$dir/log" 2>&1 || {
	tail -n 20 "$dir/log" >&2
	exit 1
}
# No service is started for a package, whatever it wants.
printf '#!/bin/sh\nexit 101\n' >"$dir/root/usr/sbin/policy-rc.d"
chmod 755 "$dir/root/usr/sbin/policy-rc.d"
unshare --mount bash -euc "
	mount -t proc proc '$dir/root/proc'
	mount --rbind /dev '$dir/root/dev'
	export DEBIAN_FRONTEND=noninteractive
	chroot '$dir/root' apt-get install -y -qq --no-install-recommends rabbitmq-server" >>"$dir/log" 2>&1 || {
	tail -n 20 "$dir/log" >&2
	exit 1
}
rm -f "$dir/root/var/cache/apt/archives/"*.deb

# A program sees the node's own folder, which is its HOME, where it is.
wrap() {
	cat >"$dir/bin/$1" <<END
#!/bin/bash
exec unshare --mount bash -euc '
	root=\$1 program=\$2
	shift 2
	mount -t proc proc "\$root/proc"
	mount --rbind /dev "\$root/dev"
	if [[ \$HOME == /tmp/* ]]; then mount -t tmpfs tmpfs "\$root/tmp"; fi
	mkdir -p "\$root\$HOME"
	mount --bind "\$HOME" "\$root\$HOME"
	exec chroot "\$root" "\$program" "\$@"' - '$dir/root' '$2' "\$@"
END
	chmod 755 "$dir/bin/$1"
}
wrap rabbitmq-server /usr/lib/rabbitmq/bin/rabbitmq-server
wrap rabbitmqctl /usr/lib/rabbitmq/bin/rabbitmqctl
wrap epmd /usr/bin/epmd
touch "$dir/ready"
echo "$dir/bin"
