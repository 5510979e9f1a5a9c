// SPDX-License-Identifier: GPL-2.0
/*
 * What is fetched besides the page that was asked for: granules and strides.
 * Copyright (c) 2026 The SMC authors
 *
 * The core's readahead serves what is sequential, and reads around a fault. It knows nothing of a
 * program that walks a column of a matrix, and its windows begin anywhere. Where a region has a
 * granule, or an open file misses at a constant distance, absent pages are fetched from here before
 * the core looks for them, which then finds them in the page cache, locked, and waits.
 *
 *	granule: 16 KiB		|....|....|XXXX|....|	what a fault at X brings, in one folio
 *	stride: 5 pages		X....X....X....o....o	the third miss brings what comes next, too
 *
 * A miss counts for a stride only if the pages beside it are absent: in a sequential walk, whose
 * misses are a window apart, the page before it was just read.
 *
 * Contexts: process; faults under mmap_lock or a lock of the mapping, or none. Nothing here waits
 *	for the network.
 * Locking: the mapping's invalidate_lock, shared, around what is added to the page cache;
 *	smcfs_file.lock, a leaf.
 * Lifetime: a smcfs_file is its open file's.
 * Failure: no memory: fewer pages come, and the core fetches the one that is wanted. What failed to
 *	be fetched is not uptodate, and the core asks again for what it needs.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "smcfs.h"

/* After so many equal distances between misses, in a row, the next are expected. */
#define STRIDE_AFTER	2
/* Accesses that are fetched ahead when a stride was found; twice as many each time it holds. */
#define STRIDE_FIRST	2U
/* And as many at most, however long the file's window is: a fault does that before it goes on. */
#define STRIDE_MOST	64U

struct smcfs_file {
	spinlock_t	lock;		/* leaf */
	pgoff_t		last;		/* [lock] the last miss */
	long		stride;		/* [lock] from the one before to it */
	unsigned int	seen;		/* [lock] distances that equalled stride, in a row */
	unsigned int	ahead;		/* [lock] accesses behind last that were fetched ahead */
};

struct smcfs_file *smcfs_ahead_open(void)
{
	struct smcfs_file *sfile = kzalloc(sizeof(*sfile), GFP_KERNEL_ACCOUNT);

	if (!sfile)
		return NULL;
	spin_lock_init(&sfile->lock);
	sfile->last = ULONG_MAX / 2;	/* nowhere: the first miss is no distance */
	return sfile;
}

void smcfs_ahead_close(struct smcfs_file *sfile)
{
	kfree(sfile);
}

static bool ahead_cached(struct address_space *mapping, pgoff_t index)
{
	loff_t pos = (loff_t)index << PAGE_SHIFT;

	return filemap_range_has_page(mapping, pos, pos);
}

/* Are the pages beside @index to before @index + @nr absent? */
static bool ahead_alone(struct address_space *mapping, pgoff_t index, unsigned int nr)
{
	return !(index && ahead_cached(mapping, index - 1)) && !ahead_cached(mapping, index + nr);
}

/*
 * Pages @index to before @index + @nr are absent. @most: accesses that may be fetched ahead.
 * @large: the core reads nothing ahead.
 * Return: how many to fetch, *@stride pages from each other; 0: none.
 */
static unsigned int stride_miss(struct file *file, pgoff_t index, unsigned int nr,
				unsigned int most, bool large, long *stride)
{
	struct smcfs_file *sfile = file->private_data;
	unsigned int ahead = 0;
	long far;

	spin_lock(&sfile->lock);
	far = index - sfile->last;
	if (sfile->ahead && far == sfile->stride * (long)(sfile->ahead + 1))
		ahead = 2 * sfile->ahead;
	else if (far && far == sfile->stride)
		ahead = ++sfile->seen >= STRIDE_AFTER ? STRIDE_FIRST : 0;
	if (!ahead && far != sfile->stride) {
		sfile->seen = 1;
		sfile->stride = far;
	}
	if (ahead && !large && !ahead_alone(file->f_mapping, index, nr)) {
		sfile->seen = 0;
		sfile->stride = 0;
		ahead = 0;
	}
	ahead = min(ahead, most);
	sfile->ahead = ahead;
	sfile->last = index;
	*stride = sfile->stride;
	spin_unlock(&sfile->lock);
	return ahead;
}

/*
 * A folio of 2^@order pages, locked and in the page cache. Return: it; ERR_PTR(-EEXIST): one of the
 * pages is there; -ENOMEM; -EIO: the region is dead.
 */
