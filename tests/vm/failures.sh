#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client: programs with dirty pages  -- rxe --x--  target: cable out, daemon killed
#
#     /dev/shm/guarded:  | guard | exported as "guarded" | guard |
#
# Claim: whatever fails, each call ends in time and says EIO; what could not be sent stays dirty
# and arrives when the link is back; memory of another generation, and memory beside the region,
# is never touched; and what is given up is given up by command, and counted.
. "$SMC_ROOT/tests/vm/lib-product.sh"
export REQUEST_TIMEOUT_MS=2000
[ "$KERNEL" != debug ] || REQUEST_TIMEOUT_MS=6000

# Far above the deadline of a request, for a slow machine; a hang is what must not be.
CALL_MS=30000
[ "$KERNEL" != debug ] || CALL_MS=60000
GUARD=65536
LENGTH=$((1024 * 1024 + 100))

start() {
	# Exports in the configuration come back when the daemon does.
	on target write_guarded_config
	on client write_rule
	product_start
}
write_guarded_config() {
	truncate -s $((GUARD + LENGTH + GUARD)) /dev/shm/guarded
	fill_guards
	write_config
	cat >>"$PRODUCT_CONFIG" <<-END
		[[export]]
		name = "guarded"
		file = "/dev/shm/guarded"
		offset = $GUARD
		length = $LENGTH
		mode = "0666"
	END
}
write_rule() {
	write_config
	printf '[[region]]\nmatch = "target/*"\nflush_after_ms = 110\n' >>"$PRODUCT_CONFIG"
}
fill_guards() {
	probe_script "open rw /dev/shm/guarded" "pwrite 0 $GUARD 238" \
		"pwrite $((GUARD + LENGTH)) $GUARD 238"
}
check_guards() {
	probe_script "open r /dev/shm/guarded" "pexpect 0 $GUARD 238" \
		"pexpect $((GUARD + LENGTH)) $GUARD 238"
}

# A failed write leaves its page dirty: EIO once, then success, and the bytes are there.
failed_fsync_then_good() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/guarded"
		p a "map rw shared 0 0"
		p a "store 0 65536 1"
		p a "msync 0 65536"
		p a "load 0 $LENGTH" # a store to a page that is not here has to fetch it
		check_equal "flush_after_ms" "$(smcctl get target:guarded flush_after_ms)" 110
		check smcctl set target:guarded flush_after_ms=120
		check vm_ctl link client down
		p a "store 0 131072 2"
		p a "pwrite $((LENGTH - 50)) 50 2"
		p a "within $CALL_MS ! EIO fsync"
		p a "within $CALL_MS ! EIO msync 0 4096"
		p a "expect 0 131072 2" # nothing is lost here
		p a "within 1000 store 131072 4096 2"
		check vm_ctl link client up
		eventually 60 region_is guarded active
		p a "fsync"
		p a "expect 0 135168 2"
		# What somebody set is not undone by the rules of the configuration.
		check_equal "flush_after_ms" "$(smcctl get target:guarded flush_after_ms)" 120
	fi
	barrier fsynced
	on target probe_script "open r /dev/shm/guarded" "pexpect $GUARD 135168 2" \
		"pexpect $((GUARD + LENGTH - 50)) 50 2"
	on target check_guards
	barrier checked
	if [ "$NODE" = client ]; then
		p a "store 0 65536 3"
		p a "fsync"
		probe_close a
	fi
	barrier again
	on target probe_script "open r /dev/shm/guarded" "pexpect $GUARD 65536 3"
}

# Without a link: pages that are here can be read, others give SIGBUS and EIO in time; a program
# that waits can be killed.
reads_without_link() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/guarded"
		p a "map rw shared 0 0"
		p a "acquire 0 0"
		p a "load 0 4096"
		check vm_ctl link client down
		p a "within $CALL_MS expect 0 4096 3"
		p a "within $CALL_MS ! SIGBUS load 524288 1"
		p a "within $CALL_MS ! EIO pread 786432 100"
		p a "within $CALL_MS ! EIO pwrite 786433 100 1"
		p a "store 0 4096 4"
		p_start a "! EIO fsync"
		kill -KILL "${PROBE_PID[a]}"
		eventually 20 process_gone "${PROBE_PID[a]}"
		check vm_ctl link client up
		eventually 60 region_is guarded active
		eventually 20 counter_is target:guarded dirty_bytes 0
	fi
	barrier ended
	on target eventually 20 probe_script "open r /dev/shm/guarded" "pexpect $GUARD 4096 4"
	on target check_guards
	barrier arrived
}

