#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
#
# Runs in a guest, after guest-init.sh: takes scripts from the driver one after the other,
# all nodes in step, and tells how each ended.
set -u
# shellcheck source=tests/vm/lib.sh
. "$SMC_ROOT/tests/vm/lib.sh"
# Variables for the scripts, written by the driver before the boot.
set -a
# shellcheck source=/dev/null
. "$RUN_DIR/env"
set +a

# Ask for a scan and print what is found. An object counts as leaked when it is some
# seconds old and was unreachable in two scans.
scan_for_leaks() {
	local file=/sys/kernel/debug/kmemleak
	[ -e $file ] || return 0
	echo scan >$file || echo "smc checker off: kmemleak" >/dev/kmsg
	sleep 5.5
	echo scan >$file
	cat $file
}

# Lockdep stops at its first report, and when its tables are full: silence would prove nothing.
lockdep_is_on() {
	local file=/proc/lockdep_stats
	[ ! -e $file ] || grep -q 'debug_locks: *1$' $file || echo "smc checker off: lockdep" >/dev/kmsg
}

run_script() { # run_script PATH NONCE
	local rc=0 reason=
	: >/run/vm/reason
	# Not `( ... ) || rc=$?`: that would turn off `set -e` in everything below it.
	(
		NONCE=$2
		SCRIPT=${1##*/}
		SCRIPT=${SCRIPT%.sh}
		CASE_REASON=
		trap 'printf "%s" "$CASE_REASON" >/run/vm/reason; run_cleanups' EXIT
		# shellcheck source=/dev/null
		. "$1"
	) </dev/null
	rc=$?
	reason=$(</run/vm/reason)
	vm_call script-end "$rc" "$reason" >/dev/null
}

interactive_shell() {
	echo
	echo "A shell on node $NODE; exit ends the guests, ctrl-a x kills this one."
	export PS1="$NODE \\w\\$ "
	echo 4 >/proc/sys/kernel/printk
	setsid -c bash --noprofile --norc -i </dev/ttyS0 >/dev/ttyS0 2>&1
	vm_call shell-end >/dev/null
}

vm_call hello >/dev/null || exit 1
while next=$(vm_call next); do
	case $next in
	'run '*)
		read -r _ nonce script <<<"$next"
		echo "### script $script"
		run_script "$script" "$nonce"
		;;
	shell) interactive_shell ;;
	halt)
		scan_for_leaks
		lockdep_is_on
		vm_call halted >/dev/null
		break
		;;
	*)
		echo "runner: the driver said: $next"
		break
		;;
	esac
done
