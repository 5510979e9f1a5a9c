// SPDX-License-Identifier: GPL-2.0
/*
 * Regions: names bound to grants.
 * Copyright (c) 2026 The SMC authors
 *
 * Owns: the table of regions, their states, the writing right, the deferred flush.
 *
 *	BINDING -> ACTIVE <-> DEGRADED		lookup; grant; session lost, rebound
 *	BINDING -> FAILED			no grant; what the daemon said is kept for a while
 *	ACTIVE, DEGRADED -> DETACHING -> FAILED	detach (back if dirty pages could not be sent)
 *	ACTIVE, DEGRADED -> FAILED		revoked, or another generation took the name
 *
 * Contexts: process; the last put also in softirq.
 * Locking: smcfs_regions.lock (the table) > writer_lock > region->lock > inode->i_lock.
 * Lifetime: counted: the table, the inode, each transfer, each queued flush. Unhashed means that no
 *	new user comes by name; the last put frees. The inode pointer is weak.
 * Failure: a dead region (FAILED, unhashed) gives EIO and SIGBUS for ever; its name is free.
 */
#include <linux/hashtable.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>
#include <linux/stringhash.h>
#include <linux/xarray.h>

#include "smcfs.h"
#include "trace.h"

#define SMCFS_BIND_CACHE_MS	5000	/* what the daemon refused is not asked again so soon */
#define SMCFS_BIND_CACHE_MAX	1024	/* names; more are not remembered */
#define SMCFS_FLUSH_AFTER_MS	100

static struct {
	struct mutex		lock;		/* outside of region->lock */
	DECLARE_HASHTABLE(table, 12);	/* [lock] by node and name */
	struct xarray		by_id;	/* [lock] the same */
	u64			next_id;	/* [lock] */
	unsigned int		nr_failed;	/* [lock] failed binds in the table */
	struct delayed_work	expire;		/* forgets failed binds */
} smcfs_regions = {
	.lock = __MUTEX_INITIALIZER(smcfs_regions.lock),
	.by_id = XARRAY_INIT(smcfs_regions.by_id, 0),
	/* Inode numbers: above those of the root and of any number of peers. */
	.next_id = 1ULL << 32,
};

static const u8 region_next[__SMCFS_REGION_STATE_MAX] = {
	[SMCFS_REGION_BINDING]	 = BIT(SMCFS_REGION_ACTIVE) | BIT(SMCFS_REGION_FAILED),
	[SMCFS_REGION_ACTIVE]	 = BIT(SMCFS_REGION_DEGRADED) | BIT(SMCFS_REGION_FAILED) |
				   BIT(SMCFS_REGION_DETACHING),
	[SMCFS_REGION_DEGRADED]	 = BIT(SMCFS_REGION_ACTIVE) | BIT(SMCFS_REGION_FAILED) |
				   BIT(SMCFS_REGION_DETACHING),
	[SMCFS_REGION_DETACHING] = BIT(SMCFS_REGION_ACTIVE) | BIT(SMCFS_REGION_DEGRADED) |
				   BIT(SMCFS_REGION_FAILED),
};

/* The only writer of ->state. The caller sends the event once the lock is dropped. */
static bool region_set_state_locked(struct smcfs_region *region, enum smcfs_region_state next,
				    int err, const char *reason)
{
	enum smcfs_region_state old = region->state;

	lockdep_assert_held(&region->lock);
	if (!(region_next[old] & BIT(next)))
		return false;
	WRITE_ONCE(region->state, next);
	region->err = err;
	strscpy(region->reason, reason, sizeof(region->reason));
	trace_smcfs_region_state(region->id, old, next, err);
	return true;
}

static bool region_set_state(struct smcfs_region *region, enum smcfs_region_state next, int err,
			     const char *reason)
{
	bool done;

	spin_lock_bh(&region->lock);
	done = region_set_state_locked(region, next, err, reason);
	spin_unlock_bh(&region->lock);
	if (done) {
		wake_up_all(&region->wait);
		smcfs_event_region(region);
	}
	return done;
}

static void region_flush_work(struct work_struct *work);

static u32 region_hash(const struct smcfs_peer *peer, const char *name)
{
	return full_name_hash(peer, name, strlen(name));
}

static struct smcfs_region *region_peek_locked(struct smcfs_peer *peer, const char *name)
{
	struct smcfs_region *region;

	lockdep_assert_held(&smcfs_regions.lock);
	hash_for_each_possible(smcfs_regions.table, region, hash, region_hash(peer, name))
		if (region->peer == peer && !strcmp(region->name, name))
			return region;
	return NULL;
}

/* Makes a region in state BINDING and puts it into the table, which gets the reference. */
static struct smcfs_region *region_create_locked(struct smcfs_peer *peer, const char *name)
{
	/* Reclaim may wait for write-back, and its failure for this lock. */
	struct smcfs_region *region = kzalloc(sizeof(*region), GFP_NOFS);
	unsigned int i;

