// SPDX-License-Identifier: GPL-2.0
/*
 * The states of a region's shadow pages, as a dump.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: process, in the reader's recvmsg(). O(cached); a dump is no snapshot: pages change
 * while it is read.
 * Locking: none but trylocks, for the bitmaps of a folio. Nobody waits, neither this nor for this.
 * Lifetime: a dump goes by region id and page index; the region is looked up again for each
 * message.
 */
#include <linux/bitmap.h>
#include <linux/pagevec.h>
#include <linux/slab.h>

#include "netlink.h"

/* Of one message: with its header it fits into the smallest buffer that a dump can get. */
#define PAGES_RUNS_MAX	128

/* In netlink_callback->ctx. */
struct pages_dump {
	u64	region_id;
	u64	index;		/* pages below are done */
	bool	end;
};

/* Runs being collected. */
struct pages_runs {
	struct smcfs_page_run	run[PAGES_RUNS_MAX];
	unsigned int		nr;
};

static struct pages_dump *dump_of(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct pages_dump) > sizeof(cb->ctx));
	return (struct pages_dump *)cb->ctx;
}

/* Return: false if there is no room for it. */
static bool runs_add(struct pages_runs *runs, u64 index, u64 nr, enum smcfs_page_state state)
{
	struct smcfs_page_run *last = runs->nr ? &runs->run[runs->nr - 1] : NULL;

	if (last && last->state == state && last->first + last->pages == index &&
	    nr <= U32_MAX - last->pages) {
		last->pages += nr;
		return true;
	}
	if (runs->nr == PAGES_RUNS_MAX)
		return false;
	runs->run[runs->nr++] = (struct smcfs_page_run) {
		.first = index,
		.pages = nr,
		.state = state,
	};
	return true;
}

static enum smcfs_page_state folio_state(struct folio *folio)
{
	if (folio_test_writeback(folio))
		return SMCFS_PAGE_INFLIGHT;
	if (!folio_test_uptodate(folio))
		return folio_test_locked(folio) ? SMCFS_PAGE_FETCHING : SMCFS_PAGE_ABSENT;
	return folio_test_dirty(folio) ? SMCFS_PAGE_DIRTY : SMCFS_PAGE_CLEAN;
}

/*
 * Of a folio with marks of its own some pages may be dirty, or hot: copies which. Return: false: as
 * its flag says, as far as can be told.
 */
static bool folio_marks(struct folio *folio, unsigned long *dirty, unsigned long *hot)
{
	struct smcfs_folio *sf;

	if (!folio_test_private(folio) || !folio_trylock(folio))
		return false;
	sf = smcfs_folio_private(folio);
	if (sf) {
		spin_lock_irq(&sf->lock);
		if (folio_test_dirty(folio))
			bitmap_copy(dirty, sf->dirty, SMCFS_FOLIO_PAGES_MAX);
		bitmap_copy(hot, sf->hot, SMCFS_FOLIO_PAGES_MAX);
		spin_unlock_irq(&sf->lock);
	}
	folio_unlock(folio);
	return sf;
}

/* Adds the pages of a folio from *@index on. Return: false when full; *@index is where to go on. */
static bool folio_add(struct pages_runs *runs, struct folio *folio, u64 *index)
{
	DECLARE_BITMAP(dirty, SMCFS_FOLIO_PAGES_MAX) = {};
	DECLARE_BITMAP(hot, SMCFS_FOLIO_PAGES_MAX) = {};
	u64 end = folio->index + folio_nr_pages(folio);
	enum smcfs_page_state state = folio_state(folio);
	bool pages = (state == SMCFS_PAGE_DIRTY || state == SMCFS_PAGE_CLEAN) &&
		     folio_marks(folio, dirty, hot);

	if (*index < folio->index)
		*index = folio->index;
	if (state == SMCFS_PAGE_ABSENT)
		*index = end;
	if (!pages && *index < end) {
		if (!runs_add(runs, *index, end - *index, state))
			return false;
		*index = end;
	}
	for (; *index < end; ++*index) {
		unsigned int i = *index - folio->index;

		state = test_bit(i, dirty) ? SMCFS_PAGE_DIRTY :
			test_bit(i, hot) ? SMCFS_PAGE_HOT : SMCFS_PAGE_CLEAN;
		if (!runs_add(runs, *index, 1, state))
			return false;
	}
	return true;
}

/* Return: true when there are no more. */
static bool runs_collect(struct pages_runs *runs, struct address_space *mapping, u64 *index)
{
	struct folio_batch batch;
	pgoff_t next = *index;
	bool room = true;
	unsigned int i;

	folio_batch_init(&batch);
	while (room && filemap_get_folios(mapping, &next, ULONG_MAX, &batch)) {
		for (i = 0; i < folio_batch_count(&batch) && room; i++)
			room = folio_add(runs, batch.folios[i], index);
		folio_batch_release(&batch);
		cond_resched();
	}
	return room;
}

static int pages_put(struct sk_buff *skb, struct netlink_callback *cb, u64 region_id,
		     const struct pages_runs *runs)
{
	void *hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				&smcfs_genl_family, NLM_F_MULTI, SMCFS_CMD_PAGES_GET);

	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, SMCFS_A_REGION_ID, region_id, SMCFS_A_PAD) ||
	    nla_put(skb, SMCFS_A_PAGES, runs->nr * sizeof(runs->run[0]), runs->run)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

int smcfs_nl_pages_dump_start(struct netlink_callback *cb)
{
	const struct nlattr *id = smcfs_compat_dump_attrs(cb)[SMCFS_A_REGION_ID];
	struct smcfs_region *region;

	if (!id) {
		NL_SET_ERR_MSG(cb->extack, "REGION_ID is missing");
		return -EINVAL;
	}
	dump_of(cb)->region_id = nla_get_u64(id);
	region = smcfs_region_get(dump_of(cb)->region_id);
	if (!region) {
		NL_SET_ERR_MSG_ATTR(cb->extack, id, "REGION_ID: no such region");
		return -ENOENT;
	}
	smcfs_region_put(region);
	return 0;
}

int smcfs_nl_pages_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct pages_dump *dump = dump_of(cb);
	struct smcfs_region *region = dump->end ? NULL : smcfs_region_get(dump->region_id);
	struct inode *inode = region ? smcfs_region_inode(region) : NULL;
	struct pages_runs *runs = NULL;
	u64 index = dump->index;
	int err = 0;

	if (!inode)
		goto out;
	runs = kmalloc(sizeof(*runs), GFP_KERNEL);
	if (!runs) {
		err = -ENOMEM;
		goto out;
	}
	runs->nr = 0;
	dump->end = runs_collect(runs, inode->i_mapping, &index);
	/* Without room nothing is done: the same again, into the next buffer. */
	if (runs->nr)
		err = pages_put(skb, cb, dump->region_id, runs);
	if (err)
		dump->end = false;
	else
		dump->index = index;
out:
	kfree(runs);
	if (inode)
		smcfs_region_inode_put(inode);
	if (region)
		smcfs_region_put(region);
	return err && !skb->len ? err : skb->len;
}
