#!/usr/bin/env bash
# Installs bunny 3 from Debian forky, with forky's Ruby: scripts/bunny3.sh [FOLDER]
#
# bunny 3.4 needs Ruby 3.2, and Debian 12 has Ruby 3.1. FOLDER (.cache/bunny3) gets a root directory,
# and in bin/ a Ruby that sees this machine's files in the working directory, the repository and the
# folder of temporary files. With MILLRACE_RUBY=.cache/bunny3/bin/ruby, the Ruby programs of
# `make conformance` run on it. The script prints the name of that Ruby. It does nothing else if that
# exists already.
#
# The packages come from apt's own mirror, or from DEBIAN_MIRROR. Needs root. Mounts last only as
# long as a program runs, and are not visible to other programs.
set -euo pipefail
dir=$(realpath -m "${1:-$(dirname "$0")/../.cache/bunny3}")
cd "$(dirname "$0")/.."
. scripts/debian.bash

if [[ -e $dir/ready ]]; then
	echo "$dir/bin/ruby"
	exit
fi
rm -rf "$dir"
mkdir -p "$dir/bin"
echo "setting bunny 3 up in $dir, from Debian forky (once; takes a minute or two, and 300 MB)" >&2
debian_root forky "$dir/root" "$dir/log" ruby ruby-bunny
cp /etc/hosts "$dir/root/etc/hosts" # localhost has to be known

# The program sees the folders at the same paths. FOLDER can be moved.
cat >"$dir/bin/ruby" <<'END'
#!/bin/bash
export MILLRACE_ROOT
MILLRACE_ROOT=$(cd "$(dirname "$0")/../root" && pwd)
exec unshare --mount bash -euc '
	root=$MILLRACE_ROOT
	unset MILLRACE_ROOT
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	for folder in "${TMPDIR:-/tmp}" "$PWD"; do
		if [[ $folder == /dev/* ]]; then continue; fi
		mkdir -p "$root$folder"
		mount --rbind "$folder" "$root$folder"
	done
	exec chroot "$root" /bin/sh -c "cd \"\$0\" && exec ruby \"\$@\"" "$PWD" "$@"' - "$@"
END
chmod 755 "$dir/bin/ruby"
version=$("$dir/bin/ruby" -e 'require "bunny"; print Bunny::VERSION')
if [[ $version != 3.* ]]; then
	echo "Debian forky has bunny $version, not 3" >&2
	exit 1
fi
touch "$dir/ready"
echo "$dir/bin/ruby"
