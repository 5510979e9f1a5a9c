// SPDX-License-Identifier: GPL-2.0
/*
 * Twins: what of a page is ours to send.
 * Copyright (c) 2026 The SMC authors
 *
 * A merge region is written by several nodes and the accelerator at once, each its own units, so a
 * unit that this node did not change must not be sent. Before a page becomes writable in a page
 * table its content is copied: the twin. Write-back compares, sends the units that differ, and once
 * they are acknowledged the twin holds what was sent. Bytes that came by write(2) are known one by
 * one and go out changed or not: such a page needs no twin until it becomes writable in a page
 * table, whose copy then already holds them. Pages of exclusive regions have twins, too, where it
 * is cheaper to send what changed (lines.c).
 *
 *	page_mkwrite --> twin = shadow ---.
 *	                                   >-- dirty bit --> issue: stage it, compare with twin
 *	write(2) -----> forced bytes -----'                    |            |
 *	                                        acknowledged: twin = stage  failed: dirty again,
 *	                                        (none if clean by then)     forced; the twin stays
 *
 * What failed may have got there all the same, and then the target holds what neither the twin does
 * nor, if a program takes its store back, the shadow page. So it is sent again, changed or not, as
 * if write(2) had written it.
 *
 * Why no store is lost: whoever may store to the page got it through page_mkwrite, under the folio
 * lock, after the twin was taken; a twin goes only when its page's dirty bit is clear, and
 * write-back clears that only after it took all write permissions back, or harvested the entries of
 * a hot page, whose twin stays, and found nobody holding the page by reference (wb_issue.c). Who
 * holds it keeps bit and twin, and its late stores differ from that twin.
 *
 * Contexts: process, under the folio lock; but what ends a flight, in softirq unless it failed.
 * Locking: smcfs_folio.lock.
 * Lifetime: with struct smcfs_folio. Charged to the memory cgroup of whoever stores.
 * Failure: no memory for a twin: the fault is tried again after others were written back (dirty.c);
 *	in exclusive regions the page is sent as a whole from then on.
 */
#include <linux/bitmap.h>
#include <linux/highmem.h>
#include <linux/slab.h>

#include "smcfs.h"

static void twin_drop_locked(struct smcfs_page *page)
{
	if (page->twin)
		__free_page(page->twin);
	page->twin = NULL;
}

/* Context: any but hard interrupt; the folio leaves the page cache, or has no twins any more. */
void smcfs_twin_free(struct smcfs_folio *sf)
{
	unsigned int i;

	if (sf && sf->compared) {
		for (i = 0; i < sf->nr_pages; i++) {
			twin_drop_locked(&sf->pages[i]);
			kfree(sf->pages[i].forced);
		}
	}
	kfree(sf);
}

/**
 * smcfs_twin_take() - a page is about to become writable in a page table
 * @folio: locked, uptodate, one that is compared.
 * @index: of the page in it.
 *
 * Marks the page as one to be compared; without memory, in an exclusive region, as one to be sent
 * whole. Context: process.
 * Return: 0 or -ENOMEM.
 */
int smcfs_twin_take(struct folio *folio, unsigned int index)
{
	struct smcfs_region *region = smcfs_i(folio->mapping->host)->region;
	struct smcfs_folio *sf = smcfs_folio_prepare(folio);
	struct smcfs_page *page;
	unsigned long flags;
	struct page *twin;
	bool done;

	if (IS_ERR(sf))
		return PTR_ERR(sf);
	page = &sf->pages[index];
	spin_lock_irqsave(&sf->lock, flags);
	done = page->twin || page->whole;
	if (done) {	/* with the bit set the end of a flight leaves it alone */
		set_bit(index, sf->dirty);
		__set_bit(index, &sf->stored);
	}
	spin_unlock_irqrestore(&sf->lock, flags);
	if (done)
		return 0;
	/* Rather again later than an OOM kill: the memory comes from pages that are being sent. */
	twin = alloc_pages_node(READ_ONCE(region->numa_node),
				GFP_NOFS | __GFP_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN, 0);
	if (!twin && smcfs_region_merges(region))
		return -ENOMEM;
	spin_lock_irqsave(&sf->lock, flags);
	/* Under the lock: a word that the target got meanwhile changes both or none (word.c). */
	if (twin)
		copy_highpage(twin, folio_page(folio, index));
	else
		page->whole = true;
	page->twin = twin;
	set_bit(index, sf->dirty);
	__set_bit(index, &sf->stored);
	spin_unlock_irqrestore(&sf->lock, flags);
	return 0;
}

