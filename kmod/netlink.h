/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the netlink family share: netlink*.c and upcall.c.
 * Copyright (c) 2026 The SMC authors
 */
#ifndef SMCFS_NETLINK_H
#define SMCFS_NETLINK_H

#include <net/genetlink.h>

#include "smcfs.h"

/* Index in the family's multicast groups. */
enum {
	SMCFS_MCGRP_EVENTS,
};

extern struct genl_family smcfs_genl_family;	/* netlink.c */

/* netlink_req.c: handlers of the commands that change anything. */
int smcfs_nl_daemon_hello(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_peer_add(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_peer_del(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_session_connect(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_session_del(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_region_attach(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_bind_fail(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_region_detach(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_region_revoke(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_region_set(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_writer_result(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_list_result(struct sk_buff *skb, struct genl_info *info);

/* netlink_get.c: handlers of the commands that do not, and events. */
int smcfs_nl_info_get(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_region_get(struct sk_buff *skb, struct genl_info *info);
int smcfs_nl_peer_dump(struct sk_buff *skb, struct netlink_callback *cb);
int smcfs_nl_session_dump(struct sk_buff *skb, struct netlink_callback *cb);
int smcfs_nl_region_dump_start(struct netlink_callback *cb);
int smcfs_nl_region_dump(struct sk_buff *skb, struct netlink_callback *cb);
/* pages.c */
int smcfs_nl_pages_dump_start(struct netlink_callback *cb);
int smcfs_nl_pages_dump(struct sk_buff *skb, struct netlink_callback *cb);
/* latency.c */
int smcfs_nl_latency_dump_start(struct netlink_callback *cb);
int smcfs_nl_latency_dump(struct sk_buff *skb, struct netlink_callback *cb);
/* Events are sent from start, when the family is registered, to stop, before it goes. */
void smcfs_events_start(void);
void smcfs_events_stop(void);

/* upcall.c */
int smcfs_daemon_hello(u32 portid, const struct sock *sk);	/* 0 or -EBUSY */
int smcfs_upcall_init(void);
void smcfs_upcall_exit(void);

#endif
