// SPDX-License-Identifier: GPL-2.0
/*
 * Words: a flag or an atomic at the target, and the shadow page that follows.
 * Copyright (c) 2026 The SMC authors
 *
 * While such a request is on its way no write-back of the word's page may be: it would carry the
 * old value, and could arrive after the new one. So the shadow page stands still:
 *
 *	uptodate	it has the write-back flag. Stores go on, write-back waits (or passes it
 *			over), nobody drops it. The completion puts the new value into it.
 *	absent, or not	it stays locked, hence unmapped and clean. Who fetches it afterwards
 *	uptodate	gets the new value from the target.
 *
 * What was stored to the word before was sent before (ioctl.c): following must not lose it.
 *
 * Owns: struct smcfs_word from create to the last put.
 * Contexts: process; completion in softirq, of what failed in process context.
 * Locking: region->word_lock of the page, from before the request to its end. Inside it the folio
 *	lock, held across the request where nobody can wait for it under mmap_lock: a fault drops
 *	that lock before it waits for a page that is not uptodate.
 * Lifetime: counted by caller and transfer, so a killed caller may leave. The folio cannot leave
 *	the page cache meanwhile, nor its inode.
 * Failure: the shadow keeps the old value. What was posted and not acknowledged may have been done:
 *	-EREMOTEIO, and it is never posted again.
 */
#include <linux/bitmap.h>
#include <linux/highmem.h>
#include <linux/slab.h>
#include <linux/writeback.h>

#include "smcfs.h"

struct smcfs_word {
	struct kref		ref;
	struct completion	done;
	struct smcfs_word_op	op;		/* [const] but old, by the completion */
	int			err;		/* by the completion */
	struct folio		*folio;		/* [const] shadow page; a look may have none */
	bool			locked;		/* [const] it is locked, else in write-back */
	struct page		*page;		/* [const] what the device reads or writes */
};

static void word_release(struct kref *ref)
{
	struct smcfs_word *word = container_of(ref, struct smcfs_word, ref);

	__free_page(word->page);
	kfree(word);
}

static void word_put(struct smcfs_word *word)
{
	kref_put(&word->ref, word_release);
}

static struct smcfs_word *word_create(const struct smcfs_word_op *op)
{
	struct smcfs_word *word = kzalloc(sizeof(*word), GFP_KERNEL);

	if (!word)
		return NULL;
	/* Of its own, so that the device may use it when the caller is long gone. */
	word->page = alloc_page(GFP_KERNEL);
	if (!word->page) {
		kfree(word);
		return NULL;
	}
	kref_init(&word->ref);
	init_completion(&word->done);
	word->op = *op;
	return word;
}

static u64 word_get(const void *at, u32 size)
{
	return size == 8 ? READ_ONCE(*(const u64 *)at) : READ_ONCE(*(const u32 *)at);
}

/* In one piece: programs of this node look at it through their mappings. */
static void word_set(void *at, u32 size, u64 value)
{
	if (size == 8)
		WRITE_ONCE(*(u64 *)at, value);
	else
		WRITE_ONCE(*(u32 *)at, value);
}

static void word_set_in(struct page *page, u64 pos, u32 size, u64 value)
{
	void *at = kmap_local_page(page);

	word_set(at + offset_in_page(pos), size, value);
	kunmap_local(at);
}

/*
 * Shadow and twin of the word become @value, which the target holds; nothing of it is owed any
 * more. The folio is uptodate and stands still. @look: not if anything was stored to the page
 * meanwhile, which may be the word, and newer. Context: any.
 */
static void word_follow(struct folio *folio, u64 pos, u32 size, u64 value, bool look)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned int index = offset_in_folio(folio, pos) >> PAGE_SHIFT;
	struct page *shadow = folio_page(folio, index);
	struct smcfs_page *page;
	unsigned long flags;

	if (!sf || !sf->compared) {
		if (!look || !(folio_test_dirty(folio) || smcfs_folio_hot(folio) ||
			       (sf && READ_ONCE(sf->kept))))
			word_set_in(shadow, pos, size, value);
		return;
	}
	page = &sf->pages[index];
	/* As one for smcfs_twin_take(), which copies the page under this lock. */
	spin_lock_irqsave(&sf->lock, flags);
	if (!look || !(page->twin || page->forced || page->all || page->whole)) {
		word_set_in(shadow, pos, size, value);
		if (page->twin)
			word_set_in(page->twin, pos, size, value);
		/* What write(2) left there is overwritten at the target. */
		if (page->forced)
			bitmap_clear(page->forced, offset_in_page(pos), size);
	}
	spin_unlock_irqrestore(&sf->lock, flags);
}

