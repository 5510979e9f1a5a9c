#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1 timeout=1200
#
#     client                                     target
#     dd cp cmp python3 numpy fio                accel-standin: its own process, knows no SMC
#         | loads, stores, read, write               | loads, stores, polls a flag
#     /smc/target/weights, /smc/target/jobs      /dev/shm/weights, /dev/shm/jobs
#         `---------------- RDMA (soft-RoCE) ---------'
#
# The guests' half of scripts/demo: it tells what it does, and each claim that it makes is checked.
# With DEMO_SHELL=1 it only prepares, and leaves everything running.
. "$SMC_ROOT/tests/vm/lib-product.sh"

MIB=16
SIZE=$((MIB * 1024 * 1024))
JOBS=3

start() {
	on client say "Two nodes, each with a network card that does RDMA in software; kernel $(uname -r)."
	on client say "Starting smcfsd on both; on the client also the module, and /smc is mounted."
	mkdir -p /run/smcfs
	product_start
	on target say "target: smcctl export weights --file /dev/shm/weights   ($MIB MiB)"
	on target export_file weights "$SIZE"
	on target export_file jobs 8M
	barrier exported
	on client say "client: ls -l /smc/target"
	if [ "$NODE" = client ]; then
		# shellcheck disable=SC2012 # for people to read
		ls -l /smc/target | tail -n +2 | while IFS= read -r line; do say "    $line"; done
	fi
	barrier shown
}

copy_in_and_out() {
	if [ "$NODE" = client ]; then
		local chunk
		pattern "$SIZE" 1 >/tmp/weights
		say "client: dd if=weights of=/smc/target/weights, a quarter at a time"
		for chunk in 0 1 2 3; do
			dd if=/tmp/weights of=/smc/target/weights bs=1M count=$((MIB / 4)) \
				skip=$((chunk * MIB / 4)) seek=$((chunk * MIB / 4)) conv=notrunc,fsync status=none
			say "    $(((chunk + 1) * MIB / 4)) of $MIB MiB are in the target's memory"
		done
		say "client: cmp weights /smc/target/weights; cp /smc/target/weights back; cmp back weights"
		check cmp /tmp/weights /smc/target/weights
		check cp /smc/target/weights /tmp/back
		check cmp /tmp/back /tmp/weights
	fi
	barrier copied
	on target check cmp /dev/shm/weights <(pattern "$SIZE" 1)
	on target say "target: its memory holds the same $SIZE bytes"
}

numpy_on_a_region() {
	if [ "$NODE" = client ]; then
		say "client: numpy.memmap('/smc/target/weights', mode='r+'), a little arithmetic, flush()"
		put sum "$(/usr/bin/python3 "$SMC_ROOT/tests/vm/src/python_programs.py" numpy_memmap /smc/target/weights)"
	fi
	barrier written
	on target check_equal "the target's memory" "$(sha256sum </dev/shm/weights | cut -d' ' -f1)" "$(get sum)"
	on target say "target: its memory has the SHA-256 that the client's array has"
}

fio_on_a_region() {
	if [ "$NODE" = client ]; then
		say "client: fio --ioengine=mmap --rw=randwrite --verify=crc32c on $((MIB / 4)) MiB"
		check fio --name=demo --filename=/smc/target/weights --size=$((MIB / 4))M --ioengine=mmap \
			--rw=randwrite --bs=4k --verify=crc32c --do_verify=1 --fallocate=none --thread \
			--output-format=terse --output=/tmp/fio
		say "    every block was written, flushed, read again and had the right checksum"
	fi
	barrier verified
}

drive_the_accelerator() {
	if [ "$NODE" = target ]; then
		say "target: an accelerator's program maps /dev/shm/jobs and polls a flag in it"
		accel-standin /dev/shm/jobs "$JOBS" </dev/null >/tmp/accelerator &
		eventually 30 grep -q polling /tmp/accelerator
	fi
	barrier polling
	if [ "$NODE" = client ]; then
		say "client: stores the input, msync, writes the flag, waits for the result's flag, reads it"
		/usr/bin/python3 "$SMC_ROOT/tests/demo/drive_accelerator.py" /smc/target/jobs "$JOBS" |
			while IFS= read -r line; do say "    $line"; done
	fi
	barrier driven
	if [ "$NODE" = target ]; then
		check wait $!
		while IFS= read -r line; do say "    $line"; done < <(grep numbers, /tmp/accelerator)
	fi
}

account() {
	local region
	if [ "$NODE" = client ]; then
		say "What that took, by smcctl stats:"
		for region in weights jobs; do
			say "    $region: $(amount flush_bytes) sent by $(counter "target:$region" flush_ops) RDMA WRITEs," \
				"$(amount fetch_bytes) fetched by $(counter "target:$region" fetch_ops) RDMA READs," \
				"$(counter "target:$region" barriers) barriers, $(counter "target:$region" errors) errors"
			check [ "$(counter "target:$region" flush_bytes)" -gt 0 ]
			check [ "$(counter "target:$region" fetch_bytes)" -gt 0 ]
			check_equal "failed requests" "$(counter "target:$region" errors)" 0
		done
	fi
	barrier told
}
amount() { numfmt --to=iec-i --suffix=B "$(counter "target:$region" "$1")"; }

case_ "two nodes, a region under /smc" start
if [ "${DEMO_SHELL:-0}" = 0 ]; then
	case_ "dd, cp and cmp" copy_in_and_out
	case_ "numpy.memmap" numpy_on_a_region
	case_ "fio with verify" fio_on_a_region
	case_ "the round trip to an accelerator and back" drive_the_accelerator
	case_ "bytes moved and RDMA operations" account
	case_ "everything is put away, and the module unloads" product_stop
else
	# Nothing is put away: the user goes on from here.
	# shellcheck disable=SC2034 # lib.sh runs what is in it
	SMC_CLEANUPS=()
fi
pass
