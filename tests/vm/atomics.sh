#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: nodes=5 mem=512 mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client, node3, node4, node5: fetch_add and compare_swap  -- rxe --  target: memory in a file
#
# Claim: sums by smc_fetch_add are exact, and so is a counter under a lock of smc_compare_swap; a wait
# sleeps until the word is as wanted, and no longer than asked.
. "$SMC_ROOT/tests/vm/lib-product.sh"

ETIMEDOUT=110
PROGRAMS=4 # one on each client
ADDS=2000 LOCKS=50
[ "$KERNEL" != debug ] || ADDS=100 LOCKS=5
[ "$SOAK" = 0 ] || ADDS=200000 LOCKS=5000

start() {
	product_start
	on target export_file words 1M
	on target export_file fixed 64K --readonly
	barrier exported
}

# all COMMAND...: on every client at once.
all() { [ "$NODE" = target ] || check "$@"; }

exact_sums() {
	all words add target:words 512 3 "$ADDS"
	barrier added
	on target check words peek /dev/shm/words 512 $((PROGRAMS * ADDS * 3))
}

exact_under_lock() {
	all words lock target:words "$LOCKS"
	barrier counted
	on target check words peek /dev/shm/words 4096 $((PROGRAMS * LOCKS))
	on target check words peek /dev/shm/words 0 0
}

session_reads() {
	smcctl -j sessions | /usr/bin/python3 -c '
import json, sys
print(sum(s["stats"]["fetch_ops"] for s in json.load(sys.stdin)["out"]))'
}

waits() {
	local pid looks
	if [ "$NODE" = client ]; then
		# A look a millisecond at most, and some at the beginning.
		looks=$(session_reads)
		check words wait target:words 8192 equal 7 3000 $ETIMEDOUT
		looks=$(($(session_reads) - looks))
		echo "$looks looks in 3 s"
		check [ "$looks" -gt 10 ]
		check [ "$looks" -lt 3200 ]
		check words wait target:fixed 0 equal 0 1000
		words wait target:words 8192 changed 0 60000 >/run/vm/waited &
		pid=$!
		eventually 30 grep -q waiting /run/vm/waited
	fi
	barrier waiting
	on target check words poke /dev/shm/words 8192 77
	if [ "$NODE" = client ]; then
		check wait "$pid"
		cat /run/vm/waited
		# What somebody waits for does not keep him from being killed.
		words wait target:words 8200 changed 0 600000 >/run/vm/waits &
		pid=$!
		eventually 30 grep -q smcfs_wait "/proc/$pid/stack"
		kill "$pid"
		eventually 10 process_gone "$pid"
	fi
	barrier waited
}

case_ "the product starts, and regions are there" start
case_ "four nodes add up exactly" exact_sums
case_ "a counter under a lock of compare-and-swap is exact" exact_under_lock
case_ "a wait ends when the word is as wanted, in time, or by a signal" waits
case_ "everything is put away, and the module unloads" product_stop
pass
