// SPDX-License-Identifier: GPL-2.0
/*
 * Hot pages: written so often that they stay writable, and their stores are found in the page
 * tables. Copyright (c) 2026 The SMC authors
 *
 * A store to a page that was sent costs a fault, and sending takes the write permission back: more
 * than the sending itself when a program writes the same pages over and over. A page that several
 * flushes sent stays writable from its next fault on. A flush then *harvests*: it takes the dirty
 * bits of page-table entries, a window of pages at a time, and sends the pages that had one.
 *
 *	page_mkwrite of a page that flushes sent before: hot bit, dirty bit
 *	flush, with region->harvest:
 *	    ticket, then harvest a window --> stored bits --> each folio, locked: dirty bits --> sent
 *	cool (idle, core's write-back, acquire, hot=off, last close): as a page that is not hot:
 *	    folio_clear_dirty_for_io() takes the write permission back and says of stores by
 *	    ->dirty_folio, which makes all hot pages of the folio dirty
 *
 * Why no store is lost:
 * - A hot folio keeps its dirty flag and its tag, so nobody takes it for clean: not reclaim, not
 *   DONTNEED after an munmap, which carries the entry's dirty bit to the folio (->dirty_folio).
 * - Between a harvest and the sending the stores are known to the flush alone. Whoever could
 *   take the folio for clean meanwhile, by cooling it, needs region->harvest first, as does another
 *   barrier; what a flush leaves unsent it makes dirty bits of before it lets go of that.
 * - The ticket is drawn before the harvest, so a barrier that finds nothing to harvest waits for
 * it. - Whoever writes by reference (GUP) marks the folio dirty afterwards, see above; a pinned
 * folio is
 *   taken for stored to by every flush.
 *
 * Contexts: process; smcfs_hot_landed() in the bulk CQ's work queue.
 * Locking: region->harvest > folio lock > smcfs_folio.lock. Under a folio lock region->harvest is
 *	only tried.
 * Lifetime: what is on its way holds a reference to the folio, and ->invalidate_folio waits for it.
 * Failure: the pages are dirty again. Without CONFIG_MAPPING_DIRTY_HELPERS nothing is ever hot.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/wait_bit.h>

#include "smcfs.h"

/* A page is hot from the fault on that follows so many flushes of it. */
#define SMCFS_HOT_AFTER		2
/* A folio cools when so many flushes found no store to it: 5 s if only flush_after_ms brings them. */
#define SMCFS_HOT_IDLE		50
/* Pages of a region: they count as dirty all the time, and every flush looks at each. */
#define SMCFS_HOT_MAX		16384

bool smcfs_hot_possible(void)
{
	return IS_ENABLED(CONFIG_MAPPING_DIRTY_HELPERS);
}

/* Context: any, @folio locked. */
bool smcfs_folio_hot(struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);

	return sf && !bitmap_empty(sf->hot, sf->nr_pages);
}

/* A page becomes writable: is it one to stay so? The folio is locked. */
void smcfs_hot_touch(struct smcfs_region *region, struct smcfs_folio *sf, unsigned int index)
{
	unsigned long flags;

	if (!smcfs_hot_possible() || !READ_ONCE(region->hot))
		return;
	spin_lock_irqsave(&sf->lock, flags);
	if (!test_bit(index, sf->hot) && atomic_read(&region->nr_hot) < SMCFS_HOT_MAX &&
	    (sf->pages[index].heat >= SMCFS_HOT_AFTER || !bitmap_empty(sf->hot, sf->nr_pages))) {
		set_bit(index, sf->hot);
		sf->pages[index].idle = 0;
		atomic_inc(&region->nr_hot);
	}
	spin_unlock_irqrestore(&sf->lock, flags);
}

/**
 * smcfs_hot_harvest() - take the stores of a window out of the page tables
 * @mapping: of a region; the caller has region->harvest and a ticket.
 * @window: to be filled; has no pages.
 * @start: its first page.
 * @end: the last page it may have.
 *
 * Context: process.
 */