	lockdep_assert_held(&smcfs_regions.lock);
	if (!region)
		return ERR_PTR(-ENOMEM);
	if (xa_insert(&smcfs_regions.by_id, smcfs_regions.next_id, region, GFP_NOFS)) {
		kfree(region);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&region->ref);
	kref_get(&peer->ref);
	region->peer = peer;
	region->id = smcfs_regions.next_id++;
	strscpy(region->name, name, sizeof(region->name));
	spin_lock_init(&region->lock);
	region->state = SMCFS_REGION_BINDING;
	region->numa_node = NUMA_NO_NODE;
	init_waitqueue_head(&region->wait);
	spin_lock_init(&region->wb_lock);
	INIT_LIST_HEAD(&region->wb_inflight);
	mutex_init(&region->writer_lock);
	mutex_init(&region->drop_lock);
	for (i = 0; i < ARRAY_SIZE(region->word_lock); i++)
		mutex_init(&region->word_lock[i]);
	region->writer = SMCFS_WRITER_NONE;
	INIT_DELAYED_WORK(&region->flush_work, region_flush_work);
	region->cto = 1;
	region->writers = SMCFS_WRITERS_MERGE;
	region->merge_unit = SMCFS_MERGE_UNIT;
	region->flush_after_ms = SMCFS_FLUSH_AFTER_MS;
	region->granule = SMCFS_GRANULE;
	region->cto_origin = SMCFS_ORIGIN_DEFAULT;
	region->flush_after_origin = SMCFS_ORIGIN_DEFAULT;
	region->merge_unit_origin = SMCFS_ORIGIN_EXPORT;
	region->writers_origin = SMCFS_ORIGIN_EXPORT;
	region->granule_origin = SMCFS_ORIGIN_DEFAULT;
	smcfs_modes_init(region);
	smcfs_hot_init(region);
	smcfs_lines_init(region);
	hash_add(smcfs_regions.table, &region->hash, region_hash(peer, name));
	return region;
}

/* Context: any but hard irq. */
static void region_release(struct kref *ref)
{
	struct smcfs_region *region = container_of(ref, struct smcfs_region, ref);

	if (region->grant)
		smcfs_grant_put(region->grant);
	smcfs_peer_put(region->peer);
	smcfs_hot_free(region);
	smcfs_lines_free(region);
	kfree(region->latency);
	kfree(region);
}

void smcfs_region_put(struct smcfs_region *region)
{
	kref_put(&region->ref, region_release);
}

/* Out of the table; its reference goes. */
static void region_unhash_locked(struct smcfs_region *region)
{
	lockdep_assert_held(&smcfs_regions.lock);
	hash_del(&region->hash);
	xa_erase(&smcfs_regions.by_id, region->id);
	smcfs_region_put(region);
}

bool smcfs_region_dead(struct smcfs_region *region)
{
	return READ_ONCE(region->state) == SMCFS_REGION_FAILED;
}

struct inode *smcfs_region_inode(struct smcfs_region *region)
{
	struct inode *inode;

	spin_lock_bh(&region->lock);
	inode = region->inode;
	/* A superblock with a reference cannot evict its inodes under our feet. */
	if (inode && !atomic_inc_not_zero(&inode->i_sb->s_active))
		inode = NULL;
	if (inode && !igrab(inode)) {
		/* Being evicted; the superblock reference is not the last: it has inodes yet. */
		struct super_block *sb = inode->i_sb;

		spin_unlock_bh(&region->lock);
		deactivate_super(sb);
		return NULL;
	}
	spin_unlock_bh(&region->lock);
	return inode;
}

struct inode *smcfs_region_inode_of(struct smcfs_region *region, struct super_block *sb)
{
	struct inode *inode;

	spin_lock_bh(&region->lock);
	inode = region->inode;
	inode = inode && inode->i_sb == sb ? igrab(inode) : NULL;
	spin_unlock_bh(&region->lock);
	return inode;
}

void smcfs_region_inode_put(struct inode *inode)
{
	struct super_block *sb = inode->i_sb;

	iput(inode);
	deactivate_super(sb);
}

struct smcfs_grant *smcfs_region_grant(struct smcfs_region *region)
{
	struct smcfs_grant *grant = ERR_PTR(-EIO);

	spin_lock_bh(&region->lock);
	if (region->grant && (region->state == SMCFS_REGION_ACTIVE ||
			      region->state == SMCFS_REGION_DETACHING))
		grant = smcfs_grant_get(region->grant);
	spin_unlock_bh(&region->lock);
	return grant;
}

static void region_lose_session(struct smcfs_region *region, void *arg)
{
	bool lost;

	spin_lock_bh(&region->lock);
	/* DETACHING belongs to whoever set it, who looks for itself: region_check_session(). */
	lost = region->grant && region->grant->session == arg &&
	       region->state == SMCFS_REGION_ACTIVE &&
	       region_set_state_locked(region, SMCFS_REGION_DEGRADED, -ENOTCONN, "session lost");
	spin_unlock_bh(&region->lock);
	if (lost) {
		wake_up_all(&region->wait);
		smcfs_event_region(region);
	}
}

