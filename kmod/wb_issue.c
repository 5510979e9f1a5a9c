// SPDX-License-Identifier: GPL-2.0
/*
 * Write-back, first half: dirty pages into transfers of RDMA WRITEs.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: process: barriers, the core's flusher, flush_work, close.
 * Locking: the folio lock while a folio moves from dirty to write-back. Before anything that can
 *	wait (a folio lock, another's write-back, pool memory) the transfer at hand is sent: two
 *	writers that each waited for a folio in the other's unsent transfer would wait for ever.
 * Failure: with no live session nothing is taken: the pages stay dirty, WB_SYNC_ALL gets -EIO. A
 *	transfer that fails later makes its pages dirty again (wb_collect.c).
 */
#include <linux/bitmap.h>
#include <linux/pagevec.h>
#include <linux/sched/signal.h>
#include <linux/writeback.h>

#include "smcfs.h"

/* The largest transfer; the unit in which flushes alternate with other traffic. */
#define SMCFS_WB_BYTES_MAX	(256U << 10)

struct wb_issue {
	struct writeback_control *wbc;
	struct inode		*inode;
	struct smcfs_region	*region;
	struct smcfs_grant	*grant;
	struct smcfs_wb		*wb;	/* being filled, or NULL */
	struct list_head	stages;	/* for the folio at hand, taken ahead */
	bool			sync;	/* WB_SYNC_ALL */
	bool			stored;	/* to hot pages, as the harvest found */
	bool			priced;
	struct smcfs_price	price;	/* if ->priced: see issue_price() */
};

static void issue_submit(struct wb_issue *is)
{
	if (is->wb)
		smcfs_wb_submit(is->wb);
	is->wb = NULL;
}

/* A ticket with room for @segs more segments; what is at hand is sent if it lacks it. */
static void issue_room(struct wb_issue *is, unsigned int segs, size_t bytes)
{
	struct smcfs_xfer *xfer = is->wb ? is->wb->xfer : NULL;

	if (xfer && (xfer->nr_segs + segs > SMCFS_XFER_SEGS_MAX ||
		     xfer->bytes + bytes > SMCFS_WB_BYTES_MAX))
		issue_submit(is);
	if (!is->wb)
		is->wb = smcfs_wb_create(is->region, is->grant, is->inode->i_mapping);
}

/* What requests take on the way to the target. */
static const struct smcfs_price *issue_price(struct wb_issue *is)
{
	if (!is->priced)
		smcfs_ep_price(&is->grant->session->ep[SMCFS_CM_QP_BULK], &is->price);
	is->priced = true;
	return &is->price;
}

/* Whole, as the write protection of all of it was taken back. */
static void issue_page(struct smcfs_xfer *xfer, struct folio *folio, size_t valid)
{
	smcfs_grant_add(xfer, folio, 0, folio_pos(folio), valid);
	/* Its owner may go on writing without a fault: it is not clean before the pin is gone. */
	if (folio_maybe_dma_pinned(folio))
		filemap_dirty_folio(folio->mapping, folio);
}

/* The runs of pages that were written. */
static void issue_large(struct smcfs_xfer *xfer, struct folio *folio, struct smcfs_folio *sf,
			size_t valid)
{
	unsigned int first, last, nr = DIV_ROUND_UP(valid, PAGE_SIZE);
	bool pinned = folio_maybe_dma_pinned(folio);
	/* Of a single page it is enough to be told by its folio's flag. */
	bool held = pinned || (folio_test_large(folio) && smcfs_folio_held(folio));
	unsigned long flags;

	spin_lock_irqsave(&sf->lock, flags);
	for (first = find_first_bit(sf->dirty, nr); first < nr;
	     first = find_next_bit(sf->dirty, nr, last)) {
		size_t offset = (size_t)first << PAGE_SHIFT;

		last = find_next_zero_bit(sf->dirty, nr, first);
		smcfs_grant_add(xfer, folio, offset, folio_pos(folio) + offset,
				min_t(size_t, valid, (size_t)last << PAGE_SHIFT) - offset);
	}
	/* Its flag: by somebody who has let go of it, after his bits were set, and before now. */
	sf->kept = held || folio_test_dirty(folio) ? sf->kept | sf->dirty[0] : 0;
	sf->dirty[0] = pinned ? sf->kept : 0;
	spin_unlock_irqrestore(&sf->lock, flags);
	/* Its owner may go on writing without a fault: it is not clean before the pin is gone. */
	if (pinned)
		filemap_dirty_folio(folio->mapping, folio);
}