# An O_DIRECT write that is killed before anything was sent leaves no trace in shadow pages. It waits
# for the flush of another program, which ends when the deadline of its requests does: on a slow
# machine before the writer was there, hence more than one try.
killed_direct_write() {
	if [ "$NODE" = client ]; then
		local tries killed=0
		probe_open a
		p a "open rw /smc/target/guarded"
		p a "map rw shared 0 0"
		p a "store 65536 4096 5"
		p a "fsync"
		for ((tries = 0; tries < 5 && !killed; tries++)); do
			probe_open b
			p b "open rw+direct /smc/target/guarded"
			p a "load 65536 4096" # after the open, which drops clean pages
			p a "load 131072 4096"
			check vm_ctl link client down
			p a "store 131072 4096 6"
			p_start a "! EIO fsync"
			wait_in a smcfs_flush || true
			p_start b "pwrite 65536 4096 7"
			! wait_in b smcfs_flush || killed=1
			kill -KILL "${PROBE_PID[b]}" || true
			eventually 20 process_gone "${PROBE_PID[b]}"
			p_end a
			check vm_ctl link client up
			eventually 60 region_is guarded active
			p a "fsync"
		done
		check_equal "writers killed while they waited" "$killed" 1
		p a "expect 65536 4096 5"
		p a "pexpect 65536 4096 5"
		probe_close a
	fi
	barrier ended
	on target probe_script "open r /dev/shm/guarded" "pexpect $((GUARD + 65536)) 4096 5" \
		"pexpect $((GUARD + 131072)) 4096 6"
}
# wait_in NAME FUNCTION: until the probe sleeps below that function of the kernel.
wait_in() {
	local n
	for ((n = 0; n < 500; n++)); do
		! grep -qs "$2" "/proc/${PROBE_PID[$1]}/stack" || return 0
	done
	return 1
}

# umount does not lose anything: EBUSY. umount -f does, and says how much.
umount_with_dirty_pages() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/guarded"
		p a "map rw shared 0 0"
		p a "load 0 65536"
		check vm_ctl link client down
		p a "store 0 65536 9"
		probe_close a
		check_equal "dirty bytes" "$(counter target:guarded dirty_bytes)" 65536
		check_fails umount /smc
		check grep -q ' /smc smcfs ' /proc/mounts
		dmesg -C
		umount -f /smc || check umount /smc
		check_fails grep -q ' /smc smcfs ' /proc/mounts
		check grep -q 'discarded 65536 bytes' <(dmesg)
		check vm_ctl link client up
		check mount_smc
		eventually 60 probe_script "open rw /smc/target/guarded" "pexpect 0 4096 4" "pwrite 0 4096 5" \
			"fsync"
	fi
	barrier ended
	on target probe_script "open r /dev/shm/guarded" "pexpect $GUARD 4096 5" \
		"pexpect $((GUARD + 4096)) 61440 3"
	on target check_guards
}

# detach --force: the same for one region, with the count in the answer.
detach_by_force() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/guarded"
		p a "map rw shared 0 0"
		p a "load 0 65536"
		check_fails smcctl detach target:guarded
		check vm_ctl link client down
		p a "store 0 8192 9"
		check_fails smcctl detach target:guarded
		check grep -q 8192 <(smcctl -j detach target:guarded --force --yes)
		p a "! SIGBUS load 0 1"
		p a "! EIO fsync"
		p a "! EIO pread 0 10"
		probe_close a
		check vm_ctl link client up
		eventually 60 probe_script "open r /smc/target/guarded" "pexpect 0 4096 5"
	fi
	barrier ended
	on target check_guards
}

