#!/usr/bin/env bash
# Installs Sidekiq 8 and Active Job from Debian forky, with forky's Ruby: scripts/sidekiq8.sh [FOLDER]
#
# Debian 12 has Sidekiq 6.4. FOLDER (.cache/sidekiq8) gets a root directory, and in bin/ a Ruby that
# sees this machine's files in the working directory and the folder of temporary files. The script
# prints the name of that Ruby. It does nothing else if that exists already.
#
# The packages come from apt's own mirror, or from DEBIAN_MIRROR. Needs root. Mounts last only as
# long as a program runs, and are not visible to other programs.
set -euo pipefail
dir=$(realpath -m "${1:-$(dirname "$0")/../.cache/sidekiq8}")
cd "$(dirname "$0")/.."
. scripts/debian.bash
forky_ruby 'Sidekiq 8' "$dir" 'require "sidekiq"; print Sidekiq::VERSION' 8. ruby-sidekiq ruby-activejob