/* The part of [@offset, @offset + @length) of a folio that lies in its page @index. */
static void part_of_page(size_t offset, size_t length, unsigned int index, unsigned int *start,
			 unsigned int *end)
{
	size_t base = (size_t)index << PAGE_SHIFT;

	*start = max(offset, base) - base;
	*end = min(offset + length, base + PAGE_SIZE) - base;
}

static unsigned long *forced_alloc(gfp_t gfp)
{
	return kzalloc(BITS_TO_LONGS(PAGE_SIZE) * sizeof(unsigned long), gfp);
}

/**
 * smcfs_twin_force_prepare() - bytes of a folio are about to be written by write(2)
 * @folio: locked, one that is compared.
 * @offset: of the first byte in the folio.
 * @length: bytes, at least 1, all of them in the folio.
 *
 * Gets the memory that smcfs_twin_force() needs. Context: process.
 * Return: 0; -ENOMEM; -EIO: a bug of the caller.
 */
int smcfs_twin_force_prepare(struct folio *folio, size_t offset, size_t length)
{
	struct smcfs_folio *sf = smcfs_folio_prepare(folio);
	unsigned int i, start, end, last = (offset + length - 1) >> PAGE_SHIFT;
	unsigned long *map, flags;

	if (IS_ERR(sf))
		return PTR_ERR(sf);
	if (WARN_ON_ONCE(last >= sf->nr_pages))
		return -EIO;
	for (i = offset >> PAGE_SHIFT; i <= last; i++) {
		part_of_page(offset, length, i, &start, &end);
		/* Failed flights give maps back; only the holder of the folio lock takes them. */
		if (end - start == PAGE_SIZE || READ_ONCE(sf->pages[i].forced) ||
		    READ_ONCE(sf->pages[i].whole))
			continue;
		map = forced_alloc(GFP_NOFS | __GFP_ACCOUNT | __GFP_NOWARN);
		if (!map && smcfs_region_merges(smcfs_i(folio->mapping->host)->region))
			return -ENOMEM;
		spin_lock_irqsave(&sf->lock, flags);
		if (!map)
			sf->pages[i].whole = true;
		else if (!sf->pages[i].forced)
			swap(sf->pages[i].forced, map);
		spin_unlock_irqrestore(&sf->lock, flags);
		kfree(map);
	}
	return 0;
}

/**
 * smcfs_twin_force() - bytes of a folio were written by write(2): they are sent, changed or not
 * @folio: locked, after smcfs_twin_force_prepare() of at least these bytes.
 * @offset: of the first byte in the folio.
 * @length: bytes, at least 1.
 *
 * Context: process.
 */
void smcfs_twin_force(struct folio *folio, size_t offset, size_t length)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned int i, start, end, last = (offset + length - 1) >> PAGE_SHIFT;

	for (i = offset >> PAGE_SHIFT; i <= last; i++) {
		struct smcfs_page *page = &sf->pages[i];
		unsigned long *map = NULL, flags;

		part_of_page(offset, length, i, &start, &end);
		/* A write that was to cover the page fell short, which is rare. */
		if (end - start < PAGE_SIZE && !READ_ONCE(page->forced) &&
		    !READ_ONCE(page->whole))
			map = forced_alloc(GFP_NOFS | __GFP_NOFAIL);
		spin_lock_irqsave(&sf->lock, flags);
		if (end - start == PAGE_SIZE || page->whole) {
			page->all = true;
		} else {
			if (!page->forced)
				swap(page->forced, map);
			bitmap_set(page->forced, start, end - start);
		}
		set_bit(i, sf->dirty);
		spin_unlock_irqrestore(&sf->lock, flags);
		kfree(map);
	}
}

