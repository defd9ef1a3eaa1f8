#!/usr/bin/env bash
# Installs Debian packages, as root, without starting a service: neither now nor at the next boot does
# anything run that did not run before, and nothing that runs is stopped or restarted.
#
# Debian asks /usr/sbin/policy-rc.d before it starts, stops or restarts a service for a package. Ours
# denies everything while we install; what was there before is put back however this script ends.
set -euo pipefail

policy=/usr/sbin/policy-rc.d
kept=$policy.before-millrace
mark='# Written by scripts/apt-install.sh of Millrace for the time of one installation.'

deny_starts() {
	# One that carries our mark was left by a run that was killed: it is not to be kept.
	if [[ -e $policy ]] && ! grep -qF "$mark" "$policy"; then
		mv -f "$policy" "$kept"
	fi
	printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy"
	chmod 755 "$policy"
}

allow_starts() {
	rm -f "$policy"
	if [[ -e $kept ]]; then mv -f "$kept" "$policy"; fi
}

# enabled: the units that the next boot starts; none where there is no systemd.
enabled() {
	command -v systemctl >/dev/null || return 0
	systemctl --root=/ list-unit-files --state=enabled --no-legend --plain | cut -d ' ' -f 1 | sort
}

exec 9>/run/lock/millrace-apt-install
flock 9 # two at a time would keep each other's policy
before=$(enabled)
trap allow_starts EXIT
trap 'exit 130' INT TERM HUP
deny_starts

export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
here=$(dirname "$0")
"$here/quietly.sh" apt-get update -qq
"$here/quietly.sh" apt-get install -y -qq --no-install-recommends --no-upgrade -o Dpkg::Use-Pty=0 "$@"

# Installing a service also enables it for the next boot.
comm -13 <(echo "$before") <(enabled) | while read -r unit; do
	if [[ $unit ]]; then systemctl --root=/ disable --quiet "$unit"; fi
done
