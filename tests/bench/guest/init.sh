#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck disable=SC2034 # variables of the parts
#
# First and only program of the benchmark's guest, which is both ends of every connection: prepare
# one network card with soft-RoCE, run the parts that the kernel's command line names, power off.
#
# What was measured goes, one JSON object a line, to the port that the driver on the host reads; what
# the parts print, to the console.
# Failure: a part that fails says so as {"failed": PART, "why": ...} and the others run.
set -u
export PATH=/bin HOME=/root LANG=C.UTF-8
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
exec </dev/console >/dev/console 2>&1
mkdir -p /run /tmp /dev/shm
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /dev/shm
ln -s /proc/self/fd /dev/fd

MTU=1500 PARTS='' REPS=7 PERF_RUNS=5 WORKLOADS='' SIDES=''
for word in $(</proc/cmdline); do
	case $word in
	bench.mtu=*) MTU=${word#*=} ;;
	bench.parts=*) PARTS=${word#*=} ;;
	bench.reps=*) REPS=${word#*=} ;;
	bench.perf_runs=*) PERF_RUNS=${word#*=} ;;
	bench.workloads=*) WORKLOADS=${word#*=} ;;
	bench.sides=*) SIDES=${word#*=} ;;
	esac
done
PARTS=${PARTS//,/ } WORKLOADS=${WORKLOADS//,/ } SIDES=${SIDES//,/ }

echo "### init"
# load_modules SET: in the order of their names.
load_modules() {
	local module parameters
	for module in "/mods/$1"/*.ko; do
		case $module in
		*-nvme-core.ko) parameters='multipath=N' ;;
		*-brd.ko) parameters='rd_nr=1 rd_size=65536 max_part=0' ;;
		*) parameters= ;;
		esac
		# shellcheck disable=SC2086
		insmod "$module" $parameters || echo "init: $module did not load"
	done
}

load_modules base

PORT=
for dir in /sys/class/virtio-ports/*; do
	[ "$(<"$dir/name")" != smc.bench ] || PORT=/dev/${dir##*/}
done
exec 3>"$PORT"

# emit JSON: a line for the driver.
emit() { printf '%s\n' "$1" >&3; }
# tag NAME: the lines of JSON on standard input, each with "part": NAME.
tag() {
	local line
	while IFS= read -r line; do
		case $line in
		'{'*) emit "{\"part\":\"$1\",${line#\{}" ;;
		*) echo "$line" ;;
		esac
	done
}
fail() {
	emit "{\"failed\":\"$PART\",\"why\":\"${*//[\"\\]/}\"}"
	return 1
}
# await WHAT COMMAND...: until it succeeds. Idle time costs nothing here, so the bound is generous.
await() {
	local what=$1 tries
	shift
	for ((tries = 0; tries < 600; tries++)); do
		! "$@" >/dev/null 2>&1 || return 0
		busybox usleep 50000
	done
	fail "$what did not come"
}

ALL='bulk_4m one_store fault_4k seq_read cold_bulk_4m float_update hot_64b hot_64b_many
	cold_64b sparse_64b write_fault_4k barrier_whole'
# chosen WORKLOAD...: those of them that were asked for.
chosen() {
	local workload
	for workload; do
		[[ -n $WORKLOADS && " $WORKLOADS " != *" $workload "* ]] || printf '%s ' "$workload"
	done
}

# measure SIDE PATH WORKLOAD...: the lines of the program, of that side.
measure() {
	local side=$1 path=$2 figures=()
	shift 2
	[ $# -gt 0 ] || return 0
	[ ! -e "$FIGURES" ] || figures=(--figures "$FIGURES")
	smcbench -j run --write --reps "$REPS" "${figures[@]}" "$path" "$@" 2>&1 |
		tag "cell\",\"side\":\"$side"
	return "${PIPESTATUS[0]}"
}

ADDRESS=10.77.0.1
DEVICE=rxe0
SELF=peer # this node, as it calls itself
FIGURES=/run/figures
ip link set lo up
ip link set eth0 mtu "$MTU" up
ip addr add $ADDRESS/24 dev eth0
rdma link add $DEVICE type rxe netdev eth0
printf '127.0.0.1 localhost\n%s %s\n' $ADDRESS $SELF >/etc/hosts
echo $SELF >/proc/sys/kernel/hostname
ulimit -l unlimited
echo 4 >/proc/sys/kernel/printk

port_active() { ibv_devinfo -d $DEVICE | grep -q PORT_ACTIVE; }
PART=init
await "the RDMA port" port_active || ibv_devinfo
emit "{\"part\":\"guest\",\"kernel\":\"$(uname -r)\",\"mtu\":$MTU,\"rdma_mtu\":$(
	ibv_devinfo -d $DEVICE | sed -n 's/.*active_mtu:[[:space:]]*\([0-9]*\).*/\1/p'),\"clock\":\"$(
	cat /sys/devices/system/clocksource/clocksource0/current_clocksource)\"}"

for PART in $PARTS; do
	echo "### $PART"
	# shellcheck source=/dev/null
	if . "/bench/$PART.sh"; then
		emit "{\"done\":\"$PART\"}"
	else
		emit "{\"failed\":\"$PART\",\"why\":\"exit $?\"}"
	fi
done
dmesg | grep -E 'BUG|WARNING|Oops|rxe.*(error|fail)' | head -n 20
emit '{"end":true}'
exec 3>&-
sync
echo o >/proc/sysrq-trigger
read -r _ < <(exec sleep infinity)
