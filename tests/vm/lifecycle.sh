#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12,debug timeout=1200
#
#     client: programs that come and go  -- rxe --  target: /dev/shm/...
#
# Claim: however a program ends, what it stored reaches the target; many that come, go and are
# killed leave nothing behind, the module unloads again and again; and a memory cgroup smaller than
# the dirty set slows its program down but neither kills nor stalls it.
. "$SMC_ROOT/tests/vm/lib-product.sh"

SECONDS_LONG=10
UNLOADS=6
CGROUP_MB=24
DIRTY_MB=64
if [ "$KERNEL" = debug ]; then
	CGROUP_MB=8 DIRTY_MB=10 UNLOADS=2
fi
if [ "$SOAK" = 1 ]; then
	SECONDS_LONG=120 UNLOADS=100
fi

# Without any barrier: each way to leave, and what is in the target's memory soon after.
dirty_data_arrives() {
	local n=0 how
	on target export_file ends 1M
	barrier exported
	for how in "unmap" "close" "exit 0" "die"; do
		n=$((n + 1))
		on client leave_dirty "$how" "$n"
		barrier "left $n"
		# The deferred flush comes 100 ms after the first store; the target looks by itself.
		on target eventually 20 probe_script "open r /dev/shm/ends" "pexpect 0 16384 $n" \
			"pexpect 20480 7 $n"
		barrier "arrived $n"
	done
	on client eventually 10 counter_is target:ends dirty_bytes 0
	barrier clean
	on target unexport ends
}
leave_dirty() { # HOW BYTE
	local rc=0
	probe_script "open rw /smc/target/ends" "map rw shared 0 0" "store 0 16384 $2" \
		"store 20480 7 $2" "$1" || rc=$?
	if [ "$1" = die ]; then check_equal "exit of a killed program" "$rc" 137; else [ "$rc" = 0 ]; fi
}

# With close-to-open the last close of a file that is not mapped is a barrier of what it wrote.
close_flushes() {
	on target export_file closed 1M
	barrier exported
	on client probe_script "open rw /smc/target/closed" "pwrite 0 65536 3" "close"
	barrier closed
	on target probe_script "open r /dev/shm/closed" "pexpect 0 65536 3"
	barrier checked
	on target unexport closed
}

programs_come_and_go() {
	local name
	for name in one two; do
		on target export_file $name 2M
	done
	on target serve_memory one 7501
	on target serve_memory two 7502
	barrier served
	if [ "$NODE" = client ]; then
		attach_and_detach &
		check stress --region /smc/target/one --target tcp:target:7501 \
			--region /smc/target/two --target tcp:target:7502 \
			--programs 16 --seconds "$SECONDS_LONG" --seed "$SEED"
		rm -f /run/vm/stressing
		wait $!
	fi
	barrier finished
	on target stop_serving
	on target unexport one
	on target unexport two
}
# Meanwhile regions are detached (mostly refused, as they are in use) and attached.
attach_and_detach() {
	local good=0 refused=0
	touch /run/vm/stressing
	while [ -e /run/vm/stressing ]; do
		if smcctl detach target:one 2>/dev/null; then good=$((good + 1)); else refused=$((refused + 1)); fi
		smcctl attach target:one >/dev/null
	done
	echo "detached $good times, refused $refused times"
}

unload_again_and_again() {
	barrier before
	if [ "$NODE" = client ]; then
		local after n
		for ((n = 0; n < UNLOADS; n++)); do
			probe_script "open rw /smc/target/again" "map rw shared 0 0" "store 0 4096 $((n % 250))" >/dev/null
			umount /smc
			stop_daemon
			rmmod smcfs
			check_equal "modules named smcfs" "$(grep -c '^smcfs ' /proc/modules || true)" 0
			check_equal "slabs of smcfs" "$(grep -c '^smcfs' /proc/slabinfo || true)" 0
			check_equal "queue pairs of this node" "$(rdma resource show qp | grep -c 'comm.*smcfs' || true)" 0
			load_module
			mount_smc
			start_daemon
			eventually 30 test -d /smc/target
		done
		after=$(awk '/^Percpu/ {print $2}' /proc/meminfo)
		echo "unloaded $UNLOADS times, percpu memory $after kB"
	fi
	barrier after
	on target probe_script "open r /dev/shm/again" "pexpect 0 4096 $(((UNLOADS - 1) % 250))"
}
unload() {
	on target export_file again 65536
	unload_again_and_again
	barrier unloaded
	on target unexport again
}

# A module that went and came while the daemon did not look: its names are there again, and work.
reload_beneath_daemon() {
	on target export_file below 65536
	barrier exported
	if [ "$NODE" = client ]; then
		probe_script "open rw /smc/target/below" "pwrite 0 4096 1" "fsync"
		umount /smc
		check smcctl detach target:below
		eventually 30 module_is_free # its session is kept for a moment
		kill -STOP "$(daemon_pid)"
		rmmod smcfs
		load_module
		kill -CONT "$(daemon_pid)"
		mount_smc
		eventually 30 test -d /smc/target
		check probe_script "open rw /smc/target/below" "pexpect 0 4096 1" "pwrite 0 4096 2" "fsync"
	fi
	barrier reloaded
	on target probe_script "open r /dev/shm/below" "pexpect 0 4096 2"
	on target unexport below
}
module_is_free() { [ "$(</sys/module/smcfs/refcnt)" = 0 ]; }

# small_cgroup HOT: twice as much is dirty as the cgroup may hold: the flusher has to keep pace.
small_cgroup() {
	local group=/sys/fs/cgroup/small round rounds=()
	on target export_file big "${DIRTY_MB}M"
	barrier exported
	if [ "$NODE" = client ]; then
		check smcctl attach target:big
		check smcctl set target:big "hot=$1"
		# A few pages at a time: they become hot before they are reclaimed.
		[ "$1" = off ] || for round in 1 2 3 4; do rounds+=("store 0 1M $round" fsync); done
		mkdir "$group"
		echo "${CGROUP_MB}M" >$group/memory.max
		check in_cgroup $group probe_script "open rw /smc/target/big" "map rw shared 0 0" \
			"${rounds[@]}" "store 0 ${DIRTY_MB}M 5" "msync 0 ${DIRTY_MB}M" "expect 0 ${DIRTY_MB}M 5"
		check_equal "OOM kills" "$(awk '/^oom_kill /{print $2}' $group/memory.events)" 0
		eventually 10 rmdir $group
	fi
	barrier written
	on target probe_script "open r /dev/shm/big" "pexpect 0 ${DIRTY_MB}M 5"
	on target unexport big
}
in_cgroup() {
	local group=$1
	shift
	(echo "$BASHPID" >"$group/cgroup.procs" && "$@")
}

case_ "the product starts on both nodes" product_start
case_ "what was stored arrives, however the program ends" dirty_data_arrives
case_ "close sends what was written" close_flushes
case_ "programs come, go and are killed, and no store is lost" programs_come_and_go
case_ "a cgroup smaller than the dirty set works" small_cgroup off
case_ "a cgroup smaller than the dirty set works, with hot pages" small_cgroup on
case_ "the module unloads and loads, again and again" unload
case_ "the daemon follows a module that was loaded again" reload_beneath_daemon
case_ "everything is put away, and the module unloads" product_stop
pass
