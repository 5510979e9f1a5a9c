// SPDX-License-Identifier: GPL-2.0
/*
 * Which pages of a folio have to be sent.
 * Copyright (c) 2026 The SMC authors
 *
 * A folio has one dirty flag. Sending all of a large folio because one page of it was written would
 * overwrite what the accelerator wrote to the others, so a large folio carries a bitmap, one bit a
 * page, on folio->private. A single page needs none: its dirty flag says it all; but in merge
 * regions each page that was written has more to be known of it (twin.c), and so it has in
 * exclusive regions where changed lines are sent (lines.c).
 *
 * Owns: struct smcfs_folio.
 * Contexts: marking in process context under the folio lock; ->dirty_folio anywhere, also under the
 *	page-table lock.
 * Locking: smcfs_folio.lock, a leaf.
 * Lifetime: attached under the folio lock before the first page of a large folio may become
 *	writable; freed by ->release_folio or ->invalidate_folio, and when the folio is to be sent
 *	in another way (smcfs_folio_fit()); never while in write-back.
 *
 * Why bits are exact: a page-table entry becomes writable only through page_mkwrite, which sets the
 * page's bit under the folio lock; write-back clears bits only after folio_mkclean() took all write
 * permissions back, under the same lock. So when the core carries a page-table dirty bit over to
 * the folio, the page's bit is set already. Writers that hold the page by reference instead (GUP)
 * are seen by write-back, which then keeps the bits: see smcfs_folio_held(). Of what is compared
 * they stay dirty bits, as the twin tells if there was a store. Pages that are sent as a whole are
 * *kept*: clean, since who was seen may be none who writes, and the target may write them next; and
 * dirty again when the folio's flag is set while somebody holds it, as he need not mark what is
 * marked already. So a set flag says of all kept pages that they are dirty, too. Hot pages stay
 * writable with another bit, which is as good (hot.c).
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/pagevec.h>
#include <linux/slab.h>

#include "smcfs.h"
#include "trace.h"

static struct smcfs_folio *folio_attach(struct folio *folio, bool compared)
{
	unsigned int nr = folio_nr_pages(folio);
	struct smcfs_folio *sf;

	if (WARN_ON_ONCE(nr > SMCFS_FOLIO_PAGES_MAX))
		return ERR_PTR(-ENOMEM);
	sf = kzalloc(struct_size(sf, pages, compared ? nr : 0), GFP_NOFS);
	if (!sf)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&sf->lock);
	sf->nr_pages = nr;
	sf->compared = compared;
	/* Dirtied before it had a bitmap: nobody knows where, so everywhere. */
	if (folio_test_dirty(folio))
		bitmap_set(sf->dirty, 0, nr);
	folio_attach_private(folio, sf);
	return sf;
}

/**
 * smcfs_folio_attach() - give a folio a struct smcfs_folio, unless it has one
 * @folio: locked.
 *
 * Context: process.
 * Return: that; ERR_PTR(-ENOMEM).
 */
struct smcfs_folio *smcfs_folio_attach(struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);

	if (sf)
		return sf;
	return folio_attach(folio, smcfs_region_merges(smcfs_i(folio->mapping->host)->region));
}

/*
 * Is something of a folio to be sent? It is locked, and was seen not flying, and held by nobody who
 * writes: whose flight failed, and who held it, has marked it before it let go.
 */
static bool folio_owes(struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);

	/*
	 * Pairs with the barriers of folio_put() and folio_end_writeback(), and for flights without
	 * a flag with the release of smcfs_wb_end_folio().
	 */
	smp_rmb();
	return folio_test_dirty(folio) ||
	       (sf && !bitmap_empty(sf->dirty, SMCFS_FOLIO_PAGES_MAX));
}

/*
 * May somebody have a reference by which he writes? Not before a first fault or write(2) marked it
 * dirty. References of those who list pages that just came, for a while, are not told from others.
 */
static bool folio_writer_holds(struct folio *folio)
{
	return folio_test_checked(folio) && smcfs_folio_held(folio);
}

/**
 * smcfs_folio_fit() - a folio of an exclusive region is about to be written: how is it to be sent?
 * @region: of it; of one that merges it does nothing.
 * @folio: locked, held by the caller once; made writable, or written, next.
 *
 * As changed lines or in whole pages, as lines.c decides, if nothing of it is known in the other
 * way: what is dirty or on its way would have to be sent from the beginning. What somebody holds by
 * a reference may be written, and marked as a whole later: the twin would hold it already.
 * Nobody looks at a struct smcfs_folio without the folio's lock but completions, and who marks a
 * folio dirty; with nothing flying, dirty, hot or held there is none of either.
 * Context: process.
 */
void smcfs_folio_fit(struct smcfs_region *region, struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	bool wanted;

	if (smcfs_region_merges(region))
		return;
	wanted = smcfs_lines_wanted(region);
	if (wanted == (sf && sf->compared) || smcfs_folio_hot(folio) || folio_test_dirty(folio))
		return;
	if (smcfs_folio_flying(folio) || folio_writer_holds(folio)) {
		smcfs_lines_changed(region, false);
		return;
	}
	if (folio_owes(folio))
		return;
	smcfs_lines_changed(region, true);
	if (sf)
		smcfs_twin_free(folio_detach_private(folio));
	/* Without memory for it: in whole pages. */
	if (wanted)
		folio_attach(folio, true);
}

