#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client: programs in a memory cgroup, which dirty more than it may hold  -- rxe --  target: a file
#
# Claim: what a program has dirty counts as its memory, twins too; when that is more than its cgroup may
# have it is written back: nobody is killed, nothing stalls, no byte is lost, with hot pages or not.
. "$SMC_ROOT/tests/vm/lib-product.sh"

CGROUP=/sys/fs/cgroup/small
# What the cgroup may have, and what its program keeps dirty, in MB.
LIMIT_MB=8 SIZE_MB=24 PASSES=1
[ "$KERNEL" != debug ] || LIMIT_MB=4 SIZE_MB=8 PASSES=1
[ "$SOAK" = 0 ] || PASSES=50

make_cgroup() { # make_cgroup BYTES
	mkdir "$CGROUP"
	echo "$1" >"$CGROUP/memory.max"
}

# in_cgroup COMMAND...: and all that it starts.
in_cgroup() {
	(
		echo $BASHPID >"$CGROUP/cgroup.procs"
		exec "$@"
	)
}

event() { awk -v name="$1" '$1 == name { print $2 }' "$CGROUP/memory.events"; }

# The limit was felt, and nobody was killed for it.
remove_cgroup() {
	paste -sd ' ' "$CGROUP/memory.events"
	check_equal "tasks that were killed" "$(event oom_kill)" 0
	check [ "$(event max)" -gt 0 ]
	eventually 30 rmdir "$CGROUP"
}

kernel_bytes() { awk '$1 == "kernel" { print $2 }' "$CGROUP/memory.stat"; }
kernel_bytes_are() { [ "$(kernel_bytes)" -ge "$1" ]; }

# A page that is dirty by a store counts twice: for itself, and for its twin.
twins_are_charged() {
	local before size=$((1024 * 1024))
	on target export_file m "$size"
	barrier exported
	if [ "$NODE" = client ]; then
		check smcctl attach target:m
		check smcctl set target:m flush_after_ms=3600000
		make_cgroup $((64 * 1024 * 1024))
		probe_open a in_cgroup
		p a "open rw /smc/target/m"
		p a "map rw shared 0 0"
		p a "load 0 $size"
		before=$(kernel_bytes)
		p a "store 0 $size 1"
		eventually 20 kernel_bytes_are $((before + size))
		probe_close a
		rmdir "$CGROUP"
	fi
	barrier charged
	on target unexport m
}

# swept HOT WRITERS: every page several times in a row, so that it is hot if it can be, and on to the next.
swept() {
	local hot=$1 writers=$2 rounds=1 options
	[ "$hot" = off ] || rounds=4
	options=(--passes "$PASSES" --rounds "$rounds" --chunk 1M --seed "$SEED")
	on target export_file s "${SIZE_MB}M" --writers "$writers"
	barrier exported
	if [ "$NODE" = client ]; then
		check smcctl attach target:s
		check smcctl set target:s "hot=$hot"
		make_cgroup "${LIMIT_MB}M"
		check in_cgroup sweep /smc/target/s "${options[@]}"
		remove_cgroup
	fi
	barrier swept
	on target check sweep /dev/shm/s --check "${options[@]}"
	on target unexport s
}

case_ "the product starts on both nodes" product_start
case_ "the kernel says whether it has hot pages" hot_pages_exist
HOT=$(</run/vm/hot)
case_ "twins are charged to whoever stores" twins_are_charged
case_ "more is dirtied than the cgroup may have" swept off merge
[ "$HOT" = no ] || case_ "more is hot than the cgroup may have" swept on merge
[ "$HOT" = no ] || case_ "the same, exclusive" swept on exclusive
case_ "everything is put away, and the module unloads" product_stop
pass