/**
 * smcfs_twin_lead() - the target is about to get bytes by another way than write-back
 * @folio: locked, uptodate, not in write-back; of any region.
 * @offset: of the first byte in the folio.
 * @data: the bytes.
 * @length: of @data, at least 1; all in one page.
 *
 * The shadow page holds them from now on. Should they never get there they are owed, like any other
 * change, if the page is dirty: a twin tells; without one they are marked as written by write(2).
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int smcfs_twin_lead(struct folio *folio, size_t offset, const void *data, size_t length)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned int index = offset >> PAGE_SHIFT;
	bool force = false;
	int err;

	/* A clean folio may have bits, left by a flush that found it held. */
	if (sf && sf->compared && folio_test_dirty(folio))
		force = test_bit(index, sf->dirty) && !sf->pages[index].twin;
	if (force) {
		err = smcfs_twin_force_prepare(folio, offset, length);
		if (err)
			return err;
	}
	memcpy_to_page(folio_page(folio, index), offset_in_page(offset), data, length);
	if (force)
		smcfs_twin_force(folio, offset, length);
	return 0;
}

/**
 * smcfs_twin_follow() - the target got bytes by another way than write-back
 * @folio: locked, uptodate; of any region.
 * @offset: of the first byte in the folio.
 * @data: the bytes.
 * @length: of @data; all in one page.
 *
 * Shadow page and twin hold them from now on, so nothing of it is owed. Context: process.
 */
void smcfs_twin_follow(struct folio *folio, size_t offset, const void *data, size_t length)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned int index = offset >> PAGE_SHIFT;
	unsigned long flags;

	if (!sf || !sf->compared) {
		memcpy_to_page(folio_page(folio, index), offset_in_page(offset), data, length);
		return;
	}
	/* Both or none, as a word that follows meanwhile (word.c). */
	spin_lock_irqsave(&sf->lock, flags);
	memcpy_to_page(folio_page(folio, index), offset_in_page(offset), data, length);
	if (sf->pages[index].twin)
		memcpy_to_page(sf->pages[index].twin, offset_in_page(offset), data, length);
	spin_unlock_irqrestore(&sf->lock, flags);
}

/**
 * smcfs_twin_same() - is a page as the target has it?
 * @folio: locked, with a struct smcfs_folio; nobody may store to it but through a page table.
 * @index: of the page in it; hot, so that the page tables know of a store that comes now.
 *
 * Looks without a copy, for pages that are dirty since some other page of their folio is.
 * Context: process.
 * Return: it is, and its dirty bit is clear.
 */
bool smcfs_twin_same(struct folio *folio, unsigned int index)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	struct smcfs_page *page = &sf->pages[index];
	unsigned long flags;
	bool look;

	spin_lock_irqsave(&sf->lock, flags);
	look = page->twin && !page->all && !page->forced;
	if (look)	/* before it is looked at: who sets it from here on stored since */
		clear_bit(index, sf->dirty);
	spin_unlock_irqrestore(&sf->lock, flags);
	return look && smcfs_stage_same(folio_page(folio, index), page->twin);
}

/**
 * smcfs_twin_stage() - make a page ready to be sent
 * @stage: to be filled.
 * @folio: locked, write-protected or harvested, on its way, with a struct smcfs_folio.
 * @index: of the page in it.
 * @held: somebody may store to the page without a fault: it stays one to be compared.
 * @unit: of comparing, bytes.
 *
 * Context: process.
 * Return: there is something to be sent; else @stage is still the caller's.
 */
bool smcfs_twin_stage(struct smcfs_stage *stage, struct folio *folio, unsigned int index, bool held,
		      unsigned int unit)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	struct smcfs_page *page = &sf->pages[index];
	unsigned long flags;
	bool kept;

	stage->folio = folio;
	stage->sf = sf;
	stage->index = index;
	stage->failed = false;
	atomic_set(&stage->pending, 1);
	spin_lock_irqsave(&sf->lock, flags);
	/* No twin tells if there was a store; of who has it pinned nobody does. */
	kept = held && page->whole && !folio_maybe_dma_pinned(folio);
	if (!held || kept)
		clear_bit(index, sf->dirty);
	__assign_bit(index, &sf->kept, kept);
	__clear_bit(index, &sf->stored);
	stage->all = page->all || page->whole;
	stage->forced = page->forced;
	page->all = false;
	page->forced = NULL;
	sf->inflight++;
	spin_unlock_irqrestore(&sf->lock, flags);
	if (smcfs_stage_fill(stage, folio_page(folio, index), page->twin, unit))
		return true;
	kfree(stage->forced);
	spin_lock_irqsave(&sf->lock, flags);
	sf->inflight--;	/* not to 0: the issuer counts */
	if (!test_bit(index, sf->dirty) && !test_bit(index, sf->hot))
		twin_drop_locked(page);
	spin_unlock_irqrestore(&sf->lock, flags);
	return false;
}

