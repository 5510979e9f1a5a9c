#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck source=tests/vm/lib.sh
# vm: nodes=2 kernels=6.1,6.12 timeout=1200
#
#     client ---- eth0, rxe0 ---- one virtual Ethernet ---- eth0, rxe0 ---- target
#
# Claim: the test bed gives each node what the other tests build on: names, both address
# families, RDMA between nodes in both directions, MUNGE credentials that the other node
# accepts, values and barriers between nodes, and faults from outside.

names_and_addresses() {
	check_equal hostname "$(hostname)" "$NODE"
	local name
	for name in $NODE_NAMES; do
		check ping -q -c 1 -W 5 "$name"
		check ping -q -c 1 -W 5 "${name}6"
	done
	barrier pinged
}

mounts() {
	local type
	for type in debugfs tracefs configfs cgroup2 hugetlbfs; do
		check grep -q " $type " /proc/mounts
	done
	check_equal "locked memory" "$(ulimit -l)" unlimited
	check touch "$SMC_ROOT/written-in-a-guest"
	check rm "$SMC_ROOT/written-in-a-guest"
}

rdma_between_nodes() {
	if [ "$NODE" = target ]; then
		ibv_rc_pingpong -d rxe0 -g 1 -n 100 &
		eventually 30 listens 18515
	fi
	barrier listening
	on client check ibv_rc_pingpong -d rxe0 -g 1 -n 100 target
	[ "$NODE" != target ] || check wait $!
}
listens() { [ -n "$(ss -Hltn "sport = :$1")" ]; }

rdma_cm() { # rdma_cm NAME-OF-TARGET ANY-ADDRESS
	if [ "$NODE" = target ]; then
		rping -s -a "$2" -C 10 &
		eventually 30 rdma_listens
	fi
	barrier listening
	on client check rping -c -a "$1" -C 10
	[ "$NODE" != target ] || check wait $!
}
rdma_listens() { rdma resource show cm_id | grep -q 'state LISTEN'; }

munge_between_nodes() {
	on client put credential "$(echo "hello from client" | munge)"
	on target decode_credential
	barrier decoded
}
decode_credential() {
	local text
	text=$(get credential | unmunge | tail -n 1)
	check_equal "the text in the credential" "$text" "hello from client"
}

link_fault() {
	on client check vm_ctl link client down
	on client eventually 10 carrier_is 0
	on client check_fails ping -q -c 1 -W 1 target
	on client check vm_ctl link client up
	on client eventually 10 carrier_is 1
	on client eventually 10 ping -q -c 1 -W 1 target
}
carrier_is() { [ "$(cat /sys/class/net/eth0/carrier)" = "$1" ]; }

freeze_fault() {
	on client check vm_ctl stop target
	on client check_fails ping -q -c 1 -W 1 target
	on client check vm_ctl cont target
	on client eventually 10 ping -q -c 1 -W 1 target
}

case_ "nodes know their names and reach each other by IPv4 and IPv6" names_and_addresses
case_ "the file systems and limits that tests need are there" mounts
case_ "verbs programs on two nodes exchange messages" rdma_between_nodes
case_ "rdma_cm connects over IPv4" rdma_cm target 0.0.0.0
case_ "rdma_cm connects over IPv6" rdma_cm target6 ::
case_ "a credential sealed on one node opens on the other" munge_between_nodes
case_ "a cable can be pulled and plugged" link_fault
case_ "a node can be frozen and resumed" freeze_fault
pass
