#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: nodes=5 mem=512 mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client: units 0, 5, 17 ... --\
#     node3:  units 1, 6, 8 ...  ---\
#     node4:  units 2, 12, 13 ... ---- rxe -- target: /dev/shm/m, units 4, 7, 9 ... by itself
#     node5:  units 3, 10, 11 ... -/
#
# Claim: in a merge region several nodes and the accelerator write their own units of the same pages, and
# none loses a byte to another; what was not changed is not sent; what write(2), smc_store or
# smc_publish wrote is, changed or not; no float that is stored over another is seen half-written;
# after a failed write the units are still owed.
. "$SMC_ROOT/tests/vm/lib-product.sh"
export REQUEST_TIMEOUT_MS=2000

CALL_MS=30000
export SENDS_FROM=target:s
# An operation is a store or a write(2) into one of a writer's units, with a store to its watched word,
# which is a unit of its own. In all, of five writers; in a soak of each.
WRITERS=5
OPS_SHORT=20000 FLOATS=1000000
[ "$KERNEL" != debug ] || CALL_MS=60000 OPS_SHORT=3000 FLOATS=100000
OPS=${OPS:-$((SOAK ? 1000000 : OPS_SHORT / WRITERS))}
[ "$SOAK" = 0 ] || FLOATS=100000000

