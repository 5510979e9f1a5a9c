// SPDX-License-Identifier: GPL-2.0
/*
 * Who may dirty a shadow page, and when: page_mkwrite, write_begin, write_end.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: process. page_mkwrite runs under mmap_lock and never waits for the network: a page is
 *	uptodate before it is mapped, and a store during write-back just makes it dirty again. It
 *	may wait for a flush that has the folio locked and waits for staging pages, which the
 *	deadlines of requests bound. Who makes more dirty than a region may have comes again.
 * Locking: the folio lock; smcfs_folio.lock, or i_mmap_rwsem and page-table locks, inside it.
 * Failure: SIGBUS or -EIO once the region is dead; DEGRADED accepts stores, they are kept, up to
 *	dirty_max_mb; who wants to store more waits until he is killed, or the region is back.
 */
#include <linux/highmem.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <asm/syscall.h>

#include "smcfs.h"
#include "trace.h"

/* How often the dirty pages of a region without a session are counted, if it has too many. */
#define DIRTY_COUNT_EACH	(HZ / 10)

static unsigned int dirty_max_mb = 1024;
module_param(dirty_max_mb, uint, 0644);
MODULE_PARM_DESC(dirty_max_mb,
		 "MiB of one region that may be dirty at a time, in about; 0: what vm.dirty_ratio lets (default 1024)");

/**
 * smcfs_dirty_flushed() - all that was dirty of a region is at the target
 * @region: of it.
 * @dirtied: its counter before what was dirty was looked for.
 *
 * Context: any.
 */
void smcfs_dirty_flushed(struct smcfs_region *region, s64 dirtied)
{
	s64 cleaned = atomic64_read(&region->cleaned);

	while (cleaned < dirtied && !atomic64_try_cmpxchg(&region->cleaned, &cleaned, dirtied))
		;
}

/*
 * Has a region as much dirty as it may have? Counted are pages since the last flush of all of it:
 * those that a barrier of a part, or the core's flusher, has sent since are in that, too. Without a
 * session no flush puts that right, so they are looked for, now and then.
 */
static bool dirty_is_full(struct inode *inode)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	s64 max = (s64)READ_ONCE(dirty_max_mb) << (20 - PAGE_SHIFT);
	s64 dirtied = atomic64_read(&region->dirtied);
	unsigned long last;
	s64 found;

	if (!max || dirtied - atomic64_read(&region->cleaned) < max)
		return false;
	last = READ_ONCE(region->dirty_counted);
	if (READ_ONCE(region->state) != SMCFS_REGION_DEGRADED ||
	    time_before(jiffies, last + DIRTY_COUNT_EACH) ||
	    cmpxchg(&region->dirty_counted, last, jiffies) != last)
		return true;
	/* What flies yet is going to fail, and to be dirty then. */
	found = smcfs_tagged_pages(inode->i_mapping, PAGECACHE_TAG_WRITEBACK);
	found += smcfs_tagged_pages(inode->i_mapping, PAGECACHE_TAG_DIRTY);
	smcfs_dirty_flushed(region, dirtied - found);
	return found >= max;
}

/* Waits a moment for what a flush of all of a region gives back. */
static void dirty_wait(struct smcfs_region *region)
{
	smcfs_region_flush_later(region, 0);
	schedule_timeout_killable(1);
}

/* Before @page of @folio, which is locked, becomes writable in a page table. 0 or -ENOMEM. */
static int mark_page(struct smcfs_region *region, struct folio *folio, struct page *page)
{
	unsigned int index = folio_page_idx(folio, page);

	if (smcfs_folio_compared(region, folio))
		return smcfs_twin_take(folio, index);
	if (!folio_test_dirty(folio))
		smcfs_lines_probe(region, folio, index);
	return smcfs_folio_mark_range(folio, (size_t)index << PAGE_SHIFT, PAGE_SIZE);
}

/*
 * Does a program store by itself? (The core does not tell: FAULT_FLAG_USER is not passed on.) What
 * the kernel stores, in a system call or for a task that ends, may not wait for long: it comes
 * again with mmap_lock held, or cannot be killed.
 */