static struct folio *ahead_add(struct address_space *mapping, pgoff_t index, unsigned int order)
{
	gfp_t gfp = readahead_gfp_mask(mapping);
	struct folio *folio;
	int err;

	if (ahead_cached(mapping, index))
		return ERR_PTR(-EEXIST);
	folio = filemap_alloc_folio(gfp, order);
	if (!folio)
		return ERR_PTR(-ENOMEM);
	err = filemap_add_folio(mapping, folio, index, gfp);
	if (err) {
		folio_put(folio);
		return ERR_PTR(err);
	}
	/* With the folio locked: what dies from here on waits for it, and drops it. */
	if (smcfs_region_dead(smcfs_i(mapping->host)->region)) {
		folio_unlock(folio);
		folio_put(folio);
		return ERR_PTR(-EIO);
	}
	return folio;
}

/* Fetches what is absent of pages @first to before @end. Return: 0, -ENOMEM or -EIO. */
static int ahead_fetch(struct smcfs_fetch *fetch, struct address_space *mapping, pgoff_t first,
		       pgoff_t end, unsigned int granule)
{
	unsigned int most = min_t(unsigned int, ilog2(granule), SMCFS_FOLIO_ORDER_MAX);

	while (first < end) {
		struct folio *folio = ERR_PTR(-EEXIST);
		unsigned int order = most;

		/* Page caches have no folios of two pages before 6.9, nor any beyond their file. */
		while (order && (order == 1 || first + (1UL << order) > end ||
				 !IS_ALIGNED(first, 1UL << order)))
			order--;
		if (order)
			folio = ahead_add(mapping, first, order);
		if (IS_ERR(folio) && folio != ERR_PTR(-EIO)) {
			order = 0;
			folio = ahead_add(mapping, first, 0);
		}
		first += 1UL << order;
		if (folio == ERR_PTR(-EEXIST))
			continue;
		if (IS_ERR(folio))
			return PTR_ERR(folio);
		smcfs_fetch_add(fetch, folio);
		folio_put(folio);
	}
	return 0;
}

/*
 * The granules of pages @index to before @index + @nr, as far as the region goes; first the folios
 * of these pages, which, if they are @waited_for, do not wait for the rest.
 */
static int ahead_fetch_granules(struct smcfs_fetch *fetch, struct address_space *mapping,
				pgoff_t index, unsigned int nr, unsigned int granule, pgoff_t end,
				bool waited_for)
{
	unsigned int block = min_t(unsigned int, granule, SMCFS_FOLIO_PAGES_MAX);
	pgoff_t low = round_down(index, block), high = min(end, round_up(index + nr, block));
	int err;

	err = ahead_fetch(fetch, mapping, low, high, granule);
	if (waited_for)
		smcfs_fetch_submit(fetch);
	if (!err)
		err = ahead_fetch(fetch, mapping, round_down(index, granule), low, granule);
	if (!err)
		err = ahead_fetch(fetch, mapping, high, min(end, round_up(index + nr, granule)),
				  granule);
	return err;
}

/*
 * A program is about to need pages @index to before @index + @nr, the first of which is absent.
 * @random: it said so.
 * Return: they are on their way, as far as there was memory; false: they are the core's.
 */
static bool ahead_miss(struct file *file, pgoff_t index, unsigned int nr, bool random)
{
	struct address_space *mapping = file->f_mapping;
	struct smcfs_region *region = smcfs_i(mapping->host)->region;
	pgoff_t end = DIV_ROUND_UP(i_size_read(mapping->host), PAGE_SIZE);
	unsigned int granule = READ_ONCE(region->granule) >> PAGE_SHIFT;
	/* Its owner, or the administrator, may have set it. */
	unsigned int window = READ_ONCE(file->f_ra.ra_pages);
	/* Nothing is left to readahead: granule by granule, with the next on its way. */
	bool large = granule > 1 && granule >= window;
	unsigned int ahead = 0, i, nofs;
	struct smcfs_fetch fetch;
	long stride = 0;

	if (index >= end)
		return false;
	if (!random)
		ahead = stride_miss(file, index, nr,
				    large ? 1 : min(window / round_up(nr, granule), STRIDE_MOST),
				    large, &stride);
	if (!ahead && (granule == 1 ||
		       !(large || random || ahead_alone(mapping, index, nr))))
		return false;
	if (!smcfs_fetch_begin(&fetch, mapping->host))
		return false;
	/* As in the core's readahead: reclaim must not wait for what is locked and not sent. */
	nofs = memalloc_nofs_save();
	filemap_invalidate_lock_shared(mapping);
	/* The end comes also when the stride goes below the first page. */
	for (i = 0; i <= ahead && index < end && !fatal_signal_pending(current); i++) {
		if (ahead_fetch_granules(&fetch, mapping, index, nr, granule, end, !i))
			break;
		index += stride;
	}
	filemap_invalidate_unlock_shared(mapping);
	smcfs_fetch_end(&fetch);
	memalloc_nofs_restore(nofs);
	return true;
}