void smcfs_hot_harvest(struct address_space *mapping, struct smcfs_window *window, pgoff_t start,
		       pgoff_t end)
{
	window->start = start;
	window->nr = min_t(pgoff_t, end - start, SMCFS_HOT_WINDOW - 1) + 1;
	bitmap_zero(window->stored, SMCFS_HOT_WINDOW);
#ifdef CONFIG_MAPPING_DIRTY_HELPERS
	{
		pgoff_t first = 0, last = 0;

		clean_record_shared_mapping_range(mapping, start, window->nr, start,
						  window->stored, &first, &last);
	}
#endif
}

/* The pages of @folio in the window; the window's bits of them are taken. */
static unsigned long window_take(struct smcfs_window *window, struct folio *folio)
{
	unsigned int i, nr = folio_nr_pages(folio);
	unsigned long taken = 0;

	for (i = 0; i < nr; i++) {
		pgoff_t at = folio->index + i - window->start;

		if (at < window->nr && __test_and_clear_bit(at, window->stored))
			taken |= BIT(i);
	}
	return taken;
}

/* What is not hot is found by its own marks. @folio is locked. */
void smcfs_hot_forget(struct smcfs_window *window, struct folio *folio)
{
	if (window->nr)
		window_take(window, folio);
}

/**
 * smcfs_hot_collect() - which pages of a hot folio have to be sent
 * @region: of it.
 * @window: that covers it.
 * @folio: hot, locked.
 * @idle: set if nobody stored to it for long.
 *
 * The dirty bits are handed over: the caller sends the pages. Context: process.
 * Return: one bit a page.
 */
unsigned long smcfs_hot_collect(struct smcfs_region *region, struct smcfs_window *window,
				struct folio *folio, bool *idle)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned long flags, todo = window_take(window, folio);
	unsigned int i;
	int more;

	BUILD_BUG_ON(SMCFS_FOLIO_PAGES_MAX > BITS_PER_LONG);
	*idle = true;
	spin_lock_irqsave(&sf->lock, flags);
	todo |= sf->dirty[0];
	if (folio_maybe_dma_pinned(folio))
		todo |= sf->hot[0];
	sf->dirty[0] = 0;
	/* They stay writable without a fault of their own, whoever made them so. */
	more = hweight_long(todo & ~sf->hot[0]);
	sf->hot[0] |= todo;
	for_each_set_bit(i, sf->hot, sf->nr_pages) {
		struct smcfs_page *page = &sf->pages[i];

		page->idle = todo & BIT(i) ? 0 : min(page->idle + 1, U8_MAX);
		*idle &= page->idle > SMCFS_HOT_IDLE;
	}
	spin_unlock_irqrestore(&sf->lock, flags);
	atomic_add(more, &region->nr_hot);
	return todo;
}

/* Stores that were harvested and are not going to be sent by this flush: dirty bits. */
void smcfs_hot_give_back(struct address_space *mapping, struct smcfs_window *window)
{
	unsigned int at;

	for_each_set_bit(at, window->stored, window->nr) {
		struct folio *folio = __filemap_get_folio(mapping, window->start + at, FGP_LOCK, 0);
		struct smcfs_folio *sf;

		if (IS_ERR(folio))
			continue;
		sf = smcfs_folio_private(folio);
		if (sf && smcfs_folio_hot(folio)) {
			unsigned long taken = window_take(window, folio);

			spin_lock_irq(&sf->lock);
			sf->dirty[0] |= taken;
			spin_unlock_irq(&sf->lock);
			filemap_dirty_folio(mapping, folio);
		}
		folio_unlock(folio);
		folio_put(folio);
	}
	window->nr = 0;
}

/**
 * smcfs_hot_cool() - a folio is no longer hot
 * @region: of it.
 * @folio: locked; no page of it is writable in a page table any more.
 * @held: somebody may yet store to it by reference: all pages that were hot are looked at again.
 *
 * Context: process.
 */
