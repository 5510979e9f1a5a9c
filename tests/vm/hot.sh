#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12,debug timeout=1200
#
#     client: stores to the same pages, over and over  -- rxe --  target: memory in a file
#
# Claim: pages that are written often stay writable, and no store to them is lost, however the
# program, the kernel or the administrator takes them away: barriers, the flusher, sync(2), munmap,
# exit, acquire, a lost link, hot=off, another mode. Random commands (model.sh) meet them, too.
. "$SMC_ROOT/tests/vm/lib-product.sh"
export REQUEST_TIMEOUT_MS=2000

CALL_MS=30000
[ "$KERNEL" != debug ] || CALL_MS=60000
KILLS=$((SOAK ? 100 : 5))
[ "$KERNEL" != debug ] || KILLS=2

start() {
	product_start
	on target export_file x 1M --writers exclusive
	on target export_file m 1M
	barrier exported
	[ "$NODE" != client ] || check smcctl attach target:x
	[ "$NODE" != client ] || check smcctl attach target:m
}

# hot_bytes REGION: of pages that are hot and not known to be dirty.
hot_bytes() {
	smcctl -j inspect "target:$1" | /usr/bin/python3 -c '
import json, sys
print(json.load(sys.stdin)["totals"]["hot"])'
}
hot_bytes_are() { [ "$(hot_bytes "$1")" = "$2" ]; }

# heat PROBE: the region's pages at 64 Ki to 128 Ki become hot; they hold 9 everywhere afterwards.
heat() {
	local round
	for round in 1 2 3 9; do
		p "$1" "store 65536 65536 $round"
		p "$1" fsync
	done
}

# open_hot PROBE REGION: mapped, with hot pages, and only barriers flush.
open_hot() {
	check smcctl set "target:$2" hot=on flush_after_ms=3600000
	probe_open "$1"
	p "$1" "open rw /smc/target/$2"
	p "$1" "map rw shared 0 0"
	p "$1" random # page by page: large folios of exclusive regions have rules of their own
	heat "$1"
	check_equal "hot bytes of $2" "$(hot_bytes "$2")" 65536
}

# holds REGION OFFSET LENGTH BYTE: now, in the target's memory.
holds() {
	local name=$1 offset=$2 length=$3 byte=$4
	on target probe_script "open r /dev/shm/$name" "pexpect $offset $length $byte"
	barrier "$name $offset $byte held"
}

# modified REGION: when, as stat(2) says.
modified() { stat -c %.9Y "/smc/target/$1"; }

becomes_hot() {
	local before
	if [ "$NODE" = client ]; then
		check_equal "hot" "$(smcctl get "target:$1" hot)" yes
		check smcctl set "target:$1" hot=off
		check_fails smcctl set "target:$1" hot=perhaps
		probe_open a
		p a "open rw /smc/target/$1"
		p a "map rw shared 0 0"
		p a random
		heat a
		check_equal "hot bytes with hot=off" "$(hot_bytes "$1")" 0
		probe_close a
		open_hot a "$1"
		before=$(modified "$1")
		p a "store 65536 100 21"
		p a "msync 65536 4096"
		check [ "$(modified "$1")" != "$before" ]
		p a "store 70000 100 22" # not asked for
		p a "msync 90112 4096"
	fi
	barrier stored
	holds "$1" 65536 100 21
	holds "$1" 70000 100 9
	if [ "$NODE" = client ]; then
		p a fsync
		p a "pexpect 70000 100 22"
	fi
	barrier flushed
	holds "$1" 70000 100 22
	# A store of write(2), which is not seen in a page table, and one of each at a time.
	if [ "$NODE" = client ]; then
		p a "pwrite 65536 50 23"
		p a "store 65586 50 24"
		p a "store 131071 1 25"
		p a fsync
	fi
	barrier flushed-both
	holds "$1" 65536 50 23
	holds "$1" 65586 50 24
	holds "$1" 131071 1 25
	on client probe_close a
}

