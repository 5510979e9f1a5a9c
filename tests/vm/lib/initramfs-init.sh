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
	esac
done

mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 hostroot /host
mount -t tmpfs -o mode=755 tmpfs /rw
mkdir /rw/upper /rw/work /rw/root
mount -t overlay -o lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work overlay /rw/root
for dir in proc sys dev; do
	mount --move "/$dir" "/rw/root/$dir"
done
exec switch_root /rw/root /bin/bash "$repo/tests/vm/lib/guest-init.sh"
