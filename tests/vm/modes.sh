#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client: stores, writes, polls; no barrier, no acquire  -- rxe --  target: memory in a file
#
# Claim: mode and max_stale_us do what they say, live: a pushed store arrives within a bound, an eager
# write(2) is acknowledged when it returns, and an unmodified polling reader sees a change within the
# bound plus one fetch. Without them none of this happens.
. "$SMC_ROOT/tests/vm/lib-product.sh"

# Far below what a store would take without a mode, and above what a guest loses to other work.
COUNT=200 BOUND_MS=500
[ "$KERNEL" != debug ] || COUNT=40

start() {
	# The exporter's hints, and the node's own word, which is stronger.
	if [ "$NODE" = target ]; then
		write_config
		printf '[[export]]\nname = "kept"\nhost = "64K"\nsync_mode = "push"\n' \
			>>"$PRODUCT_CONFIG"
	fi
	product_start
	on target export_file words 1M --sync-mode push --push-delay-us 30 --flush-after-ms 3600000
	on target export_file other 1M --sync-mode push --max-stale-us 7000
	barrier exported
	if [ "$NODE" = client ]; then
		printf '[[region]]\nmatch = "target/oth*"\nmode = "lazy"\nflush_after_ms = 77\n' \
			>>"$PRODUCT_CONFIG"
		check stop_daemon
		check start_daemon
		check eventually 60 smcctl attach target:words
		check smcctl attach target:other
		check smcctl attach target:kept
	fi
	barrier attached
}

param_is() { check_equal "$2 of $1" "$(smcctl get "target:$1" "$2")" "$3"; }

parameters() {
	if [ "$NODE" = client ]; then
		param_is words mode push
		param_is words push_delay_us 30
		param_is words flush_after_ms 3600000
		param_is words max_stale_us 0
		param_is other mode lazy
		param_is other flush_after_ms 77
		param_is other max_stale_us 7000
		check smcctl set target:other max_stale_us=off mode=eager push_delay_us=1000000
		param_is other mode eager
		param_is other max_stale_us 0
		param_is other push_delay_us 1000000
		local bad
		for bad in mode=often mode= push_delay_us=1000001 max_stale_us=3600000001 max_stale_us=-1; do
			check_fails smcctl set target:other "$bad"
		done
		param_is other mode eager
	fi
	barrier ended
}

pushed() {
	local core_cs
	on client check words push target:words "$COUNT" "$BOUND_MS"
	if [ "$NODE" = client ]; then
		# Live, and not at all: nothing else sends within the hour.
		check smcctl set target:words mode=lazy
		core_cs=$(</proc/sys/vm/dirty_writeback_centisecs)
		echo 0 >/proc/sys/vm/dirty_writeback_centisecs
		probe_open a
		p a "open rw /smc/target/words"
		p a "map rw shared 0 0"
		p a "store 8192 4096 1"
		sleep 1
		check_equal "dirty bytes" "$(counter target:words dirty_bytes)" 4096
		check smcctl set target:words mode=push
		eventually 10 counter_is target:words dirty_bytes 0
		p a "pwrite 8192 100 3"
		eventually 10 counter_is target:words dirty_bytes 0
		probe_close a
		echo "$core_cs" >/proc/sys/vm/dirty_writeback_centisecs
	fi
	barrier sent
	on target probe_script "open r /dev/shm/words" "pexpect 8192 100 3" "pexpect 8292 3996 1"
	barrier checked
}

eager_writes() {
	local refuted=0
	if [ "$NODE" = client ]; then
		check smcctl set target:words mode=eager
		check words eager target:words "$COUNT"
		# Mapped stores are pushed.
		check words push target:words 20 "$BOUND_MS"
		check smcctl set target:words mode=lazy
		words eager target:words 1 || refuted=$?
		check_equal "exit status of the same in mode lazy" "$refuted" 1
	fi
	barrier ended
}

# polled BOUND_MS: a reader and a counting target.
polled() {
	local pid
	on target dd if=/dev/zero of=/dev/shm/words bs=1M count=1 conv=notrunc status=none
	barrier cleared
	if [ "$NODE" = target ]; then
		words tick /dev/shm/words 16384 40 30 &
		pid=$!
	fi
	on client check words poll target:words 16384 40 "$1"
	barrier polled
	[ "$NODE" != target ] || check wait "$pid"
}

staleness() {
	on client check smcctl set target:words max_stale_us=5000
	polled $((5 + BOUND_MS))
	# Off again: what is here stays here.
	if [ "$NODE" = client ]; then
		check smcctl set target:words max_stale_us=0
		probe_open a
		p a "open r /smc/target/words"
		p a "map r shared 0 0"
		p a "expect 16384 1 40"
	fi
	barrier loaded
	on target check words poke /dev/shm/words 16384 99
	if [ "$NODE" = client ]; then
		sleep 1
		p a "expect 16384 1 40"
		p a "acquire 16384 4096"
		p a "expect 16384 1 99"
		probe_close a
	fi
	barrier ended
}

case_ "the product starts, with hints and rules" start
# Changed hints leave the memory of an export as it is, and what is attached, too.
reload_hints() {
	local generation
	if [ "$NODE" = target ]; then
		generation=$(generation_of kept)
		sed -i 's/^sync_mode = "push"$/sync_mode = "eager"/' "$PRODUCT_CONFIG"
		check grep -q '^sync_mode = "eager"$' "$PRODUCT_CONFIG"
		kill -HUP "$(daemon_pid)"
	fi
	barrier reloaded
	if [ "$NODE" = client ]; then
		param_is kept mode push
		check smcctl detach target:kept
		check smcctl attach target:kept
		eventually 20 kept_is_eager
	fi
	barrier attached
	[ "$NODE" != target ] || check_equal "the generation" "$(generation_of kept)" "$generation"
}
kept_is_eager() { [ "$(smcctl get target:kept mode)" = eager ]; }
generation_of() {
	smcctl -j regions | /usr/bin/python3 -c '
import json, sys
print(*(r["generation"] for r in json.load(sys.stdin)["exports"] if r["name"] == sys.argv[1]))' "$1"
}

case_ "parameters come from the exporter, the configuration and set" parameters
case_ "hints are reloaded, and nothing is lost" reload_hints
case_ "a pushed store arrives, a lazy one does not" pushed
case_ "an eager write is acknowledged when it returns" eager_writes
case_ "a polling reader sees changes in time" staleness
case_ "everything is put away, and the module unloads" product_stop
pass
