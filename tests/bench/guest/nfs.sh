# SPDX-License-Identifier: MIT OR GPL-2.0
# Copyright (c) 2026 The SMC authors
# shellcheck shell=bash
#
# NFS 4.2 over RDMA, a file in memory exported to this node: what a mapped file of another node costs.
#
# What nfs-utils would do is a few lines in files of the kernel's server: who the client is, what is
# exported to it, and where the root is.

NFSD=/proc/fs/nfsd
NFS_PORT=20049
NFS_EXPORT=/run/export
NFS_BYTES=$((32 << 20))
NFS_NEVER=2147483647                   # when an entry expires
NFS_FLAGS=$((0x2 | 0x400 | 0x2000))    # insecure ports, no subtree check, fsid; sync, read and write

nfs_start() {
	load_modules nfs
	mkdir -p $NFS_EXPORT /run/nfs /var/lib/nfs/v4recovery
	mount -t tmpfs tmpfs $NFS_EXPORT
	head -c $NFS_BYTES /dev/zero >$NFS_EXPORT/file
	mount -t nfsd nfsd $NFSD || return 1
	echo "nfsd $ADDRESS $NFS_NEVER clients" >/proc/net/rpc/auth.unix.ip/channel
	echo "clients $NFS_EXPORT $NFS_NEVER $NFS_FLAGS 65534 65534 0" >/proc/net/rpc/nfsd.export/channel
	printf 'clients 1 \\x00000000 %s %s\n' $NFS_NEVER $NFS_EXPORT >/proc/net/rpc/nfsd.fh/channel
	# Nobody has files open from before.
	echo 10 >$NFSD/nfsv4leasetime
	echo 10 >$NFSD/nfsv4gracetime
	echo "-3 +4 +4.2" >$NFSD/versions
	# A first listener starts the service, the one for RDMA comes beside it.
	echo "rdma $NFS_PORT" >$NFSD/portlist
	echo 4 >$NFSD/threads || return 1
	echo Y >$NFSD/v4_end_grace
	mount -i -t nfs -o "vers=4.2,proto=rdma,port=$NFS_PORT,addr=$ADDRESS,clientaddr=$ADDRESS,noatime" \
		"$ADDRESS:/" /run/nfs || return 1
	grep ' /run/nfs ' /proc/mounts
}

nfs_start || return 1
# shellcheck disable=SC2046,SC2086 # lists
measure nfs /run/nfs/file $(chosen $ALL)