/**
 * smcfs_folio_prepare() - give a folio what it needs to know of its pages
 * @folio: locked.
 *
 * Context: process.
 * Return: that; NULL for a single page of an exclusive region, which needs none unless it is hot or
 * compared; ERR_PTR(-ENOMEM).
 */
struct smcfs_folio *smcfs_folio_prepare(struct folio *folio)
{
	if (!folio_test_large(folio) && !folio_test_private(folio) &&
	    !smcfs_region_merges(smcfs_i(folio->mapping->host)->region))
		return NULL;
	return smcfs_folio_attach(folio);
}

/**
 * smcfs_folio_mark_range() - these bytes of a folio are about to change
 * @folio: locked, uptodate or about to be.
 * @offset: of the first byte in the folio.
 * @length: bytes, at least 1.
 *
 * The caller sets the dirty flag next: smcfs_folio_set_dirty().
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int smcfs_folio_mark_range(struct folio *folio, size_t offset, size_t length)
{
	struct smcfs_folio *sf = smcfs_folio_prepare(folio);
	unsigned long flags;
	unsigned int first = offset >> PAGE_SHIFT;
	unsigned int last = (offset + length - 1) >> PAGE_SHIFT;

	if (IS_ERR_OR_NULL(sf))
		return PTR_ERR_OR_ZERO(sf);
	spin_lock_irqsave(&sf->lock, flags);
	bitmap_set(sf->dirty, first, last - first + 1);
	spin_unlock_irqrestore(&sf->lock, flags);
	return 0;
}

/* Somebody wrote to a folio, and does not say where: what may have been written. [sf->lock] */
void smcfs_folio_dirty_locked(struct smcfs_folio *sf)
{
	sf->dirty[0] |= sf->hot[0] | sf->kept;
	if (bitmap_empty(sf->dirty, SMCFS_FOLIO_PAGES_MAX))
		bitmap_set(sf->dirty, 0, sf->nr_pages);
}

/**
 * smcfs_folio_recall() - a folio's flag is set: its kept pages are dirty
 * @folio: with or without a struct smcfs_folio; on its way, or locked.
 *
 * Context: any.
 */
void smcfs_folio_recall(struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned long flags;

	if (!sf || !READ_ONCE(sf->kept))
		return;
	spin_lock_irqsave(&sf->lock, flags);
	sf->dirty[0] |= sf->kept;
	spin_unlock_irqrestore(&sf->lock, flags);
}

/**
 * smcfs_folio_keeps() - has a folio kept pages to which somebody may yet write?
 * @folio: locked, held by the caller once.
 *
 * Context: process.
 * Return: yes; else none is kept any more.
 */
bool smcfs_folio_keeps(struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned long flags;

	if (!sf || !READ_ONCE(sf->kept))
		return false;
	if (smcfs_folio_held(folio))
		return true;
	/* Who let go of it has set the flag before, or seen it set. */
	smp_rmb();	/* pairs with the barrier of folio_put() */
	if (folio_test_dirty(folio))
		return true;
	spin_lock_irqsave(&sf->lock, flags);
	sf->kept = 0;
	spin_unlock_irqrestore(&sf->lock, flags);
	return false;
}

/* The flag alone. Return: it was not set. Context: any, also with the page-table lock held. */
static bool set_flag(struct address_space *mapping, struct folio *folio)
{
	struct smcfs_region *region = smcfs_i(mapping->host)->region;

	if (!filemap_dirty_folio(mapping, folio))
		return false;
	/* It was written once, since it came: see folio_writer_holds(). */
	folio_set_checked(folio);
	trace_smcfs_dirty(region->id, folio_pos(folio), folio_size(folio));
	atomic64_add(folio_nr_pages(folio), &region->dirtied);
	smcfs_stat_add(&region->stats, SMCFS_STAT_DIRTIED_PAGES, 1);
	smcfs_region_flush_later(region, READ_ONCE(region->flush_after_ms));
	smcfs_modes_dirtied(region, true);
	return true;
}

/* ->dirty_folio. Context: as above. */
bool smcfs_dirty_folio(struct address_space *mapping, struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned long flags;

	if (sf) {
		spin_lock_irqsave(&sf->lock, flags);
		smcfs_folio_dirty_locked(sf);
		spin_unlock_irqrestore(&sf->lock, flags);
	}
	return set_flag(mapping, folio);
}

/**
 * smcfs_folio_set_dirty() - a folio was written, and its dirty bits tell where
 * @mapping: of it.
 * @folio: locked, held by the caller once.
 *
 * Context: process.
 * Return: its dirty flag was not set.
 */
bool smcfs_folio_set_dirty(struct address_space *mapping, struct folio *folio)
{
	if (smcfs_folio_keeps(folio))
		smcfs_folio_recall(folio);
	return set_flag(mapping, folio);
}

