#!/usr/bin/env bash
# Takes every client library through every scenario on each broker, then each language with the other
# drivers that it supports: scripts/conformance-all.sh [ARGUMENT...], with arguments as `make conformance` has them.
#
# The brokers are the installed RabbitMQ, RabbitMQ 4 (scripts/rabbitmq4.sh), and LavinMQ where
# MILLRACE_TEST_LAVINMQ names its program. `make conformance` runs with the newest pika and amqplib,
# with Debian's bunny, and with the amqp-client and amqp091-go that pom.xml and go.mod pin. Here come
# pika 1.2.0, the newest bunny 3 and an amqplib that is newer than the lock file's, as far as they can
# be had. What is left out is said, and what failed is listed at the end.
set -uo pipefail
cd "$(dirname "$0")/.."
lavinmq=${MILLRACE_TEST_LAVINMQ:-}
unset MILLRACE_TEST_LAVINMQ MILLRACE_TEST_RABBITMQ
failed=()
left=()

# take NAME COMMAND... makes a run.
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
	rm -f clients/javascript/node_modules/.millrace-lock.json # the next build installs what is locked
else
	left+=("amqplib newer than $locked: $([[ $newest ]] && echo "there is none" || echo "npm does not answer")")
fi

echo
for what in "${left[@]}"; do echo "left out: $what"; done
for what in "${failed[@]}"; do echo "FAILED: $what"; done
((${#failed[@]} == 0)) && echo 'every run passed'
