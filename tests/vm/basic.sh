#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: nodes=3 nics=2 mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client: /smc/target/r --\
#                              >-- rxe -- target: /dev/shm/r
#     node3:  /smc/target/r --/
#
# Claim: what programs store on the client through the file is in the target's memory after a
# barrier, byte for byte, and nothing else is; what changes there is seen after an acquire; and
# the file's rules (private mappings, permissions, one writing node, sizes) hold.
. "$SMC_ROOT/tests/vm/lib-product.sh"

SIZE=$((1024 * 1024 + 1234)) # the last page is not whole

stores_arrive() {
	on target export_file r "$SIZE"
	barrier exported
	on client probe_script "open rw /smc/target/r" "size $SIZE" "map rw shared 0 0" \
		"expect 0 $SIZE 0" \
		"store 0 10 65" "store 4090 12 66" "store 65536 131072 67" "store $((SIZE - 5)) 5 68" \
		"msync 0 $SIZE" "expect 4090 12 66" "load 0 $SIZE"
	barrier stored
	on target probe_script "open r /dev/shm/r" "pexpect 0 10 65" "pexpect 10 4080 0" \
		"pexpect 4090 12 66" "pexpect 4102 61434 0" "pexpect 65536 131072 67" \
		"pexpect 196608 $((SIZE - 196608 - 5)) 0" "pexpect $((SIZE - 5)) 5 68" "size $SIZE"
	barrier checked
}

whole_content_arrives() {
	on client pattern "$SIZE" 1 >/tmp/content
	on client check dd if=/tmp/content of=/smc/target/r bs=64k conv=notrunc,fsync status=none
	barrier written
	on target check cmp /dev/shm/r <(pattern "$SIZE" 1)
	on target pattern "$SIZE" 777 >/dev/shm/r.new
	on target dd if=/dev/shm/r.new of=/dev/shm/r conv=notrunc status=none
	barrier changed
	on client check cmp /smc/target/r <(pattern "$SIZE" 777)
}

# Acquire and open, while the pages are mapped and were read before.
changes_are_seen() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/r"
		p a "map rw shared 0 0"
		p a "pwrite 0 65536 1"
		p a "fsync"
		p a "expect 0 65536 1"
	fi
	barrier cached
	on target probe_script "open rw /dev/shm/r" "map rw shared 0 0" "store 0 8192 2"
	barrier first
	if [ "$NODE" = client ]; then
		p a "acquire 0 8192"
		p a "expect 0 8192 2"
		p a "expect 8192 57344 1"
		p a "pexpect 0 8192 2"
	fi
	barrier seen
	on target probe_script "open rw /dev/shm/r" "map rw shared 0 0" "store 8192 8192 3"
	barrier second
	if [ "$NODE" = client ]; then
		check probe_script "open r /smc/target/r"
		p a "expect 8192 8192 3"
		p a "expect 0 8192 2"
		probe_close a
	fi
	barrier ended
}

# Pages of a large folio that the client did not write belong to the target.
neighbours_are_kept() {
	if [ "$NODE" = client ]; then
		probe_open a
		p a "open rw /smc/target/r"
		p a "map rw shared 0 0"
		p a "pwrite 0 262144 0"
		p a "fsync"
		p a "acquire 0 0"
		p a "pread 0 262144" # readahead builds large folios
		p a "store 8192 4096 9"
		p a "store 20480 1 9"
	fi
	barrier dirty
	on target probe_script "open rw /dev/shm/r" "map rw shared 0 0" "store 4096 4096 7" \
		"store 12288 8192 7" "store 24576 4096 7" "store 65536 4096 7"
	barrier target-wrote
	if [ "$NODE" = client ]; then
		p a "msync 0 262144"
		p a "acquire 0 262144"
		p a "expect 0 4096 0"
		p a "expect 4096 4096 7"
		p a "expect 8192 4096 9"
		p a "expect 12288 8192 7"
		p a "expect 20480 1 9"
		p a "expect 20481 4095 0"
		p a "expect 24576 4096 7"
		p a "expect 65536 4096 7"
		probe_close a
	fi
	barrier flushed
	on target probe_script "open r /dev/shm/r" "pexpect 4096 4096 7" "pexpect 8192 4096 9" \
		"pexpect 12288 8192 7" "pexpect 20480 1 9" "pexpect 24576 4096 7" "pexpect 65536 4096 7"
}

# Whatever readahead is asked for, folios are of a size that their pages are known in.
large_windows() {
	local advice
	on target export_file w 9000001
	barrier exported
	on target probe_script "open rw /dev/shm/w" "pwrite 0 9000001 3"
	barrier filled
	for advice in hugepage sequential; do
		if [ "$NODE" = client ]; then
			probe_open a
			p a "open rw /smc/target/w"
			p a "map rw shared 0 0"
			p a "acquire 0 0"
			# A kernel may know that the file has no such folios.
			p a "$advice" || echo "$advice: refused"
			p a "expect 0 9000001 3"
			p a "acquire 0 0"
			p a "store 4194304 1 4" # the first touch of what could be one huge page
			p a "store 8999999 1 4"
			p a fsync
		fi
		barrier "$advice stored"
		on target probe_script "open rw /dev/shm/w" "pexpect 4194303 1 3" "pexpect 4194304 1 4" \
			"pexpect 4194305 1000000 3" "pexpect 8999999 1 4" "pwrite 0 9000001 3"
		on client probe_close a
		barrier "$advice done"
	done
	on target unexport w
}

