#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh
# vm: nodes=2 mem=1536 kernels=6.1,6.12 timeout=1200
#
#     target: rdma-target = event loop + Target --- rxe0 loop-back --- a client's QPs, same process
#                                  `------------------- rxe0 ---------- client: a client's QPs
#
# Claim: keys of a region open exactly its bytes, on their own QP, until they are withdrawn; only
# the right token gets in, once; what a session leaves behind is as the design says; limits and
# devices that are missing or go away are named and survived.
: "${RDMA_TARGET:=$SMC_ROOT/build/release/bin/rdma-target}"

run_tests() { check "$RDMA_TARGET" --warn NoAssertions "$@"; }

# What the devices hold must be as before.
resources() { rdma resource show rxe0 | grep -o 'pd .* mr [0-9]*'; }

tests_leave_nothing() { # tests_leave_nothing TAG
	[ "$NODE" = target ] || return 0
	local before
	before=$(resources)
	run_tests "$1"
	check_equal "objects of rxe0" "$(resources)" "$before"
}

huge_pages() {
	[ "$NODE" = target ] || return 0
	echo 0 >/proc/sys/vm/nr_hugepages
	run_tests '[.nohugepages]'
	echo 8 >/proc/sys/vm/nr_hugepages
	[ "$(</proc/sys/vm/nr_hugepages)" -ge 2 ] || skip "no huge pages to be had"
	run_tests '[.hugepages]'
	echo 0 >/proc/sys/vm/nr_hugepages
}

# A file system with writeback: what needs no network and no disk of the machine.
files_on_a_disk() {
	[ "$NODE" = target ] || return 0
	mkdir -p /run/vm/disk
	truncate -s 64M /run/vm/disk.img
	mkfs.ext4 -q /run/vm/disk.img || skip "no mkfs.ext4"
	modprobe -a loop ext4 || skip "no ext4 in this kernel"
	mount -o loop /run/vm/disk.img /run/vm/disk
	TEST_DIR=/run/vm/disk run_tests '[.disk]'
	umount /run/vm/disk
}

limit_is_named() {
	[ "$NODE" = target ] || return 0
	check prlimit --memlock=8388608:8388608 \
		setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock \
		"$RDMA_TARGET" '[.memlock]'
}

device_removal() {
	[ "$NODE" = target ] || return 0
	DELETE_DEVICE='rdma link delete rxe0 >/run/vm/delete 2>&1 &' run_tests '[.removal]'
	eventually 20 device_gone
	check_equal "errors of rdma link delete" "$(</run/vm/delete)" ''
	check rdma link add rxe0 type rxe netdev eth0
	run_tests 'sessions connect by every offered address'
}
device_gone() { ! rdma link show | grep -q rxe0; }

# A target that is killed takes its keys along at once, bound windows included.
killed() {
	[ "$NODE" = target ] || return 0
	local before pid variable
	before=$(resources)
	for variable in NONE WITHOUT_WINDOWS; do
		env "$variable=1" "$RDMA_TARGET" '[.hold]' >/run/vm/hold &
		pid=$!
		eventually 60 grep -q holding /run/vm/hold
		kill -KILL "$pid"
		eventually 10 process_gone "$pid"
		check_equal "objects of rxe0" "$(resources)" "$before"
	done
}

case_ keys tests_leave_nothing '[keys]'
case_ sessions tests_leave_nothing '[sessions]'
case_ memory tests_leave_nothing '[memory]'
case_ devices tests_leave_nothing '[devices]'
case_ huge_pages huge_pages
case_ files_on_a_disk files_on_a_disk
case_ limit_is_named limit_is_named
case_ device_removal device_removal
case_ killed killed
[ "${SOAK:-0}" != 1 ] || case_ slow tests_leave_nothing '[slow]'
pass
