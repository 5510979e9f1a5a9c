#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=debug timeout=300
#
#     client: fail-nth, whose allocations in the kernel fail one by one  -- rxe --  target
#
# Claim: whichever allocation fails while a region is opened, mapped, read, written and flushed, the
# call ends for want of memory at worst, the next one succeeds, and no byte is lost.
. "$SMC_ROOT/tests/vm/lib-product.sh"

each_allocation_fails() {
	on target export_file r 1M
	barrier exported
	on client check fail-nth /smc/target/r
	barrier finished
	on target unexport r
}

case_ "the product starts on both nodes" product_start
case_ "calls survive each allocation that fails" each_allocation_fails
case_ "everything is put away, and the module unloads" product_stop
pass
