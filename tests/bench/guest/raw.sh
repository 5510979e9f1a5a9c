# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck shell=bash
#
# Raw verbs, by perftest, both of whose processes are here. The client is niced, since it polls: where
# soft-RoCE works in a work queue (6.12) it would take the processor from what it waits for.

PERFTEST_LISTENS=' [0-9A-F]*:4853 00000000:0000 0A ' # port 18515, in /proc/net/tcp

perftest_listens() { grep -q "$PERFTEST_LISTENS" /proc/net/tcp; }

# perftest NAME PROGRAM SIZE ITERATIONS [OPTION...]: PERF_RUNS runs, each a line: us for one operation.
# The median is a line in FIGURES, for smcbench.
perftest() {
	local name=$1 program=$2 size=$3 iterations=$4 run server
	shift 4
	local words=("$program" -F -d "$DEVICE" -x 1 -s "$size" -n "$iterations" "$@")
	for ((run = 0; run < PERF_RUNS; run++)); do
		"${words[@]}" >/run/perftest.server 2>&1 &
		server=$!
		await "the server of $program" perftest_listens || return 1
		if ! nice -n 19 "${words[@]}" "$ADDRESS" >/run/perftest.client 2>&1; then
			kill $server
			tail -n 5 /run/perftest.client /run/perftest.server
		fi
		wait $server
		# The rate of messages has more digits for small ones, that of bytes for large ones.
		awk -v name="$name" -v program="$program" -v size="$size" '
			$1 != size || NF < 5 { next }
			program ~ /_lat$/ { us = $5 }
			program ~ /_bw$/ { us = size > 65536 ? size / ($4 * 1048576) * 1e6 : 1 / $5 }
			END { printf "{\"test\":\"%s\",\"bytes\":%d,\"us\":%.5f}\n", name, size, us }
		' /run/perftest.client
	done >/run/perftest.runs
	tag raw </run/perftest.runs
	printf '%s %s %s\n' "$name" "$size" "$(sed -n 's/.*"us":\(.*\)}/\1/p' /run/perftest.runs | sort -n |
		awk '{ us[NR] = $1 } END { print us[int((NR + 1) / 2)] * 1000 }')" >>"$FIGURES"
}

# The least that ratios need first.
perftest write ib_write_bw 64 2000
perftest write ib_write_bw 4096 1000
perftest write ib_write_bw 1048576 20 -t 16
perftest write ib_write_bw 4194304 8 -t 4
perftest write_sync ib_write_bw 64 1000 -t 1
perftest read ib_read_bw 4194304 8 -t 4
perftest read_lat ib_read_lat 4096 500
perftest write ib_write_bw 65536 200
perftest write_sync ib_write_bw 4096 500 -t 1
perftest read ib_read_bw 64 2000
perftest read ib_read_bw 4096 1000
perftest read ib_read_bw 65536 200
perftest read ib_read_bw 1048576 20 -t 16
perftest read_lat ib_read_lat 64 500
