// SPDX-License-Identifier: GPL-2.0
/*
 * Grants: what a session may touch for one region.
 * Copyright (c) 2026 The SMC authors
 *
 * Owns: the extents as they came from the target, checked once, immutable.
 * Lifetime: counted; a region holds the current one, each transfer the one it was built with. A
 * grant holds its session.
 */
#include <linux/overflow.h>
#include <linux/slab.h>

#include "smcfs.h"

static int grant_check(u64 size, const struct smcfs_extent *extents, unsigned int nr,
		       struct netlink_ext_ack *extack)
{
	u64 pos = 0, end;
	unsigned int i;

	if (!nr || nr > SMCFS_EXTENTS_MAX) {
		NL_SET_ERR_MSG(extack, "a grant has 1 to 1024 extents");
		return -EINVAL;
	}
	for (i = 0; i < nr; i++) {
		const struct smcfs_extent *e = &extents[i];

		if (e->offset != pos) {
			NL_SET_ERR_MSG(extack, "extents must be sorted and without gaps from 0");
			return -EINVAL;
		}
		if (!e->length || (e->length < SMCFS_EXTENT_MIN && i + 1 < nr)) {
			NL_SET_ERR_MSG(extack, "an extent but the last is shorter than 2 MiB");
			return -EINVAL;
		}
		if (check_add_overflow(e->addr, e->length - 1, &end) ||
		    check_add_overflow(pos, e->length, &pos) || pos > size) {
			NL_SET_ERR_MSG(extack, "an extent wraps or exceeds the region");
			return -EINVAL;
		}
	}
	if (pos != size) {
		NL_SET_ERR_MSG(extack, "the extents do not cover the region");
		return -EINVAL;
	}
	return 0;
}

struct smcfs_grant *smcfs_grant_create(struct smcfs_session *session, u64 size,
				       const struct smcfs_extent *extents, unsigned int nr,
				       struct netlink_ext_ack *extack)
{
	struct smcfs_grant *grant;
	int err = grant_check(size, extents, nr, extack);

	if (err)
		return ERR_PTR(err);
	grant = kvmalloc(struct_size(grant, extents, nr), GFP_KERNEL);
	if (!grant)
		return ERR_PTR(-ENOMEM);
	kref_init(&grant->ref);
	kref_get(&session->ref);
	grant->session = session;
	grant->atomics = false;
	grant->nr_extents = nr;
	memcpy(grant->extents, extents, nr * sizeof(*extents));
	return grant;
}

static void grant_release(struct kref *ref)
{
	struct smcfs_grant *grant = container_of(ref, struct smcfs_grant, ref);

	smcfs_session_put(grant->session);
	kvfree(grant);
}

void smcfs_grant_put(struct smcfs_grant *grant)
{
	kref_put(&grant->ref, grant_release);
}

/* The extent that holds position @pos, which is inside the region. */
static const struct smcfs_extent *grant_find(const struct smcfs_grant *grant, u64 pos)
{
	unsigned int low = 0, high = grant->nr_extents;

	while (high - low > 1) {
		unsigned int mid = low + (high - low) / 2;

		if (grant->extents[mid].offset <= pos)
			low = mid;
		else
			high = mid;
	}
	return &grant->extents[low];
}

u32 smcfs_grant_add(struct smcfs_xfer *xfer, struct folio *folio, size_t offset, u64 pos,
		    u32 length)
{
	u32 added = 0;

	while (added < length) {
		const struct smcfs_extent *e = grant_find(xfer->grant, pos + added);
		u64 within = pos + added - e->offset;
		u32 part = min_t(u64, length - added, e->length - within);
		u32 rkey = smcfs_xfer_op_writes(xfer->op) ? e->rkey_bulk : e->rkey_read;

		if (!smcfs_xfer_add(xfer, folio, offset + added, part, e->addr + within, rkey))
			break;
		added += part;
	}
	return added;
}
