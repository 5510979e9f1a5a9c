#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck shell=dash
#
# First program in a guest: load the modules beside it, lay a memory overlay over the
# host's read-only file tree, continue there with guest-init.sh.
# Failure: it ends, the kernel panics for want of an init, and the run fails.
set -e
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
exec </dev/console >/dev/console 2>&1

for module in /mods/*.ko; do
	[ -e "$module" ] || break # the debug kernel has all built in
	# crc32_pclmul refuses to load where the processor lacks the instruction.
	insmod "$module" || echo "initramfs: $module did not load"
done

# shellcheck disable=SC2013 # words are wanted
for word in $(cat /proc/cmdline); do
	case $word in
	smc.repo=*) repo=${word#smc.repo=} ;;
	smc.kdir=*) kdir=${word#smc.kdir=} ;;
	esac
done

mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 hostroot /host
mount -t tmpfs -o mode=755 tmpfs /rw
mkdir /rw/upper /rw/work /rw/root
mount -t overlay -o lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work overlay /rw/root

# The rest of what a booted system has mounted. It is done here since busybox, which needs no
# libraries from the host, is several times faster than mount(8).
cd /rw/root
for dir in proc sys dev; do
	mount --move "/$dir" $dir
done
mount -t tmpfs -o mode=755 tmpfs run
mkdir -p run/vm run/lock run/munge dev/pts dev/shm dev/hugepages lib/modules
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t hugetlbfs hugetlbfs dev/hugepages
mount -t debugfs debugfs sys/kernel/debug
mount -t tracefs tracefs sys/kernel/tracing
mount -t configfs configfs sys/kernel/config
mount -t cgroup2 cgroup2 sys/fs/cgroup
# The guest runs another kernel than the host: its modules come from the cache.
mount --bind ".$kdir/lib/modules" lib/modules
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr

exec switch_root /rw/root /bin/bash "$repo/tests/vm/lib/guest-init.sh"
