#!/usr/bin/env bash
# Installs bunny 3 from Debian forky, with forky's Ruby: scripts/bunny3.sh [FOLDER]
#
# bunny 3.4 needs Ruby 3.2, and Debian 12 has Ruby 3.1. FOLDER (.cache/bunny3) gets a root directory,
# and in bin/ a Ruby that sees this machine's files in the working directory, the repository and the
# folder of temporary files. With MILLRACE_RUBY=.cache/bunny3/bin/ruby, the Ruby programs of
# `make conformance` run on it. The script prints the name of that Ruby. It does nothing else if that
# exists already.
#
# The packages come from apt's own mirror, or from DEBIAN_MIRROR. Needs root. Mounts last only as
# long as a program runs, and are not visible to other programs.
set -euo pipefail
dir=$(realpath -m "${1:-$(dirname "$0")/../.cache/bunny3}")
cd "$(dirname "$0")/.."
. scripts/debian.bash
forky_ruby 'bunny 3' "$dir" 'require "bunny"; print Bunny::VERSION' 3. ruby-bunny