/* Takes @nr staging pages for issue_stage(), or none. */
static bool issue_stages_take(struct wb_issue *is, unsigned int nr)
{
	if (smcfs_stages_take(is->grant->session->stages, nr, &is->stages) == nr)
		return true;
	smcfs_stages_put(&is->stages);
	return false;
}

/* A staging page; what is at hand is sent before it is waited for. */
static struct smcfs_stage *issue_stage(struct wb_issue *is)
{
	struct smcfs_stages *stages = is->grant->session->stages;
	struct smcfs_stage *stage;

	if (list_empty(&is->stages) && !smcfs_stages_take(stages, 1, &is->stages)) {
		smcfs_wb_part(is->wb);
		smcfs_stages_wait(stages, &is->stages);
	}
	stage = list_first_entry(&is->stages, struct smcfs_stage, link);
	list_del(&stage->link);
	return stage;
}

/* Adds @length bytes at @offset of a staging page, for @pos of the region. */
static void issue_run(struct wb_issue *is, struct smcfs_stage *stage, size_t offset, u32 length,
		      u64 pos)
{
	while (length) {
		struct smcfs_xfer *xfer = smcfs_wb_xfer(is->wb, true);
		bool known = xfer->nr_segs && xfer->segs[xfer->nr_segs - 1].folio == stage->data;
		u32 added = smcfs_grant_add(xfer, stage->data, offset, pos, length);

		if (added && !known)
			atomic_inc(&stage->pending);
		offset += added;
		pos += added;
		length -= added;
		if (length)	/* it is full */
			smcfs_wb_part(is->wb);
	}
}

/* What changed in a page. */
static void issue_staged(struct wb_issue *is, struct smcfs_stage *stage, u64 pos,
			 unsigned int valid)
{
	unsigned int start, end;

	for (start = 0; smcfs_stage_run(stage, &start, &end) && start < valid; start = end)
		issue_run(is, stage, start, min(end, valid) - start, pos + start);
	if (is->wb->xfer && is->wb->xfer->bytes >= SMCFS_WB_BYTES_MAX)
		smcfs_wb_part(is->wb);
}

/*
 * Stages what changed in a page: in merge regions that and no more; in exclusive ones in lines, and
 * with those in between where that is cheaper. Return: there is something to be sent.
 */
static bool issue_changed(struct wb_issue *is, struct smcfs_stage *stage, struct folio *folio,
			  unsigned int index, bool held)
{
	bool hot, changed;
	u64 begin;

	if (smcfs_region_merges(is->region))
		return smcfs_twin_stage(stage, folio, index, held,
					READ_ONCE(is->region->merge_unit));
	hot = test_bit(index, smcfs_folio_private(folio)->hot);
	begin = ktime_get_ns();
	changed = smcfs_twin_stage(stage, folio, index, held, SMCFS_LINE_BYTES);
	if (changed)
		smcfs_lines_bridge(issue_price(is), stage);
	if (!stage->all)	/* else nobody asked what changed */
		smcfs_lines_sent(is->region, issue_price(is), changed ? stage->send : 0, hot,
				 ktime_get_ns() - begin);
	return changed;
}