/**
 * smcfs_ahead_read() - read(2) is about to look for pages
 * @file: of a region.
 * @pos: first byte.
 * @length: bytes.
 *
 * Context: process.
 */
void smcfs_ahead_read(struct file *file, loff_t pos, size_t length)
{
	pgoff_t index = pos >> PAGE_SHIFT;
	pgoff_t last = (pos + length - 1) >> PAGE_SHIFT;

	/* Longer ones are bandwidth, which the core's windows are for. */
	if (!length || last - index >= READ_ONCE(file->f_ra.ra_pages) ||
	    ahead_cached(file->f_mapping, index))
		return;
	ahead_miss(file, index, last - index + 1, file->f_mode & FMODE_RANDOM);
}

/* Would the core read around the page by folios that smcfs_readahead() does not let in? */
static bool ahead_huge(struct file *file, unsigned long vm_flags)
{
#ifdef SMCFS_ORDER_UNBOUNDED
	if (vm_flags & VM_HUGEPAGE) {
		smcfs_readahead_bound(&file->f_ra);
		return true;
	}
#endif
	return false;
}

/**
 * smcfs_ahead_fault() - a page is not in the page table
 * @vmf: of a mapping of a region.
 *
 * Context: process, under mmap_lock, or the mapping's own.
 * Return: what is to be added to the result of filemap_fault().
 */
vm_fault_t smcfs_ahead_fault(struct vm_fault *vmf)
{
	unsigned long vm_flags = vmf->vma->vm_flags;
	struct file *file = vmf->vma->vm_file;
	struct inode *inode = file_inode(file);
	unsigned int granule = READ_ONCE(smcfs_i(inode)->region->granule) >> PAGE_SHIFT;

	if (granule == 1 && (vm_flags & (VM_RAND_READ | VM_HUGEPAGE)) == VM_RAND_READ)
		return 0;
	if (vmf->pgoff >= DIV_ROUND_UP(i_size_read(inode), PAGE_SIZE) ||
	    ahead_cached(file->f_mapping, vmf->pgoff))
		return 0;
	if (ahead_miss(file, vmf->pgoff, 1, vm_flags & VM_RAND_READ))
		return VM_FAULT_MAJOR;
	/* Around a fault the core looks for no granules; it finds what goes on behind it. */
	if (!ahead_huge(file, vm_flags) && granule == 1)
		return 0;
	page_cache_sync_readahead(file->f_mapping, &file->f_ra, file, vmf->pgoff, granule);
	return VM_FAULT_MAJOR;
}

/**
 * smcfs_map_pages() - ->map_pages: what is in the page cache around a page that is read
 * @vmf: of a mapping of a region.
 * @start: the first page that the core would map.
 * @end: the last.
 *
 * All of its granule, as far as the mapping and the page of page tables go.
 * Context: process; from 6.3 on under RCU.
 * Return: as filemap_map_pages().
 */
vm_fault_t smcfs_map_pages(struct vm_fault *vmf, pgoff_t start, pgoff_t end)
{
	struct vm_area_struct *vma = vmf->vma;
	struct smcfs_region *region = smcfs_i(file_inode(vma->vm_file))->region;
	unsigned int granule = READ_ONCE(region->granule) >> PAGE_SHIFT;

	if (granule > 1) {
		unsigned long low = max(vma->vm_start, vmf->address & PMD_MASK);
		unsigned long high = min(vma->vm_end - 1, vmf->address | ~PMD_MASK);
		pgoff_t base = vmf->pgoff - ((vmf->address - low) >> PAGE_SHIFT);
		pgoff_t top = vmf->pgoff + ((high - vmf->address) >> PAGE_SHIFT);

		start = min(start, max(base, round_down(vmf->pgoff, granule)));
		end = max(end, min(top, round_up(vmf->pgoff + 1, granule) - 1));
	}
	return filemap_map_pages(vmf, start, end);
}
