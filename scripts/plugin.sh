#!/usr/bin/env bash
# Builds the plugin for RabbitMQ: scripts/plugin.sh FOLDER
#
# It needs erlc and an installed RabbitMQ, whose plugins' folder has the headers and behaviours; or
# RABBITMQ_PLUGINS names that folder. It prints the name of the file. One commit and one version of
# Erlang give the same bytes on every machine. Without git, VERSION and SOURCE_DATE_EPOCH give the
# version and the time.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1"
folder=$(cd "$1" && pwd)
build=${VERSION:-$(scripts/version.sh)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export TZ=UTC LC_ALL=C.UTF-8
umask 022

# Erlang finds an application's files only if its version has the form 1.2.3.
version=$(sed -nE 's/^v?([0-9]+\.[0-9]+\.[0-9]+).*/\1/p' <<<"$build")
version=${version:-0.0.0}
name=rabbitmq_millrace-$version

libraries=${RABBITMQ_PLUGINS:-$(ls -d /usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins 2>/dev/null | sort -V | head -1 || true)}
if [[ -z $libraries ]] || ! command -v erlc >/dev/null; then
	echo "the plugin needs erlc and RabbitMQ's files: run \`apt-get install erlang-base rabbitmq-server\`" >&2
	exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$name/ebin"
cp -r broker/rabbitmq_millrace/priv "$work/$name/"

# The sources are compiled by relative names, which the compiler keeps.
(
	cd broker/rabbitmq_millrace
	ERL_LIBS=$libraries erlc +deterministic -Werror -pa "$(echo "$libraries"/rabbitmq_management-*/ebin)" -o "$work/$name/ebin" src/*.erl
)
modules=$(basename -s .erl broker/rabbitmq_millrace/src/*.erl | paste -sd ,)
sed -e "s/{vsn, \"0\"}/{vsn, \"$version\"}/" -e "s/{modules, \[\]}/{modules, [$modules]}/" -e "s/{build, \"\"}/{build, \"${build#v}\"}/" \
	broker/rabbitmq_millrace/src/rabbitmq_millrace.app.src >"$work/$name/ebin/rabbitmq_millrace.app"

cd "$work"
chmod -R u=rwX,go=rX "$name"
find "$name" -exec touch --date "@$SOURCE_DATE_EPOCH" {} +
files=$(find "$name" -type f | sort | sed 's/.*/"&"/' | paste -sd ,)
erl -noshell -eval "{ok, _} = zip:create(\"$name.ez\", [$files]), halt()."
mv "$name.ez" "$folder/"
echo "$folder/$name.ez"