/*
 * The pages that were written: what changed in each. Ends the folio's write-back if nothing did.
 * @marked: it was dirty itself, which is said of all its hot pages if it is said of one.
 */
static void issue_compared(struct wb_issue *is, struct folio *folio, struct smcfs_folio *sf,
			   size_t valid, bool marked)
{
	unsigned int i;
	bool held = smcfs_folio_held(folio);

	folio_get(folio);	/* of write-back; not before the references were counted */
	WRITE_ONCE(sf->inflight, 1);	/* and nobody else does, with the folio locked */
	if (is->sync)
		smcfs_stages_take(is->grant->session->stages,
				  bitmap_weight(sf->dirty, SMCFS_FOLIO_PAGES_MAX), &is->stages);
	for_each_set_bit(i, sf->dirty, SMCFS_FOLIO_PAGES_MAX) {
		size_t offset = (size_t)i << PAGE_SHIFT;
		struct smcfs_stage *stage;

		if (marked && !held && test_bit(i, sf->hot) && !test_bit(i, &sf->stored) &&
		    smcfs_twin_same(folio, i))
			continue;
		stage = issue_stage(is);
		if (!issue_changed(is, stage, folio, i, held)) {
			list_add(&stage->link, &is->stages);
			continue;
		}
		if (smcfs_stage_sampled(is->region))
			smcfs_stage_measure(stage, sf->pages[i].twin, valid - min(valid, offset),
					    &is->region->stats);
		if (offset < valid)
			issue_staged(is, stage, folio_pos(folio) + offset,
				     min_t(size_t, valid - offset, PAGE_SIZE));
		if (smcfs_twin_put_stage(folio->mapping, stage))
			list_add(&stage->link, &is->stages);
	}
	/* Its owner may go on writing without a fault: it is not clean before the pin is gone. */
	if (folio_maybe_dma_pinned(folio))
		filemap_dirty_folio(folio->mapping, folio);
	smcfs_twin_part_done(folio->mapping, folio, sf, false);
}

/* Whole pages, of exclusive regions, are about to be sent: some are looked at, now and then. */
static void issue_probes(struct wb_issue *is, struct folio *folio, struct smcfs_folio *sf)
{
	struct smcfs_ep *ep = &is->grant->session->ep[SMCFS_CM_QP_BULK];
	unsigned int first, end, nr = folio_nr_pages(folio);

	if (!sf) {
		smcfs_lines_look(is->region, ep, folio, 0, nr);
		return;
	}
	for_each_set_bitrange(first, end, sf->dirty, nr)
		smcfs_lines_look(is->region, ep, folio, first, end);
	/* Of those that stay writable no fault tells that they are written next. */
	if (smcfs_folio_hot(folio))
		smcfs_lines_probe(is->region, folio, find_first_bit(sf->hot, nr));
}

/* Exclusive: whole pages, from where they are. */
static void issue_whole(struct wb_issue *is, struct folio *folio, struct smcfs_folio *sf,
			size_t valid)
{
	struct smcfs_xfer *xfer = smcfs_wb_xfer(is->wb, false);
	u64 before = xfer->bytes;

	/* Its flag was set while another flush took the bits. */
	if (sf && bitmap_empty(sf->dirty, SMCFS_FOLIO_PAGES_MAX)) {
		spin_lock_irq(&sf->lock);
		smcfs_folio_dirty_locked(sf);
		spin_unlock_irq(&sf->lock);
	}
	issue_probes(is, folio, sf);
	if (sf)
		issue_large(xfer, folio, sf, valid);
	else
		issue_page(xfer, folio, valid);
	folio_get(folio);	/* of write-back; not before the references were counted */
	if (sf)
		WRITE_ONCE(sf->inflight, 1);
	if (WARN_ON_ONCE(xfer->bytes == before))	/* else it would fly for ever */
		smcfs_wb_end_folio(folio->mapping, folio, sf, 0);
}

