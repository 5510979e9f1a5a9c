#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 cpus=2 numa=2 kernels=6.1,6.12 timeout=600
#
#     client: loads, in an order                                         -- rxe --  target: a file
#     processor 0 and memory 0 | processor 1, memory 1 and the network card
#
# Claim: what is fetched besides the page that is needed: its granule, all of it and no more; the next
# pages of a walk with a constant stride; nothing for one that jumps about. What is sent is staged and
# sent from near the card.
. "$SMC_ROOT/tests/vm/lib-product.sh"

SIZE=$((64 * 1024 * 1024 + 5000)) # the last granule is not whole
MIB=$((1024 * 1024))

start() {
	[ "$NODE" != client ] ||
		check_equal "NUMA node of the card" "$(</sys/class/net/eth0/device/../numa_node)" 1
	product_start
	on target export_file f "$SIZE"
	on target probe_script "open rw /dev/shm/f" "pwrite 0 $SIZE 7"
	barrier exported
	on client check smcctl attach target:f
}

# open_fresh PROBE: mapped, and nothing is cached.
open_fresh() {
	probe_open "$1"
	p "$1" "open rw /smc/target/f"
	p "$1" "map rw shared 0 0"
	p "$1" "acquire 0 $SIZE"
	check_equal "bytes cached" "$(counter target:f cached_bytes)" 0
	BEFORE=$(counter target:f fetch_bytes)
	FAULTS=$(counter target:f fetch_faults)
}

fetched_is() { check_equal "bytes fetched" "$(($(counter target:f fetch_bytes) - BEFORE))" "$1"; }
faulted_is() { check_equal "faults that fetched" "$(($(counter target:f fetch_faults) - FAULTS))" "$1"; }

# minor_faults PROBE: so far, of the process.
minor_faults() { awk '{ print $10 }' "/proc/${PROBE_PID[$1]}/stat"; }

# granule BYTES ADVICE: wherever in a granule the first load is, the granule comes.
granule() {
	local bytes=$1 advice=$2 minor at=$((3 * MIB + $1 / 2))
	[ "$NODE" = client ] || return 0
	check smcctl set target:f granule="$bytes"
	open_fresh a
	[ "$advice" = normal ] || p a "$advice"
	p a "expect $at 1 7"
	fetched_is "$bytes"
	minor=$(minor_faults a)
	p a "expect $((at / bytes * bytes)) $bytes 7"
	fetched_is "$bytes"
	faulted_is 1
	# One maps the rest; and a few of the program itself.
	check [ $(($(minor_faults a) - minor)) -le 8 ]
	# A store brings it as well; what a file ends with comes alone.
	p a "store $((40 * MIB + bytes - 1)) 1 7"
	fetched_is $((2 * bytes))
	p a "load $((SIZE - 1)) 1"
	fetched_is $((2 * bytes + SIZE % bytes))
	# And read(2).
	p a "pread $((20 * MIB + bytes / 2)) 10"
	fetched_is $((3 * bytes + SIZE % bytes))
	p a fsync
	probe_close a
	check smcctl set target:f granule=4096
}

granule_is_checked() {
	local bad
	[ "$NODE" = client ] || return 0
	check_equal "granule" "$(smcctl get target:f granule)" 4096
	for bad in 0 4095 6K 2M -1 much; do
		check_fails smcctl set target:f granule="$bad"
	done
	check_equal "granule" "$(smcctl get target:f granule)" 4096
}

# A sequential walk is fetched as before: in few, wide steps.
sequential() {
	local at
	[ "$NODE" = client ] || return 0
	check smcctl set target:f granule="$1"
	open_fresh a
	for ((at = 0; at < MIB; at += 4096)); do
		p_quiet a "expect $at 1 7"
	done
	check [ $(($(counter target:f fetch_faults) - FAULTS)) -le $((MIB / 4096 / 16)) ]
	# Not more than a window, or a granule, beyond the end.
	check [ $(($(counter target:f fetch_bytes) - BEFORE)) -le $((MIB + ($1 > 131072 ? $1 : 131072))) ]
	probe_close a
	check smcctl set target:f granule=4096
}

# walk CALL START STRIDE COUNT
walk() {
	local call=$1 at=$2 stride=$3 count=$4 i
	for ((i = 0; i < count; i++)); do
		p_quiet a "$call $((at + i * stride)) 1 7"
	done
}

