// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family: what each command takes, who may send it, who handles it.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: process, in the sendmsg() of the sender, several requests at a time. REGION_DETACH and
 * REVOKE wait for write-back, killably and bounded by the deadlines of requests, hence
 * parallel_ops: else all families would wait with them for genl_mutex. (The core's cb_lock is held
 * for reading all the while.)
 * Failure: what a policy refuses never reaches a handler. The core then sets the errno, a text and
 * the place of the attribute: -ERANGE for numbers out of range, else -EINVAL.
 *
 * Each command has a policy of its own: it takes its attributes and refuses all others; lengths are
 * exact. Header fields that have no meaning must be zero (resv_start_op is 0).
 */
#include <linux/in.h>
#include <linux/in6.h>

#include "netlink.h"

/* ------------------------------------------------------------------ policies */

/* Not const: a policy of 6.1 points to a variable. */
static struct netlink_range_validation smcfs_range_size __ro_after_init = {
	.min = 1,
	.max = SMCFS_REGION_SIZE_MAX,
};

static struct netlink_range_validation smcfs_range_timeout __ro_after_init = {
	.min = 10,
	.max = 600000,
};

static struct netlink_range_validation smcfs_range_flush_after __ro_after_init = {
	.min = 1,
	.max = 3600000,
};

static struct netlink_range_validation smcfs_range_unit __ro_after_init = {
	.min = SMCFS_MERGE_UNIT_MIN,
	.max = SMCFS_MERGE_UNIT_MAX,
};

static struct netlink_range_validation smcfs_range_push_delay __ro_after_init = {
	.min = 0,
	.max = SMCFS_PUSH_DELAY_US_MAX,
};

static struct netlink_range_validation smcfs_range_max_stale __ro_after_init = {
	.min = 0,
	.max = SMCFS_MAX_STALE_US_MAX,
};

/* (uid_t)-1 is "no change" everywhere, and nobody's. */
static struct netlink_range_validation smcfs_range_id __ro_after_init = {
	.min = 0,
	.max = U32_MAX - 1,
};

#define SMCFS_P_NODE	{ .type = NLA_NUL_STRING, .len = SMCFS_NODE_NAME_MAX }
#define SMCFS_P_NAME	{ .type = NLA_NUL_STRING, .len = SMCFS_REGION_NAME_MAX }
#define SMCFS_P_ID	NLA_POLICY_MIN(NLA_U64, 1)
#define SMCFS_P_TOKEN	NLA_POLICY_EXACT_LEN(SMCFS_TOKEN_BYTES)
#define SMCFS_P_TIMEOUT	NLA_POLICY_FULL_RANGE(NLA_U32, &smcfs_range_timeout)
#define SMCFS_P_UNIT	NLA_POLICY_FULL_RANGE(NLA_U32, &smcfs_range_unit)
#define SMCFS_P_WRITERS	NLA_POLICY_RANGE(NLA_U32, SMCFS_WRITERS_UNSPEC + 1, SMCFS_WRITERS_MAX)
#define SMCFS_P_ADDR	NLA_POLICY_RANGE(NLA_BINARY, sizeof(struct sockaddr_in), \
					 sizeof(struct sockaddr_in6))
#define SMCFS_EXTENTS_BYTES_MAX	(SMCFS_EXTENTS_MAX * sizeof(struct smcfs_extent))
#define SMCFS_P_ERRNO	NLA_POLICY_MAX(NLA_U32, MAX_ERRNO)

static const struct nla_policy smcfs_peer_policy[] = {
	[SMCFS_A_NODE]			= SMCFS_P_NODE,
};

static const struct nla_policy smcfs_connect_policy[] = {
	[SMCFS_A_SESSION_ID]		= SMCFS_P_ID,
	[SMCFS_A_NODE]			= SMCFS_P_NODE,
	[SMCFS_A_DST_ADDR]		= SMCFS_P_ADDR,
	[SMCFS_A_SRC_ADDR]		= SMCFS_P_ADDR,
	[SMCFS_A_TOKEN_READ]		= SMCFS_P_TOKEN,
	[SMCFS_A_TOKEN_BULK]		= SMCFS_P_TOKEN,
	[SMCFS_A_REQUEST_TIMEOUT_MS]	= SMCFS_P_TIMEOUT,
	[SMCFS_A_CONNECT_TIMEOUT_MS]	= SMCFS_P_TIMEOUT,
};

static const struct nla_policy smcfs_session_policy[] = {
	[SMCFS_A_SESSION_ID]		= SMCFS_P_ID,
};