/*
 * Takes the dirty flag, and with it all write permissions, unless it is hot and may stay so. What
 * was dirty gets the write-back flag, which also takes its tags; what was not needs no more than to
 * be counted.
 */
static bool issue_clean(struct wb_issue *is, struct folio *folio)
{
	bool dirty = folio_test_dirty(folio);

	/* Its stores are in dirty bits alone, which no other pages of it than hot ones have. */
	if (!dirty && smcfs_folio_hot(folio))
		return true;
	if (dirty)
		smcfs_folio_recall(folio);
	if (!smcfs_hot_stays(is->region, folio)) {
		if (!folio_clear_dirty_for_io(folio))
			return false;
		smcfs_hot_protected(is->region, folio);
	} else {
		/* As above, but that it counts as a write of this task that was cancelled. */
		folio_cancel_dirty(folio);
		smcfs_hot_keep(is->region, folio);
	}
	folio_start_writeback(folio);
	wbc_account_cgroup_owner(is->wbc, folio, folio_size(folio));
	return true;
}

/* @folio is locked, dirty or hot with dirty bits, and not flying. */
static int issue_folio(struct wb_issue *is, struct folio *folio)
{
	size_t valid = min_t(loff_t, folio_size(folio), i_size_read(is->inode) - folio_pos(folio));
	struct smcfs_folio *sf = smcfs_folio_prepare(folio);
	bool marked = folio_test_dirty(folio);
	bool compared;

	BUILD_BUG_ON((1 << SMCFS_FOLIO_ORDER_MAX) / 2 + 1 > SMCFS_XFER_SEGS_MAX);
	/* No memory for the bitmap: it stays dirty, a later round sends it. */
	if (IS_ERR(sf))
		return PTR_ERR(sf);
	compared = sf && sf->compared;
	/* Its ticket must be drawn before the folio is clean: see struct smcfs_wb. */
	if (compared)
		issue_room(is, 0, 0);
	else
		issue_room(is, DIV_ROUND_UP(folio_nr_pages(folio), 2) + 1, valid);
	/* Nobody waits: staging pages come back with the acknowledgements. */
	if (compared && !is->sync && !issue_stages_take(is, folio_nr_pages(folio)))
		return 1;
	if (!issue_clean(is, folio)) {
		smcfs_stages_put(&is->stages);
		return 0;
	}
	if (compared)
		issue_compared(is, folio, sf, valid, marked && folio_test_large(folio));
	else
		issue_whole(is, folio, sf, valid);
	smcfs_stages_put(&is->stages);
	return 0;
}

/*
 * Locks a folio that still wants write-back. The core's flusher is one for all nodes: it passes a
 * folio over whose holder may be waiting for a dead one.
 * Return: 0, -EAGAIN (nothing to do now), -EINTR.
 */
static int issue_lock(struct wb_issue *is, struct folio *folio)
{
	int err;

	for (;;) {
		if (!folio_trylock(folio)) {
			if (!is->sync)
				return -EAGAIN;
			issue_submit(is);
			folio_lock(folio);
		}
		if (folio->mapping != is->inode->i_mapping || !folio_test_dirty(folio))
			break;
		if (!smcfs_folio_flying(folio))
			return 0;
		if (!is->sync)
			break;
		folio_unlock(folio);
		issue_submit(is);
		err = smcfs_wb_wait_folio(is->region, folio);
		if (err)
			return err;
	}
	folio_unlock(folio);
	return -EAGAIN;
}

/* Stores to hot pages, also to those that just became hot, tell nobody: they are looked for. */
static void issue_look_later(struct smcfs_region *region)
{
	if (atomic_read(&region->nr_hot))
		smcfs_region_flush_later(region, READ_ONCE(region->flush_after_ms));
}

/*
 * Unlocks a folio that a batch holds. A large one is let go of before: who waits for the lock, to
 * store to it, must not take us for somebody who writes, too. Return: what the batch holds now.
 */
