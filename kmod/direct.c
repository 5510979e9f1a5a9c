// SPDX-License-Identifier: GPL-2.0
/*
 * Around the shadow pages and past them: acquire and O_DIRECT.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: process; all waits for the network are killable.
 * Locking: the folio lock for dropping and for updating a shadow page. Direct writes hold the inode
 *	lock.
 * Lifetime: a direct request owns its bounce pages; it is counted by the caller and by the
 *	transfer, so a killed caller may leave while the NIC still uses them.
 */
#include <linux/cpumask.h>
#include <linux/pagevec.h>
#include <linux/percpu.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <linux/workqueue.h>

#include "smcfs.h"
#include "trace.h"

/* Who holds a page is waited for so long; by open, which may show an older page, less. */
#define SMCFS_DROP_MS		2000
#define SMCFS_DROP_CLEAN_MS	100
/* So often without sending anything, for open. */
#define SMCFS_DROP_TRIES_DRY	2
/* One direct transfer: so many bounce pages at most. */
#define SMCFS_DIRECT_PAGES	32

/*
 * May somebody who holds a reference yet write to this folio? It is locked, clean and unmapped. A
 * fresh page has one more while it is in some CPU's list of pages on their way to the LRU, which
 * is as long as its LRU flag is clear: that is set before the list's reference goes. (Whoever
 * isolates a page has a reference before the flag falls.)
 */
static bool drop_is_held(struct folio *folio)
{
	/* The page cache, the bitmap, our batch. */
	int own = folio_nr_pages(folio) + !!folio_test_private(folio) + 1;
	bool listed = !folio_test_lru(folio);
	int refs;

	smp_rmb();	/* pairs with the barriers of the LRU lock, here and below */
	refs = folio_ref_count(folio);
	smp_rmb();	/* see above */
	return refs > own + (listed && !folio_test_lru(folio));
}

/*
 * @folio is locked, and held by the caller's batch. @send: stores that came since the flush are
 * sent where they keep what others changed from being seen.
 * Return: 0: it is out of the page cache, or need not be; -EAGAIN; -EINTR.
 */
static int drop_folio(struct address_space *mapping, struct folio *folio, bool send)
{
	struct smcfs_region *region = smcfs_i(mapping->host)->region;
	long nr = folio_nr_pages(folio);
	int err;

	if (folio->mapping != mapping)
		return 0;
	if (smcfs_folio_flying(folio))
		return -EAGAIN;
	/* Ours to keep, as below: spare its next store a fault. */
	if (!send && folio_test_dirty(folio))
		return folio_test_large(folio) || folio_maybe_dma_pinned(folio) ? -EAGAIN : 0;
	if (folio_mapped(folio))
		unmap_mapping_pages(mapping, folio->index, nr, false);
	if (folio_test_dirty(folio)) {
		/*
		 * An exclusive page with stores of ours is ours to keep. Of a large folio only some
		 * pages may be, and of a page of a merge region some units. A pinned page stays
		 * dirty after any flush: what it holds is as old as the pin.
		 */
		if (!folio_test_large(folio) && !folio_maybe_dma_pinned(folio) &&
		    (!send || !smcfs_region_merges(region)))
			return 0;
		if (!send)
			return -EAGAIN;
		err = smcfs_write_folio(mapping->host, folio);
		if (err)
			return err == -EINTR ? err : -EAGAIN;
	}
	if (drop_is_held(folio))
		return -EAGAIN;
	generic_error_remove_folio(mapping, folio);
	return 0;
}

enum drop_mode {
	DROP_CLEAN,	/* sends only what keeps clean pages from being dropped */
	DROP_FLUSH,	/* sends all of the range first */
	DROP_KILLED,	/* sends nothing; goes on although the caller was killed */
	DROP_STALE,	/* sends nothing, and waits for nobody */
};

/*
 * As drop_folio(), not locked.
 * Return: 0; 1: it stays, to be tried again by the next round; -EINTR, but for DROP_KILLED.
 */
static int drop_one(struct address_space *mapping, struct folio *folio, enum drop_mode mode,
		    bool send)
{
	int err;

	switch (mode) {
	case DROP_STALE:
		if (!folio_trylock(folio))
			return 1;
		break;
	case DROP_KILLED:
		folio_lock(folio);
		break;
	default:
		if (folio_lock_killable(folio))
			return -EINTR;
	}
	err = drop_folio(mapping, folio, send);
	folio_unlock(folio);
	return err == -EAGAIN ? 1 : err;
}

