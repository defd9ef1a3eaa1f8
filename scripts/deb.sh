#!/usr/bin/env bash
# Makes a Debian package from an unpacked archive, and prints its name: scripts/deb.sh TREE FOLDER
# VERSION ARCH. scripts/dist.sh calls it.
set -euo pipefail
cd "$(dirname "$0")/.."

tree=$1 folder=$2 version=${3#v} arch=$4
if [[ $version != [0-9]*.* ]]; then version=0~$version; fi # a commit: older than each release
package=millrace_${version}_$arch.deb
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

put() { # put MODE FILE PLACE
	install -D -m "$1" "$2" "$root/$3"
}

put 755 "$tree/millrace" usr/bin/millrace
for page in "$tree"/man/man1/*; do
	put 644 "$page" "usr/share/man/man1/${page##*/}"
done
gzip -9 --no-name "$root"/usr/share/man/man1/*
put 644 "$tree/completions/millrace.bash" usr/share/bash-completion/completions/millrace
put 644 "$tree/completions/_millrace" usr/share/zsh/vendor-completions/_millrace
put 644 "$tree/completions/millrace.fish" usr/share/fish/vendor_completions.d/millrace.fish
put 644 "$tree/LICENSE" usr/share/doc/millrace/copyright
put 644 "$tree/THIRD-PARTY-LICENSES" usr/share/doc/millrace/THIRD-PARTY-LICENSES
put 644 deploy/debian/millrace.yaml etc/millrace/millrace.yaml
mkdir -p "$root/usr/lib/systemd/system"
sed -e '1{/^# \/etc\/systemd/d}' -e 's#/usr/local/bin/#/usr/bin/#' "$tree/systemd/millrace.service" >"$root/usr/lib/systemd/system/millrace.service"

for script in postinst prerm postrm; do
	put 755 "deploy/debian/$script" "DEBIAN/$script"
done
echo /etc/millrace/millrace.yaml >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<END
Package: millrace
Version: $version
Architecture: $arch
Maintainer: The Millrace authors <https://github.com/millrace-jobs/millrace>
Installed-Size: $(du --summarize --apparent-size --block-size=1024 "$root" | cut -f 1)
Suggests: rabbitmq-server
Section: net
Priority: optional
Homepage: https://github.com/millrace-jobs/millrace
Description: background jobs on RabbitMQ and LavinMQ
 Millrace schedules the jobs that any program publishes as JSON, retries them, and shows
 what happened: in a web UI, a REST API, on the command line and as Prometheus metrics.
END
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$root" "$folder/$package" >/dev/null
echo "$package"