# The third miss brings 2 accesses more, the next 4, 8, 16: so many of 33 have to wait.
strided() {
	local start=$1 stride=$2
	[ "$NODE" = client ] || return 0
	open_fresh a
	walk expect "$start" "$stride" 33
	faulted_is 6
	# Around the first two the core read ahead; then page by page.
	check [ $(($(counter target:f fetch_bytes) - BEFORE)) -le $((2 * 131072 + 64 * 4096)) ]
	probe_close a
}

# read(2) looks no further than what it needs, until there is a stride.
strided_reads() {
	[ "$NODE" = client ] || return 0
	open_fresh a
	walk pexpect $((2 * MIB)) 300000 2
	fetched_is $((2 * 4096))
	walk pexpect $((2 * MIB + 600000)) 300000 1
	fetched_is $((5 * 4096))
	walk pexpect $((2 * MIB + 900000)) 300000 2
	fetched_is $((5 * 4096))
	probe_close a
}

jumps() {
	local page before=0 i
	[ "$NODE" = client ] || return 0
	open_fresh a
	RANDOM=$((SEED % 32768))
	for ((i = 0; i < 40; i++)); do
		page=$(((RANDOM * 32768 + RANDOM) % (SIZE / 4096)))
		# The first page, and the next, are read as by a program that goes on behind them.
		if [ $page -eq 0 ] || [ $page -eq $((before + 1)) ]; then
			continue
		fi
		before=$page
		p_quiet a "pexpect $((page * 4096)) 1 7"
	done
	# Not a page that was not asked for; the same one twice is fetched once.
	check [ $(($(counter target:f fetch_bytes) - BEFORE)) -le $((40 * 4096)) ]
	probe_close a
}

# allocated NODE: pages that were ever taken from its memory.
allocated() { awk '$1 == "numa_hit" || $1 == "numa_miss" { n += $2 } END { print n }' "/sys/devices/system/node/node$1/numastat"; }

batches_on() { grep smcfs_flush_batch /sys/kernel/tracing/instances/fetch/trace | awk -v cpu="[00$1]" '$3 == cpu || $2 == cpu { n++ } END { print n + 0 }'; }

# The daemon and the program are elsewhere. Staging pages are the card's; the flusher, which compares and copies, runs beside it.
near_the_card() {
	local byte before trace=/sys/kernel/tracing/instances/fetch
	on target export_file merged 1M
	barrier merged
	[ "$NODE" = client ] || return 0
	taskset -cp 0 $BASHPID >/dev/null
	# The first region of a session brings the staging pages.
	check smcctl detach target:f
	check stop_daemon
	check start_daemon
	before=$(allocated 1)
	check eventually 60 smcctl attach target:merged
	check [ $(($(allocated 1) - before)) -ge 256 ]
	mkdir "$trace"
	echo 1 >"$trace/events/smcfs/smcfs_flush_batch/enable"
	check smcctl set target:merged flush_after_ms=10
	probe_open a taskset -c 0
	p a "open rw /smc/target/merged"
	p a "map rw shared 0 0"
	p a "load 0 1M"
	before=$(allocated 1)
	p a "store 0 1M 9"
	# A twin for each page that was stored to.
	check [ $(($(allocated 1) - before)) -ge 256 ]
	for byte in 10 11 12 13 14 15 16 17; do
		eventually 20 counter_is target:merged dirty_bytes 0
		p a "store 0 1M $byte"
	done
	eventually 20 counter_is target:merged dirty_bytes 0
	check grep smcfs_flush_batch "$trace/trace"
	# From 6.6 on a worker begins there, and is moved where there is room.
	check [ "$(batches_on 1)" -gt "$(batches_on 0)" ]
	echo 0 >"$trace/events/smcfs/smcfs_flush_batch/enable"
	rmdir "$trace"
	probe_close a
}

case_ "the product starts on both nodes" start
case_ "granules are checked" granule_is_checked
for bytes in 8192 131072 1048576; do
	case_ "a granule of $bytes comes as a whole" granule $bytes normal
done
for bytes in 65536 1048576; do
	case_ "a granule of $bytes comes as a whole, with MADV_RANDOM" granule $bytes random
done
for bytes in 4096 65536 1048576; do
	case_ "a sequential walk is read ahead, granule $bytes" sequential $bytes
done
case_ "a stride is found" strided $((5 * MIB)) $MIB
case_ "one that goes down, too" strided $((50 * MIB)) $((-20 * 65536))
case_ "and one of reads" strided_reads
case_ "a program that jumps about gets what it asks for" jumps
case_ "what is sent is staged near the card" near_the_card
case_ "everything is put away, and the module unloads" product_stop
pass