# write_together UNIT: each node its part; the target's part is done on the memory itself.
write_together() {
	local unit=$1 part sent options
	options=(--parts "$WRITERS" --ops "$OPS" --seed "$SEED" --unit "$unit")
	on target export_file m 256K --merge-unit "$unit"
	barrier "exported $unit"
	case $NODE in
	target) check merge-writer /dev/shm/m --part 4 --memory "${options[@]}" ;;
	client) part=0 ;;
	*) part=$((${NODE#node} - 2)) ;;
	esac
	if [ "$NODE" != target ]; then
		check merge-writer /smc/target/m --part "$part" "${options[@]}"
		# Two units changed by each operation, and no more than those.
		sent=$(counter target:m flush_bytes)
		echo "$sent bytes were sent"
		check [ "$sent" -ge $((OPS)) ]
		check [ "$sent" -le $((OPS * 2 * unit)) ]
	fi
	barrier "written $unit"
	on target check merge-writer /dev/shm/m --check "${options[@]}"
	on target unexport m
	barrier "checked $unit"
}

# floats_are_whole OPTIONS...: of the export. All are looked at in the target's memory meanwhile.
floats_are_whole() {
	local pid
	on target export_file f 64K "$@"
	if [ "$NODE" = target ]; then
		nice floats watch /dev/shm/f >/run/vm/watched &
		pid=$!
		eventually 30 grep -q watching /run/vm/watched
	fi
	barrier watching
	if [ "$NODE" = client ]; then
		check smcctl attach target:f
		check smcctl set target:f flush_after_ms=1
		check floats store /smc/target/f "$FLOATS"
	fi
	barrier stored
	if [ "$NODE" = target ]; then
		check wait "$pid"
		cat /run/vm/watched
	fi
	on target unexport f
}

only_changes_are_sent() {
	on target export_file s 1000001
	barrier exported
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/s"
		p a "map rw shared 0 0"
		check smcctl set target:s flush_after_ms=3600000 # only barriers flush
		sends 64 a "store 4096 4 1"
		sends 0 a "store 4096 4 1" # the value that is there
		sends 0 a "expect 4096 4 1"
		sends 64 a "store 4200 1 2"
		sends 128 a "store 4220 8 3" # two units
		sends 8192 a "store 8192 8192 4"
		sends 0 a "store 8192 8192 4"
		sends 4 a "pwrite 4096 4 1" # the value that is there, and no byte more
		sends 100 a "pwrite 300 100 0"
		sends 4096 a "pwrite 8192 4096 4"
		sends 64 a "pwrite 40960 4 9" "store 40968 1 9" # a store beside it: the unit
		local round
		for ((round = 0; round < 16; round++)); do # as often as one page is looked at more closely
			sends 1 a "store 1000000 1 $((round + 10))"
		done
		sends 1 a "store 1000000 1 5"                   # the region's last byte
		# More than the page that is made for its first byte holds, the last page in part.
		sends 20481 a "pwrite 401408 20481 3"
		sends 60001 a "pwrite 500000 60001 3"
		check smcctl set target:s merge_unit=4
		sends 4 a "store 20480 1 6"
		sends 12 a "store 20486 8 7"
		sends 16 a "store 20992 8 7" "store 21248 8 7"
		check smcctl set target:s merge_unit=1024
		sends 2048 a "store 24576 1 8" "store 26000 1 8"
		check smcctl set target:s merge_unit=4096
		sends 4096 a "store 28672 1 8"
		check smcctl set target:s merge_unit=64
		# A page of which every other unit changed takes several transfers.
		local i calls=()
		for ((i = 0; i < 64; i += 2)); do calls+=("store $((65536 + i * 64)) 1 7"); done
		sends 2048 a "${calls[@]}"
		probe_close a
	fi
	barrier sent
	on target probe_script "open r /dev/shm/s" "pexpect 4096 4 1" "pexpect 4200 1 2" \
		"pexpect 4220 8 3" "pexpect 8192 8192 4" "pexpect 40960 4 9" "pexpect 40968 1 9" \
		"pexpect 1000000 1 5" "pexpect 20480 1 6" "pexpect 20486 8 7" "pexpect 26000 1 8" \
		"pexpect 401408 20481 3" "pexpect 421889 64 0" "pexpect 500000 60001 3"
	barrier checked
}

# A flag that the target resets: a mapped store of the old value is no change, write(2) is sent.
same_value() {
	on client probe_script "open rw /smc/target/s" "map rw shared 0 0" "store 50000 4 1" fsync
	barrier set
	on target probe_script "open rw /dev/shm/s" "pexpect 50000 4 1" "pwrite 50000 4 0"
	barrier reset
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/s"
		p a "map rw shared 0 0"
		p a "expect 50000 4 0"
		p a "store 50000 4 1"
		p a fsync
	fi
	barrier again
	on target probe_script "open rw /dev/shm/s" "pexpect 50000 4 1" "pwrite 50000 4 0"
	barrier reset-again
	if [ "$NODE" = client ]; then
		p a "store 50000 4 1" # it is 1 here: no change
		p a fsync
	fi
	barrier stored
	on target probe_script "open r /dev/shm/s" "pexpect 50000 4 0"
	barrier looked
	if [ "$NODE" = client ]; then
		p a "pwrite 50000 4 1"
		p a fsync
		probe_close a
	fi
	barrier written
	on target probe_script "open r /dev/shm/s" "pexpect 50000 4 1"
	barrier seen
}

# The same within one program, and for all that libsmc has.
same_value_of_libsmc() {
	local pid
	on target export_file w 64K
	if [ "$NODE" = target ]; then
		words reset /dev/shm/w >/run/vm/resets &
		pid=$!
		eventually 30 grep -q watching /run/vm/resets
	fi
	barrier watching
	on client check words same target:w
	barrier compared
	[ "$NODE" != target ] || check wait "$pid"
	on target unexport w
}

# Neighbours of a unit that was stored to belong to whoever wrote them, also when they do so
# between fetch and flush.
neighbours_are_kept() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/s"
		p a "map rw shared 0 0"
		p a "store 131072 64 1"
		p a "pwrite 135168 10 1"
	fi
	barrier dirty
	on target probe_script "open rw /dev/shm/s" "pwrite 131136 4032 2" "pwrite 135178 100 2"
	barrier target-wrote
	if [ "$NODE" = client ]; then
		p a fsync
		p a "acquire 0 0"
		p a "expect 131072 64 1"
		p a "expect 131136 4032 2"
		p a "expect 135168 10 1"
		p a "expect 135178 100 2"
		probe_close a
	fi
	barrier flushed
	on target probe_script "open r /dev/shm/s" "pexpect 131072 64 1" "pexpect 131136 4032 2" \
		"pexpect 135168 10 1" "pexpect 135178 100 2"
	barrier kept
}

# The twin did not advance, and the bytes that write(2) wrote are not forgotten.
failed_write_is_owed() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "use 1" # first, since to open is to acquire
		p a "open rw+direct /smc/target/s"
		p a "use 0"
		p a "open rw /smc/target/s"
		p a "map rw shared 0 0"
		p a "store 200704 64 1"
		p a "pwrite 204800 64 0"
		p a "load 0 1000001"
		# Dirty by a part of the page, and then written past the cache, in vain: seen here, so owed.
		p a "pwrite 208896 10 1"
		check vm_ctl link client down
		p a "use 1"
		p a "within $CALL_MS ! EIO pwrite 208896 4096 4"
		p a "use 0"
		p a "load 208896 4096"
		p a "within $CALL_MS ! EIO msync 0 1000001"
		p a "store 200768 64 1" # after the failure
		check vm_ctl link client up
		eventually 60 region_is_active
		sends_owed a
		probe_close a
	fi
	barrier sent
	on target probe_script "open r /dev/shm/s" "pexpect 200704 128 1" "pexpect 204800 64 0" \
		"pexpect 208896 4096 4"
	barrier checked
}
region_is_active() { smcctl -j regions | tr -d ' \n' | grep -q '"name":"s"[^}]*"state":"active"'; }
sends_owed() { # PROBE: a background flush may have sent them already
	p "$1" "msync 0 1000001"
	p "$1" "pexpect 208896 4096 4"
	p "$1" "expect 200704 128 1"
	check_equal "dirty bytes" "$(counter target:s dirty_bytes)" 0
}

