// SPDX-License-Identifier: GPL-2.0
/*
 * Fetch: shadow pages from the target's memory by RDMA READ.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: read_folio and readahead in process context, perhaps under mmap_lock: they post and
 *	never wait for the network. Completion in softirq.
 * Locking: the folio lock covers a fetch from here to fetch_done(); nothing else is taken.
 * Lifetime: the locked folio stays in the page cache; the transfer holds the grant, the folio's
 *	inode is held by whoever asked (a fetch ends before its folio can be truncated, and eviction
 *	truncates).
 * Failure: the folio is unlocked without uptodate; the core turns that into EIO or SIGBUS.
 */
#include <linux/highmem.h>

#include "smcfs.h"
#include "trace.h"

/* The largest transfer, so that the first page of a window need not wait for all of it. */
#define SMCFS_FETCH_BYTES_MAX	(128U << 10)
/* Extents are 2 MiB or longer, so a folio of at most that size lies in two. */
#define SMCFS_FETCH_SEGS	2

static void fetch_done(struct smcfs_xfer *xfer, int err)
{
	struct smcfs_region *region = xfer->owner;
	struct folio *last = NULL;
	unsigned int i;

	if (err)
		smcfs_stat_add(&region->stats, SMCFS_STAT_ERRORS, 1);
	else
		smcfs_latency_add(region->latency, SMCFS_LATENCY_FETCH, xfer->latency_ns);
	trace_smcfs_fetch_done(region->id, folio_pos(xfer->segs[0].folio), xfer->bytes, err);
	for (i = 0; i < xfer->nr_segs; i++) {
		struct folio *folio = xfer->segs[i].folio;

		if (folio == last)
			continue;
		last = folio;
		if (!err)
			folio_mark_uptodate(folio);
		folio_unlock(folio);
	}
	smcfs_xfer_free(xfer);
	smcfs_region_put(region);
}

static struct smcfs_xfer *fetch_create(struct smcfs_region *region, struct smcfs_grant *grant)
{
	struct smcfs_xfer *xfer = smcfs_xfer_alloc(grant, SMCFS_XFER_READ, GFP_NOFS);

	xfer->done = fetch_done;
	xfer->owner = smcfs_region_hold(region);
	return xfer;
}

static void fetch_submit(struct smcfs_xfer *xfer)
{
	struct smcfs_region *region = xfer->owner;

	trace_smcfs_fetch(region->id, folio_pos(xfer->segs[0].folio), xfer->bytes);
	smcfs_stat_add(&region->stats, SMCFS_STAT_FETCH_OPS, xfer->nr_wrs);
	smcfs_stat_add(&region->stats, SMCFS_STAT_FETCH_BYTES, xfer->bytes);
	smcfs_modes_cached(region);
	smcfs_xfer_submit(xfer);
}

/* The bytes of @folio that lie inside the region; the rest is zeroed. */
static size_t fetch_length(struct inode *inode, struct folio *folio)
{
	loff_t inside = i_size_read(inode) - folio_pos(folio);
	size_t size = folio_size(folio);

	if (inside >= (loff_t)size)
		return size;
	if (inside <= 0)
		inside = 0;
	folio_zero_segment(folio, inside, size);
	return inside;
}

/**
 * smcfs_read_folio() - ->read_folio: fetch one folio
 * @file: unused.
 * @folio: locked, not uptodate; unlocked when the fetch ended.
 *
 * Context: process.
 * Return: 0 or -EIO (the folio is unlocked then, too).
 */
int smcfs_read_folio(struct file *file, struct folio *folio)
{
	struct inode *inode = folio->mapping->host;
	struct smcfs_region *region = smcfs_i(inode)->region;
	struct smcfs_grant *grant = smcfs_region_grant(region);
	struct smcfs_xfer *xfer;
	size_t length;

	if (IS_ERR(grant)) {
		folio_unlock(folio);
		return PTR_ERR(grant);
	}
	length = fetch_length(inode, folio);
	if (!length) {
		folio_mark_uptodate(folio);
		folio_unlock(folio);
		smcfs_grant_put(grant);
		return 0;
	}
	xfer = fetch_create(region, grant);
	smcfs_grant_put(grant);
	smcfs_grant_add(xfer, folio, 0, folio_pos(folio), length);
	fetch_submit(xfer);
	return 0;
}