# Nobody waits for a barrier: the flusher, sync(2), syncfs(2), close and exit.
without_barrier() {
	local core_cs
	if [ "$NODE" = client ]; then
		core_cs=$(</proc/sys/vm/dirty_writeback_centisecs)
		echo 0 >/proc/sys/vm/dirty_writeback_centisecs
		open_hot a "$1"
		p a "store 65536 4096 31"
		sync
		p a "store 69632 4096 32"
		p a syncfs
	fi
	barrier synced
	holds "$1" 65536 4096 31
	holds "$1" 69632 4096 32
	if [ "$NODE" = client ]; then
		p a "store 65536 4096 33"
		p a "unmap"
		p a "close"
		probe_close a
		open_hot a "$1"
		check smcctl set "target:$1" flush_after_ms=50
		p a fsync # looks for stores every 50 ms from now on
		p a "store 73728 4096 34"
	fi
	barrier closed
	on target eventually 20 probe_script "open r /dev/shm/$1" "pexpect 73728 4096 34"
	barrier flushed
	if [ "$NODE" = client ]; then
		heat a
		p a "store 65536 4096 35"
		kill -KILL "${PROBE_PID[a]}"
		eventually 20 process_gone "${PROBE_PID[a]}"
		eventually 20 counter_is "target:$1" dirty_bytes 0
		echo "$core_cs" >/proc/sys/vm/dirty_writeback_centisecs
	fi
	barrier killed
	on target eventually 20 probe_script "open r /dev/shm/$1" "pexpect 65536 4096 35"
	barrier ended
}

# Stores that no barrier has seen yet, when the page is taken away.
taken_away() {
	if [ "$NODE" = client ]; then
		open_hot a "$1"
		p a "store 65536 4096 41"
		p a "acquire 65536 4096" # flushes first
		p a "expect 65536 4096 41"
		heat a
		p a "store 65536 4096 42"
		echo 3 >/proc/sys/vm/drop_caches
		echo 1 >/proc/sys/vm/compact_memory
		p a "expect 65536 4096 42"
		# Others open it, which drops clean pages, and unmap it.
		probe_open b
		p b "open r /smc/target/$1"
		p b "pexpect 65536 4096 42"
		probe_close b
		p a "map rw shared 0 0" # a second mapping of the same pages
		p a "store 69632 4096 43"
		p a "unmap"
		p a fsync
	fi
	barrier taken
	holds "$1" 65536 4096 42
	holds "$1" 69632 4096 43
	on client probe_close a
}

cools() {
	local value core_cs
	if [ "$NODE" = client ]; then
		# The core's flusher would send what is to be seen dirty.
		core_cs=$(</proc/sys/vm/dirty_writeback_centisecs)
		echo 0 >/proc/sys/vm/dirty_writeback_centisecs
		open_hot a "$1"
		p a "store 65536 4096 51"
		check smcctl set "target:$1" hot=off
		check_equal "hot bytes after hot=off" "$(hot_bytes "$1")" 0
		check_equal "dirty bytes" "$(counter "target:$1" dirty_bytes)" 4096
		p a fsync
	fi
	barrier off
	holds "$1" 65536 4096 51
	if [ "$NODE" = client ]; then
		probe_close a
		open_hot a "$1"
		p a "store 65536 4096 52"
		check smcctl set "target:$1" mode=push
		eventually 20 counter_is "target:$1" dirty_bytes 0
		check_equal "hot bytes in mode push" "$(hot_bytes "$1")" 0
		p a "store 65536 4096 53"
		eventually 20 counter_is "target:$1" dirty_bytes 0
	fi
	barrier pushed
	holds "$1" 65536 4096 53
	if [ "$NODE" = client ]; then
		check smcctl set "target:$1" mode=lazy
		probe_close a
		open_hot a "$1"
		p a "store 65536 4096 54"
		check smcctl set "target:$1" flush_after_ms=1
		p a fsync
		eventually 60 hot_bytes_are "$1" 0 # idle
		p a "store 65536 4096 55"
		p a fsync
		# Of the target's own changes to cool pages none is overwritten.
		value=$(counter "target:$1" flush_bytes)
		p a fsync
		check_equal "bytes flushed of cool pages" "$(counter "target:$1" flush_bytes)" "$value"
		probe_close a
		echo "$core_cs" >/proc/sys/vm/dirty_writeback_centisecs
	fi
	barrier idle
	holds "$1" 65536 4096 55
}