# What failed may have got there: to store what was there before is a change, whatever the twin says.
failed_store_is_taken_back() {
	store_taken_back s 212992 "$CALL_MS"
	on client check smcctl set target:s merge_unit=4
	store_taken_back s 217088 "$CALL_MS"
	on client check smcctl set target:s merge_unit=64
}

# The policy of a live region changes as a whole, or not at all.
policy_changes_live() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/s"
		check_fails smcctl set target:s writers=exclusive
		check_equal writers "$(smcctl get target:s writers)" merge
		p a "pwrite 0 100 1"
		p a close
		check smcctl set target:s writers=exclusive
		check_equal writers "$(smcctl get target:s writers)" exclusive
		p a "open rw /smc/target/s"
		p a "map rw shared 0 0"
		sends 4096 a "store 0 1 2" # whole pages
		check_fails smcctl set target:s writers=merge
		p a unmap
		p a close
		check smcctl set target:s writers=merge
		p a "open rw /smc/target/s"
		p a "map rw shared 0 0"
		sends 64 a "store 0 1 3"
		probe_close a
	fi
	barrier changed
	on target unexport s
}

exclusive_stays_exclusive() {
	on target export_file x 65536 --writers exclusive
	barrier exported
	if [ "$NODE" = client ]; then
		check_equal size "$(stat -c %s /smc/target/x)" 65536
		check_fails smcctl set target:x writers=merge
	fi
	barrier refused
	on target unexport x
}

case_ "the product starts on all nodes" product_start
case_ "five writers of the same pages, units of 64 bytes" write_together 64
case_ "five writers of the same pages, units of 4 bytes" write_together 4
case_ "five writers of the same pages, units of 512 bytes" write_together 512
case_ "no float is seen half-written" floats_are_whole
case_ "nor with units of one float" floats_are_whole --merge-unit 4
case_ "nor where whole pages are sent" floats_are_whole --writers exclusive
case_ "what was not changed is not sent" only_changes_are_sent
case_ "a store of the same value is no change, write(2) of it is sent" same_value
case_ "smc_store and smc_publish of the same value are sent" same_value_of_libsmc
case_ "units that others write are kept" neighbours_are_kept
case_ "after a failed write the units are owed" failed_write_is_owed
case_ "a store that failed, and was taken back, is taken back at the target" failed_store_is_taken_back
case_ "the policy of a live region changes, or does not" policy_changes_live
case_ "a region exported as exclusive stays so" exclusive_stays_exclusive
case_ "everything is put away, and the module unloads" product_stop
pass