/* The session may have been lost while the state did not say ACTIVE. */
static void region_check_session(struct smcfs_region *region)
{
	struct smcfs_grant *grant = smcfs_region_grant(region);

	if (IS_ERR(grant))
		return;
	if (!smcfs_session_live(grant->session))
		region_lose_session(region, grant->session);
	smcfs_grant_put(grant);
}

/* ------------------------------------------------------------------ bind */

/*
 * Drops failed binds that nobody needs to be told of any more, all of @all. Also runs as
 * delayed work.
 */
static void region_expire_locked(bool all)
{
	struct smcfs_region *region;
	struct hlist_node *tmp;
	unsigned int left = 0;
	int bucket;

	hash_for_each_safe(smcfs_regions.table, bucket, tmp, region, hash) {
		if (READ_ONCE(region->state) != SMCFS_REGION_FAILED)
			continue;
		if (all || time_after(jiffies, region->expires))
			region_unhash_locked(region);
		else
			left++;
	}
	smcfs_regions.nr_failed = left;
	if (left)
		mod_delayed_work(smcfs_wq, &smcfs_regions.expire,
				 msecs_to_jiffies(SMCFS_BIND_CACHE_MS));
}

static void region_expire_work(struct work_struct *work)
{
	mutex_lock(&smcfs_regions.lock);
	region_expire_locked(false);
	mutex_unlock(&smcfs_regions.lock);
}

/*
 * @region is in the table. @remember: the daemon decided so, by its answer or by giving none. What
 * went wrong on the way to it says nothing about the name, so whoever comes next asks anew.
 * Return: false: it is not being bound (any more).
 */
static bool region_fail_bind_locked(struct smcfs_region *region, int err, bool remember)
{
	lockdep_assert_held(&smcfs_regions.lock);
	if (READ_ONCE(region->state) != SMCFS_REGION_BINDING)
		return false;
	spin_lock_bh(&region->lock);
	region->is_prefix = err == -EISDIR;
	region->expires = jiffies + msecs_to_jiffies(SMCFS_BIND_CACHE_MS);
	spin_unlock_bh(&region->lock);
	if (!region_set_state(region, SMCFS_REGION_FAILED, err, "bind failed"))
		return false;
	/* Directories are at most as many as the target's exports, and are needed to find these. */
	if (!remember ||
	    (err != -EISDIR && smcfs_regions.nr_failed >= SMCFS_BIND_CACHE_MAX))
		region_unhash_locked(region);
	else if (!smcfs_regions.nr_failed++)
		mod_delayed_work(smcfs_wq, &smcfs_regions.expire,
				 msecs_to_jiffies(SMCFS_BIND_CACHE_MS));
	return true;
}

/* The caller has a reference, and so this very region: the name may be another one's already. */
static void region_fail_bind(struct smcfs_region *region, int err, bool remember)
{
	mutex_lock(&smcfs_regions.lock);
	if (!hlist_unhashed(&region->hash))
		region_fail_bind_locked(region, err, remember);
	mutex_unlock(&smcfs_regions.lock);
}

/**
 * smcfs_region_lookup() - the region of a name, bound or on its way
 * @peer: the node.
 * @name: checked by smcfs_name_valid().
 *
 * Context: process; does not wait for the answer.
 * Return: region with a reference, or the remembered error of a bind that the daemon refused or did
 * not answer a moment ago, or -ENOTCONN without a daemon.
 */
struct smcfs_region *smcfs_region_lookup(struct smcfs_peer *peer, const char *name)
{
	struct smcfs_region *region;
	bool created = false;
	int err = 0;

	mutex_lock(&smcfs_regions.lock);
	if (READ_ONCE(peer->gone)) {
		err = -ENOENT;
		goto out;
	}
	region = region_peek_locked(peer, name);
	if (region && smcfs_region_dead(region)) {
		if (time_before(jiffies, region->expires)) {
			err = region->err;
			goto out;
		}
		region_unhash_locked(region);
		region = NULL;
	}
	if (!region) {
		if (!smcfs_daemon_present()) {
			err = -ENOTCONN;
			goto out;
		}
		region = region_create_locked(peer, name);
		if (IS_ERR(region)) {
			err = PTR_ERR(region);
			goto out;
		}
		created = true;
	}
	kref_get(&region->ref);
out:
	mutex_unlock(&smcfs_regions.lock);
	if (err)
		return ERR_PTR(err);
	if (created) {
		err = smcfs_upcall_bind(peer->name, name);
		if (err)
			region_fail_bind(region, err, false);
	}
	return region;
}

