#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12,debug timeout=1200
#
#     client: libsmc-check with libsmc.so  -- rxe --  target: memory in a file
#
# Claim: what libsmc promises holds on real regions: stores and smc_store are in the target's memory
# after a barrier, changes there are seen after an acquire, errors are those of the manual; what it asks the
# kernel for is refused when it is wrong, whoever asks.
. "$SMC_ROOT/tests/vm/lib-product.sh"

# As in <errno.h>.
ENOENT=2
EROFS=30
# As in <smc/smc.h>.
SMC_WRITER_NONE=1
SMC_WRITER_HELD=3
R_BYTES=$((1024 * 1024))

start() {
	product_start
	on target export_file r $R_BYTES
	on target export_file odd 1000001 --writers exclusive
	on target export_file odd-merge 1000001
	on target export_file fixed 64K --readonly
	barrier exported
}

goes_both_ways() {
	on client check libsmc-check write target:r 7
	on client check libsmc-check write target:odd 8
	on client check libsmc-check right target:r $SMC_WRITER_NONE
	on client check libsmc-check right target:odd $SMC_WRITER_HELD
	barrier written
	if [ "$NODE" = target ]; then
		check libsmc-check file /dev/shm/r 7
		check libsmc-check file /dev/shm/odd 8
		cp /dev/shm/r /run/vm/kept
		pattern $R_BYTES 1 >/run/vm/other
		dd if=/run/vm/other of=/dev/shm/r conv=notrunc status=none
	fi
	barrier changed
	on client check_fails libsmc-check verify target:r 7
	barrier seen
	on target dd if=/run/vm/kept of=/dev/shm/r conv=notrunc status=none
	barrier restored
	on client check libsmc-check verify target:r 7
	on client check libsmc-check verify target:odd 8
	barrier ended
}

limits_and_errors() {
	if [ "$NODE" = client ]; then
		check libsmc-check limits target:r
		check libsmc-check error target:absent $ENOENT
		check libsmc-check error nobody:r $ENOENT
		check libsmc-check error target:fixed $EROFS
		libsmc-check verify target:fixed 0 2>/tmp/out || true # of zeroes, hence wrong; but attached
		check grep -q 'byte 1 is wrong' /tmp/out
	fi
	barrier ended
}

# ioctls: arguments, files and addresses that are wrong.
bad_calls() {
	on client check bad-ioctls /smc/target/odd
	on client check bad-ioctls /smc/target/odd-merge
	barrier refused
}

revoked_regions_fail() {
	local pid
	if [ "$NODE" = client ]; then
		mkfifo /run/vm/go
		libsmc-check revoked target:odd <>/run/vm/go >/run/vm/revoked &
		pid=$!
		eventually 20 grep -q ready /run/vm/revoked
	fi
	barrier attached
	on target check smcctl unexport odd
	barrier revoked
	if [ "$NODE" = client ]; then
		eventually 20 not_active odd
		echo >/run/vm/go
		check wait "$pid"
		cat /run/vm/revoked
	fi
	barrier ended
}
not_active() {
	! smcctl -j regions | /usr/bin/python3 -c '
import json, sys
regions = json.load(sys.stdin)["attached"]
sys.exit(0 if any(r["name"] == sys.argv[1] and r["state"] == "active" for r in regions) else 1)' "$1"
}

case_ "the product starts, and regions are there" start
case_ "bytes go both ways, after barrier and acquire" goes_both_ways
case_ "ranges, windows and errors are those of the manual" limits_and_errors
case_ "wrong ioctls are refused, and change nothing" bad_calls
case_ "a revoked region fails with words, not with a signal" revoked_regions_fail
case_ "everything is put away, and the module unloads" product_stop
pass