/* Is @folio, which is not locked, flying? Perhaps no more; one without the flag may escape. */
static bool drop_seen_flying(struct folio *folio)
{
	bool flying = folio_test_writeback(folio);

	if (!flying && folio_test_private(folio) && folio_trylock(folio)) {
		flying = smcfs_folio_flying(folio);
		folio_unlock(folio);
	}
	return flying;
}

/*
 * As drop_one() of what has to go, of a folio that was seen flying. Who publishes into it in a loop
 * would not leave it to us for a moment: he has to wait until it is dropped.
 */
static int drop_flying(struct address_space *mapping, struct folio *folio)
{
	struct mutex *words = smcfs_word_lock(smcfs_i(mapping->host)->region, folio->index);
	int err = -EINTR;

	if (mutex_lock_killable(words))
		return -EINTR;
	if (!smcfs_wb_wait_folio(smcfs_i(mapping->host)->region, folio))
		err = drop_one(mapping, folio, DROP_FLUSH, true);
	mutex_unlock(words);
	return err;
}

/*
 * @index, @end: pages; on return those between the first and the last that are in the way.
 * Return: number of folios that could not be dropped; -EINTR.
 */
static long drop_range(struct address_space *mapping, pgoff_t *index, pgoff_t *end,
		       enum drop_mode mode, bool send)
{
	pgoff_t next = *index, last = *end;
	struct folio_batch batch;
	unsigned int i;
	long busy = 0;
	int err = 0;

	folio_batch_init(&batch);
	while (!err && filemap_get_folios(mapping, &next, last, &batch)) {
		for (i = 0; i < folio_batch_count(&batch) && !err; i++) {
			struct folio *folio = batch.folios[i];

			if (send && drop_seen_flying(folio))
				err = drop_flying(mapping, folio);
			else
				err = drop_one(mapping, folio, mode, send);
			if (err > 0) {
				if (!busy++)
					*index = folio->index;
				*end = folio_next_index(folio) - 1;
				err = 0;
			}
		}
		/* The release of a fresh batch empties this CPU's lists of pages for the LRU. */
		folio_batch_release(&batch);
		folio_batch_init(&batch);
		cond_resched();
	}
	return err ? -EINTR : busy;
}

static DEFINE_PER_CPU(struct work_struct, drop_drain_work);

static void drop_drain(struct work_struct *work)
{
	struct folio_batch batch;

	folio_batch_init(&batch);
	__folio_batch_release(&batch);
}

void smcfs_drop_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		INIT_WORK(per_cpu_ptr(&drop_drain_work, cpu), drop_drain);
}

void smcfs_drop_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		cancel_work_sync(per_cpu_ptr(&drop_drain_work, cpu));
}

/*
 * Most references are short: the list of another CPU, a lookup, a batch of the flusher, a process
 * that exits. Nothing tells when they end, and their holder may be off its CPU for a while: they
 * are waited for by time, @limit_ms from the first round on, and not by count.
 * Return: 0; -EBUSY: some are held for long; -EIO, only DROP_FLUSH; -EINTR.
 */
static int drop(struct inode *inode, loff_t start, loff_t end, enum drop_mode mode,
		unsigned int limit_ms)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	unsigned long deadline = 0;
	pgoff_t first = start >> PAGE_SHIFT, last = end >> PAGE_SHIFT;
	bool killable = mode != DROP_KILLED;
	int cpu, err, tries;
	long busy, delay;
	bool send;

	for (tries = 0; ; tries++) {
		/* Clean pages may share a large folio with dirty ones: these have to go first. */
		send = mode == DROP_FLUSH || (mode == DROP_CLEAN && tries >= SMCFS_DROP_TRIES_DRY);
		if (send) {
			err = smcfs_flush(inode, (loff_t)first << PAGE_SHIFT,
					  ((loff_t)last << PAGE_SHIFT) | (PAGE_SIZE - 1));
			if (err && (mode == DROP_FLUSH || err == -EINTR))
				return err;
		}
		/* One at a time: two would take each other's references for those of a writer. */
		if (killable && mutex_lock_killable(&region->drop_lock))
			return -EINTR;
		busy = drop_range(inode->i_mapping, &first, &last, mode, send);
		if (killable)
			mutex_unlock(&region->drop_lock);
		if (busy <= 0)
			return busy;
		if (!tries) {	/* this CPU's lists are empty now */
			deadline = jiffies + msecs_to_jiffies(limit_ms);
			continue;
		}
		if (tries > SMCFS_DROP_TRIES_DRY && time_after_eq(jiffies, deadline))
			return -EBUSY;
		for_each_online_cpu(cpu)
			schedule_work_on(cpu, per_cpu_ptr(&drop_drain_work, cpu));
		delay = min_t(long, 1L << min(tries - 1, 16), max(HZ / 16, 1));
		if (killable)
			schedule_timeout_killable(delay);
		else
			schedule_timeout_uninterruptible(delay);
		if (killable && fatal_signal_pending(current))
			return -EINTR;
	}
}

