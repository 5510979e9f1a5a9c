# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck shell=bash
#
# NVMe-oF over RDMA, a RAM disk exported to this node: what a mapped block device of another node costs.

NVMET=/sys/kernel/config/nvmet
NVME_PORT=4420
NVME_DISK=/dev/nvme0n1

nvme_start() {
	load_modules nvme
	mount -t configfs configfs /sys/kernel/config 2>/dev/null
	mkdir -p $NVMET/subsystems/disk/namespaces/1 $NVMET/ports/1 || return 1
	echo 1 >$NVMET/subsystems/disk/attr_allow_any_host
	echo -n /dev/ram0 >$NVMET/subsystems/disk/namespaces/1/device_path
	echo 1 >$NVMET/subsystems/disk/namespaces/1/enable || return 1
	echo rdma >$NVMET/ports/1/addr_trtype
	echo ipv4 >$NVMET/ports/1/addr_adrfam
	echo "$ADDRESS" >$NVMET/ports/1/addr_traddr
	echo $NVME_PORT >$NVMET/ports/1/addr_trsvcid
	ln -s $NVMET/subsystems/disk $NVMET/ports/1/subsystems/disk || return 1
	# One queue, as there is one processor.
	echo -n "transport=rdma,traddr=$ADDRESS,trsvcid=$NVME_PORT,nqn=disk,nr_io_queues=1" \
		>/dev/nvme-fabrics || return 1
	await "$NVME_DISK" test -b $NVME_DISK
}

nvme_start || return 1
# shellcheck disable=SC2046,SC2086 # lists
measure nvme $NVME_DISK $(chosen $ALL)
