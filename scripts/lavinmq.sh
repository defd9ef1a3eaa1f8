#!/usr/bin/env bash
# Builds LavinMQ from a directory with its source: scripts/lavinmq.sh SOURCE_FOLDER [FOLDER]
#
# SOURCE_FOLDER has LavinMQ's source and, in lib/, the shards that it needs (`shards install
# --production` puts them there). It is not changed. Debian forky's Crystal builds the program, in a
# root directory that is removed afterwards. FOLDER (.cache/lavinmq) gets the program, the libraries
# that it is linked with, and a script that starts it. An existing FOLDER is replaced. The script
# prints the name of the start script. To use it in tests, set
# MILLRACE_TEST_LAVINMQ=.cache/lavinmq/lavinmq.
#
# The packages come from apt's own mirror, or from DEBIAN_MIRROR. Needs root. CRYSTAL_FLAGS defaults
# to --release. With CRYSTAL_FLAGS= the build takes a third of the time.
set -euo pipefail
if (($# < 1 || $# > 2)) || [[ ! -e ${1:-}/src/lavinmq.cr ]]; then
	echo "usage: $0 SOURCE_FOLDER [FOLDER]: SOURCE_FOLDER must hold src/lavinmq.cr and lib/" >&2
	exit 2
fi
source=$(realpath "$1")
dir=$(realpath -m "${2:-$(dirname "$0")/../.cache/lavinmq}")
cd "$(dirname "$0")/.."
. scripts/debian.bash

version=$(sed -nE 's/^version: *//p' "$source/shard.yml")
root=$dir/root log=$dir/log
rm -rf "$dir"
mkdir -p "$dir/lib"
echo "building LavinMQ $version in $dir with Debian forky's Crystal (takes some minutes, and 1.5 GB while it does)" >&2
debian_root forky "$root" "$log" crystal gcc libc6-dev libevent-dev libpcre2-dev libgc-dev libssl-dev zlib1g-dev liblz4-dev
mkdir "$root/src"
cp -r "$source/src" "$source/lib" "$source/static" "$source/shard.yml" "$root/src/"
# This shard uses a variable of Crystal's library that Crystal 1.21 has renamed.
sed -i 's/io\.@writeable/io.@writable/' "$root/src/lib/amq-protocol/src/amq/protocol/table.cr"
in_root "$root" "$log" env version="$version" sh -euc '
	cd /src
	crystal build src/lavinmq.cr -o lavinmq -Dpreview_mt -Dexecution_context "$@"' - ${CRYSTAL_FLAGS---release}

# The program uses the loader and the libraries that it was built with.
cp "$root/src/lavinmq" "$dir/program"
chroot "$root" ldd /src/lavinmq | grep -oE '/[^ ]+' | sort -u | while read -r library; do
	cp -L "$root$library" "$dir/lib/"
done
cat >"$dir/lavinmq" <<END
#!/bin/sh
exec '$dir/lib/$(basename "$dir"/lib/ld-linux*)' --library-path '$dir/lib' '$dir/program' "\$@"
END
chmod 755 "$dir/lavinmq"
rm -rf "$root"
echo "$dir/lavinmq"