# Mappings that can never write end the kernel's search for stores: there must be no hot pages then.
beside_readers() {
	if [ "$NODE" = client ]; then
		# First in the file's tree of mappings, and before there is a writer.
		check smcctl set "target:$1" hot=on flush_after_ms=3600000
		probe_open b
		p b "open r /smc/target/$1"
		p b "map r shared 0 0"
		probe_open a
		p a "open rw /smc/target/$1"
		p a "map rw shared 0 0"
		p a random
		heat a
		check_equal "hot bytes beside a reader" "$(hot_bytes "$1")" 0
		p a "store 65536 4096 71"
		p a fsync
	fi
	barrier "read $1"
	holds "$1" 65536 4096 71
	if [ "$NODE" = client ]; then
		probe_close b
		heat a
		check_equal "hot bytes without" "$(hot_bytes "$1")" 65536
		# A reader and a private mapping come while pages are hot; stores before and after.
		p a "store 65536 4096 72"
		probe_open b
		p b "open rw /smc/target/$1"
		p b "map rw private 0 0"
		p a "store 69632 4096 73"
		p a fsync
		check_equal "hot bytes beside a private mapping" "$(hot_bytes "$1")" 0
		p a "store 73728 4096 74"
		p a fsync
		p b "expect 73728 4096 74"
	fi
	barrier "private $1"
	holds "$1" 65536 4096 72
	holds "$1" 69632 4096 73
	holds "$1" 73728 4096 74
	if [ "$NODE" = client ]; then
		probe_close b
		probe_close a
	fi
}

# Flags and atomics find what was stored to a hot page, and nothing comes after them.
words_follow() {
	if [ "$NODE" = client ]; then
		check smcctl set "target:$1" hot=on flush_after_ms=3600000
		check words follow "target:$1"
	fi
	barrier "followed $1"
}

# A writer is killed while another flush harvests its pages, again and again.
killed_while_flushed() {
	local round
	if [ "$NODE" = client ]; then
		for ((round = 0; round < KILLS; round++)); do
			open_hot a "$1"
			check smcctl set "target:$1" flush_after_ms=1
			p_start a "store 65536 65536 $((100 + round))"
			p_end a
			kill -KILL "${PROBE_PID[a]}"
			eventually 20 process_gone "${PROBE_PID[a]}"
			eventually 20 counter_is "target:$1" dirty_bytes 0
		done
	fi
	barrier "killed $1"
	on target eventually 20 probe_script "open r /dev/shm/$1" \
		"pexpect 65536 65536 $((99 + KILLS))"
	barrier "checked $1"
}

loses_link() {
	if [ "$NODE" = client ]; then
		open_hot a "$1"
		check vm_ctl link client down
		p a "store 65536 4096 61"
		p a "within $CALL_MS ! EIO fsync"
		p a "store 69632 4096 62"
		check vm_ctl link client up
		eventually 60 region_is "$1" active
		p a fsync
	fi
	barrier back
	holds "$1" 65536 4096 61
	holds "$1" 69632 4096 62
	on client probe_close a
}

# large_region NAME SETTING...: exclusive, in large folios, mapped by the client's probe a.
large_region() {
	local name=$1
	shift
	on target export_file "$name" 2M --writers exclusive
	barrier exported
	[ "$NODE" = client ] || return 0
	check smcctl attach "target:$name"
	check smcctl set "target:$name" hot=on "$@"
	probe_open a
	p a "open rw /smc/target/$name"
	p a "map rw shared 0 0"
	p a "pread 0 2M" # readahead builds large folios
}

# Every page of l is hot, and holds 5.
heat_large() {
	local round
	for round in 1 2 3 4 5; do
		p a "store 0 2M $round"
		p a fsync
	done
	check_equal "hot bytes of l" "$(hot_bytes l)" 2097152
}

# What the client has left alone is the target's, which changes it, beside what the client last stored.
target_takes_over() {
	barrier cooled
	on target probe_script "open rw /dev/shm/l" "pexpect 1089536 100 13" \
		"pexpect 1130496 4096 5" "pwrite 1130496 4096 55"
	barrier target-wrote
}

# Who marks a large folio dirty does not say which page was stored to. In an exclusive region a page
# that was left alone for two flushes belongs to the target all the same.
large_folios_cool() {
	local round
	large_region l flush_after_ms=3600000
	if [ "$NODE" = client ]; then
		heat_large
		for round in 11 12 13; do
			p a "store 1089536 100 $round"
			p a fsync
		done
	fi
	target_takes_over
	if [ "$NODE" = client ]; then
		p a "store 1089536 100 14"
		p a unmap
		p a close
		probe_close a
	fi
	barrier closed
	holds l 1089536 100 14
	holds l 1130496 4096 55
	on target unexport l
}

