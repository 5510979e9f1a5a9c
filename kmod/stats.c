// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of regions and sessions, as netlink sees them.
 * Copyright (c) 2026 The SMC authors
 *
 * Owns: nothing; a struct smcfs_stats is part of its region or session.
 * Contexts: process (dumps). Counting itself is smcfs_stat_add(), any context.
 * Locking: none. Each counter is exact, but two of them need not be of the same moment.
 */
#include <net/netlink.h>

#include "smcfs.h"

int smcfs_stats_fill(struct sk_buff *skb, const struct smcfs_stats *st)
{
	struct nlattr *nest;
	int which;

	nest = nla_nest_start(skb, SMCFS_A_STATS);
	if (!nest)
		return -EMSGSIZE;
	for (which = SMCFS_STAT_PAD + 1; which <= SMCFS_STAT_MAX; which++) {
		if (nla_put_u64_64bit(skb, which, atomic64_read(&st->v[which]),
				      SMCFS_STAT_PAD)) {
			nla_nest_cancel(skb, nest);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(skb, nest);
	return 0;
}
