#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12 timeout=600
#
#     client:  probe ---> /smc/fuzz-node/large, 16 TiB           /dev/shm/standin, 20 MiB
#                             |                                       |
#                         smcfs.ko -- RDMA, rxe looped back --> smcfs-standin (daemon and target)
#
# Claim: regions above 4 GiB and up to 16 TiB behave to the byte at their start, across 4 GiB, in the middle
# and at their end, whatever the remote alignment; no transfer goes beside what is asked for (most of the
# region is no memory, and touching that ends the session); and they cost memory for what is touched,
# not for what they could hold.
. "$SMC_ROOT/tests/vm/lib-product.sh"

K=1024 M=$((1024 * 1024)) G=$((1024 * 1024 * 1024)) T=$((1024 * 1024 * 1024 * 1024))
WINDOW=$((4 * M)) STRIDE=$((5 * M)) # as in smcfs-standin
FILE=/dev/shm/standin
LARGE=/smc/fuzz-node/large
AVAILABLE_KB=49152 SLAB_KB=8192 # the test touches some 10 MiB

own_address() { getent ahostsv4 "$NODE" | head -n 1 | cut -d' ' -f1; }
meminfo() { awk -v key="$1:" '$1 == key { print $2 }' /proc/meminfo; }
is_ready() { grep -qs ready /run/vm/standin.out; }

module_without_daemon() {
	load_module
	mount_smc
}

# In the middle of a window: bytes on both sides of a page's border, by every way in and out.
middle_of_window() { # WHERE-IN-FILE OFFSET-IN-REGION
	local file=$1 middle=$2
	check probe_script "open rw $LARGE" "pexpect $((middle - 8 * K)) $((16 * K)) 0" \
		"pwrite $((middle - 3)) 6 65" "fsync" \
		"map rw shared $((middle - 8 * K)) $((32 * K))" "expect $((8 * K - 3)) 6 65" \
		"store $((16 * K - 100)) 300 66" "msync 0 $((32 * K))" \
		"use 1" "open rw+direct $LARGE" "pwrite $((middle + 64 * K)) $((8 * K)) 67" \
		"pexpect $((middle + 64 * K)) $((8 * K)) 67"
	check probe_script "open rw $FILE" "pexpect $((file - 1003)) 1000 0" \
		"pexpect $((file - 3)) 6 65" "pexpect $((file + 3)) $((8 * K - 103)) 0" \
		"pexpect $((file + 8 * K - 100)) 300 66" "pexpect $((file + 8 * K + 200)) 1000 0" \
		"pexpect $((file + 64 * K)) $((8 * K)) 67" "pwrite $((file - 1)) 2 68"
	check probe_script "open r $LARGE" "acquire $((middle - 1)) 2" "pexpect $((middle - 3)) 2 65" \
		"pexpect $((middle - 1)) 2 68" "pexpect $((middle + 1)) 2 65" \
		"pread $((middle - M)) $((2 * M - 256 * K))"
}

# The last bytes, and that there are no others; reading up to them looks no further.
end_of_region() { # WHERE-IN-FILE SIZE
	local file=$1 size=$2 page=$((($2 - 1) / 4096 * 4096))
	check probe_script "open rw $LARGE" "size $size" "blocks $(((size + 511) / 512))" "seek-end $size" \
		"pread $((size - M)) $M" "read-short $((size - 10)) 64 10" "read-at-end $size" \
		"! ENOSPC pwrite $size 1 1" "pwrite $((size - 5)) 5 69" "fsync" "acquire $((size - 100)) 0" \
		"pexpect $((size - 5)) 5 69" "pexpect $((size - 100)) 95 0" \
		"map rw shared $page 4096" "store $((size - page - 3)) $((page + 4096 - size + 3)) 70" \
		"msync 0 4096" "acquire $page 0" "pexpect $((size - 3)) 3 70" \
		"! EPERM truncate $((size - 1))"
	check probe_script "open r $FILE" "pexpect $((file - 5)) 2 69" "pexpect $((file - 3)) 3 70" \
		"pexpect $file 4096 0"
	check probe_script "open r $LARGE" "acquire 0 0" "map r shared $((page + 4096 - M)) $M" "load 0 $M"
}

# Calls on all of it take the time that the touched part takes.
whole_region() { # SIZE OFFSET
	check probe_script "open rw $LARGE" "map rw shared 0 0" "store $2 1 71" "within 20000 msync 0 $1" \
		"within 20000 fsync" "within 20000 acquire 0 0" "expect $2 1 71" "within 20000 unmap"
}

large_region() { # SIZE SKEW WINDOW...
	local size=$1 skew=$2 available slab pid window number=0
	shift 2
	rm -f /run/vm/standin.out
	smcfs-standin --address "$(own_address)" --name large --size "$size" --file $FILE --skew "$skew" \
		"$@" >/run/vm/standin.out </dev/null &
	pid=$!
	echo $pid >/run/vm/standin.pid
	eventually 60 is_ready
	available=$(meminfo MemAvailable) slab=$(meminfo Slab)
	for window in "$@"; do
		if [ $((window + WINDOW)) -le "$size" ]; then
			middle_of_window $((number * STRIDE + skew + WINDOW / 2)) $((window + WINDOW / 2))
		fi
		number=$((number + 1))
	done
	end_of_region $(((number - 1) * STRIDE + skew + size - window)) "$size"
	whole_region "$size" $((window + 300 * K))
	available=$((available - $(meminfo MemAvailable))) slab=$(($(meminfo Slab) - slab))
	echo "a region of $size bytes took $available KB, $slab KB of it slab"
	[ $available -lt $AVAILABLE_KB ] || fail "$available KB of memory are gone"
	[ $slab -lt $SLAB_KB ] || fail "$slab KB of slab are gone"
	check probe_script "open r $LARGE" "size $size" # the session has survived all of it
	kill -TERM $pid
	check wait $pid
	rm $FILE /run/vm/standin.pid
}

# When a case failed halfway.
end_standin() { [ ! -e /run/vm/standin.pid ] || stop_process "$(cat /run/vm/standin.pid)" 30; }
defer end_standin

nothing_is_left() {
	check umount /smc
	check rmmod smcfs
}

case_ "the module alone" on client module_without_daemon
case_ "a few bytes above 4 GiB" on client large_region $((4 * G + 7)) 0 0 $((4 * G - 2 * M - 128 * K))
case_ "above 4 GiB, and no multiple of anything" on client large_region $((4 * G + 3 * M + 1234)) 77 \
	0 $((4 * G - 2 * M)) $((4 * G + 2 * M))
case_ "16 TiB and no byte less" on client large_region $((16 * T)) 4001 \
	$((4 * G - 2 * M)) $((8 * T - 2 * M)) $((16 * T - 4 * M))
case_ "16 TiB less one" on client large_region $((16 * T - 1)) 1 0 $((4 * G - 2 * M)) $((16 * T - 4 * M))
case_ "nothing is left" on client nothing_is_left
pass