# The same, while each round makes another process's first store, whose fault tells of all of the folio.
large_folios_cool_under_faults() {
	local round
	large_region l flush_after_ms=3600000 cto=off
	if [ "$NODE" = client ]; then
		heat_large
		for round in 11 12 13; do
			first_store "$round"
		done
	fi
	target_takes_over
	if [ "$NODE" = client ]; then
		first_store 14
		first_store 15
		for round in 11 12 13 14 15; do
			probe_close "b$round"
		done
		probe_close a
	fi
	barrier closed
	holds l 1089536 100 15
	holds l 1130496 4096 55
	on target unexport l
}

# No two flushes are needed where a fault or a write(2) marks the folio: what it does not store to is not sent.
large_folios_break() {
	large_region l flush_after_ms=3600000 cto=off
	if [ "$NODE" = client ]; then
		p a "store 0 2M 1"
		p a fsync
		check_equal "hot bytes of l, stored to once" "$(hot_bytes l)" 0
		heat_large
	fi
	barrier heated
	on target probe_script "open rw /dev/shm/l" "pwrite 1130496 4096 55" "pwrite 1900544 4096 56"
	barrier target-wrote
	if [ "$NODE" = client ]; then
		first_store 14
		p a "store 1867776 100 16" # by no fault, in a folio that is about to break
		p a "pwrite 1835008 100 15"
		p a fsync
		probe_close b14
		probe_close a
	fi
	barrier closed
	holds l 1089536 100 14
	holds l 1130496 4096 55
	holds l 1867776 100 16
	holds l 1835008 100 15
	holds l 1900544 4096 56
	on target unexport l
}

# first_store BYTE: of a process that is new, and a barrier. It stays, as its end is a barrier, too.
first_store() {
	probe_open "b$1"
	p "b$1" "open rw /smc/target/l"
	p "b$1" "map rw shared 0 0"
	p "b$1" random # one page at a time is mapped
	p "b$1" "store 1089536 100 $1"
	p "b$1" fsync
}

# What becomes hot by flushes that nobody asked for is looked at by more of them.
large_folios_warm_without_barrier() {
	local round
	# Longer than it takes to store to all of it, and to look at it.
	large_region w flush_after_ms=1000
	if [ "$NODE" = client ]; then
		for ((round = 0; round < 200; round++)); do
			p a "store 0 2M $((round % 64))"
			[ "$(hot_bytes w)" = 0 ] || break
		done
		check [ "$round" -lt 200 ]
		p a "store 0 2M 77"
	fi
	barrier stored
	on target eventually 20 probe_script "open r /dev/shm/w" "pexpect 0 2M 77"
	barrier seen
	on client probe_close a
	barrier closed
	on target unexport w
}

# here REGION ONLY: does a case run for REGION? On the debug kernel for region ONLY.
here() {
	[ "$KERNEL" != debug ] || [ "$SOAK" = 1 ] || [ "$1" = "$2" ]
}

case_ "the product starts on both nodes" start
for region in x m; do
	case_ "$region: pages become hot, and barriers send their stores" becomes_hot $region
	! here $region x || case_ "$region: stores are sent without a barrier" without_barrier $region
	! here $region m || case_ "$region: stores survive pages that are taken away" taken_away $region
	! here $region x || case_ "$region: pages cool" cools $region
	! here $region m ||
		case_ "$region: stores are found beside mappings that only read" beside_readers $region
	case_ "$region: flags and atomics on hot pages" words_follow $region
	! here $region x || case_ "$region: stores survive their program" killed_while_flushed $region
done
case_ "what was left alone in a large folio belongs to the target" large_folios_cool
case_ "also while other pages of it fault" large_folios_cool_under_faults
case_ "a store by a fault or by write(2) sends nothing else of a hot large folio" large_folios_break
case_ "what became hot without a barrier is sent without one" large_folios_warm_without_barrier
# Last: of two that share a superblock one learns by syncfs(2) of the other's errors.
for region in x m; do
	! here $region m || case_ "$region: stores survive a lost link" loses_link $region
done
case_ "everything is put away, and the module unloads" product_stop
pass
