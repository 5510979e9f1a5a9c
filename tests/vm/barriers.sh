#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12,debug timeout=1200
#
#     client: two storing threads, two barrier threads  -- rxe --  target: model-target
#
# Claim: a store that races a loop of msync is never lost, and two barriers at once are both true;
# what was stored before a barrier began is on the target when it returns. Acquire waits for pages
# that are in use.
. "$SMC_ROOT/tests/vm/lib-product.sh"

BARRIERS=200
[ "$KERNEL" != debug ] || BARRIERS=20
[ "$SOAK" = 0 ] || BARRIERS=20000

LINES_PARAMETER=/sys/module/smcfs/parameters/exclusive_lines

race() {
	on target export_file race 1M
	on target serve_memory race
	barrier served
	on client check barrier-race --region /smc/target/race --target "tcp:target:$TARGET_PORT" \
		--barriers "$BARRIERS"
	barrier finished
	on target stop_serving
	on target unexport race
}

# O_SYNC and every kind of sync call is a barrier; each is checked on the target.
every_barrier() {
	on target export_file sync 1M
	barrier exported
	local n=1 call
	for call in "msync 0 4096" "fsync" "fdatasync" "syncfs"; do
		on client probe_script "open rw /smc/target/sync" "map rw shared 0 0" "store 0 4096 $n" \
			"pwrite 8192 100 $n" "msync 8192 4096" "$call"
		barrier "stored $n"
		on target probe_script "open r /dev/shm/sync" "pexpect 0 4096 $n" "pexpect 8192 100 $n"
		barrier "checked $n"
		n=$((n + 1))
	done
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw+sync /smc/target/sync"
		p a "pwrite 100 5000 77"
	fi
	barrier "O_SYNC returned"
	on target probe_script "open r /dev/shm/sync" "pexpect 100 5000 77"
	barrier "O_SYNC checked"
	if [ "$NODE" = client ]; then
		p a "close"
		p a "open rw+direct /smc/target/sync"
		p a "pwrite 4096 8192 78"
	fi
	barrier "O_DIRECT returned"
	on target probe_script "open r /dev/shm/sync" "pexpect 4096 8192 78" "pexpect 100 3996 77"
	barrier "O_DIRECT checked"
	on client probe_close a
	barrier closed
	on target unexport sync
}

# A page that somebody holds is waited for, and for ever by nobody.
acquire_of_held_pages() {
	on target export_file held 64K
	barrier exported
	on client probe_script "open rw /smc/target/held" "pread 0 65536" \
		"hold 4096" "acquire-release 0 65536" \
		"pread 0 65536" "hold 4096" "within 20000 after 1500 ! EBUSY acquire 0 65536" \
		"release" "acquire 0 65536" "close"
	barrier acquired
	on target unexport held
}

# Who only holds a page of a large folio looks like one who may write to it. It was sent all the
# same, and must not be sent again over what the target wrote to it since.
barrier_of_held_pages() {
	on target export_file held 64K --writers exclusive
	barrier exported
	if [ "$NODE" = client ]; then
		echo 0 >"$LINES_PARAMETER"
		check smcctl attach target:held
		check smcctl set target:held granule=64K hot=off flush_after_ms=3600000
		probe_open a
		p a "open rw /smc/target/held"
		p a "map rw shared 0 0"
		p a "hold 12288"
		p a "store 12288 100 7"
		p a fsync
		check_equal "dirty bytes after a barrier" "$(counter target:held dirty_bytes)" 0
	fi
	barrier "sent with its page held"
	on target probe_script "open rw /dev/shm/held" "pexpect 12288 100 7" "pwrite 12288 100 8"
	barrier "the target wrote"
	if [ "$NODE" = client ]; then
		p a release
		p a "store 20480 100 9"
		p a fsync
	fi
	barrier "sent with no page held"
	on target probe_script "open r /dev/shm/held" "pexpect 12288 100 8" "pexpect 20480 100 9"
	barrier checked
	if [ "$NODE" = client ]; then
		probe_close a
		echo 2 >"$LINES_PARAMETER"
	fi
	barrier closed
	on target unexport held
}

# fail_one_page PROBE CALL: without the first page of memory that it asks for.
fail_one_page() {
	local faults=/sys/kernel/debug/fail_page_alloc pid=${PROBE_PID[$1]}
	echo N >$faults/ignore-gfp-wait
	echo 0 >$faults/min-order
	echo 0 >$faults/verbose
	echo Y >$faults/task-filter
	echo 100 >$faults/probability
	echo 1 >$faults/times
	echo 1 >"/proc/$pid/make-it-fail"
	p "$1" "$2"
	echo 0 >"/proc/$pid/make-it-fail"
	check_equal "failures that are left" "$(cat $faults/times)" 0
	echo 0 >$faults/probability
}

# A page of an exclusive region without memory for a copy is sent as a whole, each time that it is stored to
# and at no other.
whole_without_memory() {
	local before
	export SENDS_FROM=target:whole
	on target export_file whole 64K --writers exclusive
	barrier exported
	if [ "$NODE" = client ]; then
		echo 1 >"$LINES_PARAMETER"
		check smcctl attach target:whole
		check smcctl set target:whole granule=64K hot=off flush_after_ms=3600000
		probe_open a
		p a "open rw /smc/target/whole"
		p a "map rw shared 0 0"
		p a "load 0 65536"
		sends 64 a "store 0 64 1"
		before=$(counter target:whole flush_bytes)
		fail_one_page a "store 12288 64 2"
		p a fsync
		check_equal "bytes sent without a copy" \
			$(($(counter target:whole flush_bytes) - before)) 4096
		p a "hold 12288"
		sends 4160 a "store 12352 64 3" "store 64 64 1"
	fi
	barrier "sent with its page held"
	on target probe_script "open rw /dev/shm/whole" "pexpect 0 128 1" "pexpect 12288 64 2" \
		"pexpect 12352 64 3" "pwrite 16320 64 4"
	barrier "the target wrote"
	if [ "$NODE" = client ]; then
		p a release
		sends 64 a "store 128 64 1"
	fi
	barrier "another page is sent"
	on target probe_script "open r /dev/shm/whole" "pexpect 16320 64 4" "pexpect 0 192 1"
	barrier checked
	if [ "$NODE" = client ]; then
		probe_close a
		echo 2 >"$LINES_PARAMETER"
	fi
	barrier closed
	on target unexport whole
}

case_ "the product starts on both nodes" product_start
case_ "each kind of barrier is one" every_barrier
case_ "acquire waits for pages that are held, and not for ever" acquire_of_held_pages
case_ "a page that is held when it is sent is sent once" barrier_of_held_pages
# Other kernels cannot make memory fail.
[ "$KERNEL" != debug ] ||
	case_ "without memory for a copy a page is sent as a whole" whole_without_memory
case_ "a store that races msync is not lost, and two barriers are both true" race
case_ "everything is put away, and the module unloads" product_stop
pass