int smcfs_drop_clean(struct inode *inode, loff_t start, loff_t end)
{
	if (mapping_empty(inode->i_mapping))
		return 0;
	return drop(inode, start, end, DROP_CLEAN, SMCFS_DROP_CLEAN_MS);
}

void smcfs_drop_stale(struct inode *inode)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	pgoff_t first = 0, last = ULONG_MAX;

	/* Else somebody drops already; and who holds a page now has just got it, or is using it. */
	if (!mutex_trylock(&region->drop_lock))
		return;
	drop_range(inode->i_mapping, &first, &last, DROP_STALE, false);
	mutex_unlock(&region->drop_lock);
}

/**
 * smcfs_drop_all() - take all shadow pages out of the cache
 * @inode: of a region that nobody has open for writing.
 *
 * Context: process, killable.
 * Return: 0; -EIO: some are dirty, and stay; -EBUSY: some are held for long;
 * -EINTR.
 */
int smcfs_drop_all(struct inode *inode)
{
	return drop(inode, 0, LLONG_MAX, DROP_FLUSH, SMCFS_DROP_MS);
}

/**
 * smcfs_acquire() - see what the target's memory holds now
 * @file: of a region.
 * @start: first byte; rounded down to its page.
 * @end: last byte, inclusive; rounded up to its page.
 *
 * Stores of this node are flushed first; then every shadow page of the range is dropped, mapped or
 * not, so that the next load fetches it.
 * Context: process, killable.
 * Return: 0; -EIO: no live session, or the flush failed and all is still dirty; -EBUSY: pages are
 * held for long (O_DIRECT into the mapping, a pipe); -EINTR.
 */
int smcfs_acquire(struct file *file, loff_t start, loff_t end)
{
	struct smcfs_region *region = smcfs_i(file_inode(file))->region;
	int err = -EIO;

	/* With no session the pages could not be fetched again: better old ones than none. */
	if (READ_ONCE(region->state) == SMCFS_REGION_ACTIVE)
		err = drop(file_inode(file), start, end, DROP_FLUSH, SMCFS_DROP_MS);
	smcfs_stat_add(&region->stats, SMCFS_STAT_ACQUIRES, 1);
	trace_smcfs_acquire(region->id, start, end, err);
	return err;
}

/* ------------------------------------------------------------------ O_DIRECT */

struct smcfs_direct {
	struct kref		ref;
	struct completion	done;
	int			err;
	unsigned int		nr_pages;
	struct page		*pages[SMCFS_DIRECT_PAGES];
};

static struct smcfs_direct *direct_create(size_t length)
{
	unsigned int nr = DIV_ROUND_UP(length, PAGE_SIZE);
	struct smcfs_direct *direct = kzalloc(sizeof(*direct), GFP_KERNEL);

	if (!direct)
		return NULL;
	kref_init(&direct->ref);
	init_completion(&direct->done);
	for (; direct->nr_pages < nr; direct->nr_pages++) {
		direct->pages[direct->nr_pages] = alloc_page(GFP_KERNEL);
		if (!direct->pages[direct->nr_pages])
			goto err_free;
	}
	return direct;

err_free:
	while (direct->nr_pages--)
		__free_page(direct->pages[direct->nr_pages]);
	kfree(direct);
	return NULL;
}

static void direct_release(struct kref *ref)
{
	struct smcfs_direct *direct = container_of(ref, struct smcfs_direct, ref);
	unsigned int i;

	for (i = 0; i < direct->nr_pages; i++)
		__free_page(direct->pages[i]);
	kfree(direct);
}

