#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=1500 kernels=6.1,6.12 timeout=900
#
#     client: stores to an exclusive region  -- rxe --  target: memory in a file
#
# Claim: of pages of an exclusive region changed lines are sent or whole pages, whichever is cheaper, or
# as the module's parameter says; no store is lost where one gives way to the other, or where a write
# fails; and what is sent at all is what was changed, and at most what shares a page with it.
. "$SMC_ROOT/tests/vm/lib-product.sh"
export REQUEST_TIMEOUT_MS=2000
PATH=$RELEASE/tools/smcbench:$PATH

PARAMETER=/sys/module/smcfs/parameters/exclusive_lines
NEVER=0 ALWAYS=1 BY_COST=2
CALL_MS=30000
export SENDS_FROM=target:x
SWITCHES=$((SOAK ? 1000 : 20))
FEW=5 MANY=30 # epochs; smcbench runs 5 at least

start() {
	product_start
	on target export_file x 1000001 --writers exclusive
	on target export_file big 16M --writers exclusive
	barrier exported
	if [ "$NODE" = client ]; then
		# Only barriers send, so that bytes can be counted.
		echo 0 >/proc/sys/vm/dirty_writeback_centisecs
		check smcctl attach target:x
		check smcctl set target:x flush_after_ms=3600000
		check smcctl attach target:big
		check smcctl set target:big flush_after_ms=3600000
	fi
}

send_lines() { echo "$1" >"$PARAMETER"; }

open_x() { # PROBE: mapped, all of it here, and in nobody's hands
	probe_open "$1"
	p "$1" "open rw /smc/target/x"
	p "$1" "map rw shared 0 0"
	p "$1" "load 0 1000001"
	echo 1 >/proc/sys/vm/compact_memory # empties the lists that hold pages that just came
}

parameter_is_checked() {
	if [ "$NODE" = client ]; then
		check_equal "default" "$(<"$PARAMETER")" "$BY_COST"
		check_fails send_lines 3
		check_fails send_lines never
	fi
	barrier checked
}

only_changes_are_sent() {
	if [ "$NODE" = client ]; then
		send_lines "$ALWAYS"
		open_x a
		sends 64 a "store 4096 4 1"
		sends 0 a "store 4096 4 1" # the value that is there
		sends 64 a "store 4200 1 2"
		sends 128 a "store 4220 8 3" # two lines
		sends 8192 a "store 8192 8192 4"
		sends 64 a "pwrite 4096 4 1" # the value that is there
		sends 4096 a "pwrite 8192 4096 4"
		sends 1 a "store 1000000 1 5" # the region's last byte
		# Lines close to each other go out as one request, with what lies between.
		sends 192 a "store 20480 1 6" "store 20608 1 6"
		send_lines "$NEVER"
		sends 4096 a "store 16384 4 1"
		sends 4096 a "store 16384 4 1"
		probe_close a
	fi
	barrier sent
	on target probe_script "open r /dev/shm/x" "pexpect 4096 4 1" "pexpect 4200 1 2" \
		"pexpect 4220 8 3" "pexpect 8192 8192 4" "pexpect 1000000 1 5" \
		"pexpect 20480 1 6" "pexpect 20481 127 0" "pexpect 20608 1 6" "pexpect 16384 4 1"
	barrier checked
}

# Pages that became hot, and such as did not, from one way to the other and back.
ways_alternate() {
	local round bytes
	if [ "$NODE" = client ]; then
		open_x a
		for ((round = 1; round <= SWITCHES; round++)); do
			bytes=64
			[ $((round % 2)) = 1 ] || bytes=4096
			send_lines $((round % 2))
			p a "store 65536 4 $((round % 200))" # hot from the second round on: this sends it as before
			sends "$bytes" a "store 65540 4 $((round % 200))"
			sends "$bytes" a "store 65544 4 $((round % 200))"
		done
		p a "expect 65536 12 $((SWITCHES % 200))"
		probe_close a
	fi
	barrier stored
	on target probe_script "open r /dev/shm/x" "pexpect 65536 12 $((SWITCHES % 200))"
	barrier checked
}

failed_write_is_owed() {
	if [ "$NODE" = client ]; then
		send_lines "$ALWAYS"
		open_x a
		p a "store 200704 64 1"
		p a "pwrite 204800 64 0"
		check vm_ctl link client down
		p a "within $CALL_MS ! EIO msync 0 1000001"
		p a "store 200768 64 1" # after the failure
		send_lines "$NEVER"     # what is owed is sent all the same
		p a "store 200832 64 1"
		check vm_ctl link client up
		eventually 60 region_is x active
		p a "msync 0 1000001"
		p a "expect 200704 192 1"
		check_equal "dirty bytes" "$(counter target:x dirty_bytes)" 0
		probe_close a
	fi
	barrier sent
	on target probe_script "open r /dev/shm/x" "pexpect 200704 192 1" "pexpect 204800 64 0"
	barrier checked
}

failed_store_is_taken_back() {
	on client send_lines "$ALWAYS"
	barrier lines
	store_taken_back x 212992 "$CALL_MS"
}

# epochs NUMBER WORKLOAD: of smcbench, which opens the region anew; sets sent and compared, in bytes.
epochs() {
	sent=$(counter target:big flush_bytes)
	compared=$(counter target:big sampled_sent_bytes)
	check smcbench run --write /smc/target/big "$2" --reps "$1"
	sent=$(($(counter target:big flush_bytes) - sent))
	compared=$(($(counter target:big sampled_sent_bytes) - compared))
	echo "$1 epochs of $2 send $sent bytes, of which $compared were looked at"
}

# A thousand stores here and there: a packet of 1,024 bytes, which all path MTUs allow, takes as long as
# a line, so a page takes four times as long.
cheaper_is_sent() {
	local sent compared whole
	if [ "$NODE" = client ]; then
		send_lines "$NEVER"
		epochs $FEW sparse_64b
		whole=$sent
		check_equal "bytes that were looked at" "$compared" 0
		send_lines "$BY_COST"
		# Also of pages that became hot meanwhile.
		epochs $MANY sparse_64b
		check [ "$sent" -gt 0 ]
		check [ "$sent" -lt $((whole * MANY / FEW / 2)) ]
		epochs $FEW sparse_64b
		check [ "$sent" -gt 0 ]
		check [ "$sent" -lt $((whole / 4)) ]
		# Pages of which all is written are whole again, from where they are.
		epochs $MANY bulk_4m
		epochs $FEW bulk_4m
		check_equal "bytes that were looked at" "$compared" 0
	fi
	barrier measured
}

case_ "the product starts on both nodes" start
case_ "the parameter takes what it knows" parameter_is_checked
case_ "what was not changed is not sent" only_changes_are_sent
case_ "one way gives way to the other, and no store is lost" ways_alternate
case_ "after a failed write the lines are owed" failed_write_is_owed
case_ "a store that failed, and was taken back, is taken back at the target" failed_store_is_taken_back
case_ "what is cheaper is sent" cheaper_is_sent
case_ "everything is put away, and the module unloads" product_stop
pass
