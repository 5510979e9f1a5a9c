#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mem=400 target_mem=1200 mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client (400 MB): a program holds half of the memory, another dirties a region;
#                      or one dirties a region that is larger than the memory
#
# Claim: with little memory write-back makes progress: nobody is killed, nothing stalls, no byte is lost.
. "$SMC_ROOT/tests/vm/lib-product.sh"

DIRTY_MB=96
# A card needs no memory to send; soft-RoCE takes 8 KiB for each packet of 4, cannot wait for it,
# and fails the queue pair when it is refused. When page blocks get mixed the kernel raises the least
# that must stay free by up to 5 MB, twice what is free here, and exempts nothing but single pages.
BOOST=$(sysctl -n vm.watermark_boost_factor)
defer sysctl -q "vm.watermark_boost_factor=$BOOST"
sysctl -q vm.watermark_boost_factor=0

# little_memory HOT: with pages that stay writable, or not.
little_memory() {
	local round rounds=()
	on target export_file big "${DIRTY_MB}M"
	barrier exported
	if [ "$NODE" = client ]; then
		check smcctl attach target:big
		check smcctl set target:big "hot=$1"
		for round in $([ "$1" = off ] || echo 3 4) 2; do # until pages are hot
			rounds+=("store 0 ${DIRTY_MB}M $round" fsync)
		done
		# Memory that cannot be given back: there is no swap.
		local hog_mb=$(($(awk '/^MemAvailable/ {print $2}' /proc/meminfo) / 1024 - 70))
		/usr/bin/python3 - "$hog_mb" <<-'PY' &
			import mmap, signal, sys
			hog = mmap.mmap(-1, int(sys.argv[1]) << 20)
			for page in range(0, len(hog), 4096):
			    hog[page] = 1
			open("/run/vm/hog-ready", "w").close()
			signal.pause()
		PY
		local hog=$!
		eventually 60 test -e /run/vm/hog-ready
		free -m
		check probe_script "open rw /smc/target/big" "map rw shared 0 0" \
			"store 0 ${DIRTY_MB}M 1" "msync 0 ${DIRTY_MB}M" "expect 0 ${DIRTY_MB}M 1" \
			"${rounds[@]}"
		kill $hog
		rm /run/vm/hog-ready
	fi
	barrier written
	on target probe_script "open r /dev/shm/big" "pexpect 0 ${DIRTY_MB}M 2"
	on target unexport big
}

# more_than_memory HOT: every byte of a region that this node could not hold; what comes first is hot, if it
# can be, and in the way of what follows.
more_than_memory() {
	local hot=$1 mb kills options=(--chunk 8M --seed "$SEED")
	[ "$hot" = off ] || options+=(--rounds 4 --again 64M)
	[ "$NODE" != client ] || put mb $(($(awk '/^MemTotal/ {print $2}' /proc/meminfo) / 1024 + 80))
	mb=$(get mb)
	on target export_file beyond "${mb}M"
	barrier exported
	if [ "$NODE" = client ]; then
		kills=$(oom_kills)
		check smcctl attach target:beyond
		check smcctl set target:beyond "hot=$hot"
		check sweep /smc/target/beyond "${options[@]}"
		check_equal "tasks that were killed" "$(oom_kills)" "$kills"
	fi
	barrier swept
	on target check sweep /dev/shm/beyond --check "${options[@]}"
	on target unexport beyond
}
oom_kills() { awk '$1 == "oom_kill" { print $2 }' /proc/vmstat; }

case_ "the product starts on both nodes" product_start
case_ "a dirty set larger than free memory is written without a stall" little_memory off
case_ "the same, with hot pages" little_memory on
case_ "the kernel says whether it has hot pages" hot_pages_exist
HOT=$(</run/vm/hot)
# Minutes: a part of the long form.
if [ "$SOAK" = 1 ]; then
	case_ "more than all of the memory is dirtied, and not a byte lost" more_than_memory off
	[ "$HOT" = no ] || case_ "the same, with hot pages" more_than_memory on
fi
case_ "everything is put away, and the module unloads" product_stop
pass