static void direct_done(struct smcfs_xfer *xfer, int err)
{
	struct smcfs_direct *direct = xfer->owner;

	direct->err = err;
	smcfs_xfer_free(xfer);
	complete(&direct->done);
	kref_put(&direct->ref, direct_release);
}

/* Moves @length bytes at @pos between bounce pages and target. 0, -EIO, -EINTR. */
static int direct_xfer(struct smcfs_region *region, struct smcfs_direct *direct,
		       enum smcfs_xfer_op op, loff_t pos, size_t length)
{
	struct smcfs_grant *grant = smcfs_region_grant(region);
	size_t sent = 0, part, added;
	struct smcfs_xfer *xfer;
	int err;

	if (IS_ERR(grant))
		return PTR_ERR(grant);
	while (sent < length) {
		xfer = smcfs_xfer_alloc(grant, op, GFP_NOFS);
		xfer->done = direct_done;
		xfer->owner = direct;
		do {
			part = min_t(size_t, length - sent, PAGE_SIZE - offset_in_page(sent));
			added = smcfs_grant_add(xfer, page_folio(direct->pages[sent >> PAGE_SHIFT]),
						offset_in_page(sent), pos + sent, part);
			sent += added;
		} while (added == part && sent < length);
		kref_get(&direct->ref);
		reinit_completion(&direct->done);
		smcfs_xfer_submit(xfer);
		err = wait_for_completion_killable(&direct->done);
		if (err)
			break;
		err = direct->err;
		if (err)
			break;
	}
	smcfs_grant_put(grant);
	if (err == -ERESTARTSYS)
		return -EINTR;
	smcfs_stat_add(&region->stats, SMCFS_STAT_DIRECT_BYTES, sent);
	return err ? -EIO : 0;
}

static ssize_t direct_copy_out(struct smcfs_direct *direct, size_t length, struct iov_iter *to)
{
	size_t copied = 0, part, n;

	while (copied < length) {
		part = min_t(size_t, length - copied, PAGE_SIZE);
		n = copy_page_to_iter(direct->pages[copied >> PAGE_SHIFT], 0, part, to);
		copied += n;
		if (n < part)
			break;
	}
	return copied;
}

static size_t direct_copy_in(struct smcfs_direct *direct, size_t length, struct iov_iter *from)
{
	size_t copied = 0, part, n;

	while (copied < length) {
		part = min_t(size_t, length - copied, PAGE_SIZE);
		n = copy_page_from_iter(direct->pages[copied >> PAGE_SHIFT], 0, part, from);
		copied += n;
		if (n < part)
			break;
	}
	return copied;
}

/**
 * smcfs_direct_read() - read(2) with O_DIRECT: from the target, not from shadow pages
 * @iocb: position; advanced.
 * @to: destination; any alignment.
 *
 * What is dirty in the range is flushed first.
 * Context: process, killable.
 * Return: bytes, 0 at the end, -EIO, -EINTR, -EFAULT, -ENOMEM.
 */
ssize_t smcfs_direct_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	struct smcfs_region *region = smcfs_i(inode)->region;
	ssize_t total = 0, n;
	int err = 0;

	while (iov_iter_count(to) && iocb->ki_pos < i_size_read(inode)) {
		size_t length = min3((u64)iov_iter_count(to),
				     (u64)(i_size_read(inode) - iocb->ki_pos),
				     (u64)SMCFS_DIRECT_PAGES << PAGE_SHIFT);
		struct smcfs_direct *direct;

		err = smcfs_flush(inode, iocb->ki_pos, iocb->ki_pos + length - 1);
		if (err)
			break;
		direct = direct_create(length);
		if (!direct) {
			err = -ENOMEM;
			break;
		}
		err = direct_xfer(region, direct, SMCFS_XFER_READ, iocb->ki_pos, length);
		n = err ? 0 : direct_copy_out(direct, length, to);
		kref_put(&direct->ref, direct_release);
		iocb->ki_pos += n;
		total += n;
		if (!err && n < (ssize_t)length)
			err = -EFAULT;
		if (err)
			break;
	}
	return total ?: err;
}

