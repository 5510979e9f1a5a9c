#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client: dd cp cmp sha256sum python3 numpy fio gdb  -- rxe --  target: /dev/shm/r
#
# Claim: programs that know nothing of SMC work on a region as on any file, and what they wrote is
# what the target's memory holds.
. "$SMC_ROOT/tests/vm/lib-product.sh"

SIZE=$((2 * 1024 * 1024))

start() {
	product_start
	on target export_file r "$SIZE"
	barrier exported
}

# The client says what it believes; the target compares with what is there.
same_on_target() {
	on client put sum "$(sha256sum </smc/target/r | cut -d' ' -f1)"
	barrier told
	on target check_equal "sha256 of the memory" "$(sha256sum </dev/shm/r | cut -d' ' -f1)" "$(get sum)"
	barrier compared
}

dd_both_ways() {
	if [ "$NODE" = client ]; then
		pattern "$SIZE" 1 >/tmp/one
		pattern "$SIZE" 500 >/tmp/two
		check dd if=/tmp/one of=/smc/target/r bs=64k status=none
		check cmp /tmp/one /smc/target/r
		check dd if=/tmp/two of=/smc/target/r bs=100k conv=notrunc,fsync status=none
		check dd if=/smc/target/r of=/tmp/back bs=77777 status=none
		check cmp /tmp/two /tmp/back
		check dd if=/tmp/one of=/smc/target/r bs=4096 count=3 seek=5 conv=notrunc status=none
		check dd if=/tmp/one of=/smc/target/r bs=64k oflag=direct conv=notrunc status=none
		check dd if=/smc/target/r of=/tmp/back bs=64k iflag=direct status=none
		check cmp /tmp/one /tmp/back
		check_fails dd if=/dev/zero of=/smc/target/r bs=64k count=33 status=none
	fi
	same_on_target
}

cp_cmp_sha256sum() {
	if [ "$NODE" = client ]; then
		check cp /tmp/two /smc/target/r
		check cp /smc/target/r /tmp/back
		check cmp /tmp/two /tmp/back
		check cmp /tmp/two /smc/target/r
		check_fails cmp -s /tmp/one /smc/target/r
		check_equal sha256sum "$(sha256sum </smc/target/r)" "$(sha256sum </tmp/two)"
		check grep -q 500 /smc/target/r
		check_equal "wc -c" "$(wc -c </smc/target/r)" "$SIZE"
	fi
	same_on_target
}

python_program() { # PROGRAM
	if [ "$NODE" = client ]; then
		local sum
		sum=$(/usr/bin/python3 "$SMC_ROOT/tests/vm/src/python_programs.py" "$1" /smc/target/r)
		put sum "$sum"
	fi
	barrier told
	on target check_equal "sha256 of the memory" "$(sha256sum </dev/shm/r | cut -d' ' -f1)" "$(get sum)"
	barrier compared
}

fio_verifies() {
	on client check fio --name=smc --filename=/smc/target/r --size="$SIZE" --ioengine=mmap \
		--rw=randwrite --bs=4k --verify=crc32c --do_verify=1 --fallocate=none --thread \
		--randseed="$SEED" --output-format=terse --output=/tmp/fio
	same_on_target
}

gdb_reads_and_writes() {
	if [ "$NODE" = client ]; then
		probe_open debuggee
		p debuggee "open rw /smc/target/r"
		p debuggee "pwrite 0 8192 66"
		p debuggee "map rw shared 0 0"
		p debuggee "where"
		local address pid
		read -r address pid <<<"${PROBE_REPLY##*ms }"
		check gdb -nx -batch -p "$pid" -ex "x/4xb $address + 4096" \
			-ex "set {unsigned char[3]} ($address + 4096) = {1, 2, 3}" \
			-ex "x/4xb $address + 4096" -ex detach >/tmp/gdb 2>&1 || cat /tmp/gdb
		check grep -q '0x42.*0x42.*0x42.*0x42' /tmp/gdb
		check grep -q '0x01.*0x02.*0x03.*0x42' /tmp/gdb
		p debuggee "expect 4096 1 1"
		p debuggee "expect 4098 1 3"
		p debuggee "expect 4099 100 66"
		p debuggee "msync 0 8192"
		probe_close debuggee
	fi
	barrier debugged
	on target probe_script "open r /dev/shm/r" "pexpect 4096 1 1" "pexpect 4097 1 2" \
		"pexpect 4098 1 3" "pexpect 4099 100 66"
	same_on_target
}

case_ "the product starts, and a region is there" start
case_ "dd writes and reads, with and without conv=notrunc and O_DIRECT" dd_both_ways
case_ "cp, cmp, sha256sum, grep and wc" cp_cmp_sha256sum
case_ "numpy.memmap in modes r, r+ and c" python_program numpy_memmap
case_ "Python's mmap module" python_program python_mmap
case_ "sendfile into a socket" python_program sendfile
case_ "process_vm_readv and process_vm_writev on the mapping" python_program process_vm
case_ "fio with ioengine=mmap verifies what it wrote" fio_verifies
case_ "gdb reads and writes the mapping" gdb_reads_and_writes
case_ "everything is put away, and the module unloads" product_stop
pass
