#!/usr/bin/env bash
# Fetches ui/vendor from the npm registry again: the packages and versions below. Bare imports become relative ones, for browsers know no
# others without an import map. Writes VENDOR.md with what was fetched, which a test compares with what is there.
set -euo pipefail
cd "$(dirname "$0")/vendor"

# package, version, licence, file in the package, file here
list() {
	cat <<-END
		preact 11.2.0 MIT dist/preact.mjs preact.js
		preact 11.2.0 MIT hooks/dist/hooks.mjs preact-hooks.js
		htm 3.1.1 Apache-2.0 dist/htm.mjs htm.js
		@preact/signals-core 1.14.5 MIT dist/signals-core.mjs signals-core.js
		@preact/signals 2.11.4 MIT dist/signals.mjs signals.js
		uplot 1.6.32 MIT dist/uPlot.iife.min.js uplot.js
		uplot 1.6.32 MIT dist/uPlot.min.css uplot.css
		@fontsource-variable/inter 5.3.0 OFL-1.1 files/inter-latin-wght-normal.woff2 inter.woff2
	END
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
	echo '# What the UI has from others'
	echo
	echo 'Fetched from the npm registry by `make vendor-ui` (`ui/vendor.sh`), which writes this page; `go test ./ui` compares the sums. Nothing was'
	echo 'changed but imports, which are relative, and references to source maps, which are left out. The licences are in the files LICENSE-*.'
	echo
	echo '| file | package | version | licence | file in the package | SHA-256 |'
	echo '|---|---|---|---|---|---|'
} >"$work/VENDOR.md"
while read -r package version licence from to; do
	into=$work/${package//\//-}
	if [[ ! -d $into ]]; then
		mkdir "$into"
		(cd "$into" && npm pack --silent "$package@$version" 2>/dev/null | xargs tar xzf)
		cp "$into"/package/LICENSE "LICENSE-$(basename "$package")"
	fi
	if [[ $to == *.js ]]; then
		sed -E -e 's#"preact/hooks"#"./preact-hooks.js"#g; s#"preact"#"./preact.js"#g; s#"@preact/signals-core"#"./signals-core.js"#g' \
			-e "/^\/\/# sourceMappingURL=/d" "$into/package/$from" >"$to"
	else
		cp "$into/package/$from" "$to"
	fi
	echo "| $to | $package | $version | $licence | $from | \`$(sha256sum "$to" | cut -d' ' -f1)\` |" >>"$work/VENDOR.md"
done < <(list)
chmod 644 ./*
cp "$work/VENDOR.md" VENDOR.md
