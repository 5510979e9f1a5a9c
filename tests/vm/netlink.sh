#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12,debug timeout=1200
#
#     client:  smcfs-nl-fuzz -- generic netlink --> smcfs.ko -- rxe, looped back --> smcfs-nl-fuzz
#                    `------ stat, ls ---> /smc -------'             (a target without memory)
#
# Claim: every request that is wrong is refused, with the errno that is documented and a reason;
# who has no right is refused always; mutated requests are answered or refused in bounded time and
# leave nothing behind; a daemon that goes takes its own questions with it and no other's.
. "$SMC_ROOT/tests/vm/lib-product.sh"

MESSAGES=50000
if [ "$KERNEL" = debug ]; then
	MESSAGES=500 # most of the time passes in the kernel's own checks
fi
if [ "$SOAK" = 1 ]; then
	MESSAGES=1000000
fi

own_address() { getent ahostsv4 "$NODE" | head -n 1 | cut -d' ' -f1; }

module_without_daemon() {
	load_module
	mount_smc
}

errors_and_mutants() {
	check smcfs-nl-fuzz --address "$(own_address)" --mount /smc --seed "$SEED" \
		--messages "$MESSAGES"
}

# What the fuzz made is gone, so nothing holds the module; an empty kernel is left.
nothing_is_left() {
	check umount /smc
	check rmmod smcfs
}

case_ "the module alone" on client module_without_daemon
case_ "wrong requests" on client errors_and_mutants
case_ "nothing is left" on client nothing_is_left
pass