/* @folio is held, not locked. See direct_update_shadow(). */
static int direct_update_folio(struct address_space *mapping, struct folio *folio, loff_t pos,
			       const void *from, size_t length, bool sent)
{
	size_t offset = offset_in_folio(folio, pos);
	int err = 0;

	for (;;) {
		if (folio_lock_killable(folio))
			return -EINTR;
		/*
		 * A flight that fails makes the page dirty again, and nobody knew these bytes for
		 * ours. Faults must not wait for it behind us.
		 */
		if (sent || !smcfs_folio_flying(folio))
			break;
		folio_unlock(folio);
		if (smcfs_wb_wait_folio(smcfs_i(mapping->host)->region, folio))
			return -EINTR;
	}
	if (folio->mapping == mapping && folio_test_uptodate(folio)) {
		if (sent)
			smcfs_twin_follow(folio, offset, from, length);
		else
			err = smcfs_twin_lead(folio, offset, from, length);
	}
	folio_unlock(folio);
	return err;
}

/*
 * Makes shadow pages that are present hold the bytes. @sent: the target has them, too: until then
 * they are changes like any other. Return: 0, -EINTR or -ENOMEM.
 */
static int direct_update_shadow(struct inode *inode, struct smcfs_direct *direct, loff_t pos,
				size_t length, bool sent)
{
	struct address_space *mapping = inode->i_mapping;
	struct folio *folio;
	size_t done = 0, part;
	int err = 0;

	while (done < length && !err) {
		part = min_t(size_t, length - done, PAGE_SIZE - offset_in_page(pos + done));
		/* A bounce page ends sooner than a shadow page when @pos is not aligned. */
		part = min_t(size_t, part, PAGE_SIZE - offset_in_page(done));
		folio = __filemap_get_folio(mapping, (pos + done) >> PAGE_SHIFT, 0, 0);
		if (!IS_ERR(folio)) {
			u8 *from = page_address(direct->pages[done >> PAGE_SHIFT]);

			err = direct_update_folio(mapping, folio, pos + done,
						  from + offset_in_page(done), part, sent);
			folio_put(folio);
		}
		done += part;
	}
	return err;
}

/*
 * Shadow pages of the range may hold bytes that were not sent, and are clean: they go. Who was
 * killed does so too, and waits for folio locks, which fetches give back by their deadline.
 */
static void direct_forget(struct inode *inode, loff_t pos, size_t length)
{
	loff_t end = pos + length - 1;

	if (drop(inode, pos, end, DROP_CLEAN, SMCFS_DROP_MS) == -EINTR)
		drop(inode, pos, end, DROP_KILLED, SMCFS_DROP_CLEAN_MS);
}

/**
 * smcfs_direct_write() - write(2) with O_DIRECT: acknowledged by the target when it returns
 * @iocb: position; advanced. The inode lock is held.
 * @from: source, cut to the region; any alignment.
 *
 * Shadow pages that are present get the bytes first and are flushed, if dirty, before the bytes
 * go out on the same QP: whatever was on its way before is overwritten.
 * Context: process, killable.
 * Return: bytes, -EIO, -EINTR, -EFAULT, -ENOMEM.
 */
ssize_t smcfs_direct_write(struct kiocb *iocb, struct iov_iter *from)
{
	struct inode *inode = file_inode(iocb->ki_filp);
	struct smcfs_region *region = smcfs_i(inode)->region;
	ssize_t total = 0;
	int err = 0;

	while (iov_iter_count(from) && !err) {
		size_t length = min_t(u64, iov_iter_count(from),
				      (u64)SMCFS_DIRECT_PAGES << PAGE_SHIFT);
		struct smcfs_direct *direct = direct_create(length);
		size_t n;

		if (!direct) {
			err = -ENOMEM;
			break;
		}
		n = direct_copy_in(direct, length, from);
		if (n)
			err = direct_update_shadow(inode, direct, iocb->ki_pos, n, false);
		if (n && !err)
			err = smcfs_flush(inode, iocb->ki_pos, iocb->ki_pos + n - 1);
		if (n && !err)
			err = direct_xfer(region, direct, SMCFS_XFER_WRITE, iocb->ki_pos, n);
		/* A fetch that passed the write brought old bytes; a failed one left new ones. */
		if (n && !err)
			err = direct_update_shadow(inode, direct, iocb->ki_pos, n, true);
		if (n && err)
			direct_forget(inode, iocb->ki_pos, n);
		kref_put(&direct->ref, direct_release);
		if (err)
			break;
		iocb->ki_pos += n;
		total += n;
		if (n < length)
			err = -EFAULT;
	}
	return total ?: err;
}
