# Sourced by the scripts that set up a root directory of Debian with packages in it.
# Needs root, for debootstrap and chroot. Nothing stays mounted, and no service is started.

# debian_mirror prints the address of Debian's packages: DEBIAN_MIRROR, or the mirror that apt uses.
debian_mirror() {
	if [[ ${DEBIAN_MIRROR:-} ]]; then
		echo "$DEBIAN_MIRROR"
		return
	fi
	local found
	found=$(apt_mirror)
	if [[ ! $found ]]; then # apt knows the origin of a source only after an update
		apt-get update -qq >&2
		found=$(apt_mirror)
	fi
	if [[ ! $found ]]; then
		echo "apt has no source of Debian's packages here: set DEBIAN_MIRROR to the URL of one" >&2
		return 1
	fi
	echo "$found"
}

# apt_mirror prints the first of apt's sources with Debian's packages. apt reads .sources and .list.
apt_mirror() {
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Identifier: Packages' |
		sed -nE 's,^Debian (https?://.*[^/])/?$,\1,p' | sed -n 1p
}

# debian_root RELEASE FOLDER LOG PACKAGE... creates a root directory of a release of Debian, such as
# forky, with these packages.
debian_root() {
	local release=$1 root=$2 log=$3
	shift 3
	if [[ $(id -u) != 0 ]]; then
		echo "setting a root folder up takes root (for debootstrap and chroot): run 'sudo $0'" >&2
		return 1
	fi
	if [[ ! ${DEBOOTSTRAP_DIR:-} ]] && ! command -v debootstrap >/dev/null; then
		echo "installing debootstrap" >&2
		scripts/apt-install.sh debootstrap >&2
	fi
	local mirror
	mirror=$(debian_mirror)
	use_apt_proxy
	# All releases are installed like sid. An older debootstrap does not know their names, and leaves
	# /proc mounted.
	local script=${DEBOOTSTRAP_DIR:-/usr/share/debootstrap}/scripts/sid
	logged "$log" unshare --mount "${DEBOOTSTRAP:-debootstrap}" --variant=minbase "$release" "$root" "$mirror" "$script"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	if (($#)); then in_root "$root" "$log" apt-get install -y -qq --no-install-recommends "$@"; fi
	rm -f "$root/var/cache/apt/archives/"*.deb
}

# in_root FOLDER LOG PROGRAM ARGUMENT... runs a program in the root directory.
in_root() {
	local root=$1 log=$2
	shift 2
	logged "$log" unshare --mount bash -euc '
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		export DEBIAN_FRONTEND=noninteractive
		exec chroot "$root" "$@"' - "$root" "$@"
}

# use_apt_proxy makes debootstrap, and apt in the root directory, use the proxy of this apt.
use_apt_proxy() {
	local proxy=
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	if [[ $proxy && ! ${http_proxy:-} ]]; then export http_proxy=$proxy; fi
}

# logged LOG COMMAND... runs a command, and shows the end of the log if it fails.
logged() {
	local log=$1
	shift
	"$@" >>"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		return 1
	}
}

# forky_ruby WHAT FOLDER PROGRAM VERSION PACKAGE... sets up Debian forky's Ruby with packages, and
# prints the name of a Ruby that sees this machine's files in the working directory and in the folder
# of temporary files. PROGRAM prints a version, which must begin with VERSION. FOLDER can be moved.
# It does nothing else if that Ruby exists already, with the same packages.
forky_ruby() {
	local what=$1 dir=$2 program=$3 wanted=$4 version
	shift 4
	if [[ $(cat "$dir/ready" 2>/dev/null) == "$*" ]]; then
		echo "$dir/bin/ruby"
		return
	fi
	rm -rf "$dir"
	mkdir -p "$dir/bin"
	echo "setting $what up in $dir, from Debian forky (once; takes a minute or two, and 300 MB)" >&2
	debian_root forky "$dir/root" "$dir/log" ruby "$@"
	cp /etc/hosts "$dir/root/etc/hosts" # localhost has to be known

	# The program sees the folders at the same paths.
	cat >"$dir/bin/ruby" <<'END'
#!/bin/bash
export MILLRACE_ROOT
MILLRACE_ROOT=$(cd "$(dirname "$0")/../root" && pwd)
exec unshare --mount bash -euc '
	root=$MILLRACE_ROOT
	unset MILLRACE_ROOT
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	for folder in "${TMPDIR:-/tmp}" "$PWD"; do
		if [[ $folder == /dev/* ]]; then continue; fi
		mkdir -p "$root$folder"
		mount --rbind "$folder" "$root$folder"
	done
	exec chroot "$root" /bin/sh -c "cd \"\$0\" && exec ruby \"\$@\"" "$PWD" "$@"' - "$@"
END
	chmod 755 "$dir/bin/ruby"
	version=$("$dir/bin/ruby" -e "$program")
	if [[ $version != "$wanted"* ]]; then
		echo "Debian forky has $what in version $version, not $wanted" >&2
		return 1
	fi
	echo "$*" >"$dir/ready"
	echo "$dir/bin/ruby"
}