bool smcfs_region_is_prefix(struct smcfs_peer *peer, const char *prefix)
{
	struct smcfs_region *region;
	size_t length = strlen(prefix);
	bool found = false;
	int bucket;

	mutex_lock(&smcfs_regions.lock);
	region = region_peek_locked(peer, prefix);
	if (region) {
		found = smcfs_region_dead(region) && region->is_prefix;
	} else {
		hash_for_each(smcfs_regions.table, bucket, region, hash)
			if (region->peer == peer && !smcfs_region_dead(region) &&
			    READ_ONCE(region->state) != SMCFS_REGION_BINDING &&
			    !strncmp(region->name, prefix, length) && region->name[length] == '/')
				found = true;
	}
	mutex_unlock(&smcfs_regions.lock);
	return found;
}

int smcfs_region_wait_bound(struct smcfs_region *region)
{
	long left = wait_event_killable_timeout(region->wait,
				READ_ONCE(region->state) != SMCFS_REGION_BINDING,
				msecs_to_jiffies(SMCFS_BIND_TIMEOUT_MS));
	int err = 0;

	if (left < 0)
		return -EINTR;
	if (!left) {
		pr_warn_ratelimited("smcfs: %s:%s: smcfsd gave no answer within %u ms\n",
				    region->peer->name, region->name, SMCFS_BIND_TIMEOUT_MS);
		region_fail_bind(region, -ETIMEDOUT, true);
	}
	spin_lock_bh(&region->lock);
	if (region->state == SMCFS_REGION_FAILED)
		err = region->err;
	else if (region->state == SMCFS_REGION_BINDING)
		err = -ETIMEDOUT;
	spin_unlock_bh(&region->lock);
	return err;
}

int smcfs_region_bind_fail(const char *node, const char *name, int err)
{
	struct smcfs_peer *peer = smcfs_peer_get(node, strlen(node));
	struct smcfs_region *region;
	int ret = 0;

	if (!peer)
		return -ENOENT;
	mutex_lock(&smcfs_regions.lock);
	region = region_peek_locked(peer, name);
	if (!region || !region_fail_bind_locked(region, err, true))
		ret = -ENOENT;
	mutex_unlock(&smcfs_regions.lock);
	smcfs_peer_put(peer);
	return ret;
}

/* Gives up all that is in the page cache of a region that is dead. Return: dirty bytes lost. */
static u64 region_discard(struct smcfs_region *region)
{
	struct inode *inode = smcfs_region_inode(region);
	u64 bytes;

	if (!inode)
		return 0;
	unmap_mapping_range(inode->i_mapping, 0, 0, 1);
	/* What is on its way arrives or is dirty again. */
	filemap_fdatawait_range_keep_errors(inode->i_mapping, 0, LLONG_MAX);
	smcfs_wb_wait(region, false);
	bytes = smcfs_dirty_bytes(inode->i_mapping, PAGECACHE_TAG_DIRTY);
	/* Before the pages go: a barrier that finds none must find the error. */
	if (bytes)
		mapping_set_error(inode->i_mapping, -EIO);
	truncate_inode_pages(inode->i_mapping, 0);
	d_prune_aliases(inode);
	if (bytes) {
		smcfs_stat_add(&region->stats, SMCFS_STAT_DISCARDED_BYTES, bytes);
		pr_warn("smcfs: %s:%s: discarded %llu bytes that were not written to the target\n",
			region->peer->name, region->name, bytes);
	}
	smcfs_region_inode_put(inode);
	return bytes;
}

/* Lets go of the mount unless pages are still to be sent. @inode may be NULL: there are none. */
static void region_unpin(struct smcfs_region *region, struct inode *inode)
{
	struct path pin = {};

	mutex_lock(&region->writer_lock);
	if (!inode || smcfs_region_dead(region) || smcfs_inode_clean(inode)) {
		pin = region->pin;
		memset(&region->pin, 0, sizeof(region->pin));
	}
	mutex_unlock(&region->writer_lock);
	if (pin.mnt)
		path_put(&pin);
}

/* The end of a region that was bound: unhashed already, or about to be. */
static u64 region_kill(struct smcfs_region *region, int err, const char *reason)
{
	struct smcfs_grant *grant;
	u64 bytes;

	region_set_state(region, SMCFS_REGION_FAILED, err, reason);
	spin_lock_bh(&region->lock);
	grant = region->grant;
	region->grant = NULL;
	if (region->writer == SMCFS_WRITER_ASKING) {
		region->writer = SMCFS_WRITER_NONE;
		region->writer_err = -EIO;
	}
	spin_unlock_bh(&region->lock);
	wake_up_all(&region->wait);
	if (grant)
		smcfs_grant_put(grant);
	bytes = region_discard(region);
	region_unpin(region, NULL);
	/* Pairs with smcfs_region_flush_later(): either we see its work or it sees FAILED. */
	smp_mb();
	if (cancel_delayed_work_sync(&region->flush_work))
		smcfs_region_put(region);
	smcfs_modes_stop(region);
	return bytes;
}