/* What the target holds after @op was done. */
static u64 word_result(const struct smcfs_word_op *op)
{
	switch (op->op) {
	case SMCFS_XFER_FETCH_ADD:
		return op->old + op->operand;
	case SMCFS_XFER_COMPARE_SWAP:
		return op->old == op->compare ? op->operand : op->old;
	case SMCFS_XFER_READ:
		return op->old;
	default:
		return op->operand;
	}
}

/* Lets the shadow page go. Context: any. */
static void word_unhold(struct smcfs_word *word)
{
	if (!word->folio)
		return;
	if (word->locked)
		folio_unlock(word->folio);
	else
		folio_end_writeback(word->folio);
	folio_put(word->folio);
}

/* 0; -EIO: for certain not done; -EREMOTEIO. */
static int word_outcome(const struct smcfs_xfer *xfer, int err)
{
	if (!err)
		return 0;
	/* Never posted, or looked only, or the target's device said that it refused. */
	if (!xfer->posted_ns || xfer->op == SMCFS_XFER_READ ||
	    xfer->status == IB_WC_REM_ACCESS_ERR || xfer->status == IB_WC_REM_INV_REQ_ERR)
		return -EIO;
	return -EREMOTEIO;
}

/* Context: softirq or process. */
static void word_done(struct smcfs_xfer *xfer, int err)
{
	struct smcfs_word *word = xfer->owner;

	word->err = word_outcome(xfer, err);
	if (!smcfs_xfer_op_writes(xfer->op))
		word->op.old = word_get(page_address(word->page), word->op.size);
	if (!err && word->folio && !word->locked)
		word_follow(word->folio, word->op.pos, word->op.size, word_result(&word->op),
			    xfer->op == SMCFS_XFER_READ);
	word_unhold(word);
	smcfs_xfer_free(xfer);
	complete(&word->done);
	word_put(word);
}

/* Locks the shadow page of a position if it is here, uptodate and clean. Else NULL. */
static struct folio *word_clean_folio(struct address_space *mapping, u64 pos)
{
	struct folio *folio = __filemap_get_folio(mapping, pos >> PAGE_SHIFT, 0, 0);

	if (IS_ERR(folio))
		return NULL;
	if (folio_lock_killable(folio)) {
		folio_put(folio);
		return NULL;
	}
	if (folio->mapping == mapping && folio_test_uptodate(folio) &&
	    !smcfs_folio_keeps(folio) && !folio_test_dirty(folio) &&
	    !folio_test_writeback(folio) && !smcfs_folio_hot(folio))
		return folio;
	folio_unlock(folio);
	folio_put(folio);
	return NULL;
}

/* The folio of a position, locked; made if there is none. ERR_PTR(-EINTR, -ENOMEM). */
static struct folio *word_any_folio(struct address_space *mapping, u64 pos)
{
	pgoff_t index = pos >> PAGE_SHIFT;
	struct folio *folio = __filemap_get_folio(mapping, index, 0, 0);

	if (IS_ERR(folio))
		return __filemap_get_folio(mapping, index, FGP_LOCK | FGP_CREAT,
					   mapping_gfp_mask(mapping));
	if (folio_lock_killable(folio)) {
		folio_put(folio);
		return ERR_PTR(-EINTR);
	}
	return folio;
}

/* As word_any_folio(), not in write-back. */
static struct folio *word_idle_folio(struct address_space *mapping, u64 pos)
{
	struct folio *folio;
	int err = 0;

	for (;;) {
		folio = word_any_folio(mapping, pos);
		if (IS_ERR(folio) || (folio->mapping == mapping && !smcfs_folio_flying(folio)))
			return folio;
		folio_unlock(folio);
		if (folio->mapping == mapping)
			err = smcfs_wb_wait_folio(smcfs_i(mapping->host)->region, folio);
		folio_put(folio);
		if (err)
			return ERR_PTR(-EINTR);
	}
}