static struct folio *issue_unlock(struct folio *folio)
{
	bool large = folio_test_large(folio);

	if (large)
		folio_put(folio);	/* the page cache has it while it is locked */
	folio_unlock(folio);
	return large ? NULL : folio;
}

/* Lets go of what a batch still holds, which also brings the core's own batches to their lists. */
static void issue_batch_release(struct folio_batch *batch)
{
	unsigned int i, nr = 0;

	for (i = 0; i < folio_batch_count(batch); i++)
		if (batch->folios[i])
			batch->folios[nr++] = batch->folios[i];
	batch->nr = nr;
	folio_batch_release(batch);
	folio_batch_init(batch);
}

/* The next folio of a batch. Return: 0; 1: enough for this round; -EINTR, -ENOMEM. */
static int issue_next(struct wb_issue *is, struct folio **next)
{
	struct folio *folio = *next;
	int err = issue_lock(is, folio);

	if (!err) {
		err = issue_folio(is, folio);
		if (!err)	/* else the flusher would take it for progress */
			is->wbc->nr_to_write -= folio_nr_pages(folio);
		*next = issue_unlock(folio);
	}
	if (!is->sync && is->wbc->nr_to_write <= 0)
		return 1;
	return err == -EAGAIN ? 0 : err;
}

/**
 * smcfs_writepages() - ->writepages
 * @mapping: of a region.
 * @wbc: range and mode. WB_SYNC_NONE never waits for the network.
 *
 * Context: process.
 * Return: 0; -EIO when the region has no live session (WB_SYNC_ALL only); -EINTR when
 * killed; -ENOMEM.
 */
int smcfs_writepages(struct address_space *mapping, struct writeback_control *wbc)
{
	struct wb_issue is = {
		.wbc = wbc,
		.inode = mapping->host,
		.region = smcfs_i(mapping->host)->region,
		.sync = wbc->sync_mode == WB_SYNC_ALL,
	};
	pgoff_t index = wbc->range_cyclic ? 0 : wbc->range_start >> PAGE_SHIFT;
	pgoff_t end = wbc->range_cyclic ? ULONG_MAX : wbc->range_end >> PAGE_SHIFT;
	xa_mark_t tag = PAGECACHE_TAG_DIRTY;
	struct folio_batch batch;
	unsigned int i;
	int err = 0;

	INIT_LIST_HEAD(&is.stages);
	is.grant = smcfs_region_grant(is.region);
	if (IS_ERR(is.grant))
		return is.sync && mapping_tagged(mapping, PAGECACHE_TAG_DIRTY) ? -EIO : 0;
	if (is.sync || wbc->tagged_writepages) {
		tag = PAGECACHE_TAG_TOWRITE;
		tag_pages_for_writeback(mapping, index, end);
	}
	folio_batch_init(&batch);
	while (!err && filemap_get_folios_tag(mapping, &index, end, tag, &batch)) {
		for (i = 0; i < folio_batch_count(&batch) && !err; i++)
			err = issue_next(&is, &batch.folios[i]);
		issue_batch_release(&batch);
		cond_resched();
	}
	issue_submit(&is);
	smcfs_grant_put(is.grant);
	issue_look_later(is.region);
	return err < 0 ? err : 0;
}

/*
 * Locks a folio with hot pages, held; of one that is being fetched, or that was never written,
 * nothing is hot. Return: it has some.
 */
static bool issue_hot_lock(struct wb_issue *is, struct smcfs_hot_window *window,
			   struct folio *folio, unsigned int at)
{
	if (!folio_trylock(folio)) {
		if (!folio_test_private(folio) || !folio_test_uptodate(folio))
			return false;
		issue_submit(is);
		folio_lock(folio);
	}
	if (folio->mapping == is->inode->i_mapping &&
	    smcfs_hot_check(is->region, window, folio, at))
		return true;
	folio_unlock(folio);
	return false;
}

