#!/usr/bin/env bash
# Packs files and folders, with the same bytes for the same contents:
#
#   scripts/release/tar.sh PARENT FILE NAME...
#
# FILE is compressed if its name ends with gz. All times are SOURCE_DATE_EPOCH, and all files belong to
# root.
set -euo pipefail

parent=$1 file=$2
shift 2
compress=(gzip -9 --no-name)
if [[ $file != *gz ]]; then compress=(cat); fi
tar --create --directory "$parent" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
	--mode=u=rwX,go=rX "$@" | "${compress[@]}" >"$file"