void smcfs_hot_cool(struct smcfs_region *region, struct folio *folio, bool held)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned long flags;
	int nr = 0;

	if (!sf)
		return;
	spin_lock_irqsave(&sf->lock, flags);
	nr = bitmap_weight(sf->hot, sf->nr_pages);
	if (held)
		bitmap_or(sf->dirty, sf->dirty, sf->hot, sf->nr_pages);
	bitmap_zero(sf->hot, sf->nr_pages);
	spin_unlock_irqrestore(&sf->lock, flags);
	atomic_sub(nr, &region->nr_hot);
}

/* ------------------------------------------------------------------ on their way */

/* Context: process, @folio locked. */
void smcfs_hot_take_off(struct folio *folio)
{
	folio_get(folio);
	atomic_inc(&smcfs_folio_private(folio)->flights);
}

/* What took off is acknowledged; or failed, and its marks are set again. Context: process. */
void smcfs_hot_landed(struct address_space *mapping, struct folio *folio, int err)
{
	struct smcfs_region *region = smcfs_i(mapping->host)->region;
	struct smcfs_folio *sf = smcfs_folio_private(folio);

	if (err) {
		mapping_set_error(mapping, -EIO);
		/* It has the flag, unless it was cooled meanwhile. */
		filemap_dirty_folio(mapping, folio);
	}
	/* Pairs with the barrier of set_current_state() in smcfs_hot_wait_page(). */
	if (wq_has_sleeper(&region->wait))
		wake_up_all(&region->wait);
	/* Nothing of @sf or @mapping after this: ->invalidate_folio waits for it. */
	if (atomic_dec_and_test(&sf->flights))
		wake_up_var(&sf->flights);
	folio_put(folio);
}

/* Waits for what is on its way; bounded by the deadlines of requests. The folio is locked. */
void smcfs_hot_wait(struct smcfs_folio *sf)
{
	wait_var_event(&sf->flights, !atomic_read(&sf->flights));
}

/* The same of one page. The caller has sent what it had. */
void smcfs_hot_wait_page(struct smcfs_region *region, struct smcfs_folio *sf, unsigned int index)
{
	wait_event(region->wait, !test_bit(index, sf->flying));
}

/* ------------------------------------------------------------------ regions */

/**
 * smcfs_cool() - flush, and leave no page hot
 * @inode: of a region.
 *
 * Context: process, killable.
 * Return: as smcfs_flush().
 */
int smcfs_cool(struct inode *inode)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	int err;

	atomic_inc(&region->cooling);
	err = smcfs_flush(inode, 0, LLONG_MAX);
	atomic_dec(&region->cooling);
	return err;
}

/**
 * smcfs_region_set_hot() - may pages become hot?
 * @region: bound.
 * @hot: yes; no also cools those that are.
 *
 * Context: process, killable.
 * Return: 0; -EOPNOTSUPP: this kernel lacks what it takes; -EIO: some could not be sent, and stay
 * dirty; -EINTR.
 */
int smcfs_region_set_hot(struct smcfs_region *region, bool hot)
{
	struct inode *inode;
	int err = 0;

	if (hot && !smcfs_hot_possible())
		return -EOPNOTSUPP;
	WRITE_ONCE(region->hot, hot);
	inode = hot ? NULL : smcfs_region_inode(region);
	if (inode) {
		err = smcfs_cool(inode);
		smcfs_region_inode_put(inode);
	}
	return err;
}

/* sync(2), syncfs(2): the core waits for write-back flags, which hot pages have none of. */
int smcfs_sync_fs(struct super_block *sb, int wait)
{
	struct smcfs_region *region;
	struct inode *inode;
	int err = 0, one;
	u64 id = 0;

	while (wait && (region = smcfs_region_next(id))) {
		id = region->id + 1;
		inode = atomic_read(&region->nr_hot) ? smcfs_region_inode(region) : NULL;
		if (inode) {
			one = smcfs_flush(inode, 0, LLONG_MAX);
			err = err ?: one;
			smcfs_region_inode_put(inode);
		}
		smcfs_region_put(region);
	}
	return err;
}
