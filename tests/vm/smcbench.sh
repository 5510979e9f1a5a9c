#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12 timeout=600
#
#     client: smcbench run ---- /smc/target/r: smcfs.ko ---- rxe ----  target: smcfsd
#                      `------- --raw: verbs --------------- rxe ----          smcbench serve
#
# Claim: smcbench measures a region, and raw verbs on the same path; the bytes that it tells of are
# those that the kernel moved; what it cannot do it says, with an exit code; and a peer that hangs
# does not keep others from being served.
. "$SMC_ROOT/tests/vm/lib-product.sh"
PATH=$RELEASE/tools/smcbench:$PATH

SERVE_PID=/run/vm/smcbench.pid
SERVE_LOG=/run/vm/smcbench.log
SILENCE_S=10 # much more than a peer is silent that is slow

start() {
	local region
	product_start
	if [ "$NODE" = target ]; then
		export_file r 8M --writers exclusive
		export_file merged 8M
		export_file readonly 16M --readonly
	fi
	barrier exported
	if [ "$NODE" = client ]; then
		# Only barriers send, so that bytes can be counted.
		echo 0 >/proc/sys/vm/dirty_writeback_centisecs
		for region in r merged readonly; do
			check smcctl attach "target:$region"
			check smcctl set "target:$region" flush_after_ms=3600000
		done
	fi
}

# fails_with STATUS WORDS COMMAND...: it exits so, and says so.
fails_with() {
	local status=$1 words=$2 rc=0
	shift 2
	printf '+ ! %s\n' "$*"
	"$@" >/tmp/out 2>/tmp/err || rc=$?
	cat /tmp/err
	check_equal "exit of $*" $rc "$status"
	check grep -q -e "$words" /tmp/err
}

errors_are_told() {
	local run=(smcbench run /smc/target/r seq_read)
	if [ "$NODE" = client ]; then
		fails_with 1 'target.*7452.*is smcbench serve running there' "${run[@]}" --raw target
		fails_with 1 'nobody-knows-it' "${run[@]}" --raw nobody-knows-it
		fails_with 1 'nothing-here: No such file' smcbench run /smc/target/nothing-here
		fails_with 1 'readonly: Read-only file system' \
			smcbench run --write /smc/target/readonly bulk_4m
		fails_with 2 'say --write' smcbench run /smc/target/r bulk_4m
		fails_with 1 'r has 8388608 bytes' smcbench run /smc/target/r fault_4k
	fi
	barrier tried
}

serve() {
	smcbench serve "$@" </dev/null >"$SERVE_LOG" 2>&1 &
	echo $! >"$SERVE_PID"
	eventually 20 grep -q 'listening' "$SERVE_LOG"
}

stop_serve() {
	[ ! -e "$SERVE_PID" ] || kill "$(cat "$SERVE_PID")" 2>/dev/null || true
	rm -f "$SERVE_PID"
}
defer stop_serve

server_starts() {
	if [ "$NODE" = target ]; then
		serve --silence "$SILENCE_S"
		fails_with 1 'port 7452 is in use' smcbench serve
	fi
	barrier served
}

