// SPDX-License-Identifier: GPL-2.0
/*
 * Write-back, second half: completions end it, tickets tell barriers.
 * Copyright (c) 2026 The SMC authors
 *
 * Owns: struct smcfs_wb from create to done.
 * Contexts: create, part, submit, wait: process. done: softirq, without an error; with one process
 *	(destroy_work), or the submitter when nothing could be posted.
 * Locking: region->wb_lock for tickets; smcfs_folio.lock for bits. Neither inside the other.
 * Lifetime: a wb holds its region; each folio in it is counted as flying, by its write-back flag or
 *	smcfs_folio.inflight, and has one reference. The mapping lives as long as a folio of it
 *	flies, and is not touched after the last.
 * Failure: the pages of a failed transfer are dirty again before they cease to fly, and the mapping
 *	remembers the error for the next fsync. Nothing is dropped.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "smcfs.h"
#include "trace.h"

/* So many flushes can always be under way, memory or not. */
#define SMCFS_WB_RESERVE	16

static struct kmem_cache *wb_cache;
static mempool_t *wb_pool;

int smcfs_wb_init(void)
{
	wb_cache = KMEM_CACHE(smcfs_wb, 0);
	if (!wb_cache)
		return -ENOMEM;
	wb_pool = mempool_create_slab_pool(SMCFS_WB_RESERVE, wb_cache);
	if (!wb_pool) {
		kmem_cache_destroy(wb_cache);
		return -ENOMEM;
	}
	return 0;
}

void smcfs_wb_exit(void)
{
	mempool_destroy(wb_pool);
	kmem_cache_destroy(wb_cache);
}

/* Marks a ticket done and moves wb_done up to the first that is not. */
static void wb_retire(struct smcfs_wb *wb)
{
	struct smcfs_region *region = wb->region;
	struct smcfs_wb *tmp;
	LIST_HEAD(retired);

	spin_lock_bh(&region->wb_lock);
	wb->done = true;
	if (READ_ONCE(wb->failed))
		region->wb_failures++;
	while (!list_empty(&region->wb_inflight)) {
		struct smcfs_wb *first;

		first = list_first_entry(&region->wb_inflight, struct smcfs_wb, link);
		if (!first->done)
			break;
		region->wb_done = first->ticket;
		list_move_tail(&first->link, &retired);
	}
	spin_unlock_bh(&region->wb_lock);
	if (list_empty(&retired))
		return;
	wake_up_all(&region->wait);
	list_for_each_entry_safe(wb, tmp, &retired, link) {
		smcfs_region_put(wb->region);
		mempool_free(wb, wb_pool);
	}
}

/* The last transfer of a ticket, or the filling of it, is over. */
static void ticket_put(struct smcfs_wb *wb)
{
	if (atomic_dec_and_test(&wb->pending))
		wb_retire(wb);
}

/**
 * smcfs_wb_end_folio() - what was sent of a folio is acknowledged, or failed
 * @mapping: of the region.
 * @folio: with the reference of write-back, and with its flag unless it was hot and clean.
 * @sf: of it, or NULL.
 * @err: not all of it was written: it is dirty again.
 *
 * Context: softirq without an error, else process.
 */
void smcfs_wb_end_folio(struct address_space *mapping, struct folio *folio, struct smcfs_folio *sf,
			int err)
{
	bool flagged = folio_test_writeback(folio);

	if (err) {
		mapping_set_error(mapping, -EIO);
		smcfs_folio_recall(folio);
		filemap_dirty_folio(mapping, folio);
	}
	/* Without a flag the mapping and @sf may go from here on; our ticket wakes who waits. */
	if (sf)	/* pairs with the barrier of smcfs_invalidate_folio() */
		smp_store_release(&sf->inflight, 0);
	if (flagged)
		folio_end_writeback(folio);
	folio_put(folio);
}

/* Puts the pages of a failed segment back to those that have to be sent. */
static void wb_restore(struct folio *folio, const struct smcfs_seg *seg)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned int first = seg->offset >> PAGE_SHIFT;
	unsigned int last = (seg->offset + seg->length - 1) >> PAGE_SHIFT;
	unsigned long flags;

	if (!sf)
		return;
	spin_lock_irqsave(&sf->lock, flags);
	bitmap_set(sf->dirty, first, last - first + 1);
	spin_unlock_irqrestore(&sf->lock, flags);
}