static const struct nla_policy smcfs_attach_policy[] = {
	[SMCFS_A_NODE]			= SMCFS_P_NODE,
	[SMCFS_A_NAME]			= SMCFS_P_NAME,
	[SMCFS_A_SESSION_ID]		= SMCFS_P_ID,
	[SMCFS_A_GENERATION]		= SMCFS_P_ID,
	[SMCFS_A_SIZE]			= NLA_POLICY_FULL_RANGE(NLA_U64, &smcfs_range_size),
	[SMCFS_A_MODE]			= NLA_POLICY_MASK(NLA_U32, 0777),
	[SMCFS_A_UID]			= NLA_POLICY_FULL_RANGE(NLA_U32, &smcfs_range_id),
	[SMCFS_A_GID]			= NLA_POLICY_FULL_RANGE(NLA_U32, &smcfs_range_id),
	[SMCFS_A_WRITERS]		= SMCFS_P_WRITERS,
	[SMCFS_A_MERGE_UNIT]		= SMCFS_P_UNIT,
	[SMCFS_A_FLAGS]			= NLA_POLICY_MASK(NLA_U32, SMCFS_RF_ALL),
	[SMCFS_A_EXTENTS]		= { .type = NLA_BINARY, .len = SMCFS_EXTENTS_BYTES_MAX },
};

static const struct nla_policy smcfs_bind_fail_policy[] = {
	[SMCFS_A_NODE]			= SMCFS_P_NODE,
	[SMCFS_A_NAME]			= SMCFS_P_NAME,
	[SMCFS_A_ERRNO]			= NLA_POLICY_RANGE(NLA_U32, 1, MAX_ERRNO),
};

static const struct nla_policy smcfs_detach_policy[] = {
	[SMCFS_A_REGION_ID]		= SMCFS_P_ID,
	[SMCFS_A_FLAGS]			= NLA_POLICY_MASK(NLA_U32, SMCFS_DETACH_FORCE),
};

static const struct nla_policy smcfs_region_policy[] = {
	[SMCFS_A_REGION_ID]		= SMCFS_P_ID,
};

static const struct nla_policy smcfs_set_policy[] = {
	[SMCFS_A_REGION_ID]		= SMCFS_P_ID,
	[SMCFS_A_CTO]			= NLA_POLICY_MAX(NLA_U8, 1),
	[SMCFS_A_FLUSH_AFTER_MS]	= NLA_POLICY_FULL_RANGE(NLA_U32, &smcfs_range_flush_after),
	[SMCFS_A_ORIGIN]		= NLA_POLICY_RANGE(NLA_U8, SMCFS_ORIGIN_UNSPEC + 1,
							   SMCFS_ORIGIN_MAX),
	[SMCFS_A_WRITERS]		= SMCFS_P_WRITERS,
	[SMCFS_A_MERGE_UNIT]		= SMCFS_P_UNIT,
	[SMCFS_A_SYNC_MODE]		= NLA_POLICY_RANGE(NLA_U32, SMCFS_SYNC_UNSPEC + 1,
							   SMCFS_SYNC_MAX),
	[SMCFS_A_PUSH_DELAY_US]		= NLA_POLICY_FULL_RANGE(NLA_U32, &smcfs_range_push_delay),
	[SMCFS_A_MAX_STALE_US]		= NLA_POLICY_FULL_RANGE(NLA_U32, &smcfs_range_max_stale),
	[SMCFS_A_HOT]			= NLA_POLICY_MAX(NLA_U8, 1),
	[SMCFS_A_GRANULE]		= { .type = NLA_U32 },	/* the handler names the bounds */
};

static const struct nla_policy smcfs_writer_policy[] = {
	[SMCFS_A_REGION_ID]		= SMCFS_P_ID,
	[SMCFS_A_ERRNO]			= SMCFS_P_ERRNO,
};

static const struct nla_policy smcfs_names_policy[] = {
	[SMCFS_A_NAME]			= SMCFS_P_NAME,
};

static const struct nla_policy smcfs_list_policy[] = {
	[SMCFS_A_COOKIE]		= { .type = NLA_U64 },
	[SMCFS_A_ERRNO]			= SMCFS_P_ERRNO,
	[SMCFS_A_NAMES]			= NLA_POLICY_NESTED(smcfs_names_policy),
};

/* ------------------------------------------------------------------ the family */

#define SMCFS_OP_POLICY(table)	.policy = table, .maxattr = ARRAY_SIZE(table) - 1