/* Takes a dead-to-be region out of the table and kills it. */
static u64 region_remove(struct smcfs_region *region, int err, const char *reason)
{
	bool hashed;

	mutex_lock(&smcfs_regions.lock);
	hashed = !hlist_unhashed(&region->hash);
	if (hashed)
		region_unhash_locked(region);
	mutex_unlock(&smcfs_regions.lock);
	return region_kill(region, err, reason);
}

static bool region_same_memory(const struct smcfs_region *region,
			       const struct smcfs_region_desc *desc)
{
	return region->desc.generation == desc->generation && region->desc.size == desc->size;
}

/* Binds @region, which is in the table, to @grant, whose reference moves. */
static void region_bind_locked(struct smcfs_region *region, const struct smcfs_region_desc *desc,
			       struct smcfs_grant *grant)
{
	struct smcfs_grant *old;
	bool first;

	spin_lock_bh(&region->lock);
	first = region->state == SMCFS_REGION_BINDING;
	old = region->grant;
	region->grant = grant;
	WRITE_ONCE(region->numa_node, grant->session->numa_node);
	if (first) {
		region->desc = *desc;
		region->writers = desc->writers;
		region->merge_unit = desc->merge_unit;
	}
	/*
	 * Inode first: whoever sees ACTIVE must see the size, too. No reference, which could be
	 * the last to a superblock that is being unmounted: its end waits for fetches, which may
	 * wait for destroy_work, which waits for smcfs_regions.lock. Eviction takes region->lock.
	 */
	if (region->inode)
		smcfs_inode_update_locked(region->inode);
	spin_unlock_bh(&region->lock);
	if (old)
		smcfs_grant_put(old);
	region_set_state(region, SMCFS_REGION_ACTIVE, 0, first ? "bound" : "bound again");
	region_check_session(region);
	smcfs_modes_bound(region);
	if (!first)
		smcfs_region_flush_later(region, 0);
}

int smcfs_region_attach(const struct smcfs_region_desc *desc, struct smcfs_session *session,
			const struct smcfs_extent *extents, unsigned int nr, u64 *id,
			struct netlink_ext_ack *extack)
{
	struct smcfs_region *region, *old = NULL;
	struct smcfs_latencies *latency;
	struct smcfs_grant *grant;
	struct smcfs_peer *peer;
	int err = 0;

	peer = smcfs_peer_get(desc->node, strlen(desc->node));
	if (!peer) {
		NL_SET_ERR_MSG(extack, "the node is no peer");
		return -ENOENT;
	}
	/* Of every session: changed lines of exclusive regions are staged, too. */
	err = smcfs_stages_create(session);
	if (err) {
		smcfs_peer_put(peer);
		return err;
	}
	grant = smcfs_grant_create(session, desc->size, extents, nr, extack);
	if (IS_ERR(grant)) {
		smcfs_peer_put(peer);
		return PTR_ERR(grant);
	}
	grant->atomics = desc->flags & SMCFS_RF_ATOMICS;
	latency = kzalloc(sizeof(*latency), GFP_KERNEL);
	if (!latency) {
		smcfs_grant_put(grant);
		smcfs_peer_put(peer);
		return -ENOMEM;
	}

	mutex_lock(&smcfs_regions.lock);
	if (READ_ONCE(peer->gone)) {
		NL_SET_ERR_MSG(extack, "the node is no peer any more");
		err = -ENOENT;
		goto out;
	}
	region = region_peek_locked(peer, desc->name);
	if (region && READ_ONCE(region->state) == SMCFS_REGION_DETACHING) {
		err = -EBUSY;
		goto out;
	}
	if (region && smcfs_region_dead(region)) {
		region_unhash_locked(region);	/* a failed bind: its waiters were told */
		region = NULL;
	} else if (region && READ_ONCE(region->state) != SMCFS_REGION_BINDING &&
		   !region_same_memory(region, desc)) {
		old = smcfs_region_hold(region);	/* other memory took the name */
		region_unhash_locked(region);
		region = NULL;
	}
	if (!region)
		region = region_create_locked(peer, desc->name);
	if (IS_ERR(region)) {
		err = PTR_ERR(region);
		goto out;
	}
	if (!region->latency)
		swap(region->latency, latency);
	region_bind_locked(region, desc, grant);
	grant = NULL;
	*id = region->id;
out:
	mutex_unlock(&smcfs_regions.lock);
	kfree(latency);
	if (grant)
		smcfs_grant_put(grant);
	smcfs_peer_put(peer);
	if (old) {
		region_kill(old, -ESTALE, "another generation took the name");
		smcfs_region_put(old);
	}
	return err;
}

/* ------------------------------------------------------------------ find */

struct smcfs_region *smcfs_region_next(u64 id)
{
	struct smcfs_region *region;
	unsigned long index = id;

	mutex_lock(&smcfs_regions.lock);
	region = xa_find(&smcfs_regions.by_id, &index, ULONG_MAX, XA_PRESENT);
	if (region)
		kref_get(&region->ref);
	mutex_unlock(&smcfs_regions.lock);
	return region;
}

struct smcfs_region *smcfs_region_get(u64 id)
{
	struct smcfs_region *region;