# measured REGION COUNTER BYTES WORKLOAD [OPTIONS]: what it prints is sound, and as many bytes as it
# says (BYTES for each repetition; Python) were added to the counter of the region.
measured() {
	local region=$1 name=$2 bytes=$3 workload=$4 before after
	shift 4
	before=$(counter "target:$region" "$name")
	check smcbench -j run --reps 5 "$@" "/smc/target/$region" "$workload" >/tmp/out 2>/tmp/err
	cat /tmp/out
	after=$(counter "target:$region" "$name")
	/usr/bin/python3 - "$workload" "$bytes" $((after - before)) <<-'PY'
		import json, sys
		workload, each, moved = sys.argv[1], sys.argv[2], int(sys.argv[3])
		lines = [json.loads(line) for line in open("/tmp/out") if line.startswith("{")]
		cell = lines.pop()
		assert cell["workload"] == workload and cell["reps"] >= 5, cell
		for key in ("ns", "min_ns", "max_ns", "first_ns", "bytes", "window_bytes"):
		    assert cell[key] > 0, (key, cell)
		assert cell["min_ns"] <= cell["ns"] <= cell["max_ns"], cell
		assert "resident_pages" not in cell, cell
		more = {"bulk_4m": ("store_ns", "barrier_ns"), "one_store": ("store_ns", "barrier_ns"),
		        "fault_4k": ("p50_ns", "p99_ns"), "seq_read": ()}
		for key in more[workload]:
		    assert cell[key] > 0, (key, cell)
		raw = {(line["raw"], line["bytes"]): line["ns"] for line in lines}
		if raw:
		    kinds = [("write", 64), ("write", 4096), ("write", 4 << 20), ("read", 4 << 20),
		             ("write_sync", 64), ("read_lat", 4096)]
		    assert sorted(raw) == sorted(kinds) and min(raw.values()) > 0, raw
		    # More bytes take longer, and one at a time longer than one of many.
		    assert raw["write", 4 << 20] > raw["write", 4096], raw
		    assert raw["read", 4 << 20] > raw["read_lat", 4096], raw
		    assert raw["write_sync", 64] > raw["write", 64], raw
		    # 8 MiB are read as two times 4 MiB.
		    assert cell["raw_ns"] == 2 * raw["read", 4 << 20], (cell, raw)
		# One repetition more, which is not counted.
		wanted = (cell["reps"] + 1) * eval(each, {"cell": cell})
		assert moved == wanted, f"moved {moved} bytes, not {wanted}: {cell}"
	PY
}

last_epoch_is_there() {
	local stored
	stored=$(get stored)
	check probe_script "open r /dev/shm/r" "pexpect 64 $(((4 << 20) - 64)) $stored"
}

regions_are_measured() {
	if [ "$NODE" = client ]; then
		measured r fetch_bytes 'cell["bytes"]' seq_read --raw target
		measured r flush_bytes 'cell["bytes"]' bulk_4m --write
		[[ "$(tail -n 1 /tmp/out)" =~ \"epoch\":([0-9]+) ]]
		put stored $((BASH_REMATCH[1] & 255))
		measured r flush_bytes 4096 one_store --write
		measured merged flush_bytes 'cell["bytes"]' one_store --write
		measured readonly fetch_bytes 'cell["bytes"] * cell["faults"]' fault_4k
		check grep -q '^barrier_whole .*overwrites' <(smcbench list)
	fi
	barrier measured
	# What the last repetition stored is there, beside what one_store did.
	[ "$NODE" != target ] || last_epoch_is_there
}

# bench_start: one that measures raw verbs, in the background; it has begun when this returns.
bench_start() {
	smcbench run --raw target /smc/target/r seq_read </dev/null >/tmp/background 2>&1 &
	BENCH_PID=$!
	eventually 20 is_connected "$BENCH_PID"
}
is_connected() { rdma resource show qp | grep -q "state RTS.*pid $1 "; }

# bench_fails WORDS: the one in the background ends so.
bench_fails() {
	local rc=0
	wait "$BENCH_PID" || rc=$?
	cat /tmp/background
	check_equal "exit of the one in the background" $rc 1
	check grep -q -e "$1" /tmp/background
}

hung_peer_is_given_up() {
	if [ "$NODE" = client ]; then
		bench_start
		kill -STOP "$BENCH_PID"
		# The next one waits for its turn, over IPv6 this time.
		check smcbench run --reps 5 --raw target6 /smc/target/r seq_read
		kill -CONT "$BENCH_PID"
		bench_fails 'it has closed the connection'
	fi
	barrier tried
	on target check_equal "who was given up" "$(grep -v listening "$SERVE_LOG")" \
		"smcbench: 10.77.0.2: nothing heard for $SILENCE_S s, given up"
}

server_that_ends_is_noticed() {
	on client bench_start
	barrier begun
	on target stop_serve
	on client bench_fails 'it has closed the connection'
	barrier noticed
}

case_ "the product starts, and regions are there" start
case_ "what it cannot do it says" errors_are_told
case_ "the server starts, and a port has one" server_starts
case_ "times are told, and bytes are those that were moved" regions_are_measured
case_ "a peer that hangs is given up, and the next one served" hung_peer_is_given_up
case_ "a server that ends is noticed" server_that_ends_is_noticed
case_ "everything is put away, and the module unloads" product_stop
pass