static const struct genl_ops smcfs_genl_ops[] = {
	{
		/* Without a policy every attribute is refused. */
		.cmd = SMCFS_CMD_DAEMON_HELLO,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_daemon_hello,
	}, {
		.cmd = SMCFS_CMD_PEER_ADD,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_peer_add,
		SMCFS_OP_POLICY(smcfs_peer_policy),
	}, {
		.cmd = SMCFS_CMD_PEER_DEL,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_peer_del,
		SMCFS_OP_POLICY(smcfs_peer_policy),
	}, {
		.cmd = SMCFS_CMD_SESSION_CONNECT,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_session_connect,
		SMCFS_OP_POLICY(smcfs_connect_policy),
	}, {
		.cmd = SMCFS_CMD_SESSION_DEL,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_session_del,
		SMCFS_OP_POLICY(smcfs_session_policy),
	}, {
		.cmd = SMCFS_CMD_REGION_ATTACH,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_region_attach,
		SMCFS_OP_POLICY(smcfs_attach_policy),
	}, {
		.cmd = SMCFS_CMD_BIND_FAIL,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_bind_fail,
		SMCFS_OP_POLICY(smcfs_bind_fail_policy),
	}, {
		.cmd = SMCFS_CMD_REGION_DETACH,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_region_detach,
		SMCFS_OP_POLICY(smcfs_detach_policy),
	}, {
		.cmd = SMCFS_CMD_REGION_REVOKE,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_region_revoke,
		SMCFS_OP_POLICY(smcfs_region_policy),
	}, {
		.cmd = SMCFS_CMD_REGION_SET,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_region_set,
		SMCFS_OP_POLICY(smcfs_set_policy),
	}, {
		.cmd = SMCFS_CMD_WRITER_RESULT,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_writer_result,
		SMCFS_OP_POLICY(smcfs_writer_policy),
	}, {
		.cmd = SMCFS_CMD_LIST_RESULT,
		.flags = GENL_ADMIN_PERM,
		.doit = smcfs_nl_list_result,
		SMCFS_OP_POLICY(smcfs_list_policy),
	}, {
		.cmd = SMCFS_CMD_INFO_GET,
		.doit = smcfs_nl_info_get,
	}, {
		.cmd = SMCFS_CMD_PEER_GET,
		.dumpit = smcfs_nl_peer_dump,
	}, {
		.cmd = SMCFS_CMD_SESSION_GET,
		.dumpit = smcfs_nl_session_dump,
	}, {
		.cmd = SMCFS_CMD_REGION_GET,
		.doit = smcfs_nl_region_get,
		.start = smcfs_nl_region_dump_start,
		.dumpit = smcfs_nl_region_dump,
		SMCFS_OP_POLICY(smcfs_region_policy),
	}, {
		/* Who touches what of a region is not for everybody. */
		.cmd = SMCFS_CMD_PAGES_GET,
		.flags = GENL_ADMIN_PERM,
		.start = smcfs_nl_pages_dump_start,
		.dumpit = smcfs_nl_pages_dump,
		SMCFS_OP_POLICY(smcfs_region_policy),
	}, {
		.cmd = SMCFS_CMD_LATENCY_GET,
		.start = smcfs_nl_latency_dump_start,
		.dumpit = smcfs_nl_latency_dump,
		SMCFS_OP_POLICY(smcfs_region_policy),
	},
};

static const struct genl_multicast_group smcfs_genl_groups[] = {
	[SMCFS_MCGRP_EVENTS] = {
		.name = SMCFS_GENL_MCGRP_EVENTS,
		.flags = GENL_MCAST_CAP_NET_ADMIN,
	},
};

struct genl_family smcfs_genl_family __ro_after_init = {
	.name		= SMCFS_GENL_NAME,
	.version	= SMCFS_GENL_VERSION,
	.module		= THIS_MODULE,
	.netnsok	= false,
	.parallel_ops	= true,
	.ops		= smcfs_genl_ops,
	.n_ops		= ARRAY_SIZE(smcfs_genl_ops),
	.mcgrps		= smcfs_genl_groups,
	.n_mcgrps	= ARRAY_SIZE(smcfs_genl_groups),
};

int smcfs_netlink_init(void)
{
	int err;

	err = smcfs_upcall_init();
	if (err)
		return err;
	err = genl_register_family(&smcfs_genl_family);
	if (err)
		goto err_upcall;
	smcfs_events_start();
	return 0;

err_upcall:
	smcfs_upcall_exit();
	return err;
}

void smcfs_netlink_exit(void)
{
	smcfs_events_stop();
	/* Waits for the requests that are running. */
	genl_unregister_family(&smcfs_genl_family);
	smcfs_upcall_exit();
}
