#!/usr/bin/env bash
# Installs the missing ones of the named parts:
#
#   broker    RabbitMQ, which `millrace up` and the tests run privately; never as a service
#   etcd      for clusters of LavinMQ; the tests run it privately, never as a service
#   compiler  a C compiler, for Go's race detector
#   python    pika for Debian's own Python (/usr/bin/python3), and the packages for environments
#   ruby      Ruby with bunny
#   rails     Rails with ActiveJob, for the adapter and the Railtie of the Ruby client
#   ruby-tools  rubocop and yard, which check the Ruby client
#   node      amqplib, into .cache/node
#   jest      Jest, in which the JavaScript client is tested, into .cache/jest
#   pyright   pyright, which checks the types of the Python client, into .cache/pyright
#   java      a JDK and Maven; Maven puts its downloads into .cache/maven (scripts/mvn.sh)
#   browser   Chromium's headless shell, for the tests of the web UI
#   firefox   Firefox, for the tests of layout and signing in
#   packages  rpm, lintian, QEMU and debootstrap, which test the packages of a release
#   imports   Redis, SQLite, RQ, Celery and Sidekiq, from which the tests take jobs; never as a service
#   recipes   PHP with php-amqplib, and the newest Celery, into .cache/recipes
#   peers     Redis and PostgreSQL, for the job systems beside which `make bench-peers` measures; never as
#             a service
#   proxies   nginx and Caddy, behind which the tests put a sidecar; never as a service
#   promtool  Prometheus, whose promtool tests the alerts; never as a service
#
# It first says what it is going to install. If nothing is missing, it says and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()

broker() {
	[[ -x /usr/lib/rabbitmq/bin/rabbitmq-server || -x /opt/rabbitmq/sbin/rabbitmq-server ]] || packages+=(rabbitmq-server)
}

etcd() {
	[[ -x /usr/bin/etcd ]] || packages+=(etcd-server)
}

compiler() {
	command -v "$(go env CC)" >/dev/null || packages+=(gcc)
	[[ -e /usr/include/stdlib.h ]] || packages+=(libc6-dev)
}

python() {
	/usr/bin/python3 -c 'import pika' 2>/dev/null || packages+=(python3-pika)
	python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)
}

browser() {
	command -v "${CHROMIUM:-chromium-headless-shell}" >/dev/null || packages+=(chromium-headless-shell)
}

firefox() {
	command -v "${FIREFOX:-firefox-esr}" >/dev/null || packages+=(firefox-esr)
}

ruby_bunny() {
	ruby -e 'require "bunny"' 2>/dev/null || packages+=(ruby ruby-bunny)
}

rails() {
	ruby -e 'require "rails"; require "active_job/railtie"' 2>/dev/null || packages+=(ruby-railties ruby-activejob)
}

ruby_tools() {
	command -v rubocop >/dev/null || packages+=(rubocop)
	command -v yard >/dev/null || packages+=(yard)
}

java() {
	command -v javac >/dev/null || packages+=(default-jdk-headless)
	command -v mvn >/dev/null || packages+=(maven)
}

promtool() {
	[[ -x /usr/bin/promtool ]] || packages+=(prometheus)
}

proxies() {
	[[ -x /usr/sbin/nginx ]] || packages+=(nginx-light)
	[[ -x /usr/bin/caddy ]] || packages+=(caddy)
}

imports() {
	[[ -x /usr/bin/redis-server ]] || packages+=(redis-server)
	command -v sqlite3 >/dev/null || packages+=(sqlite3)
	/usr/bin/python3 -c 'import redis, rq' 2>/dev/null || packages+=(python3-rq python3-redis)
	/usr/bin/python3 -c 'import celery' 2>/dev/null || packages+=(python3-celery)
	/usr/bin/ruby -e 'require "sidekiq"' 2>/dev/null || packages+=(ruby-sidekiq)
}

peers() {
	[[ -x /usr/bin/redis-server ]] || packages+=(redis-server)
	compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || packages+=(postgresql)
}

recipes() {
	php -r 'exit((int) !stream_resolve_include_path("PhpAmqpLib/autoload.php"));' 2>/dev/null || packages+=(php-cli php-amqplib)
	/usr/bin/python3 -c 'import celery' 2>/dev/null || packages+=(python3-celery)
}

packages() {
	command -v rpm >/dev/null || packages+=(rpm)
	command -v lintian >/dev/null || packages+=(lintian)
	command -v qemu-aarch64-static >/dev/null || packages+=(qemu-user-static)
	command -v debootstrap >/dev/null || packages+=(debootstrap)
	command -v systemd-analyze >/dev/null || packages+=(systemd)
}

install_packages() {
	((${#packages[@]})) || return 0
	if ! command -v apt-get >/dev/null; then
		echo "please install what Debian calls ${packages[*]}: there is no apt-get here to do it" >&2
		exit 1
	fi
	local as_root=()
	if ((EUID != 0)); then
		if ! command -v sudo >/dev/null; then
			echo "please install as root: apt-get install ${packages[*]}" >&2
			exit 1
		fi
		as_root=(sudo)
	fi
	echo "installing with ${as_root[*]:+sudo }apt-get, without starting any service: ${packages[*]}"
	"${as_root[@]}" scripts/apt-install.sh "${packages[@]}"
}

# node_modules NAME installs packages from npm into .cache/NAME. The lock file in scripts/NAME pins
# them. They are installed again only when that file changes.
node_modules() {
	local from=scripts/$1 dir=.cache/$1
	if ! cmp -s "$from/package-lock.json" "$dir/installed-lock.json"; then
		echo "installing from the npm registry into $dir: $(node -p "Object.keys(require('./$from/package.json').dependencies).join(' ')")"
		mkdir -p "$dir"
		cp "$from/package.json" "$from/package-lock.json" "$dir/"
		(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
		cp "$from/package-lock.json" "$dir/installed-lock.json"
	fi
}

# from_pypi NAME installs what scripts/NAME/requirements.txt pins into the environment .cache/NAME.
from_pypi() {
	local pinned=scripts/$1/requirements.txt dir=.cache/$1
	if ! cmp -s "$pinned" "$dir/installed.txt"; then
		echo "installing from PyPI into $dir: $(grep -v '^#' "$pinned" | xargs)"
		python3 -m venv --clear "$dir"
		"$dir/bin/pip" install --quiet --disable-pip-version-check -r "$pinned"
		cp "$pinned" "$dir/installed.txt"
	fi
}

from_npm=() environments=()
for part in "$@"; do
	case $part in
	broker | etcd | compiler | python | rails | java | browser | firefox | packages | imports | peers | proxies | promtool) "$part" ;;
	ruby) ruby_bunny ;;
	ruby-tools) ruby_tools ;;
	recipes) recipes && environments+=("$part") ;;
	node | jest | pyright) from_npm+=("$part") ;;
	*) echo "$0: unknown part $part" >&2 && exit 2 ;;
	esac
done
install_packages
for name in "${from_npm[@]}"; do node_modules "$name"; done
for name in "${environments[@]}"; do from_pypi "$name"; done