	mutex_lock(&smcfs_regions.lock);
	region = xa_load(&smcfs_regions.by_id, id);
	if (region)
		kref_get(&region->ref);
	mutex_unlock(&smcfs_regions.lock);
	return region;
}

bool smcfs_region_peer_busy(struct smcfs_peer *peer)
{
	struct smcfs_region *region;
	bool busy = false;
	int bucket;

	mutex_lock(&smcfs_regions.lock);
	hash_for_each(smcfs_regions.table, bucket, region, hash)
		if (region->peer == peer && !smcfs_region_dead(region))
			busy = true;
	mutex_unlock(&smcfs_regions.lock);
	return busy;
}

/* ------------------------------------------------------------------ lose */

/* Calls @fn for each region in the table, outside its lock. */
static void region_for_each(void (*fn)(struct smcfs_region *region, void *arg), void *arg)
{
	struct smcfs_region *region;
	u64 id = 0;

	while ((region = smcfs_region_next(id))) {
		id = region->id + 1;
		fn(region, arg);
		smcfs_region_put(region);
	}
}

void smcfs_region_session_lost(struct smcfs_session *session)
{
	region_for_each(region_lose_session, session);
}

static void region_lose_daemon(struct smcfs_region *region, void *arg)
{
	region_fail_bind(region, -ENOTCONN, false);
	smcfs_region_writer_result(region->id, -ENOTCONN);
}

void smcfs_region_daemon_gone(void)
{
	region_for_each(region_lose_daemon, NULL);
}

/* ------------------------------------------------------------------ open files, writing right */

int smcfs_region_open(struct smcfs_region *region)
{
	int err = 0;

	spin_lock_bh(&region->lock);
	if (region->state == SMCFS_REGION_ACTIVE || region->state == SMCFS_REGION_DEGRADED)
		atomic_inc(&region->openers);
	else
		err = region->state == SMCFS_REGION_DETACHING ? -EBUSY : -EIO;
	spin_unlock_bh(&region->lock);
	return err;
}

void smcfs_region_close(struct smcfs_region *region)
{
	atomic_dec(&region->openers);
}

static bool writer_answered(struct smcfs_region *region)
{
	return READ_ONCE(region->writer) != SMCFS_WRITER_ASKING || smcfs_region_dead(region);
}

static void writer_set(struct smcfs_region *region, enum smcfs_writer_state state)
{
	spin_lock_bh(&region->lock);
	WRITE_ONCE(region->writer, state);
	spin_unlock_bh(&region->lock);
}

/* Asks the daemon for the right. [writer_lock] Return: 0, -EBUSY: another session has it, ... */
static int writer_ask(struct smcfs_region *region)
{
	long left;
	int err;

	lockdep_assert_held(&region->writer_lock);
	writer_set(region, SMCFS_WRITER_ASKING);
	err = smcfs_upcall_writer(region);
	if (err) {
		writer_set(region, SMCFS_WRITER_NONE);
		return err;
	}
	left = wait_event_killable_timeout(region->wait, writer_answered(region),
					   msecs_to_jiffies(SMCFS_BIND_TIMEOUT_MS));
	spin_lock_bh(&region->lock);
	if (region->writer == SMCFS_WRITER_ASKING) {
		/* An answer that comes later finds nobody asking and is refused. */
		WRITE_ONCE(region->writer, SMCFS_WRITER_NONE);
		err = smcfs_region_dead(region) ? -EIO : left < 0 ? -EINTR : -ETIMEDOUT;
	} else {
		err = region->writer == SMCFS_WRITER_HELD ? 0 : region->writer_err;
	}
	spin_unlock_bh(&region->lock);
	/* The target may have granted it to us all the same. */
	if (err == -EINTR || err == -ETIMEDOUT)
		smcfs_upcall_writer_release(region);
	return err;
}

int smcfs_region_open_writer(struct smcfs_region *region)
{
	int err = mutex_lock_killable(&region->writer_lock);

	if (err)
		return -EINTR;
	if (!smcfs_region_merges(region) && READ_ONCE(region->writer) != SMCFS_WRITER_HELD)
		err = writer_ask(region);
	if (!err)
		region->nr_writers++;
	mutex_unlock(&region->writer_lock);
	return err;
}

/* Gives the right back if nobody writes and nothing is left to be sent. */
static void region_release_writer(struct smcfs_region *region, struct inode *inode)
{
	bool release;

	mutex_lock(&region->writer_lock);
	release = !region->nr_writers && READ_ONCE(region->writer) == SMCFS_WRITER_HELD &&
		  (!inode || smcfs_inode_clean(inode));
	if (release) {
		writer_set(region, SMCFS_WRITER_NONE);
		/* Under the lock: who asks next must be heard by the daemon after this. */
		smcfs_upcall_writer_release(region);
	}
	mutex_unlock(&region->writer_lock);
}