/* A transfer of @wb is over; its owner has no more to do with it. */
static void wb_done(struct smcfs_wb *wb, struct smcfs_xfer *xfer)
{
	/* The grant holds the staging pages, the ticket the region. */
	smcfs_xfer_free(xfer);
	ticket_put(wb);
}

static void wb_count(struct smcfs_wb *wb, const struct smcfs_xfer *xfer, int err)
{
	struct smcfs_region *region = wb->region;

	if (err) {
		WRITE_ONCE(wb->failed, true);
		smcfs_stat_add(&region->stats, SMCFS_STAT_ERRORS, 1);
	} else {
		smcfs_latency_add(region->latency, SMCFS_LATENCY_WRITE, xfer->latency_ns);
	}
	trace_smcfs_flush_done(region->id, wb->ticket, xfer->bytes, err);
}

/* Whole pages: a folio is in one transfer, so its write-back ends with that. */
static void wb_done_whole(struct smcfs_xfer *xfer, int err)
{
	struct smcfs_wb *wb = xfer->owner;
	unsigned int i, next;

	wb_count(wb, xfer, err);
	for (i = 0; i < xfer->nr_segs; i = next) {
		struct folio *folio = xfer->segs[i].folio;

		for (next = i; next < xfer->nr_segs && xfer->segs[next].folio == folio; next++)
			if (err)
				wb_restore(folio, &xfer->segs[next]);
		smcfs_wb_end_folio(wb->mapping, folio, smcfs_folio_private(folio), err);
	}
	wb_done(wb, xfer);
}

/* What changed: staging pages, each of which may be in several transfers. */
static void wb_done_staged(struct smcfs_xfer *xfer, int err)
{
	struct smcfs_wb *wb = xfer->owner;
	struct folio *last = NULL;
	LIST_HEAD(stages);
	unsigned int i;

	wb_count(wb, xfer, err);
	for (i = 0; i < xfer->nr_segs; i++) {
		struct folio *data = xfer->segs[i].folio;
		struct smcfs_stage *stage = (void *)page_private(folio_page(data, 0));

		if (data == last)
			continue;
		last = data;
		if (err)
			WRITE_ONCE(stage->failed, true);
		if (smcfs_twin_put_stage(wb->mapping, stage))
			list_add(&stage->link, &stages);
	}
	smcfs_stages_put(&stages);
	wb_done(wb, xfer);
}

struct smcfs_wb *smcfs_wb_create(struct smcfs_region *region, struct smcfs_grant *grant,
				 struct address_space *mapping)
{
	struct smcfs_wb *wb = mempool_alloc(wb_pool, GFP_NOFS);

	wb->region = smcfs_region_hold(region);
	wb->grant = grant;
	wb->mapping = mapping;
	wb->posted_ns = 0;
	wb->done = false;
	wb->failed = false;
	wb->xfer = NULL;
	atomic_set(&wb->pending, 1);
	spin_lock_bh(&region->wb_lock);
	wb->ticket = ++region->wb_posted;
	list_add_tail(&wb->link, &region->wb_inflight);
	spin_unlock_bh(&region->wb_lock);
	return wb;
}

struct smcfs_xfer *smcfs_wb_xfer(struct smcfs_wb *wb, bool staged)
{
	void (*done)(struct smcfs_xfer *xfer, int err) = staged ? wb_done_staged : wb_done_whole;
	struct smcfs_xfer *xfer = wb->xfer;

	if (xfer && xfer->done == done)
		return xfer;
	smcfs_wb_part(wb);
	xfer = smcfs_xfer_alloc(wb->grant, SMCFS_XFER_WRITE, GFP_NOFS);
	xfer->done = done;
	xfer->owner = wb;
	xfer->seq = wb->ticket;
	atomic_inc(&wb->pending);
	wb->xfer = xfer;
	return xfer;
}

void smcfs_wb_part(struct smcfs_wb *wb)
{
	struct smcfs_xfer *xfer = wb->xfer;
	struct smcfs_region *region = wb->region;

	wb->xfer = NULL;
	if (!xfer)
		return;
	if (!xfer->nr_segs) {
		smcfs_xfer_free(xfer);
		ticket_put(wb);
		return;
	}
	trace_smcfs_flush_batch(region->id, wb->ticket, xfer->nr_segs, xfer->bytes);
	smcfs_stat_add(&region->stats, SMCFS_STAT_FLUSH_BATCHES, 1);
	smcfs_stat_add(&region->stats, SMCFS_STAT_FLUSH_OPS, xfer->nr_wrs);
	smcfs_stat_add(&region->stats, SMCFS_STAT_FLUSH_BYTES, xfer->bytes);
	if (!wb->posted_ns)	/* pairs with READ_ONCE() of a dump */
		WRITE_ONCE(wb->posted_ns, ktime_get_ns());
	smcfs_xfer_submit(xfer);
}