/**
 * smcfs_folio_held() - may somebody write to this folio through a reference?
 * @folio: locked, no page-table entry can become writable, but of hot pages, of which who asks
 *	keeps the bits, or sets dirty ones; the caller holds one reference.
 *
 * O_DIRECT reads, ptrace and the like fault a page in for writing, keep a reference instead of a
 * page-table entry, and mark the *folio* dirty later, without a word about which page. No new such
 * reference can come, and those that exist show in the count. One too many seen costs a resend, or
 * a comparison.
 * Context: process.
 * Return: perhaps.
 */
bool smcfs_folio_held(struct folio *folio)
{
	int known = folio_nr_pages(folio) + folio_test_private(folio) + 1 /* the caller's */;
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	/* A page table that is being copied adds its entries to the counts one after the other. */
	int mapcount = folio_mapcount(folio);
	int refs = folio_ref_count(folio);

	mapcount = min(mapcount, folio_mapcount(folio));
	/* After the count: a flight that is not over yet had its reference in it. */
	smp_rmb();	/* pairs with the release in smcfs_wb_end_folio(), before its folio_put() */
	if (sf && READ_ONCE(sf->inflight))
		known++;
	return folio_maybe_dma_pinned(folio) || refs > known + mapcount;
}

/*
 * ->release_folio: the folio is locked and about to leave the page cache, or to be split; or it
 * stays, if the caller then finds that somebody holds it. A clean folio with bits set was held when
 * it was last sent: whoever does may yet store to it, and what that changed is only known by the
 * twin.
 */
bool smcfs_release_folio(struct folio *folio, gfp_t gfp)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	bool held;

	if (folio_test_dirty(folio) || smcfs_folio_flying(folio))
		return false;
	/* Who wants to split it; its entries are writable. */
	if (smcfs_folio_hot(folio) && folio_mapped(folio))
		return false;
	held = sf && (sf->compared || sf->nr_pages > 1) && smcfs_folio_held(folio);
	if (held && (smcfs_folio_hot(folio) || sf->dirty[0] || READ_ONCE(sf->kept)))
		return false;
	/* Who let go of it just now has marked it before. */
	smp_rmb();	/* pairs with the barrier of folio_put() */
	if (folio_test_dirty(folio))
		return false;
	smcfs_twin_free(folio_detach_private(folio));
	return true;
}

/* ->invalidate_folio: regions never shrink, so it is all or nothing. */
void smcfs_invalidate_folio(struct folio *folio, size_t offset, size_t length)
{
	if (offset || length < folio_size(folio))
		return;
	folio_wait_writeback(folio);
	/* Bounded by the deadlines of requests. */
	if (folio_test_private(folio)) {
		wait_event(smcfs_i(folio->mapping->host)->region->wait,
			   !READ_ONCE(smcfs_folio_private(folio)->inflight));
		smp_rmb();	/* pairs with the release of smcfs_wb_end_folio() */
	}
	smcfs_twin_free(folio_detach_private(folio));
}

/* How many pages of a folio carry what its tag says. @folio is held, not locked. */
static unsigned int tagged_pages(struct folio *folio, xa_mark_t tag)
{
	unsigned int pages = folio_nr_pages(folio);
	struct smcfs_folio *sf;

	/* The lock keeps the bitmap; whoever has it is about to change what we count anyhow. */
	if (tag != PAGECACHE_TAG_DIRTY || pages == 1 || !folio_trylock(folio))
		return pages;
	sf = smcfs_folio_private(folio);
	if (sf && folio_test_dirty(folio)) {
		spin_lock_irq(&sf->lock);
		pages = bitmap_weight(sf->dirty, SMCFS_FOLIO_PAGES_MAX);
		spin_unlock_irq(&sf->lock);
	}
	folio_unlock(folio);
	return pages;
}

/* Pages of the folios that carry a tag; of those with marks of their own all, or as marked. */
static u64 count_tagged(struct address_space *mapping, xa_mark_t tag, bool all)
{
	struct folio_batch batch;
	pgoff_t index = 0;
	u64 pages = 0;
	unsigned int i;

	folio_batch_init(&batch);
	while (filemap_get_folios_tag(mapping, &index, ULONG_MAX, tag, &batch)) {
		for (i = 0; i < folio_batch_count(&batch); i++)
			pages += all ? folio_nr_pages(batch.folios[i]) :
				       tagged_pages(batch.folios[i], tag);
		folio_batch_release(&batch);
		cond_resched();
	}
	return pages;
}

/* Memory in folios that carry a tag, in pages. Context: process; O(tagged). */
u64 smcfs_tagged_pages(struct address_space *mapping, xa_mark_t tag)
{
	return count_tagged(mapping, tag, true);
}

/**
 * smcfs_dirty_bytes() - what carries a tag
 * @mapping: of a region.
 * @tag: PAGECACHE_TAG_DIRTY or PAGECACHE_TAG_WRITEBACK.
 *
 * Context: process; O(tagged).
 * Return: bytes, in whole pages.
 */
u64 smcfs_dirty_bytes(struct address_space *mapping, xa_mark_t tag)
{
	return count_tagged(mapping, tag, false) << PAGE_SHIFT;
}
