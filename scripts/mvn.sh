#!/usr/bin/env bash
# Runs Maven in the working directory, quietly, with a local repository of our own, .cache/maven. All versions are pinned, and none is a
# snapshot: what has been fetched once is never asked for again.
set -euo pipefail
cache=$(cd "$(dirname "$0")/.." && pwd)/.cache/maven
if [[ ! -e $cache ]]; then echo "installing from Maven Central into .cache/maven: what clients/java needs" >&2; fi
export MAVEN_OPTS="-XX:+UseSerialGC -XX:TieredStopAtLevel=1 ${MAVEN_OPTS:-}"
exec mvn --quiet --batch-mode "-Dmaven.repo.local=$cache" "$@"