/* No more is added; a ticket that stayed empty is only given back. */
void smcfs_wb_submit(struct smcfs_wb *wb)
{
	smcfs_wb_part(wb);
	ticket_put(wb);
}

static void wb_snapshot(struct smcfs_region *region, u64 *ticket, u64 *failures)
{
	spin_lock_bh(&region->wb_lock);
	*ticket = region->wb_posted;
	*failures = region->wb_failures;
	spin_unlock_bh(&region->wb_lock);
}

static bool wb_is_done(struct smcfs_region *region, u64 ticket)
{
	bool done;

	spin_lock_bh(&region->wb_lock);
	done = region->wb_done >= ticket;
	spin_unlock_bh(&region->wb_lock);
	return done;
}

/* Was all that was begun acknowledged, or did it fail? Context: any but hard interrupt. */
bool smcfs_wb_idle(struct smcfs_region *region)
{
	bool idle;

	spin_lock_bh(&region->wb_lock);
	idle = region->wb_done == region->wb_posted;
	spin_unlock_bh(&region->wb_lock);
	return idle;
}

/* Is nothing of a region's inode left to be sent, or on its way? Context: process. */
bool smcfs_inode_clean(struct inode *inode)
{
	struct smcfs_region *region = smcfs_i(inode)->region;

	/* First: what a flush that is over has harvested has its ticket, or is dirty. */
	return !atomic_read_acquire(&region->hot_flushing) && smcfs_wb_idle(region) &&
	       !mapping_tagged(inode->i_mapping, PAGECACHE_TAG_DIRTY) &&
	       !mapping_tagged(inode->i_mapping, PAGECACHE_TAG_WRITEBACK);
}

/**
 * smcfs_wb_wait() - wait for all transfers that were begun so far
 * @region: of them; the caller has none of its own that is not sent.
 * @killable: else not; the deadlines of requests bound it.
 *
 * Context: process.
 * Return: 0 or -EINTR.
 */
int smcfs_wb_wait(struct smcfs_region *region, bool killable)
{
	u64 ticket, failures;

	wb_snapshot(region, &ticket, &failures);
	if (killable)
		return wait_event_killable(region->wait, wb_is_done(region, ticket)) ? -EINTR : 0;
	wait_event(region->wait, wb_is_done(region, ticket));
	return 0;
}

/*
 * Waits until a folio that was seen flying has landed, or has at least left the state it was seen
 * in. Context: process, killable; the caller has no transfer that is not sent. Return: 0 or -EINTR.
 */
int smcfs_wb_wait_folio(struct smcfs_region *region, struct folio *folio)
{
	if (!folio_test_writeback(folio))
		return smcfs_wb_wait(region, true);
	return folio_wait_writeback_killable(folio) ? -EINTR : 0;
}

/**
 * smcfs_flush() - write dirty pages out and wait for the acknowledgements
 * @inode: of a region.
 * @start: first byte.
 * @end: last byte, inclusive.
 *
 * Waits for every transfer of the region that was begun before, so two barriers at a time are both
 * true.
 * Context: process, killable.
 * Return: 0: all that was dirty in the range before the call is in the target's memory; -EIO: some
 * is not and is still dirty; -EINTR.
 */
int smcfs_flush(struct inode *inode, loff_t start, loff_t end)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	struct address_space *mapping = inode->i_mapping;
	u64 before, after, ticket;
	s64 dirtied = atomic64_read(&region->dirtied);
	int err;

	if (smcfs_region_dead(region))
		return -EIO;
	wb_snapshot(region, &ticket, &before);
	if (smcfs_hot_flush(inode, start, end))
		return -EINTR;
	err = filemap_fdatawrite_range(mapping, start, end);
	if (smcfs_wb_wait(region, true))
		return -EINTR;
	wb_snapshot(region, &ticket, &after);
	/* What was revoked meanwhile is gone, and only looks clean. */
	if (!err && (after != before || smcfs_region_dead(region)))
		err = -EIO;
	if (!err && !start && end == LLONG_MAX)
		smcfs_dirty_flushed(region, dirtied);
	return err;
}
