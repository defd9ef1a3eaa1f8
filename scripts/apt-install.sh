#!/usr/bin/env bash
# Installs Debian packages, as root, without starting a service. Nothing runs that did not run
# before, now or after the next boot. No running service is stopped or restarted.
#
# Debian asks /usr/sbin/policy-rc.d before it starts, stops or restarts a service for a package.
# This script puts a policy there that denies everything during the installation. However the script
# ends, it puts the previous policy back.
set -euo pipefail

policy=/usr/sbin/policy-rc.d
kept=$policy.before-millrace
mark='# Written by scripts/apt-install.sh of Millrace for the time of one installation.'

deny_starts() {
	# A policy with this mark was left by a run that was killed. It must not be kept.
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

# enabled: the units that the next boot starts; none without systemd.
enabled() {
	command -v systemctl >/dev/null || return 0
	systemctl --root=/ list-unit-files --state=enabled --no-legend --plain | cut -d ' ' -f 1 | sort
}

exec 9>/run/lock/millrace-apt-install
flock 9 # two runs at a time would save each other's policy
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