static bool program_stores(void)
{
	return !(current->flags & (PF_KTHREAD | PF_EXITING)) &&
	       syscall_get_nr(current, task_pt_regs(current)) == -1;
}

vm_fault_t smcfs_page_mkwrite(struct vm_fault *vmf)
{
	struct folio *folio = page_folio(vmf->page);
	struct file *file = vmf->vma->vm_file;
	struct inode *inode = file_inode(file);
	struct smcfs_region *region = smcfs_i(inode)->region;
	vm_fault_t ret = VM_FAULT_LOCKED;
	bool again_later = false;
	bool first;

	sb_start_pagefault(inode->i_sb);
	file_update_time(file);
	folio_lock(folio);
	if (folio->mapping != inode->i_mapping || !folio_test_uptodate(folio)) {
		ret = VM_FAULT_NOPAGE;	/* dropped meanwhile: fault again */
		goto err_unlock;
	}
	if (smcfs_region_dead(region)) {
		ret = VM_FAULT_SIGBUS;
		goto err_unlock;
	}
	if (!folio_test_dirty(folio) && program_stores() && dirty_is_full(inode)) {
		again_later = true;
		ret = VM_FAULT_NOPAGE;
		goto err_unlock;
	}
	smcfs_folio_fit(region, folio);
	smcfs_hot_touch(region, folio, folio_page_idx(folio, vmf->page));
	if (mark_page(region, folio, vmf->page)) {
		again_later = true;	/* short of memory */
		ret = VM_FAULT_NOPAGE;
		goto err_unlock;
	}
	first = smcfs_folio_set_dirty(inode->i_mapping, folio);	/* mark_page() said which page */
	smcfs_stat_add(&region->stats, SMCFS_STAT_WRITE_FAULTS, 1);
	trace_smcfs_store(region->id,
			  ((u64)vmf->pgoff << PAGE_SHIFT) + offset_in_page(vmf->real_address), 1,
			  true, first);
	sb_end_pagefault(inode->i_sb);
	return ret;

err_unlock:
	folio_unlock(folio);
	sb_end_pagefault(inode->i_sb);
	if (again_later) {
		/* A fault of the kernel's own store would repeat without a look at signals. */
		if (fatal_signal_pending(current))
			return VM_FAULT_SIGBUS;
		/*
		 * The program is going to fault again, or be killed. Pages that are written back
		 * give memory back, so this throttles it where an error would get somebody killed.
		 */
		dirty_wait(region);
	}
	return ret;
}

/*
 * A folio that holds @pos, locked; uptodate unless the write covers all of it that exists. @length
 * may go past its end: newer cores (6.12) ask for as much as the largest folio of the mapping could
 * take, and cut it to the folio afterwards.
 */
static struct folio *write_folio(struct file *file, struct address_space *mapping, loff_t pos,
				 unsigned int length)
{
	struct inode *inode = mapping->host;
	struct folio *folio;
	size_t offset, part, valid;
	int err;

again:
	if (smcfs_region_dead(smcfs_i(inode)->region))
		return ERR_PTR(-EIO);
	if (dirty_is_full(inode)) {
		if (fatal_signal_pending(current))
			return ERR_PTR(-EINTR);
		dirty_wait(smcfs_i(inode)->region);
		goto again;
	}
	folio = __filemap_get_folio(mapping, pos >> PAGE_SHIFT, FGP_WRITEBEGIN,
				    mapping_gfp_mask(mapping));
	if (IS_ERR(folio))
		return folio;
	/* Again, with the folio locked: what dies from here on drops this folio. */
	if (smcfs_region_dead(smcfs_i(inode)->region)) {
		folio_unlock(folio);
		folio_put(folio);
		return ERR_PTR(-EIO);
	}
	offset = offset_in_folio(folio, pos);
	part = min_t(size_t, length, folio_size(folio) - offset);
	if (!folio_test_uptodate(folio)) {
		valid = min_t(loff_t, folio_size(folio), i_size_read(inode) - folio_pos(folio));
		if (offset || part < valid) {
			err = smcfs_fetch_folio_sync(inode, folio);
			if (err) {
				folio_put(folio);
				if (err == -EAGAIN)
					goto again;
				return ERR_PTR(err);
			}
		} else {
			folio_zero_segment(folio, valid, folio_size(folio));
		}
	}
	if (part < PAGE_SIZE)	/* else there is nothing to be spared */
		smcfs_folio_fit(smcfs_i(inode)->region, folio);
	smcfs_hot_break(smcfs_i(inode)->region, folio);
	/* Memory for marks must exist before bytes change; the marks are set when they have. */
	if (smcfs_folio_compared(smcfs_i(inode)->region, folio)) {
		err = smcfs_twin_force_prepare(folio, offset, part);
	} else {
		err = PTR_ERR_OR_ZERO(smcfs_folio_prepare(folio));
		if (part < PAGE_SIZE && folio_test_uptodate(folio) && !folio_test_dirty(folio))
			smcfs_lines_probe(smcfs_i(inode)->region, folio, offset >> PAGE_SHIFT);
	}
	if (err) {
		folio_unlock(folio);
		folio_put(folio);
		return ERR_PTR(err);
	}
	return folio;
}

