#!/usr/bin/env bash
# Builds a release twice, compares the bytes, and tests what was built as far as one machine can,
# with nothing but package registries. Needs root and Debian.
#
#   scripts/test-packages.sh [-release FOLDER] [PART...]
#
# It prints a line for each check, with the end of the output of those that fail, and at the end what
# it has left out and why. The parts are
#
#   vet       go vet's checks for each system of a release
#   files     the files of the release: archives, packages, image, chart and formula
#   deb       the Debian package in bare root directories of bookworm and forky
#   clients   the packages of the client libraries: installed, then the conformance suite
#   plugin    the plugin on RabbitMQ 3.10 and 4.3
#
# and by default all. With -release, it tests that release and builds none. Debian's packages come
# from the mirror that apt is set up for, or from DEBIAN_MIRROR.
set -euo pipefail
cd "$(dirname "$0")/.."

all=(vet files deb clients plugin)
release=
if [[ ${1:-} == -release ]]; then
	release=$(cd "$2" && pwd)
	shift 2
fi
parts=("$@")
(($#)) || parts=("${all[@]}")
for part in "${parts[@]}"; do
	if [[ " ${all[*]} " != *" $part "* ]]; then
		echo "usage: $0 [-release FOLDER] [${all[*]}]" >&2
		exit 2
	fi
done
if ((EUID != 0)); then
	echo "$0: root directories of Debian take root: run it with sudo" >&2
	exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0
failed=0
mark=

# check WHAT COMMAND...: runs a command, and prints a line. Lines of the command that begin with
# "detail: " become a part of it. It sets mark to "ok" or "FAILED" and always succeeds: behind || or
# after if, bash would ignore errors within the command's functions.
check() {
	local what=$1 begun=$SECONDS details code
	shift
	mark=ok
	set +e
	(
		set -e
		"$@"
	) >"$work/log" 2>&1 </dev/null
	code=$?
	set -e
	if ((code)); then mark=FAILED; fi
	details=$(sed -n 's/^detail: //p' "$work/log" | paste -sd ';' | sed 's/;/; /g')
	printf '%-8s %s%s (%d s)\n' "$mark" "$what" "${details:+: $details}" $((SECONDS - begun))
	if [[ $mark == FAILED ]]; then
		failed=$((failed + 1))
		tail -n 40 "$work/log" | sed 's/^/        /'
	fi
}

asked() { [[ " ${parts[*]} " == *" $1 "* ]]; }

left_out() { printf 'left out %s: %s\n' "$1" "$2"; }

built_twice() {
	scripts/release.sh 0.0.0-test "$work/first"
	scripts/release.sh 0.0.0-test "$work/second"
	diff "$work/first/SHA256SUMS" "$work/second/SHA256SUMS"
	rm -r "$work/second"
	echo "detail: $(wc -l <"$work/first/SHA256SUMS") files"
}

# helpers compiles the programs and the tests of the module scripts/release.
helpers() {
	export GOWORK=off
	go -C scripts/release build -o "$work/" helm.sh/helm/v3/cmd/helm github.com/rhysd/actionlint/cmd/actionlint
	go -C scripts/release test -c -o "$work/disttest" ./disttest
}

# disttest has a test for each kind of file.
disttest() {
	(cd scripts/release/disttest && MILLRACE_DIST=$release MILLRACE_HELM=$work/helm "$work/disttest" -test.timeout 30m -test.run "^$1\$")
}

# words prints a test's name as words: TestModulesOfBinaries is "modules of binaries".
words() {
	sed -E 's/^Test//; s/([a-z])([A-Z])/\1 \2/g; s/([A-Z])([A-Z][a-z])/\1 \2/g; s/\b([A-Z])([a-z])/\l\1\2/g' <<<"$1"
}

files() {
	local name
	check 'compile helm, actionlint and the tests' helpers
	if [[ $mark == FAILED ]]; then return; fi
	check 'workflows: actionlint' "$work/actionlint" -shellcheck= -pyflakes= .github/workflows/*.yml
	check 'go vet of the release programs' env GOWORK=off go -C scripts/release vet ./...
	for name in $("$work/disttest" -test.list .); do
		check "files: $(words "$name")" disttest "$name"
	done
}

deb() {
	local debian
	for debian in bookworm forky; do
		check "deb on a bare Debian $debian" scripts/test-deb.sh "$release" "$debian"
	done
}

clients() {
	local go=(go test -count=1 -timeout 30m ./internal/readmetest -run)
	check 'clients: packages installed and loaded' "${go[@]}" '^TestPackages$'
	check 'clients: Go modules as a proxy serves them' "${go[@]}" '^(TestGoInstall|TestGoClientAlone)$'
	check 'clients: conformance suite against the packed libraries' go run ./clients/conformance -rerun
}

# plugin [FOLDER]: tests the plugin of the release, with the RabbitMQ whose programs are in a folder.
plugin() {
	MILLRACE_TEST_RABBITMQ=${1:-} MILLRACE_TEST_PLUGIN=$(ls "$release"/rabbitmq_millrace-*.ez) \
		go test -tags plugin -count=1 -timeout 60m ./internal/plugintest
}

on_rabbitmq4() { plugin "$(scripts/rabbitmq4.sh)"; }

if [[ ! $release ]]; then
	release=$work/first
	check 'release: built twice, with the same bytes' built_twice
	if [[ $mark == FAILED ]]; then exit 1; fi
fi
if asked vet; then check 'go vet for each system' make --no-print-directory vet-systems; fi
if asked files; then files; fi
if asked deb; then deb; fi
if asked clients; then clients; fi
if asked plugin; then
	check 'plugin on the installed RabbitMQ' plugin
	check 'plugin on RabbitMQ 4.3' on_rabbitmq4
fi

for part in "${all[@]}"; do
	asked "$part" || left_out "part $part" 'it was not asked for'
done
left_out 'the programs for macOS and Windows' 'they need these systems; CI runs them'
left_out 'the service under systemd' 'a root directory has no systemd that runs; the units are verified'
left_out 'rpm and apk, installed' 'no image of Fedora or Alpine can be pulled here; CI installs them'
left_out 'image, pushed' 'it needs a registry; CI pushes it'
left_out 'chart, installed' 'it needs a cluster and images; it is rendered and decoded strictly'
left_out 'formula, installed' 'it needs Homebrew and a published release; CI audits it'
left_out 'plugin on RabbitMQ 3.13 to 4.2' 'no images can be pulled here'
if ((failed)); then
	echo "$failed checks failed"
	exit 1
fi
echo 'All checks passed.'
