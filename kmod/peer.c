// SPDX-License-Identifier: GPL-2.0
/*
 * Names of nodes that may be looked up: the directories under the mount point.
 * Copyright (c) 2026 The SMC authors
 *
 * Owns: the table of peers, and the rule for names.
 * Contexts: process.
 * Locking: smcfs_peers.lock protects the table; taken inside nothing, takes smcfs_regions.lock.
 * Lifetime: the table holds one reference, each directory inode and each region one more.
 */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <linux/stringhash.h>
#include <linux/xarray.h>

#include "smcfs.h"

#define SMCFS_PEERS_MAX		65536

static struct {
	struct mutex		lock;	/* the table and ->gone */
	unsigned int		count;	/* [lock] */
	u64			next_ino;	/* [lock] */
	DECLARE_HASHTABLE(table, 10);	/* [lock] by name */
	struct xarray		by_ino;	/* [lock] the same, for listings */
} smcfs_peers = {
	.lock = __MUTEX_INITIALIZER(smcfs_peers.lock),
	.by_ino = XARRAY_INIT(smcfs_peers.by_ino, 0),
	.next_ino = 2,			/* 1 is the root directory */
};

/**
 * smcfs_name_valid() - may this string name a node or a region?
 * @name: NUL-terminated.
 * @slashes: '/' may join components (region names).
 *
 * No empty component, no "." and "..", no control characters.
 * Return: true if so; the length is the caller's to bound by its buffer.
 */
bool smcfs_name_valid(const char *name, bool slashes)
{
	const char *start = name, *p = name;

	for (;; p++) {
		if (*p && *p != '/') {
			if ((unsigned char)*p < ' ' || *p == 0x7f)
				return false;
			continue;
		}
		if (*p == '/' && !slashes)
			return false;
		if (p == start || (start[0] == '.' && p == start + 1) ||
		    (start[0] == '.' && start[1] == '.' && p == start + 2))
			return false;
		if (!*p)
			return true;
		start = p + 1;
	}
}

static u32 peer_hash(const char *name, size_t length)
{
	return full_name_hash(NULL, name, length);
}

static struct smcfs_peer *peer_peek_locked(const char *name, size_t length)
{
	struct smcfs_peer *peer;

	lockdep_assert_held(&smcfs_peers.lock);
	hash_for_each_possible(smcfs_peers.table, peer, hash, peer_hash(name, length))
		if (strlen(peer->name) == length && !memcmp(peer->name, name, length))
			return peer;
	return NULL;
}

int smcfs_peer_add(const char *name)
{
	struct smcfs_peer *peer;
	int err = 0;

	if (!smcfs_name_valid(name, false) || strlen(name) > SMCFS_NODE_NAME_MAX)
		return -EINVAL;
	peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	if (!peer)
		return -ENOMEM;
	kref_init(&peer->ref);
	strscpy(peer->name, name, sizeof(peer->name));

	mutex_lock(&smcfs_peers.lock);
	if (peer_peek_locked(name, strlen(name))) {
		err = -EEXIST;
	} else if (smcfs_peers.count >= SMCFS_PEERS_MAX) {
		err = -ENOSPC;
	} else {
		peer->ino = smcfs_peers.next_ino;
		err = xa_insert(&smcfs_peers.by_ino, peer->ino, peer, GFP_KERNEL);
	}
	if (!err) {
		smcfs_peers.next_ino++;
		smcfs_peers.count++;
		hash_add(smcfs_peers.table, &peer->hash, peer_hash(name, strlen(name)));
	}
	mutex_unlock(&smcfs_peers.lock);
	if (err)
		kfree(peer);
	return err;
}

int smcfs_peer_del(const char *name)
{
	struct smcfs_peer *peer;
	int err = 0;

	mutex_lock(&smcfs_peers.lock);
	peer = peer_peek_locked(name, strlen(name));
	if (peer)
		WRITE_ONCE(peer->gone, true);	/* first: no new region may slip in */
	if (!peer) {
		err = -ENOENT;
	} else if (smcfs_region_peer_busy(peer)) {
		WRITE_ONCE(peer->gone, false);
		err = -EBUSY;
	} else {
		hash_del(&peer->hash);
		xa_erase(&smcfs_peers.by_ino, peer->ino);
		smcfs_peers.count--;
	}
	mutex_unlock(&smcfs_peers.lock);
	if (!err)
		smcfs_peer_put(peer);
	return err;
}

struct smcfs_peer *smcfs_peer_get(const char *name, size_t length)
{
	struct smcfs_peer *peer;

	mutex_lock(&smcfs_peers.lock);
	peer = peer_peek_locked(name, length);
	if (peer)
		kref_get(&peer->ref);
	mutex_unlock(&smcfs_peers.lock);
	return peer;
}

static void peer_release(struct kref *ref)
{
	kfree(container_of(ref, struct smcfs_peer, ref));
}

void smcfs_peer_put(struct smcfs_peer *peer)
{
	kref_put(&peer->ref, peer_release);
}

struct smcfs_peer *smcfs_peer_next(u64 ino)
{
	struct smcfs_peer *peer;
	unsigned long index = ino;

	mutex_lock(&smcfs_peers.lock);
	peer = xa_find(&smcfs_peers.by_ino, &index, ULONG_MAX, XA_PRESENT);
	if (peer)
		kref_get(&peer->ref);
	mutex_unlock(&smcfs_peers.lock);
	return peer;
}

unsigned int smcfs_peer_count(void)
{
	return READ_ONCE(smcfs_peers.count);
}

void smcfs_peer_exit(void)
{
	struct smcfs_peer *peer;
	struct hlist_node *tmp;
	int bucket;

	hash_for_each_safe(smcfs_peers.table, bucket, tmp, peer, hash) {
		hash_del(&peer->hash);
		smcfs_peer_put(peer);
	}
	xa_destroy(&smcfs_peers.by_ino);
}