static int write_done(struct address_space *mapping, loff_t pos, unsigned int length,
		      unsigned int copied, struct folio *folio)
{
	if (!folio_test_uptodate(folio)) {
		/* Not fetched since all was to be overwritten: a short copy leaves garbage. */
		if (copied < length) {
			copied = 0;
		} else {
			folio_mark_uptodate(folio);
			smcfs_modes_cached(smcfs_i(mapping->host)->region);
		}
	}
	if (copied) {
		bool first;

		/* Before the folio is dirty, which would make it wait as a mapped store does. */
		smcfs_modes_dirtied(smcfs_i(mapping->host)->region, false);
		if (smcfs_folio_compared(smcfs_i(mapping->host)->region, folio))
			smcfs_twin_force(folio, offset_in_folio(folio, pos), copied);
		else
			smcfs_folio_mark_range(folio, offset_in_folio(folio, pos), copied);
		first = smcfs_folio_set_dirty(mapping, folio);
		trace_smcfs_store(smcfs_i(mapping->host)->region->id, pos, copied, false, first);
	}
	folio_unlock(folio);
	folio_put(folio);
	return copied;
}

#ifdef SMCFS_WRITE_BEGIN_PAGES
static int smcfs_write_begin(struct file *file, struct address_space *mapping, loff_t pos,
			     unsigned int length, struct page **pagep, void **fsdata)
{
	struct folio *folio = write_folio(file, mapping, pos, length);

	if (IS_ERR(folio))
		return PTR_ERR(folio);
	*pagep = folio_file_page(folio, pos >> PAGE_SHIFT);
	return 0;
}

static int smcfs_write_end(struct file *file, struct address_space *mapping, loff_t pos,
			   unsigned int length, unsigned int copied, struct page *page,
			   void *fsdata)
{
	return write_done(mapping, pos, length, copied, page_folio(page));
}
#else
static int smcfs_write_begin(struct file *file, struct address_space *mapping, loff_t pos,
			     unsigned int length, struct folio **foliop, void **fsdata)
{
	struct folio *folio = write_folio(file, mapping, pos, length);

	if (IS_ERR(folio))
		return PTR_ERR(folio);
	*foliop = folio;
	return 0;
}

static int smcfs_write_end(struct file *file, struct address_space *mapping, loff_t pos,
			   unsigned int length, unsigned int copied, struct folio *folio,
			   void *fsdata)
{
	return write_done(mapping, pos, length, copied, folio);
}
#endif

const struct address_space_operations smcfs_aops = {
	.read_folio		= smcfs_read_folio,
	.readahead		= smcfs_readahead,
	.writepages		= smcfs_writepages,
	.dirty_folio		= smcfs_dirty_folio,
	.write_begin		= smcfs_write_begin,
	.write_end		= smcfs_write_end,
	.invalidate_folio	= smcfs_invalidate_folio,
	.release_folio		= smcfs_release_folio,
	.migrate_folio		= filemap_migrate_folio,
};
