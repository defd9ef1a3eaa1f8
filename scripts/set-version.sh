#!/usr/bin/env bash
# Gives all client libraries a version, wherever it is written: scripts/set-version.sh 0.2.0
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ! ${1:-} =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]; then
	echo "usage: $0 VERSION (three numbers, such as 0.2.0)" >&2
	exit 2
fi
version=$1

# places PATTERN FILE... writes the version wherever the pattern has an @. The pattern is an extended
# regular expression without groups.
places() {
	local before=${1%@*} after=${1#*@}
	shift
	sed -Ezi "s#($before)[0-9]+\.[0-9]+\.[0-9]+($after)#\1$version\2#g" "$@"
}

places 'const [vV]ersion = "@"' clients/go/config.go internal/readmetest/packages_test.go
places '/clients/go v@' go.mod go.work clients/go/otelmillrace/go.mod
places '__version__ = "@"' clients/python/src/millrace_jobs/_version.py
places "VERSION = '@'" clients/ruby/lib/millrace/version.rb
places 'millrace-jobs-@\.gem' clients/ruby/README.md docs/tutorials/ruby.md
places '"name": "millrace-jobs",\s+"version": "@"' clients/javascript/package.json clients/javascript/package-lock.json
places '<artifactId>millrace</artifactId>\s+<version>@' clients/java/pom.xml clients/java/README.md docs/tutorials/java.md
places 'OF_LIBRARY = "@"' clients/java/src/main/java/io/github/millracejobs/Version.java
places 'worker started  version=@' clients/java/src/test/java/io/github/millracejobs/BrokerTest.java