/* A folio that was harvested and has dirty pages by that. */
static void issue_hot_folio(struct wb_issue *is, struct folio *folio)
{
	/* What flies already is sent by what follows, which waits for it. */
	if (IS_ERR(is->grant) || smcfs_folio_flying(folio) || issue_folio(is, folio))
		smcfs_folio_set_dirty(is->inode->i_mapping, folio);
}

/*
 * Folios of one window that adjoin, with hot pages, locked: what was stored to is sent, or dirty.
 * Unlocked here, by issue_unlock(); those that nobody stored to before anything is waited for.
 */
static void issue_hot_run(struct wb_issue *is, struct smcfs_hot_window *window,
			  struct folio **folios, unsigned int nr)
{
	DECLARE_BITMAP(stored, SMCFS_HOT_WINDOW);
	DECLARE_BITMAP(owed, SMCFS_HOT_WINDOW);	/* of folios, of which there are fewer than pages */
	pgoff_t first, end;
	bool merges = smcfs_region_merges(is->region);
	unsigned int i;
	bool all;

	if (!nr)
		return;
	first = folios[0]->index;
	end = folio_next_index(folios[nr - 1]);
	bitmap_zero(stored, SMCFS_HOT_WINDOW);
	bitmap_zero(owed, SMCFS_HOT_WINDOW);
	all = !smcfs_hot_harvest(is->inode->i_mapping, window->start, first, end - first, stored,
				 false) ||
	      !smcfs_hot_allowed(is->region);
	for (i = 0; i < nr; i++) {
		bool taken = smcfs_hot_take(window, folios[i], stored);

		is->stored |= taken;
		if (all || (!merges && smcfs_lines_misfit(is->region, folios[i]))) {
			smcfs_hot_cool(is->region, window, folios[i]);
			if (taken)
				smcfs_folio_set_dirty(is->inode->i_mapping, folios[i]);
			folios[i] = issue_unlock(folios[i]);
			continue;
		}
		smcfs_hot_rest(is->region, window, folios[i], stored);
		if (taken)
			__set_bit(i, owed);
		else
			folios[i] = issue_unlock(folios[i]);
	}
	for_each_set_bit(i, owed, nr) {
		issue_hot_folio(is, folios[i]);
		folios[i] = issue_unlock(folios[i]);
	}
}

/* Pages from @at on, hot as far as is known, were found to be in @batch. Return: where to go on. */
static unsigned int issue_hot_batch(struct wb_issue *is, struct smcfs_hot_window *window,
				    unsigned int at, struct folio_batch *batch)
{
	struct address_space *mapping = is->inode->i_mapping;
	pgoff_t next = window->start + at;
	unsigned int i, first = 0, nr = 0;	/* a run of those that are locked */

	for (i = 0; i < folio_batch_count(batch); i++) {
		struct folio *folio = batch->folios[i];
		pgoff_t here = max(folio->index, next);
		bool locked;

		if (here > next)
			smcfs_hot_absent(mapping, window, next, here);
		next = folio_next_index(folio);
		locked = issue_hot_lock(is, window, folio, here - window->start);
		if (nr && (!locked || folio->index != folio_next_index(batch->folios[i - 1]))) {
			issue_hot_run(is, window, &batch->folios[first], nr);
			nr = 0;
		}
		if (locked && !nr++)
			first = i;
	}
	issue_hot_run(is, window, &batch->folios[first], nr);
	return next - window->start;
}

