#!/usr/bin/env bash
# Builds the packages of the client libraries, as for publishing, into a directory.
#
#   scripts/packages.sh FOLDER [python] [javascript] [ruby] [java]
#
# Each is built from a copy, so that no build files remain in the sources. scripts/deps.sh and
# `make` have installed everything that the builds need. Only Maven downloads its plugins, the first
# time. One commit gives the same bytes each time: times are those of the commit.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
(($#)) || set -- python javascript ruby java
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export TZ=UTC
umask 022
copies=$(mktemp -d)
trap 'rm -rf "$copies"' EXIT

# copy LANGUAGE: prints the directory with the copy of its sources.
copy() {
	mkdir "$copies/$1"
	git ls-files -z --cached --others --exclude-standard "clients/$1" | tar --null --create --files-from - | tar --extract --strip-components 2 --directory "$copies/$1"
	chmod -R u=rwX,go=rX "$copies/$1"
	find "$copies/$1" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
	echo "$copies/$1"
}

python() {
	if ! .cache/python/bin/python -c 'import build' 2>/dev/null; then
		echo 'the Python package build is not installed in .cache/python: run `make packages`' >&2
		exit 1
	fi
	local sources sdist
	sources=$(copy python)
	.cache/python/bin/python -m build --no-isolation --outdir "$copies/built" "$sources" >/dev/null
	# setuptools writes the time of the build into the source package.
	sdist=$(basename -s .tar.gz "$copies"/built/*.tar.gz)
	tar --extract --file "$copies/built/$sdist.tar.gz" --directory "$copies"
	LC_ALL=C scripts/release/tar.sh "$copies" "$folder/$sdist.tar.gz" "$sdist"
	cp "$copies"/built/*.whl "$folder/"
}

javascript() {
	local sources
	sources=$(copy javascript)
	clients/javascript/install # installs the compiler
	ln -s "$PWD/clients/javascript/node_modules" "$sources/node_modules"
	npm pack --silent --pack-destination "$folder" "$sources" >/dev/null
}

ruby() {
	cd "$(copy ruby)"
	gem build --silent --strict --output "$folder/$(command ruby -e 'print Gem::Specification.load("millrace-jobs.gemspec").file_name')" millrace-jobs.gemspec
}

java() {
	local mvn=$PWD/scripts/mvn.sh
	cd "$(copy java)"
	"$mvn" -Prelease -DskipTests verify
	cp target/millrace-*.jar "$folder/"
	cp pom.xml "$folder/$(basename "$(ls target/millrace-*-sources.jar)" -sources.jar).pom"
}

for language in "$@"; do
	case $language in
	python | javascript | ruby | java) ("$language") ;;
	*) echo "$0: unknown language $language" >&2 && exit 2 ;;
	esac
done
