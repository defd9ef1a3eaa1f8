#!/usr/bin/env bash
# Sets RabbitMQ 4 up, from Debian forky: scripts/rabbitmq4.sh [FOLDER]
#
# FOLDER (.cache/rabbitmq4) gets a root folder of its own, and in bin/ the three programs that a
# private node is made of. MILLRACE_TEST_RABBITMQ=.cache/rabbitmq4/bin then has the tests and
# `millrace up` run that RabbitMQ, each on free ports of 127.0.0.1, as they run the installed one.
# Prints FOLDER/bin, and does nothing else where it is there already.
#
# The packages come from apt's own mirror, or from DEBIAN_MIRROR. Needs root. Nothing is mounted for
# longer than a program runs, and nothing is seen outside of it.
set -euo pipefail
dir=$(realpath -m "${1:-$(dirname "$0")/../.cache/rabbitmq4}")
cd "$(dirname "$0")/.."
. scripts/forky.bash

# Debian allows transient queues, which RabbitMQ itself refuses by default from 4.3 on.
as_upstream() {
	mkdir -p "$dir/root/etc/rabbitmq/conf.d"
	echo 'deprecated_features.permit.transient_nonexcl_queues = false' >"$dir/root/etc/rabbitmq/conf.d/upstream.conf"
}

if [[ -e $dir/ready ]]; then
	as_upstream
	echo "$dir/bin"
	exit
fi
rm -rf "$dir"
mkdir -p "$dir/bin"
echo "setting RabbitMQ 4 up in $dir, from Debian forky (once; takes some minutes, and 600 MB)" >&2
forky_root "$dir/root" "$dir/log" rabbitmq-server
as_upstream

# A program sees the node's own folder, which is its HOME, where it is. The whole may be moved to another place.
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
	exec chroot "\$root" "\$program" "\$@"' - "\$(cd "\$(dirname "\$0")/../root" && pwd)" '$2' "\$@"
END
	chmod 755 "$dir/bin/$1"
}
wrap rabbitmq-server /usr/lib/rabbitmq/bin/rabbitmq-server
wrap rabbitmqctl /usr/lib/rabbitmq/bin/rabbitmqctl
wrap epmd /usr/bin/epmd
touch "$dir/ready"
echo "$dir/bin"
