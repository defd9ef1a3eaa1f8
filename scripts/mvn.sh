#!/usr/bin/env bash
# Runs Maven in the working directory, quietly, with the local repository .cache/maven. All versions
# are pinned, and none is a snapshot, so nothing is downloaded twice.
set -euo pipefail
cache=$(cd "$(dirname "$0")/.." && pwd)/.cache/maven
if [[ ! -e $cache ]]; then echo "installing from Maven Central into .cache/maven: what clients/java needs" >&2; fi
export MAVEN_OPTS="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 ${MAVEN_OPTS:-}"
exec mvn --quiet --batch-mode "-Dmaven.repo.local=$cache" "$@"
