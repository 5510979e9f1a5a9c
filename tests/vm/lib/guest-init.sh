#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
#
# Process 1 of a guest, on the host's file tree: prepare the node (names, network, RDMA,
# MUNGE), connect to the driver on the host, run the scripts that it hands out.
# Failure: a step that fails ends this process; the kernel panics and the run fails.
set -eu

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8 TERM=${TERM:-linux}

# The kernel's command line carries what this node is.
declare -A boot
for word in $(</proc/cmdline); do
	case $word in
	smc.*=*)
		word=${word#smc.}
		boot[${word%%=*}]=${word#*=}
		;;
	esac
done
export NODE=${boot[node]} NODE_INDEX=${boot[index]} NODES=${boot[nodes]}
export SMC_ROOT=${boot[repo]} KERNEL=${boot[kernel]} RUN_DIR=${boot[run]} NICS=${boot[nics]}
export NODE_NAMES
NODE_NAMES=$(names=(target client node{3..16}) && echo "${names[*]:0:$NODES}")
# What was built is found as if it were installed, by tests and by whoever has a shell here.
export RELEASE=$SMC_ROOT/build/release
PATH=$RELEASE/bin:$RELEASE/daemon:$RELEASE/tools/smcctl:$PATH

name_nodes() {
	local index=0 name
	echo "$NODE" >/proc/sys/kernel/hostname
	echo "$NODE" >/etc/hostname
	{
		echo "127.0.0.1 localhost"
		echo "::1 localhost6"
		for name in $NODE_NAMES; do
			index=$((index + 1))
			echo "10.77.0.$index $name"
			echo "fd77::$index ${name}6"
			[ "$NICS" -lt 2 ] || echo "10.78.0.$index $name-b"
			[ "$NICS" -lt 2 ] || echo "fd78::$index $name-b6"
		done
	} >/etc/hosts
	# /etc/resolv.conf of the host names servers that are not there.
	: >/etc/resolv.conf
	printf '%s\n' 'passwd: files' 'group: files' 'shadow: files' 'hosts: files' \
		'services: files' 'protocols: files' >/etc/nsswitch.conf
}

# Each network card gets an address of its own subnet and an rxe device.
configure_network() {
	local nic dev
	# busybox's: it needs no libraries, which saves seconds on a cold start.
	busybox ip link set lo up
	for ((nic = 0; nic < NICS; nic++)); do
		dev=eth$nic
		# Nobody else has our addresses: use them at once.
		echo 0 >"/proc/sys/net/ipv6/conf/$dev/accept_dad"
		busybox ip link set "$dev" mtu "${boot[mtu]}" up
		busybox ip addr add "10.$((77 + nic)).0.$NODE_INDEX/24" dev "$dev"
		busybox ip addr add "fd$((77 + nic))::$NODE_INDEX/64" dev "$dev"
		rdma link add "rxe$nic" type rxe netdev "$dev"
	done
}

start_munge() {
	command -v munged >/dev/null || return 0
	(umask 077 && cat "$RUN_DIR/munge.key" >/run/munge/key)
	busybox chown -R munge:munge /run/munge
	(
		cd /
		exec setpriv --reuid=munge --regid=munge --clear-groups munged \
			--key-file=/run/munge/key --seed-file=/run/munge/seed \
			--log-file=/run/munge/log --pid-file=/run/munge/pid
	)
}

# The port to the driver admits one opener: this pair of loops, which pass on lines. A
# request is "PROCESS/DESCRIPTOR WORDS..."; the answer goes into that pipe of the asker.
start_broker() {
	local dir port=
	for dir in /sys/class/virtio-ports/*; do
		[ "$(<"$dir/name")" != smc.driver ] || port=/dev/${dir##*/}
	done
	[ -n "$port" ]
	busybox mkfifo -m 666 /run/vm/request
	exec 3<>"$port"
	(
		exec 4<>/run/vm/request
		while IFS= read -r line <&4; do
			printf '%s\n' "$line" >&3
		done
	) &
	(
		while IFS= read -r line <&3; do
			case $line in
			'!dump')
				# The driver's deadline has passed: show who is stuck where.
				echo w >/proc/sysrq-trigger
				echo l >/proc/sysrq-trigger
				;;
			*)
				# The asker may be gone. Opened for both, its pipe never blocks.
				reply=${line%% *}
				reply=/proc/${reply%/*}/fd/${reply#*/}
				[ ! -p "$reply" ] || printf '%s\n' "${line#* }" 1<>"$reply"
				;;
			esac
		done
	) &
	exec 3>&-
}

name_nodes
start_broker
start_munge &
munge=$!
configure_network
ulimit -l unlimited
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
echo 60 >/proc/sys/kernel/hung_task_timeout_secs
echo core >/proc/sys/kernel/core_pattern
wait $munge
# From here on what the kernel says about the module is worth reading.
echo 7 >/proc/sys/kernel/printk

cd /root
bash "$SMC_ROOT/tests/vm/lib/guest-runner.sh" || echo "runner: exit $?"
sync
echo o >/proc/sysrq-trigger
# Power-off is asynchronous, and process 1 must not end before it.
read -r _ < <(exec sleep infinity)