/* Makes the shadow page stand still. A look needs none. Return: 0, -EIO, -EINTR, -ENOMEM. */
static int word_hold(struct smcfs_word *word, struct inode *inode)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	bool look = word->op.op == SMCFS_XFER_READ;
	struct folio *folio;
	int err = 0;

	folio = look ? word_clean_folio(inode->i_mapping, word->op.pos) :
		       word_idle_folio(inode->i_mapping, word->op.pos);
	if (IS_ERR_OR_NULL(folio))
		return PTR_ERR_OR_ZERO(folio);
	/* With the folio locked: what dies from here on waits for us before it drops the page. */
	if (smcfs_region_dead(region))
		err = -EIO;
	/* It must be there when a program stores to the page for the first time meanwhile. */
	else if (folio_test_uptodate(folio) && smcfs_region_merges(region))
		err = PTR_ERR_OR_ZERO(smcfs_folio_prepare(folio));
	if (err) {
		folio_unlock(folio);
		folio_put(folio);
		return err;
	}
	word->folio = folio;
	word->locked = !folio_test_uptodate(folio);
	if (word->locked)
		return 0;
	/*
	 * Who never dirtied a page has no write-back context yet, which the flag is accounted to.
	 */
	inode_attach_wb(inode, NULL);
	/* A flush under way that has marked the page as its own must find it again. */
	folio_start_writeback_keepwrite(folio);
	folio_unlock(folio);
	return 0;
}

static bool word_possible(const struct smcfs_grant *grant, enum smcfs_xfer_op op)
{
	return !smcfs_xfer_op_atomic(op) ||
	       (grant->atomics && grant->session->ep[SMCFS_CM_QP_READ].atomics);
}

/* Posts it and waits. Return: as smcfs_word(). */
static int word_run(struct smcfs_word *word, struct smcfs_grant *grant)
{
	struct smcfs_word_op *op = &word->op;
	struct smcfs_xfer *xfer = smcfs_xfer_alloc(grant, op->op, GFP_NOFS);

	smcfs_grant_add(xfer, page_folio(word->page), 0, op->pos, op->size);
	/* Memory that starts anywhere: then it is no word at the target. */
	if (xfer->nr_wrs != 1 || !IS_ALIGNED(xfer->wrs[0].wr.remote_addr, op->size)) {
		smcfs_xfer_free(xfer);
		word_unhold(word);
		return -EINVAL;
	}
	xfer->done = word_done;
	xfer->owner = word;
	xfer->operand = op->operand;
	xfer->compare = op->compare;
	if (smcfs_xfer_op_writes(op->op))
		word_set(page_address(word->page), op->size, op->operand);
	kref_get(&word->ref);
	smcfs_xfer_submit(xfer);
	if (wait_for_completion_killable(&word->done))
		return -EINTR;
	return word->err;
}

/* The folio stands still. Gives it back if nothing is posted. */
static int word_run_granted(struct smcfs_word *word, struct smcfs_region *region)
{
	struct smcfs_grant *grant = smcfs_region_grant(region);
	int err = -EOPNOTSUPP;

	if (IS_ERR(grant)) {
		word_unhold(word);
		return PTR_ERR(grant);
	}
	if (word_possible(grant, word->op.op))
		err = word_run(word, grant);
	else
		word_unhold(word);
	smcfs_grant_put(grant);
	return err;
}

int smcfs_word(struct inode *inode, struct smcfs_word_op *op)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	struct mutex *lock = smcfs_word_lock(region, op->pos >> PAGE_SHIFT);
	struct smcfs_word *word = word_create(op);
	int err = -EINTR;

	if (!word)
		return -ENOMEM;
	/* One word of a page at a time: who waits for his turn holds no reference to the page. */
	if (mutex_lock_killable(lock))
		goto out;
	err = word_hold(word, inode);
	/* Of now: the session may have been another while we waited. */
	if (!err)
		err = word_run_granted(word, region);
	mutex_unlock(lock);
	if (!err)
		op->old = word->op.old;
out:
	word_put(word);
	return err;
}

int smcfs_word_read(struct smcfs_region *region, u64 pos, u32 size, u64 *value)
{
	struct smcfs_word_op op = { .op = SMCFS_XFER_READ, .size = size, .pos = pos };
	struct smcfs_grant *grant = smcfs_region_grant(region);
	struct smcfs_word *word;
	int err = -ENOMEM;

	if (IS_ERR(grant))
		return PTR_ERR(grant);
	word = word_create(&op);
	if (word) {
		err = word_run(word, grant);
		if (!err)
			*value = word->op.old;
		word_put(word);
	}
	smcfs_grant_put(grant);
	return err;
}

bool smcfs_word_shadow(struct inode *inode, u64 pos, u32 size, u64 *value)
{
	struct folio *folio = word_clean_folio(inode->i_mapping, pos);
	void *at;

	if (!folio)
		return false;
	at = kmap_local_folio(folio, offset_in_folio(folio, pos));
	*value = word_get(at, size);
	kunmap_local(at);
	folio_unlock(folio);
	folio_put(folio);
	return true;
}
