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
services=(rabbitmq-server.service epmd.service epmd.socket)

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

# state SERVICE: enabled, disabled, ..., or empty if there is no such service or no systemd.
state() { systemctl is-enabled "$1" 2>/dev/null || true; }

exec 9>/run/lock/millrace-apt-install
flock 9 # two at a time would keep each other's policy
declare -A before
for service in "${services[@]}"; do before[$service]=$(state "$service"); done
trap allow_starts EXIT
trap 'exit 130' INT TERM HUP
deny_starts

export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
apt-get update -qq
apt-get install -y -qq --no-install-recommends --no-upgrade -o Dpkg::Use-Pty=0 "$@"

# Installing a service also enables it for the next boot.
for service in "${services[@]}"; do
	if [[ ! ${before[$service]} && $(state "$service") == enabled ]]; then
		systemctl disable --quiet "$service"
	fi
done
