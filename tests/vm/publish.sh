#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh source=tests/vm/lib-product.sh
# vm: mtu=9000 kernels=6.1,6.12 timeout=1200
#
#     client: cells, then smc_publish; noise and barriers beside it  -- rxe --  target: watches
#                          <-x- acknowledgements that are lost
#
# Claim: who sees a published flag in the target's memory sees what was stored before it, whatever else
# is written back meanwhile; the flag never falls. 100,000 flags are seen in the two regions, a million in the
# long form. A flag or an atomic whose acknowledgement is lost ends with EREMOTEIO, was done once, and is never
# done again.
. "$SMC_ROOT/tests/vm/lib-product.sh"

# As in <errno.h>.
EREMOTEIO=121

# Threads that publish, each with a flag and data of its own. So many keep both nodes at work, which one
# round after the other does not: it costs four times as much.
LANES=64
# Of each region: flags that are seen, and the time for them, several times what it takes.
FLAGS=50000 SECONDS_MAX=480
[ "$KERNEL" != debug ] || FLAGS=2000 SECONDS_MAX=1800
[ "$SOAK" = 0 ] || FLAGS=500000 SECONDS_MAX=86400
# Not each flag that is published is looked at before the next one comes.
ROUNDS=$((FLAGS + FLAGS / 50))

start() {
	product_start
	on target export_file words 2M
	on target export_file whole 2M --writers exclusive
	barrier exported
}

pages_follow() {
	on client check words follow target:words
	on client check words follow target:whole
	barrier followed
	on target check words peek /dev/shm/words 8 200
	on target dd if=/dev/zero of=/dev/shm/words bs=2M count=1 conv=notrunc status=none
	on target dd if=/dev/zero of=/dev/shm/whole bs=2M count=1 conv=notrunc status=none
	barrier cleared
}

# data_before_flag REGION: of which units are sent, or whole pages.
data_before_flag() {
	local pid
	if [ "$NODE" = target ]; then
		nice words watch "/dev/shm/$1" "$LANES" "$FLAGS" >/run/vm/watched &
		pid=$!
		defer kill "$pid"
		eventually 30 grep -q watching /run/vm/watched
	fi
	barrier watching
	on client check smcctl set "target:$1" flush_after_ms=5
	on client check words publish "target:$1" "$ROUNDS" "$SECONDS_MAX" "$LANES"
	barrier published
	if [ "$NODE" = target ]; then
		check wait "$pid"
		cat /run/vm/watched
	fi
	on client check smcctl set "target:$1" flush_after_ms=100
}

words_are_active() {
	smcctl -j regions | /usr/bin/python3 -c '
import json, sys
states = [r["state"] for r in json.load(sys.stdin)["attached"] if r["name"] == "words"]
sys.exit(states != ["active"])'
}

lost_flag() {
	on target defer tc qdisc del dev eth0 root
	on client check words flag target:words 128 1
	barrier "first flag"
	on target lose_acks yes
	barrier deaf
	on client check words flag target:words 128 2 $EREMOTEIO
	barrier "second flag"
	# It was done, and now the other side takes it back: nobody may bring it again.
	on target eventually 20 words peek /dev/shm/words 128 2
	on target check words poke /dev/shm/words 128 0
	on target lose_acks no
	barrier hears
	on client eventually 90 words_are_active
	on client check words flag target:words 192 3
	barrier "another flag"
	on target check words peek /dev/shm/words 192 3
	on target check words peek /dev/shm/words 128 0
}

lost_atomic() {
	on target defer tc qdisc del dev eth0 root
	on target check words poke /dev/shm/words 256 0
	barrier zero
	on client check words add target:words 256 5 3
	barrier "first sums"
	on target lose_acks yes
	barrier deaf
	on client check words add target:words 256 5 1 $EREMOTEIO
	barrier "lost sum"
	on target eventually 20 words peek /dev/shm/words 256 20
	on target lose_acks no
	barrier hears
	on client eventually 90 words_are_active
	on client check words add target:words 256 5 1
	barrier "last sum"
	on target check words peek /dev/shm/words 256 25
}

case_ "the product starts, and a region is there" start
case_ "pages of this node follow flags and atomics" pages_follow
case_ "the flag never comes before the data, and never falls" data_before_flag words
case_ "nor where whole pages are sent" data_before_flag whole
case_ "a flag whose acknowledgement is lost is not sent again" lost_flag
case_ "an atomic whose acknowledgement is lost is not done again" lost_atomic
case_ "everything is put away, and the module unloads" product_stop
pass
