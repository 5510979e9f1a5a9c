# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck shell=bash
#
# Regions larger than any memory here, granted by a stand-in of daemon and target: what attach and
# barrier cost by size. After smc.sh, whose daemon makes room for it.

STANDIN_NODE=fuzz-node # as it calls itself

standin_ready() { grep -q ready /run/standin; }

end_process() { # end_process PID: and await its end
	kill -TERM "$1"
	wait "$1"
}

# barrier SIDE SIZE OFFSET...: a region of which only the windows at these offsets are memory.
barrier() {
	local side=$1 size=$2 standin measured=0
	shift 2
	# Its predecessor said so here, and it might come to empty the file only after our first look.
	rm -f /run/standin
	smcfs-standin --address "$ADDRESS" --name large --size "$size" --file /dev/shm/standin "$@" \
		>/run/standin &
	standin=$!
	await "the stand-in" standin_ready || return 1
	measure "$side" /smc/$STANDIN_NODE/large barrier_whole || measured=$?
	end_process $standin || return 1
	return $measured
}

scale_run() {
	# Its regions go with their names.
	smcctl unexport exclusive
	smcctl unexport merge
	smcctl detach "$SELF:exclusive"
	smcctl detach "$SELF:merge"
	end_process "$SMCFSD"
	attach-cost "$ADDRESS" | tag 'cell","side":"standin'
	# What is touched: the start, the middle, and 1/1024 before the end; with what is fetched around it.
	barrier standin-16m 16M 0 6M 12M || return 1
	barrier standin-16t 16T 0 $(((8 << 40) - (1 << 20))) $(((16 << 40) - (16 << 30) - (1 << 20)))
}

[ -z "$WORKLOADS" ] || return 0
scale_run