private_stays_here() {
	on client probe_script "open rw /smc/target/r" "pwrite 0 16384 1" "fsync" \
		"map rw private 0 0" "store 0 8192 99" "expect 0 8192 99" "expect 8192 8192 1" \
		"use 1" "open rw /smc/target/r" "map rw shared 0 0" "expect 0 16384 1" "msync 0 16384" \
		"fsync"
	on client probe_script "open r /smc/target/r" "map rw private 0 0" "store 0 4096 98"
	barrier stored
	on target probe_script "open r /dev/shm/r" "pexpect 0 16384 1"
}

sizes_and_ends() {
	on client probe_script "open rw+trunc /smc/target/r" "size $SIZE" \
		"blocks $(((SIZE + 511) / 512))" "truncate $SIZE" \
		"! EPERM truncate 0" "! EPERM truncate $((SIZE + 1))" \
		"! ENOSPC pwrite $SIZE 1 1" "read-at-end $SIZE" "! ENOSPC pwrite 2T 1 1" \
		"map rw shared 0 2M" "load $((SIZE / 4096 * 4096)) 1" \
		"! SIGBUS load $((SIZE / 4096 * 4096 + 4096)) 1"
	on client check_fails touch /smc/target/not-exported
	on client check_fails mkdir /smc/target/dir
	on client check_fails rm -f /smc/target/r
	on client check_fails mv /smc/target/r /smc/target/s
	on client check test "$(stat -c %s /smc/target/r)" = "$SIZE"
	on client check ls -l /smc/target/r
	on client check test "$(ls /smc/target)" = r
}

readonly_regions() {
	on target export_file ro 65536 --readonly
	barrier exported
	on client probe_script "! EROFS open rw /smc/target/ro" "! EROFS open w /smc/target/ro" \
		"open r /smc/target/ro" "! EACCES map rw shared 0 0" "map r shared 0 0" \
		"! EACCES mprotect rw 0 4096" "expect 0 65536 0" "map rw private 0 0" "store 0 10 1"
	barrier refused
	on target unexport ro
}

permissions() {
	on target check truncate -s 65536 /dev/shm/mine
	on target check smcctl export mine --file /dev/shm/mine --mode 0640
	barrier exported
	if [ "$NODE" = client ]; then
		check test "$(stat -c '%a %u %g' /smc/target/mine)" = "640 0 0"
		probe_script "become 1000" "! EACCES open r /smc/target/mine" \
			"! EACCES open rw /smc/target/mine"
		probe_script "open r /smc/target/mine" "! EACCES map rw shared 0 0" \
			"map r shared 0 0" "! EACCES mprotect rw 0 4096" "! EBADF pwrite 0 1 1"
		probe_script "open rw /smc/target/mine" "map r shared 0 0" "mprotect rw 0 4096" \
			"store 0 1 1"
		# Memory of another node is data: nothing there is a program.
		probe_script "open r /smc/target/mine" "! EPERM map rx shared 0 0" \
			"! EPERM map rx private 0 0" "map r private 0 0" "! EACCES mprotect rx 0 4096"
		check_fails chmod 0777 /smc/target/mine
		check_fails chown 1000 /smc/target/mine
	fi
	barrier checked
	on target unexport mine
}

# The writing right: taken by opening for writing, not by looking.
one_writing_node() {
	on target export_file shared 65536 --writers exclusive
	barrier exported
	if [ "$NODE" = node3 ]; then # looks, maps, reads
		probe_open reader
		p reader "open r /smc/target/shared"
		p reader "map r shared 0 0"
		p reader "expect 0 65536 0"
		check stat /smc/target/shared
		check ls -l /smc/target/
	fi
	barrier node3-looks
	if [ "$NODE" = client ]; then
		probe_open writer
		p writer "open rw /smc/target/shared"
		p writer "map rw shared 0 0"
		p writer "store 0 4096 5"
		p writer "msync 0 4096"
	fi
	barrier client-writes
	on target check grep -q shared <(smcctl sessions)
	on target check_writer shared client
	if [ "$NODE" = node3 ]; then
		p reader "acquire 0 0"
		p reader "expect 0 4096 5"
		p reader "use 1"
		p reader "! EBUSY open rw /smc/target/shared"
		p reader "! EBUSY open w /smc/target/shared"
	fi
	barrier refused
	on client p writer "unmap"
	on client p writer "close"
	on client probe_close writer
	barrier client-gone
	if [ "$NODE" = node3 ]; then
		eventually 10 probe_script "open rw /smc/target/shared" "pwrite 0 4096 6" "fsync"
		probe_close reader
	fi
	barrier node3-wrote
	on target probe_script "open r /dev/shm/shared" "pexpect 0 4096 6"
	on target unexport shared
}
check_writer() { # REGION NODE
	smcctl -j sessions | /usr/bin/python3 -c '
import json, sys
name, node = sys.argv[1:]
holders = [s["node"] for s in json.load(sys.stdin)["in"] if name in s["writes"]]
sys.exit(f"holders of {name}: {holders}" if holders != [node] else 0)' "$1" "$2"
}

case_ "the product starts on all nodes" product_start
case_ "stores through a mapping are on the target after msync, and nothing else is" stores_arrive
case_ "a region's whole content goes both ways" whole_content_arrives
case_ "what the target changes is seen after acquire and after open" changes_are_seen
case_ "pages of a large folio that were not written keep what the target wrote" neighbours_are_kept
case_ "advice for huge pages and sequential reading changes no byte" large_windows
case_ "stores to a private mapping stay here" private_stays_here
case_ "a region has one size, and ends where it ends" sizes_and_ends
case_ "a read-only region refuses writable shared mappings" readonly_regions
case_ "permissions follow the region's owner and mode" permissions
case_ "one node writes at a time, and looking takes no right" one_writing_node
case_ "everything is put away, and the module unloads" product_stop
pass
