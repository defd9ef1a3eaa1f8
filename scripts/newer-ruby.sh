#!/usr/bin/env bash
# Installs Debian forky's Ruby with bunny 3, Rails 7 and RabbitMQ 4: scripts/newer-ruby.sh [FOLDER]
#
# Debian 12 has Ruby 3.1, bunny 2.19 and Rails 6.1. FOLDER (.cache/newer-ruby) gets a root directory,
# and in bin/ a Ruby that sees this machine's files in the working directory, the repository and the
# folder of temporary files. With MILLRACE_RUBY=.cache/newer-ruby/bin/ruby, the Ruby programs of
# `make conformance` run on it, and `make test-newer-ruby` runs the tests of the Ruby client on it.
# The script prints the name of that Ruby. It does nothing else if that exists already.
#
# The packages come from apt's own mirror, or from DEBIAN_MIRROR. Needs root. Mounts last only as
# long as a program runs, and are not visible to other programs.
set -euo pipefail
dir=$(realpath -m "${1:-$(dirname "$0")/../.cache/newer-ruby}")
cd "$(dirname "$0")/.."
. scripts/debian.bash
forky_ruby 'Ruby with bunny 3 and Rails 7' "$dir" 'require "bunny"; require "rails"; print Bunny::VERSION, " and ", Rails.version' 3. \
	ruby-bunny ruby-railties ruby-activejob ruby-minitest rabbitmq-server
