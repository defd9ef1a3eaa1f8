#!/usr/bin/env bash
# Packs a folder, with the same bytes for the same contents: scripts/release/tar.sh PARENT NAME FILE
#
# All times are SOURCE_DATE_EPOCH, and all files belong to root.
set -euo pipefail

tar --create --directory "$1" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
	--mode=u=rwX,go=rX "$2" | gzip -9 --no-name >"$3"
