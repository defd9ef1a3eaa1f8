#!/usr/bin/env bash
# Runs every client library through every scenario on each broker, and then each language with the
# other drivers that it supports: scripts/conformance-all.sh [ARGUMENT...]. The arguments are those
# of `make conformance`.
#
# The brokers are the installed RabbitMQ, RabbitMQ 4 (scripts/rabbitmq4.sh), and LavinMQ if
# MILLRACE_TEST_LAVINMQ names its program. `make conformance` uses the newest pika and amqplib,
# Debian's bunny, and the versions of amqp-client and amqp091-go in pom.xml and go.mod. This script
# adds pika 1.2.0, the newest bunny 3, and an amqplib that is newer than the one in the lock file,
# if they are available. It reports what it leaves out, and lists the failed runs at the end.
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

take 'pika 1.2.0' env MILLRACE_PIKA=pika==1.2.0 go run ./clients/conformance "$@" -lang python
bunny=$(gem list --remote --exact bunny 2>/dev/null | sed -nE 's/^bunny \((3[0-9.]*).*/\1/p')
if [[ $bunny ]]; then
	take "bunny $bunny" env MILLRACE_BUNNY="$bunny" go run ./clients/conformance "$@" -lang ruby
else
	left+=('bunny 3: gem finds none here')
fi
locked=$(node -p 'require("./clients/javascript/package-lock.json").packages["node_modules/amqplib"].version')
newest=$(cd clients/javascript && npm view "amqplib@$(node -p 'require("./package.json").dependencies.amqplib')" version --json 2>/dev/null |
	node -p 'const v = JSON.parse(require("fs").readFileSync(0, "utf8") || "null"); Array.isArray(v) ? v.at(-1) : (v ?? "")')
if [[ $newest && $newest != "$locked" ]]; then
	clients/javascript/conformance/build &&
		npm install --prefix clients/javascript --no-save --ignore-scripts --no-audit --no-fund --loglevel=error "amqplib@$newest"
	take "amqplib $newest" go run ./clients/conformance "$@" -lang javascript
	rm -f clients/javascript/node_modules/.millrace-lock.json # the next build installs the locked version
else
	left+=("amqplib newer than $locked: $([[ $newest ]] && echo "there is none" || echo "npm does not answer")")
fi

echo
for what in "${left[@]}"; do echo "left out: $what"; done
for what in "${failed[@]}"; do echo "FAILED: $what"; done
((${#failed[@]} == 0)) && echo 'every run passed'