# The daemon on the target is killed while the client writes. Its successor has the same names, but
# other memory as far as anybody can tell: the old mapping is dead and touches nothing.
target_daemon_killed() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/guarded"
		p a "map rw shared 0 0"
		p a "store 0 $LENGTH 20"
		p a "fsync"
		p a "store 0 65536 21"
		p_start a "within $CALL_MS fsync"
	fi
	barrier dirty
	on client p_end a
	barrier synced
	on target kill_daemon
	barrier killed
	if [ "$NODE" = client ]; then
		p a "store 0 65536 22"
		p a "within $CALL_MS ! EIO fsync"
		p a "within $CALL_MS ! EIO msync 0 4096"
		p a "expect 0 65536 22"
	fi
	barrier failed
	on target probe_script "open rw /dev/shm/guarded" "pexpect $GUARD 65536 21" \
		"pwrite $GUARD $LENGTH 30"
	on target start_daemon
	barrier restarted
	if [ "$NODE" = client ]; then
		# Found again by name, as new memory; what was dirty belonged to the old.
		eventually 60 probe_script "open rw /smc/target/guarded" "pexpect 0 $LENGTH 30"
		p a "! SIGBUS load 0 1"
		p a "! SIGBUS store 0 1 23"
		p a "! EIO pwrite 0 10 23"
		p a "! EIO fsync"
		probe_close a
		check probe_script "open rw /smc/target/guarded" "pexpect 0 $LENGTH 30" \
			"pwrite 4096 4096 31" "fsync"
	fi
	barrier checked
	on target probe_script "open r /dev/shm/guarded" "pexpect $GUARD 4096 30" \
		"pexpect $((GUARD + 4096)) 4096 31" "pexpect $((GUARD + 8192)) $((LENGTH - 8192)) 30"
	on target check_guards
}

# The same under load: programs that store and sync without end.
target_daemon_restarts_under_load() {
	local n i pids
	for ((n = 0; n < 2; n++)); do
		pids=()
		if [ "$NODE" = client ]; then
			for i in 0 1 2; do
				load_region "$i" &
				pids+=($!)
			done
			for i in 0 1 2; do eventually 60 grep -q '^ok fsync' "/tmp/load.$i"; done
		fi
		barrier "loaded $n"
		on target kill_daemon
		on target start_daemon
		barrier "restarted $n"
		for i in "${pids[@]}"; do check wait "$i"; done
		on client rm -f /tmp/load.{0,1,2}
		on client eventually 60 probe_script "open rw /smc/target/guarded" "pwrite 0 100 $n" "fsync"
		barrier "again $n"
		on target check_guards
		on target probe_script "open r /dev/shm/guarded" "pexpect $GUARD 100 $n"
		barrier "checked $n"
	done
}
# Stores and syncs until a call fails; each within its time.
load_region() {
	local byte
	{
		echo "open rw /smc/target/guarded"
		echo "map rw shared 0 0"
		for ((byte = 0; byte < 4000; byte++)); do
			echo "store $(($1 * 131072)) 131072 $((byte % 256))"
			echo "within $CALL_MS fsync"
		done
	} | probe >"/tmp/load.$1" 2>&1 || true
	tail -n 1 "/tmp/load.$1"
	# EIO of a call or SIGBUS of a store, in time, and nothing else, is how it may end.
	grep -q "FAILED '.*': \(EIO\|SIGBUS\|ESTALE\) after" "/tmp/load.$1" &&
		[ "$(grep -o 'after [0-9]*' "/tmp/load.$1" | cut -d' ' -f2)" -le "$CALL_MS" ]
}

# The client's own daemon dies: open regions work on; another daemon takes over.
client_daemon_killed() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/guarded"
		p a "map rw shared 0 0"
		p a "store 0 4096 40"
		kill_daemon
		p a "store 4096 4096 40"
		p a "fsync"
		p a "acquire 0 0"
		p a "expect 0 8192 40"
		check grep -q guarded <(smcctl regions 2>/dev/null)
		p a "use 1"
		p a "within $CALL_MS ! ENOTCONN open r /smc/target/unheard-of"
		check start_daemon
		p a "use 0"
		p a "store 8192 4096 40"
		p a "fsync"
		probe_close a
		check probe_script "open rw /smc/target/guarded" "pwrite 12288 4096 40" "fsync"
	fi
	barrier ended
	on target probe_script "open r /dev/shm/guarded" "pexpect $GUARD 16384 40"
	on target check_guards
}

