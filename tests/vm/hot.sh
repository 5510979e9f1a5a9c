#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client: pages that stay writable  -- rxe --  target: /dev/shm/m (merge), /dev/shm/x (exclusive)
#
# Claim: pages that are hot, written over and over without a fault, lose no store: not to munmap with
# DONTNEED, reclaim, exit, sync(2), an acquire, or a barrier at the same time as another.
. "$SMC_ROOT/tests/vm/lib-product.sh"

LENGTH=262144
ROUNDS=6

hot_bytes() { smcctl -j regions | tr -d ' \n' | grep -o "\"hot_bytes\":[0-9]*[^{}]*\"name\":\"$1\"" | grep -o '[0-9]*' | head -n 1; }
is_hot() { [ "$(hot_bytes "$1")" -ge "$2" ]; }
is_cool() { [ "$(hot_bytes "$1")" = 0 ]; }

# heat PROBE: barriers enough that its pages are hot; they hold ROUNDS then.
heat() {
	local n
	for ((n = 1; n <= ROUNDS; n++)); do
		p "$1" "store 0 $LENGTH $n"
		p "$1" "msync 0 $LENGTH"
	done
}

open_hot() { # PROBE REGION
	probe_open "$1"
	p "$1" "open rw /smc/target/$2"
	p "$1" "map rw shared 0 0"
	check smcctl set "target:$2" hot=on
	heat "$1"
	check is_hot "$2" $((LENGTH / 2))
}

# holds REGION VALUE: the target, at once.
holds() { on target probe_script "open r /dev/shm/$1" "pexpect 0 $LENGTH $2"; }
soon_holds() { on target eventually 30 probe_script "open r /dev/shm/$1" "pexpect 0 $LENGTH $2"; }

rounds() { # REGION
	local region=$1
	on target export_file "$region" 1M --writers "$([ "$region" = m ] && echo merge || echo exclusive)"
	barrier exported
	if [ "$NODE" = client ]; then
		open_hot a "$region"
		p a "store 0 $LENGTH 20"
		p a "msync 0 $LENGTH"
	fi
	barrier "msync $region"
	holds "$region" 20
	barrier "held 20 $region"
	if [ "$NODE" = client ]; then
		# One page of many: the others are not sent.
		local before
		before=$(counter "target:$region" flush_bytes)
		p a "store 8192 1 21"
		p a fsync
		check test $(($(counter "target:$region" flush_bytes) - before)) -le 4096
		p a "store 8192 1 20"
		p a "store 0 $LENGTH 22"
		p a syncfs
	fi
	barrier "syncfs $region"
	holds "$region" 22
	barrier "held 22 $region"
	if [ "$NODE" = client ]; then
		p a "store 0 $LENGTH 23" # no barrier
	fi
	barrier "stored $region"
	soon_holds "$region" 23
	barrier "held 23 $region"
	if [ "$NODE" = client ]; then
		heat a
		p a "store 0 $LENGTH 24"
		echo 3 >/proc/sys/vm/drop_caches
		p a "expect 0 $LENGTH 24"
		p a fsync
	fi
	barrier "caches dropped $region"
	holds "$region" 24
	barrier "held 24 $region"
	if [ "$NODE" = client ]; then
		heat a
		p a "store 0 $LENGTH 25"
		p a unmap
		p a "acquire 0 0"
	fi
	barrier "unmapped $region"
	holds "$region" 25
	barrier "held 25 $region"
	if [ "$NODE" = client ]; then
		p a "map rw shared 0 0"
		p a "expect 0 $LENGTH 25"
		heat a
		p a "acquire 0 0"
	fi
	barrier "acquired $region"
	on target probe_script "open rw /dev/shm/$region" "pwrite 0 $LENGTH 26"
	barrier "target wrote $region"
	if [ "$NODE" = client ]; then
		p a "acquire 0 0"
		p a "expect 0 $LENGTH 26"
		heat a
		p a "store 0 $LENGTH 27"
		check smcctl set "target:$region" hot=off
		check is_cool "$region"
	fi
	barrier "cooled $region"
	holds "$region" 27
	barrier "held 27 $region"
	if [ "$NODE" = client ]; then
		check smcctl set "target:$region" hot=on
		heat a
		p a "store 0 $LENGTH 28"
		kill -KILL "${PROBE_PID[a]}"
		eventually 20 process_gone "${PROBE_PID[a]}"
	fi
	barrier "killed $region"
	soon_holds "$region" 28
	on client eventually 20 is_cool "$region"
	barrier "held 28 $region"
	on target unexport "$region"
}

# Pages of a large folio: what the target wrote beside our hot pages stays.
neighbours() {
	on target export_file x 1M --writers exclusive
	barrier exported
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/x"
		p a "map rw shared 0 0"
		check smcctl set target:x hot=on
		p a "pread 0 $LENGTH" # readahead
		local n
		for ((n = 1; n <= ROUNDS; n++)); do
			p a "store 8192 4096 $n"
			p a "store 20480 4096 $n"
			p a fsync
		done
		check is_hot x 8192
	fi
	barrier hot
	on target probe_script "open rw /dev/shm/x" "pwrite 12288 8192 7"
	barrier written
	if [ "$NODE" = client ]; then
		p a "store 8192 4096 9"
		p a fsync
		p a "acquire 0 0"
		p a "expect 12288 8192 7"
		p a "expect 8192 4096 9"
		p a "expect 20480 4096 $ROUNDS"
		probe_close a
	fi
	barrier seen
	on target probe_script "open r /dev/shm/x" "pexpect 8192 4096 9" "pexpect 12288 8192 7" \
		"pexpect 20480 4096 $ROUNDS"
	barrier checked
	on target unexport x
}

# Stores that race barriers, two at a time, on pages that are hot.
race() {
	on target export_file race 1M
	on target serve_memory race
	barrier served
	if [ "$NODE" = client ]; then
		check test -e /smc/target/race
		check smcctl set target:race hot=on
		check barrier-race --region /smc/target/race --target "tcp:target:$TARGET_PORT" \
			--barriers 200
	fi
	barrier finished
	on target stop_serving
	on target unexport race
}

case_ "the product starts on both nodes" product_start
case_ "hot pages of a merge region lose nothing" rounds m
case_ "hot pages of an exclusive region lose nothing" rounds x
case_ "what the target writes beside hot pages stays" neighbours
case_ "stores race two barriers on hot pages" race
case_ "everything is put away, and the module unloads" product_stop
pass
