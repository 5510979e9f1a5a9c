// SPDX-License-Identifier: GPL-2.0
/*
 * Latencies of regions: page faults that fetch are timed here, and all histograms are dumped.
 * Copyright (c) 2026 The SMC authors
 *
 * Owns: nothing; struct smcfs_latencies is its region's. Who times something else calls
 *	smcfs_latency_add(), in any context.
 * Contexts: process, perhaps under mmap_lock (faults); process, in the reader's recvmsg() (dumps).
 * Locking: none. Each bucket is exact, but two of them need not be of the same moment.
 * Lifetime: a dump goes by region id and kind; the region is looked up again for each message.
 */
#include <linux/ktime.h>
#include <linux/mm.h>

#include "netlink.h"

/* In netlink_callback->ctx. */
struct latency_dump {
	u64	region_id;	/* regions below are done */
	u64	last;		/* those above are not wanted; 0: no limit */
	u32	kind;		/* of region_id, kinds below are done */
};

/**
 * smcfs_fault() - ->fault: a page is not in the page table
 * @vmf: of a mapping of a region.
 *
 * Counts and times the faults that find the page absent, whether its fetch succeeds or not.
 * Context: process, under mmap_lock, which may be dropped.
 * Return: as filemap_fault().
 */
vm_fault_t smcfs_fault(struct vm_fault *vmf)
{
	/* The mapping and its file may go once the lock is dropped. */
	struct smcfs_region *region =
		smcfs_region_hold(smcfs_i(file_inode(vmf->vma->vm_file))->region);
	u64 begun = ktime_get_ns();
	vm_fault_t ret = smcfs_ahead_fault(vmf);

	/* What is on its way is waited for by the core, without locks. */
	ret |= filemap_fault(vmf);
	/* What the core calls major: not in the page cache. The core waits for the fetch inside. */
	if (ret & VM_FAULT_MAJOR) {
		smcfs_stat_add(&region->stats, SMCFS_STAT_FETCH_FAULTS, 1);
		smcfs_latency_add(region->latency, SMCFS_LATENCY_FAULT, ktime_get_ns() - begun);
	}
	smcfs_region_put(region);
	return ret;
}

static struct latency_dump *dump_of(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct latency_dump) > sizeof(cb->ctx));
	return (struct latency_dump *)cb->ctx;
}

/* One message. Return: 0 or -EMSGSIZE. */
static int latency_put(struct sk_buff *skb, struct netlink_callback *cb,
		       const struct smcfs_region *region, u32 kind)
{
	const atomic64_t *from = region->latency->bucket[kind - 1];
	struct nlattr *attr;
	unsigned int i;
	void *hdr;

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &smcfs_genl_family, NLM_F_MULTI, SMCFS_CMD_LATENCY_GET);
	if (!hdr)
		return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, SMCFS_A_REGION_ID, region->id, SMCFS_A_PAD) ||
	    nla_put_u32(skb, SMCFS_A_LATENCY, kind))
		goto err_full;
	attr = nla_reserve_64bit(skb, SMCFS_A_BUCKETS, SMCFS_LATENCY_BUCKETS * sizeof(u64),
				 SMCFS_A_PAD);
	if (!attr)
		goto err_full;
	for (i = 0; i < SMCFS_LATENCY_BUCKETS; i++) {
		u64 count = atomic64_read(&from[i]);

		memcpy(nla_data(attr) + i * sizeof(count), &count, sizeof(count));
	}
	genlmsg_end(skb, hdr);
	return 0;

err_full:
	genlmsg_cancel(skb, hdr);
	return -EMSGSIZE;
}

int smcfs_nl_latency_dump_start(struct netlink_callback *cb)
{
	const struct nlattr *id = smcfs_compat_dump_attrs(cb)[SMCFS_A_REGION_ID];
	struct latency_dump *dump = dump_of(cb);

	dump->kind = SMCFS_LATENCY_UNSPEC + 1;
	if (id) {
		dump->region_id = nla_get_u64(id);
		dump->last = dump->region_id;
	}
	return 0;
}

int smcfs_nl_latency_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct latency_dump *dump = dump_of(cb);
	struct smcfs_region *region;
	int err = 0;

	/* Identities are counted up from a small number: none is the largest that there can be. */
	while (!err && (region = smcfs_region_next(dump->region_id))) {
		if (dump->last && region->id > dump->last) {
			smcfs_region_put(region);
			break;
		}
		if (region->id != dump->region_id)	/* the one that was begun is gone */
			dump->kind = SMCFS_LATENCY_UNSPEC + 1;
		dump->region_id = region->id;
		/* Set before the table had it as bound. */
		while (!err && region->latency && dump->kind <= SMCFS_LATENCY_MAX) {
			err = latency_put(skb, cb, region, dump->kind);
			if (!err)
				dump->kind++;
		}
		if (!err) {
			dump->region_id++;
			dump->kind = SMCFS_LATENCY_UNSPEC + 1;
		}
		smcfs_region_put(region);
	}
	return err && !skb->len ? err : skb->len;
}
