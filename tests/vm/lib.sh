# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck shell=bash
#
# What a test script in tests/vm can call. The script is one bash file that every node of
# a run executes, from its first line to the last; README.md beside it is the manual.
#
# Given: NODE (target, client, node3...), NODE_NAMES, NODES, NODE_INDEX, KERNEL (6.1, 6.12
# or debug), SMC_ROOT (the tree, read-only but for an overlay), SCRIPT, NONCE.
# Failure: a command that fails inside a case ends the case on this node, and with it the
# case; what other nodes wait for then fails at once. The script goes on with the next case.

# --- the driver --------------------------------------------------------------------------

# vm_call VERB WORDS...: one request to the driver; prints the answer, fails with its error.
VM_PROCESS=
vm_call() {
	local reply
	if [ "$VM_PROCESS" != $BASHPID ]; then
		# An anonymous pipe for answers, one for each process that asks.
		exec {VM_PIPE}<> <(:)
		VM_PROCESS=$BASHPID
	fi
	printf '%s/%s %s\n' $BASHPID "$VM_PIPE" "${*//$'\n'/ }" >/run/vm/request
	IFS= read -r reply <&"$VM_PIPE"
	case $reply in
	ok) ;;
	'ok '*) printf '%s\n' "${reply#ok }" ;;
	*)
		echo "driver: ${reply#err }" >&2
		return 1
		;;
	esac
}

# vm_ctl ACTION NODE [...]: have the host do something to a node, from outside:
#   stop NODE, cont NODE      freeze and resume its processor
#   kill NODE                 end it, as a power cut; nobody waits for it afterwards
#   link NODE up|down [NIC]   plug its network cable (NIC 0)
vm_ctl() { vm_call ctl "$@"; }

# barrier NAME: wait until every node has come to it. A name can be used again.
barrier() { vm_call barrier "$1" >/dev/null; }

# put NAME VALUE: give the other nodes a value (one line). get NAME: wait for it, print it.
put() { vm_call put "$@" >/dev/null; }
get() { vm_call get "$1"; }

# say TEXT: a line for whoever watches the run.
say() { vm_call say "$@" >/dev/null; }

# pass: the last line of a script: this node has done all that it was to do.
pass() { vm_call pass "$NONCE" >/dev/null; }

# --- cases -------------------------------------------------------------------------------

# fail REASON: end the case as failed.
fail() {
	printf '%s\n' "FAIL: $*"
	CASE_REASON="$*"
	exit 1
}

# skip REASON: end the case; it cannot run here, for a reason that is not our fault.
skip() {
	CASE_REASON="$*"
	exit 77
}

# case_ NAME COMMAND [ARGUMENTS]: run one case, usually a function. All nodes come to the
# same cases in the same order. The case runs in a subshell: it leaves no variables behind.
case_() {
	local name=$1 rc=0 reason='' report=/run/vm/case.$BASHPID
	shift
	vm_call case-begin "$name" >/dev/null || exit 1
	echo "smc case: $SCRIPT: $name" >/dev/kmsg
	# shellcheck disable=SC2030
	(
		CASE_REASON='' CASE_STEP=''
		trap 'case_report $? "$report"' EXIT
		trap 'case_error $? "$BASH_COMMAND"' ERR
		set -eE -o pipefail
		"$@"
	)
	rc=$?
	if [ -e "$report" ]; then
		reason=$(<"$report")
		rm "$report"
	fi
	vm_call case-end "$rc" "$reason" >/dev/null || exit 1
}

case_error() { # case_error STATUS COMMAND
	local frame=1
	# The line that matters is the script's, not one in here.
	while [ "${BASH_SOURCE[frame]}" = "${BASH_SOURCE[0]}" ]; do
		frame=$((frame + 1))
	done
	# shellcheck disable=SC2031 # runs in the subshell of the case
	CASE_REASON="${CASE_STEP:-$2}: exit $1, line ${BASH_LINENO[frame - 1]}"
	printf 'FAIL: %s\n' "$CASE_REASON"
}

case_report() {
	[ "$1" -eq 0 ] || printf '%s' "${CASE_REASON:-exit $1}" >"$2"
}

# --- steps inside a case -----------------------------------------------------------------

# on NODE COMMAND...: run it on that node only. COMMAND is one command or function.
on() {
	[ "$NODE" = "$1" ] || return 0
	shift
	"$@"
}

# check COMMAND...: it must succeed. In a case that is so for every command; this one also
# prints what it runs, and names it when it fails.
check() {
	printf '+ %s\n' "$*"
	if [[ $- == *e* ]]; then
		# Not `"$@" || fail`: in a function called so, failures would pass unseen.
		CASE_STEP="$*"
		"$@"
		CASE_STEP=
	else
		"$@" || fail "$*: exit $?"
	fi
}

# check_fails COMMAND...: it must fail by itself (a signal or a missing program is no such).
check_fails() {
	local rc=0
	printf '+ ! %s\n' "$*"
	"$@" || rc=$?
	[ $rc -ne 0 ] || fail "$*: succeeded, was to fail"
	[ $rc -lt 126 ] || fail "$*: exit $rc, was to fail in an orderly way"
}

# check_equal WHAT GOT WANTED
check_equal() {
	[ "$2" = "$3" ] || fail "$1: got '$2', wanted '$3'"
}

# eventually SECONDS COMMAND...: repeat until it succeeds, at most so long, and four times that
# on the debug kernel.
eventually() {
	local seconds=$1 end
	shift
	[ "$KERNEL" != debug ] || seconds=$((seconds * 4))
	end=$((SECONDS + seconds))
	until "$@" >/run/vm/eventually.$BASHPID 2>&1; do
		if [ $SECONDS -ge $end ]; then
			cat /run/vm/eventually.$BASHPID
			fail "not within $seconds s: $*"
		fi
		sleep 0.1
	done
	CASE_STEP= # of a try that failed
}

# --- the life of a script ----------------------------------------------------------------

# defer COMMAND...: run it when the script ends, however it ends; the last one first.
SMC_CLEANUPS=()
defer() { SMC_CLEANUPS+=("$(printf '%q ' "$@")"); }

run_cleanups() {
	local i
	for ((i = ${#SMC_CLEANUPS[@]} - 1; i >= 0; i--)); do
		eval "${SMC_CLEANUPS[i]}" || echo "cleanup failed: ${SMC_CLEANUPS[i]}"
	done
	SMC_CLEANUPS=()
}

# stop_process PID [SECONDS]: TERM, then wait for its end; still there is a failure.
stop_process() {
	kill "$1" 2>/dev/null || return 0
	eventually "${2:-10}" process_gone "$1"
}
process_gone() {
	# A child of ours that ended stays until it is waited for.
	! kill -0 "$1" 2>/dev/null || [ "$(ps -o stat= -p "$1" | cut -c1)" = Z ]
}