void smcfs_region_close_writer(struct smcfs_region *region, struct inode *inode)
{
	mutex_lock(&region->writer_lock);
	region->nr_writers--;
	mutex_unlock(&region->writer_lock);
	region_release_writer(region, inode);
}

/**
 * smcfs_region_set_writers() - change the policy of a live region, completely or not at all
 * @region: bound.
 * @writers: enum smcfs_writers.
 *
 * Context: process.
 * Return: 0; -EPERM: the exporter asks for exclusive; -EBUSY: open for writing,
 * or pages are in use; -EIO: dirty pages could not be sent; -EINTR.
 */
int smcfs_region_set_writers(struct smcfs_region *region, u32 writers)
{
	struct inode *inode;
	int err = 0;

	if (writers == SMCFS_WRITERS_MERGE && region->desc.writers != SMCFS_WRITERS_MERGE)
		return -EPERM;
	/* Keeps writable opens out, and with them whoever could dirty a page. */
	if (mutex_lock_killable(&region->writer_lock))
		return -EINTR;
	if (writers == region->writers) {
		mutex_unlock(&region->writer_lock);
		return 0;
	}
	if (region->nr_writers || region->pin.mnt) {
		err = -EBUSY;
		goto out;
	}
	inode = smcfs_region_inode(region);
	if (inode) {
		/*
		 * With every page that was written gone there is nothing that one policy knows and
		 * the other does not. A page that somebody holds may yet be written to, and stays:
		 * EBUSY. Those who read go on, and fetch what they need.
		 */
		err = smcfs_drop_all(inode);
		if (!err)
			WRITE_ONCE(region->writers, writers);
		smcfs_region_inode_put(inode);
	} else {
		WRITE_ONCE(region->writers, writers);
	}
out:
	mutex_unlock(&region->writer_lock);
	if (!err)
		region_release_writer(region, NULL);
	return err;
}

int smcfs_region_writer_result(u64 id, int err)
{
	struct smcfs_region *region = smcfs_region_get(id);
	int ret = 0;

	if (!region)
		return -ENOENT;
	spin_lock_bh(&region->lock);
	if (region->writer == SMCFS_WRITER_ASKING) {
		region->writer_err = err;
		WRITE_ONCE(region->writer, err ? SMCFS_WRITER_NONE : SMCFS_WRITER_HELD);
	} else {
		ret = -ENOENT;
	}
	spin_unlock_bh(&region->lock);
	wake_up_all(&region->wait);
	smcfs_region_put(region);
	return ret;
}

/* ------------------------------------------------------------------ deferred flush */

/* Context: no preemption, so that the processor stays until the work is queued. */
int smcfs_region_cpu(struct smcfs_region *region)
{
	int node = READ_ONCE(region->numa_node);
	unsigned int cpu;

	if (node == NUMA_NO_NODE || node == numa_node_id())
		return WORK_CPU_UNBOUND;
	cpu = cpumask_any_and_distribute(cpumask_of_node(node),
					 housekeeping_cpumask(HK_TYPE_TIMER));
	return cpu < nr_cpu_ids && cpu_online(cpu) ? cpu : WORK_CPU_UNBOUND;
}

/* As queue_delayed_work(), or as mod_delayed_work() if @sooner, near the device. */
static bool region_queue_flush(struct smcfs_region *region, unsigned long delay, bool sooner)
{
	bool ret;
	int cpu;

	preempt_disable();
	cpu = smcfs_region_cpu(region);
	if (sooner)
		ret = mod_delayed_work_on(cpu, smcfs_flush_wq, &region->flush_work, delay);
	else
		ret = queue_delayed_work_on(cpu, smcfs_flush_wq, &region->flush_work, delay);
	preempt_enable();
	return ret;
}

static void region_flush_work(struct work_struct *work)
{
	struct smcfs_region *region = container_of(to_delayed_work(work), struct smcfs_region,
						   flush_work);
	struct inode *inode = smcfs_region_inode(region);

	if (inode) {
		/* Not a barrier: it waits only so that it can tell whether all is clean. */
		if (READ_ONCE(region->state) == SMCFS_REGION_ACTIVE)
			smcfs_flush(inode, 0, LLONG_MAX);
		region_release_writer(region, inode);
		region_unpin(region, inode);
		if (!smcfs_inode_clean(inode) && READ_ONCE(region->state) == SMCFS_REGION_ACTIVE)
			smcfs_region_flush_later(region,
						 max(READ_ONCE(region->flush_after_ms), 1U));
		smcfs_region_inode_put(inode);
	}
	smcfs_region_put(region);
}

void smcfs_region_flush_later(struct smcfs_region *region, unsigned int delay_ms)
{
	bool queued;

	smcfs_region_hold(region);
	if (delay_ms)
		queued = region_queue_flush(region, msecs_to_jiffies(delay_ms), false);
	else	/* sooner than what may be pending */
		queued = !region_queue_flush(region, 0, true);
	if (!queued)
		smcfs_region_put(region);	/* never the last: whoever calls has one */
	/* Pairs with region_kill(). */
	smp_mb();
	if (smcfs_region_dead(region) && cancel_delayed_work(&region->flush_work))
		smcfs_region_put(region);
}

