#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client, with ulimit -l 64  -- rxe --  target: /dev/shm/odd, offset 100, length 12345
#
# Claim: regions of any length at any address behave to the byte, and bytes beside them are never
# touched; the application needs no locked memory; and a daemon that may lock too little says so.
. "$SMC_ROOT/tests/vm/lib-product.sh"

# File offset and length are no multiples of anything; guards are whatever surrounds them.
odd_region() { # OFFSET LENGTH
	local offset=$1 length=$2 file=$((4 * 1024 * 1024)) name=odd-$1-$2
	if [ "$NODE" = target ]; then
		truncate -s $file "/dev/shm/$name"
		probe_script "open rw /dev/shm/$name" "pwrite 0 $file 238" >/dev/null
		check smcctl export "$name" --file "/dev/shm/$name" --offset "$offset" --length "$length" \
			--mode 0666
	fi
	barrier exported
	if [ "$NODE" = client ]; then
		check probe_script "open rw /smc/target/$name" "size $length" "map rw shared 0 0" \
			"expect 0 $length 238" "store 0 $length 1" "msync 0 $length" \
			"! ENOSPC pwrite $length 1 1" "read-at-end $length" \
			"pwrite $((length - 1)) 1 2" "fsync" "acquire 0 0" "pexpect $((length - 1)) 1 2" \
			"store 0 $(((length + 4095) / 4096 * 4096)) 3" "msync 0 $length"
	fi
	barrier written
	on target check probe_script "open r /dev/shm/$name" "pexpect 0 $offset 238" \
		"pexpect $offset $length 3" \
		"pexpect $((offset + length)) $((file - offset - length)) 238"
	on target unexport "$name"
}
odd_regions() {
	odd_region 0 1
	odd_region 100 12345
	odd_region 4096 4096
	odd_region 4095 4098
	odd_region 8191 $((2 * 1024 * 1024 + 4097))
}

no_empty_region() {
	if [ "$NODE" = target ]; then
		truncate -s 0 /dev/shm/empty
		check_fails smcctl export empty --file /dev/shm/empty
		check_fails smcctl export empty --host 0
		check_fails smcctl export empty --file /dev/shm/nowhere
		check_fails smcctl export empty --file /dev/shm
		check_fails smcctl export ../empty --host 4096
	fi
	barrier refused
}

# Memory of the daemon's own: huge pages or not.
host_memory() {
	if [ "$NODE" = target ]; then
		echo 4 >/proc/sys/vm/nr_hugepages
		check smcctl export own --host 3M --mode 0666
		check smcctl export huge --host 4M --hugepages --mode 0666
		check_fails smcctl export too-much --host 64M --hugepages
		check_fails smcctl export own --host 1M
	fi
	barrier exported
	if [ "$NODE" = client ]; then
		for name in own huge; do
			check probe_script "open rw /smc/target/$name" "pexpect 0 1M 0" "pwrite 1000 1M 9" \
				"fsync" "acquire 0 0" "pexpect 1000 1M 9"
		done
	fi
	barrier checked
	if [ "$NODE" = target ]; then
		check smcctl unexport own
		check smcctl unexport huge
		echo 0 >/proc/sys/vm/nr_hugepages
	fi
}

# Names with directories in them.
names_with_slashes() {
	if [ "$NODE" = target ]; then
		check export_file job/params 65536
		check export_file job/layer/0 65536
		check_fails smcctl export job --host 4096
	fi
	barrier exported
	if [ "$NODE" = client ]; then
		check probe_script "open rw /smc/target/job/params" "size 64K" "pwrite 0 10 1" "fsync"
		check probe_script "open rw /smc/target/job/layer/0" "size 64K"
		check test -d /smc/target/job
		check_equal "names in job" "$(ls -m /smc/target/job)" "layer, params"
		# Programs take two directories of the same number for a loop: nodes and regions have small ones.
		check [ "$(stat -c %i /smc/target/job)" -gt $((1 << 62)) ]
		check_fails test -e /smc/target/job/nothing
		check_fails cat /smc/target/job
	fi
	barrier checked
	if [ "$NODE" = target ]; then
		check smcctl unexport job/params
		check smcctl unexport job/layer/0
	fi
}

# More is mapped, read and dirty than the process may lock.
little_memlock() {
	on target export_file r 4M
	barrier exported
	if [ "$NODE" = client ]; then
		check setpriv --reuid=1000 --regid=1000 --clear-groups prlimit --memlock=65536 \
			bash -c 'ulimit -l; printf "%s\n" "open rw /smc/target/r" "map rw shared 0 0" \
				"store 0 4M 1" "msync 0 4M" "acquire 0 4M" "expect 0 4M 1" | probe'
	fi
	barrier checked
	on target probe_script "open r /dev/shm/r" "pexpect 0 4M 1"
	on target unexport r
}

# Without the right to lock, and a limit of 1 MiB: a clear refusal, and a daemon that lives.
daemon_without_memlock() {
	if [ "$NODE" = target ]; then
		stop_daemon
		setpriv --bounding-set=-ipc_lock,-sys_resource --inh-caps=-ipc_lock,-sys_resource \
			prlimit --memlock=1048576 smcfsd --config "$PRODUCT_CONFIG" </dev/null &
		echo $! >"$PRODUCT_PID"
		eventually "$START_S" daemon_answers
		truncate -s 16M /dev/shm/locked
		smcctl export locked --file /dev/shm/locked >/tmp/refusal 2>&1 || true
		smcctl export small --host 65536 || true
		barrier small-exported
		cat /tmp/refusal
		check grep -qi memlock /tmp/refusal
		check smcctl status
		stop_daemon
		start_daemon
	else
		barrier small-exported
	fi
	barrier restarted
}

case_ "the product starts on both nodes" product_start
case_ "lengths and addresses that are no multiple of anything" odd_regions
case_ "what cannot be a region is refused" no_empty_region
case_ "the daemon's own memory, with and without huge pages" host_memory
case_ "names with directories" names_with_slashes
case_ "an application with ulimit -l 64" little_memlock
case_ "a daemon that may lock too little names the limit" daemon_without_memlock
case_ "everything is put away, and the module unloads" product_stop
pass