/* A page is no longer hot. @sf's folio is locked; what is in flight needs its twin yet. */
void smcfs_twin_cool(struct smcfs_folio *sf, unsigned int index)
{
	unsigned long flags;

	if (!sf->compared)
		return;
	spin_lock_irqsave(&sf->lock, flags);
	if (!sf->inflight && !test_bit(index, sf->dirty))
		twin_drop_locked(&sf->pages[index]);
	spin_unlock_irqrestore(&sf->lock, flags);
}

/* The target has it. What was stored meanwhile differs from the new twin. */
static void twin_advance(struct smcfs_stage *stage, struct smcfs_page *page)
{
	const u8 *from = folio_address(stage->data);
	unsigned int line;
	u64 lines;
	u8 *to;

	/* A twin that was taken during the flight holds it already, and ->lines is 0. */
	if (!page->twin || !stage->lines)
		return;
	if (stage->lines == U64_MAX) {
		smcfs_stage_swap(stage, &page->twin);
		return;
	}
	to = page_address(page->twin);
	for (lines = stage->lines; lines; lines &= lines - 1) {
		line = __ffs64(lines) * SMCFS_LINE_BYTES;
		memcpy(to + line, from + line, SMCFS_LINE_BYTES);
	}
}

/* What was staged is acknowledged, or failed. [sf->lock] */
static void twin_end_locked(struct smcfs_stage *stage)
{
	struct smcfs_folio *sf = stage->sf;
	struct smcfs_page *page = &sf->pages[stage->index];

	if (stage->failed) {
		set_bit(stage->index, sf->dirty);
		page->all |= stage->all;
		if (!page->forced)
			swap(page->forced, stage->forced);
		else if (stage->forced)
			bitmap_or(page->forced, page->forced, stage->forced, PAGE_SIZE);
	} else if (!test_bit(stage->index, sf->dirty) && !test_bit(stage->index, sf->hot)) {
		twin_drop_locked(page);
	} else {
		twin_advance(stage, page);
	}
}

/* One of a folio's parts is over. Return: it was the last. [sf->lock] */
static bool twin_part_done_locked(struct smcfs_folio *sf, bool *failed)
{
	sf->failed |= *failed;
	*failed = sf->failed;
	/* The last one stays counted until the folio's flight is over. */
	if (sf->inflight == 1) {
		sf->failed = false;
		return true;
	}
	sf->inflight--;
	return false;
}

/**
 * smcfs_twin_part_done() - a page of a folio, or the issuing of it, is over
 * @mapping: of the region.
 * @folio: on its way; not touched after its last part.
 * @sf: of it.
 * @failed: the page is dirty again.
 *
 * Context: softirq if nothing failed, else process.
 */
void smcfs_twin_part_done(struct address_space *mapping, struct folio *folio,
			  struct smcfs_folio *sf, bool failed)
{
	unsigned long flags;
	bool last;

	spin_lock_irqsave(&sf->lock, flags);
	last = twin_part_done_locked(sf, &failed);
	spin_unlock_irqrestore(&sf->lock, flags);
	if (last)
		smcfs_wb_end_folio(mapping, folio, sf, failed ? -EIO : 0);
}

/*
 * A transfer of the page, or its issuing, ended. Context: as smcfs_twin_part_done(). Return: it was
 * the last, and @stage is the caller's.
 */
bool smcfs_twin_put_stage(struct address_space *mapping, struct smcfs_stage *stage)
{
	struct smcfs_folio *sf = stage->sf;
	struct folio *folio = stage->folio;
	unsigned long flags;
	bool failed, last;

	if (!atomic_dec_and_test(&stage->pending))
		return false;
	failed = READ_ONCE(stage->failed);
	if (failed)
		smcfs_stage_owe(stage);
	spin_lock_irqsave(&sf->lock, flags);
	twin_end_locked(stage);
	last = twin_part_done_locked(sf, &failed);
	spin_unlock_irqrestore(&sf->lock, flags);
	kfree(stage->forced);
	if (last)	/* else @folio and @sf may be gone */
		smcfs_wb_end_folio(mapping, folio, sf, failed ? -EIO : 0);
	return true;
}
