#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12,debug timeout=1200
#
#     client: model, two processes, /smc/target/model  -- rxe --  target: /dev/shm/model
#                     `---------- TCP: what does the memory hold? ----------> model-target
#
# Claim: over 100,000 random commands (10 million with SOAK=1), with either writers policy, no byte
# that a program reads here, and no byte of the target's memory after a barrier, is another than a
# model in memory says.
. "$SMC_ROOT/tests/vm/lib-product.sh"

# Most of the commands work in little memory: whatever drops all of it (open, drop_caches) is followed by
# fetching all of it again. The rest in more than a command of any kind covers.
SMALL=$((384 * 1024 + 1234))
LARGE=$((8 * 1024 * 1024 + 1234))
OPS_SHORT=100000 OPS_LONG=10000000
[ "$KERNEL" != debug ] || OPS_SHORT=2000 OPS_LONG=100000
OPS=${OPS:-$((SOAK ? OPS_LONG : OPS_SHORT))}
LARGE_OPS=$((OPS / 25))
CHANGER_PID=/run/vm/changer.pid
SMALL_OPS=$(((OPS - LARGE_OPS) / 2)) # of each kind of region

model_run() { # model_run WRITERS SIZE OPTIONS...
	local writers=$1 size=$2
	shift 2
	# Pages of exclusive regions are handed over as docs/semantics.md says of hot ones.
	[ "$writers" != exclusive ] || set -- --hand-over "$@"
	on target export_file model "$size" --writers "$writers"
	on target serve_memory model
	barrier served
	if [ "$NODE" = client ]; then
		# Built into the debug kernel.
		[ -b /dev/ram0 ] || modprobe brd rd_nr=1 rd_size=4096
		check model --region /smc/target/model --target "tcp:target:$TARGET_PORT" \
			--scratch /dev/ram0 --direct --system "$@"
		! grep -q '^brd ' /proc/modules || rmmod brd
		echo "fetched $(counter target:model fetch_bytes) bytes," \
			"flushed $(counter target:model flush_bytes)"
	fi
	barrier finished
	on target stop_serving
	on target unexport model
}

# Folios of an exclusive region change over from whole pages to changed lines and back meanwhile: each
# time, and by cost.
lines_change() {
	while sleep 0.02; do
		echo $((RANDOM % 3)) >/sys/module/smcfs/parameters/exclusive_lines
	done
}

stop_changing() {
	[ ! -e "$CHANGER_PID" ] || kill "$(cat "$CHANGER_PID")" 2>/dev/null || true
	rm -f "$CHANGER_PID"
}
defer stop_changing

model_run_changing() {
	if [ "$NODE" = client ]; then
		lines_change &
		echo $! >"$CHANGER_PID"
	fi
	model_run exclusive "$@"
	if [ "$NODE" = client ]; then
		stop_changing
		echo 2 >/sys/module/smcfs/parameters/exclusive_lines
	fi
}

# The test itself, tested: a store that is left out has to be found.
model_finds_faults() {
	on target export_file model 262144
	on target serve_memory model
	barrier served
	on client check_fails model --region /smc/target/model --target "tcp:target:$TARGET_PORT" \
		--seed "$SEED" --ops 2000 --break store
	barrier finished
	on target stop_serving
	on target unexport model
}

case_ "the product starts on both nodes" product_start
case_ "the model finds a lost store" model_finds_faults
case_ "random commands leave no byte wrong, merge" model_run merge $SMALL \
	--seed "$SEED" --ops $SMALL_OPS
case_ "the same, exclusive" model_run exclusive $SMALL --seed $((SEED + 1)) --ops $((SMALL_OPS / 2))
case_ "and while changed lines are sent in turns with whole pages" model_run_changing $SMALL \
	--seed $((SEED + 3)) --ops $((SMALL_OPS / 2))
case_ "in a larger region, too" model_run merge $LARGE --seed $((SEED + 2)) --ops $LARGE_OPS
case_ "everything is put away, and the module unloads" product_stop
pass
