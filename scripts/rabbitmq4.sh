#!/usr/bin/env bash
# Installs RabbitMQ 4 from Debian: scripts/rabbitmq4.sh [FOLDER [RELEASE]]
#
# RELEASE is forky, which has RabbitMQ 4.3, or trixie, which has 4.0. FOLDER (.cache/rabbitmq4) gets a root directory, and in bin/ the three programs of a private node.
# With MILLRACE_TEST_RABBITMQ=.cache/rabbitmq4/bin, the tests and `millrace up` run this RabbitMQ
# instead of the installed one, each node on free ports of 127.0.0.1. The script prints FOLDER/bin.
# It does nothing else if that exists already.
#
# The packages come from apt's own mirror, or from DEBIAN_MIRROR. Needs root. Mounts last only as
# long as a program runs, and are not visible to other programs.
set -euo pipefail
dir=$(realpath -m "${1:-$(dirname "$0")/../.cache/rabbitmq4}")
release=${2:-forky}
cd "$(dirname "$0")/.."
. scripts/debian.bash

# Debian allows transient queues. RabbitMQ itself refuses them by default since 4.3.
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
echo "setting RabbitMQ 4 up in $dir, from Debian $release (once; takes some minutes, and 600 MB)" >&2
debian_root "$release" "$dir/root" "$dir/log" rabbitmq-server
as_upstream

# The program sees its node's directory, which is its HOME, at the same path. FOLDER can be moved.
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