/**
 * smcfs_fetch_begin() - several folios are going to be fetched
 * @fetch: filled in.
 * @inode: of a region.
 *
 * Context: process.
 * Return: false: there is no live session.
 */
bool smcfs_fetch_begin(struct smcfs_fetch *fetch, struct inode *inode)
{
	fetch->inode = inode;
	fetch->grant = smcfs_region_grant(smcfs_i(inode)->region);
	fetch->xfer = NULL;
	return !IS_ERR(fetch->grant);
}

/* What was added so far is on its way. */
void smcfs_fetch_submit(struct smcfs_fetch *fetch)
{
	if (fetch->xfer)
		fetch_submit(fetch->xfer);
	fetch->xfer = NULL;
}

/* @folio is locked, in the page cache and not uptodate; unlocked when its fetch ended. */
void smcfs_fetch_add(struct smcfs_fetch *fetch, struct folio *folio)
{
	size_t length = fetch_length(fetch->inode, folio);

	if (!length) {
		folio_mark_uptodate(folio);
		folio_unlock(folio);
		return;
	}
	if (fetch->xfer && (fetch->xfer->nr_segs + SMCFS_FETCH_SEGS > SMCFS_XFER_SEGS_MAX ||
			    fetch->xfer->bytes + length > SMCFS_FETCH_BYTES_MAX))
		smcfs_fetch_submit(fetch);
	if (!fetch->xfer)
		fetch->xfer = fetch_create(smcfs_i(fetch->inode)->region, fetch->grant);
	smcfs_grant_add(fetch->xfer, folio, 0, folio_pos(folio), length);
}

void smcfs_fetch_end(struct smcfs_fetch *fetch)
{
	smcfs_fetch_submit(fetch);
	smcfs_grant_put(fetch->grant);
}

#ifdef SMCFS_ORDER_UNBOUNDED
/* Of a file that readahead is to go on with. */
void smcfs_readahead_bound(struct file_ra_state *ra)
{
	if (ra)
		ra->ra_pages = min_t(unsigned int, ra->ra_pages, SMCFS_FOLIO_PAGES_MAX);
}

/*
 * A folio of readahead that is larger than what we keep marks for, and that could be mapped by PMD,
 * writable as a whole: it goes, and whoever needs one of its pages makes that page. @folio is
 * locked; unlocked here.
 */
static bool readahead_refuse(struct readahead_control *rac, struct folio *folio)
{
	if (folio_nr_pages(folio) <= SMCFS_FOLIO_PAGES_MAX)
		return false;
	folio_get(folio);
	generic_error_remove_folio(rac->mapping, folio);
	folio_unlock(folio);
	folio_put(folio);
	smcfs_readahead_bound(rac->ra);
	return true;
}
#else
static bool readahead_refuse(struct readahead_control *rac, struct folio *folio)
{
	return false;
}
#endif

/* ->readahead: as read_folio for a window, in transfers of a bounded size. */
void smcfs_readahead(struct readahead_control *rac)
{
	struct smcfs_fetch fetch;
	struct folio *folio;

	/* The core unlocks what is left in the window; read_folio tells who needs it the error. */
	if (!smcfs_fetch_begin(&fetch, rac->mapping->host))
		return;
	while ((folio = readahead_folio(rac)))
		if (!readahead_refuse(rac, folio))
			smcfs_fetch_add(&fetch, folio);
	smcfs_fetch_end(&fetch);
}

/**
 * smcfs_fetch_folio_sync() - fetch and wait
 * @inode: of the region.
 * @folio: locked, not uptodate; locked again on return.
 *
 * Context: process.
 * Return: 0; -EIO; -EINTR if killed (folio locked in no case of an error).
 */
int smcfs_fetch_folio_sync(struct inode *inode, struct folio *folio)
{
	int err = smcfs_read_folio(NULL, folio);

	if (err)
		return err;
	err = folio_lock_killable(folio);
	if (err)
		return err;
	if (folio->mapping == inode->i_mapping && folio_test_uptodate(folio))
		return 0;
	folio_unlock(folio);
	return folio->mapping == inode->i_mapping ? -EIO : -EAGAIN;
}
