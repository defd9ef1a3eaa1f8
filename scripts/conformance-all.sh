#!/usr/bin/env bash
# Runs every client library through every scenario on each broker, and then each language with the
# other drivers that it supports: scripts/conformance-all.sh [ARGUMENT...]. The arguments are those
# of `make conformance`.
#
# The brokers are the installed RabbitMQ, RabbitMQ 4 (scripts/rabbitmq4.sh), and LavinMQ if
# MILLRACE_TEST_LAVINMQ names its program. `make conformance` uses the newest pika, Debian's bunny,
# and the versions of amqplib, amqp-client and amqp091-go that the clients' own files name. This
# script adds the oldest and newest drivers that clients/conformance/README.md lists. It reports what
# it leaves out, and lists the failed runs at the end. A driver that cannot be downloaded is a failed
# run.
set -uo pipefail
cd "$(dirname "$0")/.."
lavinmq=${MILLRACE_TEST_LAVINMQ:-}
unset MILLRACE_TEST_LAVINMQ MILLRACE_TEST_RABBITMQ
failed=()
left=()

# take NAME COMMAND... does one run.
take() {
	local name=$1
	shift
	printf '\n=== %s\n' "$name"
	"$@" || failed+=("$name")
}

take 'the installed RabbitMQ' go run ./clients/conformance "$@"
if rabbitmq4=$(scripts/rabbitmq4.sh); then
	take 'RabbitMQ 4' env MILLRACE_TEST_RABBITMQ="$rabbitmq4" go run ./clients/conformance "$@"
else
	failed+=('RabbitMQ 4 (it could not be set up)')
fi
if [[ $lavinmq ]]; then
	take 'LavinMQ' env MILLRACE_TEST_LAVINMQ="$lavinmq" go run ./clients/conformance "$@"
else
	left+=('LavinMQ: set MILLRACE_TEST_LAVINMQ to its program')
fi

# driver LANGUAGE VERSION VARIABLE=VALUE [ARGUMENT...] does one run with another driver. The scenario
# happy checks that the worker really has a driver whose version begins with VERSION.
driver() {
	local lang=$1 version=$2 variable=$3
	shift 3
	take "$lang with driver $version" env "$variable" go run ./clients/conformance "$@" -lang "$lang" -driver "$version"
}

# newest LANGUAGE DRIVER PINNED NEWEST VARIABLE [ARGUMENT...] does a run with the newest driver,
# unless `make conformance` does: PINNED is the version there. NEWEST is empty if the registry did
# not answer.
newest() {
	local lang=$1 name=$2 pinned=$3 newest=$4 variable=$5
	shift 5
	if [[ ! $newest ]]; then
		failed+=("$lang with the newest $name (the registry does not say which that is)")
	elif [[ $newest == "$pinned" ]]; then
		left+=("$name newer than $pinned: there is none")
	else
		driver "$lang" "${newest#v}" "$variable=$newest" "$@"
	fi
}

driver python 1.2.0 MILLRACE_PIKA=pika==1.2.0 "$@"
if ruby=$(scripts/newer-ruby.sh); then
	driver ruby 3. MILLRACE_RUBY="$ruby" "$@"
else
	failed+=('ruby with bunny 3 (it could not be downloaded)')
fi

driver javascript 2.0.0 MILLRACE_AMQPLIB=2.0.0 "$@"
locked=$(node -p 'require("./clients/javascript/package-lock.json").packages["node_modules/amqplib"].version')
range=$(node -p 'require("./clients/javascript/package.json").dependencies.amqplib')
found=$(npm view "amqplib@$range" version --json 2>/dev/null |
	node -p 'const v = JSON.parse(require("fs").readFileSync(0, "utf8") || "null"); Array.isArray(v) ? v.at(-1) : (v ?? "")')
newest javascript amqplib "$locked" "$found" MILLRACE_AMQPLIB "$@"

driver java 5.20.0 MILLRACE_AMQP_CLIENT=5.20.0 "$@"
driver java 5.37.1 MILLRACE_AMQP_CLIENT=5.37.1 "$@"

driver go 1.8.1 MILLRACE_AMQP091_GO=v1.8.1 "$@"
amqp091=github.com/rabbitmq/amqp091-go
found=$(GOWORK=off go list -m -f '{{.Version}}' "$amqp091@latest" 2>/dev/null)
newest go amqp091-go "$(cd clients/go && GOWORK=off go list -m -f '{{.Version}}' "$amqp091")" "$found" MILLRACE_AMQP091_GO "$@"

echo
for what in "${left[@]}"; do echo "left out: $what"; done
for what in "${failed[@]}"; do echo "FAILED: $what"; done
((${#failed[@]} == 0)) && echo 'every run passed'