# Taken away by its owner: dead before unexport returns.
unexport_revokes() {
	on target export_file gone 65536
	barrier exported
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/gone"
		p a "map rw shared 0 0"
		p a "store 0 4096 1"
		p a "fsync"
	fi
	barrier stored
	on target check smcctl unexport gone
	barrier unexported
	if [ "$NODE" = client ]; then
		eventually 20 probe_script "! ENOENT open r /smc/target/gone"
		p a "! SIGBUS store 4096 1 2"
		p a "! EIO fsync"
		p a "! EIO pread 0 10"
		probe_close a
	fi
	barrier ended
	on target probe_script "open r /dev/shm/gone" "pexpect 0 4096 1" "pexpect 4096 61440 0"
}

# A frozen target: no answer at all, not even a closed connection.
target_frozen() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/guarded"
		p a "map rw shared 0 0"
		p a "load 0 4096"
		check vm_ctl stop target
		p a "store 0 4096 50"
		p a "within $CALL_MS ! EIO fsync"
		p a "within $CALL_MS ! SIGBUS load 524288 1"
		check vm_ctl cont target
		eventually 90 region_is guarded active
		p a "fsync"
		probe_close a
	fi
	barrier ended
	on target probe_script "open r /dev/shm/guarded" "pexpect $GUARD 4096 50"
	on target check_guards
}

DIRTY_MAX=/sys/module/smcfs/parameters/dirty_max_mb

# dirty_is BETWEEN AND: bytes of the region.
dirty_is() {
	local dirty
	dirty=$(counter target:bound dirty_bytes)
	echo "$dirty bytes are dirty"
	[ "$dirty" -ge "$1" ] && [ "$dirty" -le "$2" ]
}

# A region has no more dirty pages than it may have, but for a folio: who stores more has them flushed, and
# without a link waits, and can be killed.
dirty_is_bounded() {
	local size=$((8 * 1024 * 1024)) max=$((1024 * 1024)) folio=$((256 * 1024))
	on target export_file bound "$size"
	barrier exported
	if [ "$NODE" = client ]; then
		echo 1 >"$DIRTY_MAX"
		check smcctl attach target:bound
		check smcctl set target:bound hot=off flush_after_ms=3600000
		probe_open a
		p a "open rw /smc/target/bound"
		p a "map rw shared 0 0"
		p a "store 0 $size 5"
		check dirty_is 0 $((max + folio))
		p a "pwrite 0 $size 6"
		check dirty_is 0 $((max + folio))
		p a fsync
		check vm_ctl link client down
		p_start a "store 0 $size 7"
		eventually 60 region_is bound degraded
		eventually 60 dirty_is "$max" $((max + folio))
		kill -KILL "${PROBE_PID[a]}"
		eventually 20 process_gone "${PROBE_PID[a]}"
		check vm_ctl link client up
		eventually 60 region_is bound active
		eventually 60 dirty_is 0 0
		echo 1024 >"$DIRTY_MAX"
	fi
	barrier ended
	on target probe_script "open r /dev/shm/bound" "pexpect 0 $((max / 2)) 7" \
		"pexpect $((size / 2)) $((size / 2)) 6"
	on target unexport bound
}

case_ "the product starts, with an export from the configuration" start
case_ "a failed fsync keeps its pages dirty, and the next succeeds" failed_fsync_then_good
case_ "without a link calls end in time, and who waits can be killed" reads_without_link
case_ "a region has no more dirty pages than it may have, also without a link" dirty_is_bounded
case_ "an O_DIRECT write that is killed leaves no trace in shadow pages" killed_direct_write
case_ "umount with dirty pages and no link is EBUSY, -f discards and says how much" umount_with_dirty_pages
case_ "a forced detach discards and counts" detach_by_force
case_ "a frozen target fails calls in time, and is used again afterwards" target_frozen
case_ "an old mapping never touches memory of another generation" target_daemon_killed
case_ "nothing hangs when the target's daemon restarts under load" target_daemon_restarts_under_load
case_ "open regions work on without the client's daemon" client_daemon_killed
case_ "unexport revokes: memory is out of reach when it returns" unexport_revokes
case_ "everything is put away, and the module unloads" product_stop
pass