/* As flush_later(), after flush_after_ms was changed: what is pending is for then. Process. */
void smcfs_region_flush_paced(struct smcfs_region *region)
{
	unsigned long delay = msecs_to_jiffies(READ_ONCE(region->flush_after_ms));

	/* One that is queued already is to run now. */
	if (smcfs_region_dead(region) || !timer_pending(&region->flush_work.timer))
		return;
	smcfs_region_hold(region);
	if (region_queue_flush(region, delay, true))
		smcfs_region_put(region);
	smp_mb();	/* as in flush_later() */
	if (smcfs_region_dead(region) && cancel_delayed_work(&region->flush_work))
		smcfs_region_put(region);
}

void smcfs_region_pin(struct smcfs_region *region, struct file *file)
{
	mutex_lock(&region->writer_lock);
	if (!region->pin.mnt && !smcfs_region_dead(region)) {
		region->pin = file->f_path;
		path_get(&region->pin);
	}
	mutex_unlock(&region->writer_lock);
	smcfs_region_flush_later(region, 0);
}

static void region_discard_if_pinned(struct smcfs_region *region, void *arg)
{
	enum smcfs_region_state before;
	struct inode *inode;
	bool idle;

	if (!READ_ONCE(region->pin.mnt))
		return;
	/* DETACHING: nobody opens the file while it is decided whether its pages are lost. */
	spin_lock_bh(&region->lock);
	before = region->state;
	idle = !atomic_read(&region->openers) &&
	       region_set_state_locked(region, SMCFS_REGION_DETACHING, 0, "umount -f");
	spin_unlock_bh(&region->lock);
	if (!idle)
		return;
	inode = smcfs_region_inode(region);
	if (inode) {
		/* With a live session there is no need to lose anything. */
		if (before == SMCFS_REGION_ACTIVE)
			smcfs_flush(inode, 0, LLONG_MAX);
		if (!smcfs_inode_clean(inode))
			region_discard(region);
		region_unpin(region, inode);
		smcfs_region_inode_put(inode);
	}
	region_set_state(region, before, 0, "umount -f");
	region_check_session(region);
}

void smcfs_region_discard_pinned(void)
{
	region_for_each(region_discard_if_pinned, NULL);
}

/* ------------------------------------------------------------------ detach */

static int region_detach_clean(struct smcfs_region *region)
{
	struct inode *inode = smcfs_region_inode(region);
	int err;

	if (!inode)
		return 0;
	err = smcfs_flush(inode, 0, LLONG_MAX);
	if (!err && !smcfs_inode_clean(inode))
		err = -EIO;
	smcfs_region_inode_put(inode);
	return err;
}

int smcfs_region_detach(u64 id, bool force, u64 *discarded)
{
	struct smcfs_region *region;
	enum smcfs_region_state before;
	int err = 0;

	*discarded = 0;
	if (force)
		return smcfs_region_revoke(id, -EIO, discarded);
	region = smcfs_region_get(id);
	if (!region)
		return -ENOENT;
	spin_lock_bh(&region->lock);
	before = region->state;
	if (atomic_read(&region->openers) ||
	    !region_set_state_locked(region, SMCFS_REGION_DETACHING, 0, "detach"))
		err = -EBUSY;
	spin_unlock_bh(&region->lock);
	if (err)
		goto out;
	smcfs_event_region(region);
	err = region_detach_clean(region);
	if (err) {
		region_set_state(region, before, 0, "detach failed: dirty pages could not be sent");
		region_check_session(region);
		/* What came due meanwhile found a region that was not active. */
		smcfs_region_flush_later(region, READ_ONCE(region->flush_after_ms));
		goto out;
	}
	region_release_writer(region, NULL);
	*discarded = region_remove(region, -ESTALE, "detached");
out:
	smcfs_region_put(region);
	return err;
}

int smcfs_region_revoke(u64 id, int err, u64 *discarded)
{
	struct smcfs_region *region = smcfs_region_get(id);

	*discarded = 0;
	if (!region)
		return -ENOENT;
	*discarded = region_remove(region, err ?: -EIO, "revoked");
	smcfs_region_put(region);
	return 0;
}

int smcfs_region_init(void)
{
	INIT_DELAYED_WORK(&smcfs_regions.expire, region_expire_work);
	return 0;
}

void smcfs_region_exit(void)
{
	struct smcfs_region *region;
	struct hlist_node *tmp;
	int bucket;

	cancel_delayed_work_sync(&smcfs_regions.expire);
	hash_for_each_safe(smcfs_regions.table, bucket, tmp, region, hash) {
		if (cancel_delayed_work_sync(&region->flush_work))
			smcfs_region_put(region);
		smcfs_modes_stop(region);
		hash_del(&region->hash);
		smcfs_region_put(region);
	}
	xa_destroy(&smcfs_regions.by_id);
}
