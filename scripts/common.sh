# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck shell=bash disable=SC2034
#
# What the scripts beside this file share; sourced, never run.
# Owns: the names of the tree, the build directory and the cache, and how they report.

SMC_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
SMC_BUILD=$SMC_ROOT/build
# Kernels and what is built from them outlive the tree: a fresh clone finds them again.
SMC_CACHE=${SMC_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/smcfs}
mkdir -p "$SMC_CACHE"
SMC_PROG=${0##*/}

say() { printf '%s: %s\n' "$SMC_PROG" "$*" >&2; }
die() {
	say "error: $*"
	exit 1
}

# need TOOL...: each missing tool is named, with the remedy.
need() {
	local tool missing=()
	for tool in "$@"; do
		command -v "$tool" >/dev/null || missing+=("$tool")
	done
	[ ${#missing[@]} -eq 0 ] || die "missing: ${missing[*]}; run scripts/setup"
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		command -v sudo >/dev/null || die "needs root: run as root or install sudo"
		sudo -- "$@"
	fi
}

# lock NAME: one process at a time works on NAME in the cache, others wait.
# The descriptor stays open until this shell exits, and with it the lock.
lock() {
	local fd
	mkdir -p "$SMC_CACHE/locks"
	exec {fd}>"$SMC_CACHE/locks/$1"
	if ! flock -n "$fd"; then
		say "waiting for another process that prepares $1"
		flock "$fd"
	fi
}

# apt_refresh: fetch the package lists, unless that was done within the hour.
apt_refresh() {
	local lists=/var/lib/apt/lists
	if [ -z "$(find $lists -maxdepth 1 -name '*_Packages*' -print -quit)" ] ||
		[ -z "$(find $lists/partial -maxdepth 0 -mmin -60)" ]; then
		say "apt-get update"
		as_root apt-get -qq update
	fi
}

# deb_fetch DIR PACKAGE=VERSION...: download packages into DIR and unpack them there.
# The host's package database is not touched.
deb_fetch() {
	local dir=$1 deb
	shift
	mkdir -p "$dir/debs"
	# apt drops to user _apt, which cannot write below a private cache: say root.
	(cd "$dir/debs" && apt-get -qq -o APT::Sandbox::User=root download "$@") ||
		die "apt-get download $* failed; run apt-get update and try again"
	for deb in "$dir"/debs/*.deb; do
		dpkg-deb --extract "$deb" "$dir"
	done
	rm -rf "$dir/debs"
}

# deb_newest PACKAGE: the version that apt would install, empty when it knows none.
deb_newest() {
	apt-cache policy "$1" | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}
