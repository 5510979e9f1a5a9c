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

case_ "the product starts on both nodes" product_start
case_ "each kind of barrier is one" every_barrier
case_ "acquire waits for pages that are held, and not for ever" acquire_of_held_pages
case_ "a store that races msync is not lost, and two barriers are both true" race
case_ "everything is put away, and the module unloads" product_stop
pass
