#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
#
# Process 1 of a guest, on the host's file tree: prepare the node (mounts, names, network,
# RDMA, MUNGE), connect to the driver on the host, run the scripts that it hands out.
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

mount_all() {
	mount -t tmpfs -o mode=755 tmpfs /run
	mkdir -p /run/vm /run/lock /dev/pts /dev/shm /dev/hugepages
	mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
	mount -t tmpfs -o mode=1777 tmpfs /dev/shm
	mount -t hugetlbfs hugetlbfs /dev/hugepages
	mount -t debugfs debugfs /sys/kernel/debug
	mount -t tracefs tracefs /sys/kernel/tracing
	mount -t configfs configfs /sys/kernel/config
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	# The guest runs another kernel than the host: its modules come from the cache.
	mkdir -p /lib/modules
	mount --bind "${boot[kdir]}/lib/modules" /lib/modules
	ln -sf /proc/self/fd /dev/fd
	ln -sf /proc/self/fd/0 /dev/stdin
	ln -sf /proc/self/fd/1 /dev/stdout
	ln -sf /proc/self/fd/2 /dev/stderr
}

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
	ip link set lo up
	for ((nic = 0; nic < NICS; nic++)); do
		dev=eth$nic
		ip link set "$dev" mtu "${boot[mtu]}" up
		ip addr add "10.$((77 + nic)).0.$NODE_INDEX/24" dev "$dev"
		ip addr add "fd$((77 + nic))::$NODE_INDEX/64" dev "$dev" nodad
		rdma link add "rxe$nic" type rxe netdev "$dev"
	done
}

start_munge() {
	command -v munged >/dev/null || return 0
	mkdir -p /run/munge
	install -m 400 "$RUN_DIR/munge.key" /run/munge/key
	chown -R munge:munge /run/munge
	(
		cd /
		exec setpriv --reuid=munge --regid=munge --clear-groups munged \
			--key-file=/run/munge/key --seed-file=/run/munge/seed \
			--log-file=/run/munge/log --pid-file=/run/munge/pid
	)
}

# The port to the driver admits one opener: this pair of loops, which pass on lines. A
# request is "REPLY-ID WORDS..."; the answer goes to the pipe of that name.
start_broker() {
	local dir port=
	for dir in /sys/class/virtio-ports/*; do
		[ "$(<"$dir/name")" != smc.driver ] || port=/dev/${dir##*/}
	done
	[ -n "$port" ]
	mkfifo -m 666 /run/vm/request
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
				reply=/run/vm/reply.${line%% *}
				[ ! -p "$reply" ] || printf '%s\n' "${line#* }" 1<>"$reply"
				;;
			esac
		done
	) &
	exec 3>&-
}

mount_all
name_nodes
start_broker
start_munge &
configure_network
ulimit -l unlimited
sysctl -q kernel.hung_task_timeout_secs=60 kernel.core_pattern=core \
	net.ipv4.ping_group_range='0 2147483647'
wait $!
# From here on what the kernel says about the module is worth reading.
dmesg -n 7

cd /root
bash "$SMC_ROOT/tests/vm/lib/guest-runner.sh" || echo "runner: exit $?"
sync
echo o >/proc/sysrq-trigger
# Power-off is asynchronous, and process 1 must not end before it.
read -r _ < <(exec sleep infinity)