/* Pages @at to @to of a window. Return: 0 or -EINTR. */
static int issue_window(struct wb_issue *is, struct smcfs_hot_window *window, unsigned int at,
			unsigned int to)
{
	struct address_space *mapping = is->inode->i_mapping;
	struct folio_batch batch;

	folio_batch_init(&batch);
	while ((at = find_next_bit(window->hot, to + 1, at)) <= to) {
		/* Not @at itself, whose bit a fault may have cleared since. */
		unsigned int last = find_next_zero_bit(window->hot, to + 1, at + 1) - 1;
		pgoff_t next = window->start + at;

		if (filemap_get_folios(mapping, &next, window->start + last, &batch)) {
			at = issue_hot_batch(is, window, at, &batch);
			issue_batch_release(&batch);
			if (fatal_signal_pending(current))
				return -EINTR;
			cond_resched();
		} else {
			smcfs_hot_absent(mapping, window, window->start + at,
					 window->start + last + 1);
			at = last + 1;
		}
	}
	return 0;
}

/**
 * smcfs_hot_flush() - send what was stored to hot pages
 * @inode: of a region.
 * @start: first byte.
 * @end: last byte, inclusive.
 *
 * What cannot be sent, without a session, is dirty afterwards. Nobody waits for acknowledgements,
 * but tickets are drawn.
 * Context: process, killable.
 * Return: 0 or -EINTR.
 */
int smcfs_hot_flush(struct inode *inode, loff_t start, loff_t end)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	struct writeback_control wbc = { .sync_mode = WB_SYNC_ALL };
	struct wb_issue is = { .wbc = &wbc, .inode = inode, .region = region, .sync = true };
	pgoff_t index = start >> PAGE_SHIFT, last = end >> PAGE_SHIFT;
	struct smcfs_hot_window *window;
	int err = 0;

	smcfs_hot_count_flush(region, index, last);
	/* Pairs with WRITE_ONCE() of hot_set(). */
	if (!READ_ONCE(region->hot_used))
		return 0;
	INIT_LIST_HEAD(&is.stages);
	is.grant = smcfs_region_grant(region);
	atomic_inc(&region->hot_flushing);
	while (!err && (window = smcfs_hot_next(region, &index, last))) {
		err = issue_window(&is, window, index - window->start,
				   min(last - window->start, (pgoff_t)SMCFS_HOT_WINDOW - 1));
		index = window->start + SMCFS_HOT_WINDOW;
	}
	issue_submit(&is);
	/* Stores by a fault tell the core, which sets it. */
	if (is.stored)
		smcfs_compat_inode_modified(inode);
	/* What was harvested has its ticket, or is dirty; pairs with smcfs_inode_clean(). */
	smp_mb__before_atomic();
	atomic_dec(&region->hot_flushing);
	if (!IS_ERR(is.grant))
		smcfs_grant_put(is.grant);
	issue_look_later(region);
	return err;
}

/**
 * smcfs_write_folio() - send one folio and wait
 * @inode: of a region.
 * @folio: locked, mapped nowhere, not flying, held by a batch of the caller and by nobody else that
 * it knows of.
 *
 * The folio stays locked, so nobody can store to it by a new mapping meanwhile.
 * Context: process, killable.
 * Return: 0: clean; -EAGAIN: dirty again; -EIO: no session, or the
 * write failed; -EINTR.
 */
int smcfs_write_folio(struct inode *inode, struct folio *folio)
{
	struct writeback_control wbc = { .sync_mode = WB_SYNC_ALL };
	struct wb_issue is = {
		.wbc = &wbc,
		.inode = inode,
		.region = smcfs_i(inode)->region,
		.sync = true,
	};
	int err;

	INIT_LIST_HEAD(&is.stages);
	/* Unmapped: what was hot is as any other. */
	smcfs_hot_forget(folio);
	if (!folio_test_dirty(folio))
		return 0;
	is.grant = smcfs_region_grant(is.region);
	if (IS_ERR(is.grant))
		return -EIO;
	err = issue_folio(&is, folio);
	issue_submit(&is);
	smcfs_grant_put(is.grant);
	if (err)
		return err;
	if (folio_wait_writeback_killable(folio))
		return -EINTR;
	return folio_test_dirty(folio) ? -EAGAIN : 0;
}
