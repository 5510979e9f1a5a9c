// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel knows, as netlink messages: replies, dumps and events.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: process. A dump runs in the reader's recvmsg(), an event where its state changed.
 * Locking: each object is read under its own lock, then written out without. An event is built and
 * sent under smcfs_events.lock, so the last event about an object tells its last state. Inside that
 * lock, a mutex, only the leaf locks of sessions and regions are taken.
 * Lifetime: a dump goes by identity, not by pointer: objects come and go between two messages.
 * Failure: an event that cannot be built or delivered gives every subscriber ENOBUFS on its next
 * receive; a subscriber then reads the dumps. Tokens and keys are never written out.
 */
#include <linux/math64.h>
#include <linux/ratelimit.h>
#include <linux/timekeeping.h>
#include <net/net_namespace.h>

#include "netlink.h"

static struct {
	struct mutex	lock;	/* building and sending events */
	bool		on;	/* [lock] */
} smcfs_events = {
	.lock = __MUTEX_INITIALIZER(smcfs_events.lock),
};

/* In netlink_callback->ctx. */
struct smcfs_dump {
	u64	next;		/* identities below are done */
	u64	last;		/* identities above are not wanted; 0: no limit */
	bool	end;		/* of the largest identity that there can be */
};

static struct smcfs_dump *dump_of(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct smcfs_dump) > sizeof(cb->ctx));
	return (struct smcfs_dump *)cb->ctx;
}

/* @id was written out. */
static void dump_advance(struct smcfs_dump *dump, u64 id)
{
	dump->next = id + 1;
	dump->end = id == U64_MAX || id == dump->last;
}

static int put_id(struct sk_buff *skb, enum smcfs_attr attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, SMCFS_A_PAD);
}

/* Age of a request that was posted at @posted_ns, for OLDEST_MS: 0 is "none". */
static u32 age_ms(u64 posted_ns)
{
	u64 now = ktime_get_ns();

	if (!posted_ns || posted_ns > now)
		return 0;
	return clamp_t(u64, div_u64(now - posted_ns, NSEC_PER_MSEC), 1, U32_MAX);
}

/* ------------------------------------------------------------------ sessions */

/* State of a session at one moment. */
struct session_view {
	enum smcfs_session_state state;
	int	err;
	char	reason[SMCFS_REASON_MAX + 1];
};

static void session_look(struct smcfs_session *session, struct session_view *view)
{
	spin_lock_bh(&session->lock);
	view->state = session->state;
	view->err = session->err;
	memcpy(view->reason, session->reason, sizeof(view->reason));
	spin_unlock_bh(&session->lock);
}

static int session_put_state(struct sk_buff *skb, struct smcfs_session *session,
			     const struct session_view *view)
{
	if (put_id(skb, SMCFS_A_SESSION_ID, session->params.id) ||
	    nla_put_string(skb, SMCFS_A_NODE, session->params.node) ||
	    nla_put_u32(skb, SMCFS_A_STATE, view->state) ||
	    nla_put_u32(skb, SMCFS_A_ERRNO, abs(view->err)) ||
	    nla_put_string(skb, SMCFS_A_REASON, view->reason))
		return -EMSGSIZE;
	return 0;
}

static int session_put_queues(struct sk_buff *skb, struct smcfs_session *session)
{
	unsigned int i, inflight = 0, queued = 0;
	u64 oldest_ns = 0;

	for (i = 0; i < ARRAY_SIZE(session->ep); i++) {
		struct smcfs_ep *ep = &session->ep[i];
		struct smcfs_xfer *xfer;

		spin_lock_bh(&ep->lock);
		inflight += ep->nr_inflight;
		queued += ep->nr_waiting;
		xfer = list_first_entry_or_null(&ep->inflight, struct smcfs_xfer, link);
		if (xfer && (!oldest_ns || xfer->posted_ns < oldest_ns))
			oldest_ns = xfer->posted_ns;
		spin_unlock_bh(&ep->lock);
	}
	if (nla_put_u32(skb, SMCFS_A_INFLIGHT, inflight) ||
	    nla_put_u32(skb, SMCFS_A_QUEUED, queued) ||
	    nla_put_u32(skb, SMCFS_A_OLDEST_MS, age_ms(oldest_ns)))
		return -EMSGSIZE;
	return 0;
}

static int session_put(struct sk_buff *skb, struct smcfs_session *session)
{
	const struct sockaddr_storage *dst = &session->params.dst;
	size_t dst_len = dst->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						      sizeof(struct sockaddr_in);
	struct session_view view;

	session_look(session, &view);
	if (session_put_state(skb, session, &view) ||
	    nla_put(skb, SMCFS_A_DST_ADDR, dst_len, dst) ||
	    nla_put_u32(skb, SMCFS_A_REQUEST_TIMEOUT_MS, session->params.request_timeout_ms) ||
	    session_put_queues(skb, session) ||
	    smcfs_stats_fill(skb, &session->stats))
		return -EMSGSIZE;
	/* The device is known from LIVE on, and is constant then. */
	if (view.state > SMCFS_SESSION_CONNECTING && session->device[0] &&
	    nla_put_string(skb, SMCFS_A_RDMA_DEVICE, session->device))
		return -EMSGSIZE;
	return 0;
}

/* ------------------------------------------------------------------ regions */

/* A region at one moment. */
struct region_view {
	enum smcfs_region_state	state;
	enum smcfs_writer_state	writer;
	int			err;
	u64			session_id;	/* 0: none */
	u64			generation;	/* 0: was never bound, what follows means nothing */
	u64			size;
	u32			mode, uid, gid, writers, flags;
	u8			cto, cto_origin, flush_after_origin;
	u8			merge_unit_origin, writers_origin;
	u8			sync_mode, sync_mode_origin, push_delay_origin, max_stale_origin;
	u8			hot, hot_origin, granule_origin;
	u32			flush_after_ms, merge_unit, push_delay_us, max_stale_us, granule;
	char			reason[SMCFS_REASON_MAX + 1];
};

static void region_look(struct smcfs_region *region, struct region_view *view)
{
	const struct smcfs_region_desc *desc = &region->desc;

	spin_lock_bh(&region->lock);
	view->state = region->state;
	view->writer = region->writer;
	view->err = region->err;
	view->session_id = region->grant ? region->grant->session->params.id : 0;
	view->generation = desc->generation;
	view->size = desc->size;
	view->mode = desc->mode;
	view->uid = desc->uid;
	view->gid = desc->gid;
	view->writers = region->writers;
	view->flags = desc->flags & ~SMCFS_RF_ATOMICS;
	if (region->grant && region->grant->atomics)
		view->flags |= SMCFS_RF_ATOMICS;
	view->cto = region->cto;
	view->cto_origin = region->cto_origin;
	view->flush_after_ms = region->flush_after_ms;
	view->flush_after_origin = region->flush_after_origin;
	view->merge_unit = region->merge_unit;
	view->merge_unit_origin = region->merge_unit_origin;
	view->writers_origin = region->writers_origin;
	view->sync_mode = region->sync_mode;
	view->sync_mode_origin = region->sync_mode_origin;
	view->push_delay_us = region->push_delay_us;
	view->push_delay_origin = region->push_delay_origin;
	view->max_stale_us = region->max_stale_us;
	view->max_stale_origin = region->max_stale_origin;
	view->hot = region->hot;
	view->hot_origin = region->hot_origin;
	view->granule = region->granule;
	view->granule_origin = region->granule_origin;
	memcpy(view->reason, region->reason, sizeof(view->reason));
	spin_unlock_bh(&region->lock);
}

static int region_put_state(struct sk_buff *skb, struct smcfs_region *region,
			    const struct region_view *view)
{
	if (put_id(skb, SMCFS_A_REGION_ID, region->id) ||
	    nla_put_string(skb, SMCFS_A_NODE, region->peer->name) ||
	    nla_put_string(skb, SMCFS_A_NAME, region->name) ||
	    nla_put_u32(skb, SMCFS_A_STATE, view->state) ||
	    nla_put_u32(skb, SMCFS_A_ERRNO, abs(view->err)) ||
	    nla_put_string(skb, SMCFS_A_REASON, view->reason))
		return -EMSGSIZE;
	if (view->generation && put_id(skb, SMCFS_A_GENERATION, view->generation))
		return -EMSGSIZE;
	if (view->session_id && put_id(skb, SMCFS_A_SESSION_ID, view->session_id))
		return -EMSGSIZE;
	return 0;
}

static int region_put_inflight(struct sk_buff *skb, struct smcfs_region *region)
{
	u64 posted_ns, oldest_ns = 0;
	struct smcfs_wb *wb;
	u32 inflight = 0;

	spin_lock_bh(&region->wb_lock);
	list_for_each_entry(wb, &region->wb_inflight, link) {
		if (wb->done)
			continue;
		posted_ns = READ_ONCE(wb->posted_ns);
		if (posted_ns && (!oldest_ns || posted_ns < oldest_ns))
			oldest_ns = posted_ns;
		inflight++;
	}
	spin_unlock_bh(&region->wb_lock);
	if (nla_put_u32(skb, SMCFS_A_INFLIGHT, inflight) ||
	    nla_put_u32(skb, SMCFS_A_OLDEST_MS, age_ms(oldest_ns)))
		return -EMSGSIZE;
	return 0;
}

static int region_put_cache(struct sk_buff *skb, struct smcfs_region *region)
{
	struct inode *inode = smcfs_region_inode(region);
	u64 dirty = 0, writeback = 0, cached = 0;

	if (inode) {
		dirty = smcfs_dirty_bytes(inode->i_mapping, PAGECACHE_TAG_DIRTY);
		writeback = smcfs_dirty_bytes(inode->i_mapping, PAGECACHE_TAG_WRITEBACK);
		cached = (u64)READ_ONCE(inode->i_mapping->nrpages) << PAGE_SHIFT;
		smcfs_region_inode_put(inode);
	}
	if (put_id(skb, SMCFS_A_DIRTY_BYTES, dirty) ||
	    put_id(skb, SMCFS_A_WRITEBACK_BYTES, writeback) ||
	    put_id(skb, SMCFS_A_CACHED_BYTES, cached))
		return -EMSGSIZE;
	return 0;
}

static int region_put(struct sk_buff *skb, struct smcfs_region *region)
{
	struct region_view view;

	region_look(region, &view);
	if (region_put_state(skb, region, &view) ||
	    nla_put_u32(skb, SMCFS_A_WRITER_STATE, view.writer) ||
	    region_put_inflight(skb, region) ||
	    nla_put_u32(skb, SMCFS_A_OPENERS, atomic_read(&region->openers)) ||
	    nla_put_u8(skb, SMCFS_A_CTO, view.cto) ||
	    nla_put_u8(skb, SMCFS_A_CTO_ORIGIN, view.cto_origin) ||
	    nla_put_u32(skb, SMCFS_A_FLUSH_AFTER_MS, view.flush_after_ms) ||
	    nla_put_u8(skb, SMCFS_A_FLUSH_AFTER_ORIGIN, view.flush_after_origin) ||
	    nla_put_u32(skb, SMCFS_A_MERGE_UNIT, view.merge_unit) ||
	    nla_put_u8(skb, SMCFS_A_MERGE_UNIT_ORIGIN, view.merge_unit_origin) ||
	    nla_put_u8(skb, SMCFS_A_WRITERS_ORIGIN, view.writers_origin) ||
	    nla_put_u32(skb, SMCFS_A_SYNC_MODE, view.sync_mode) ||
	    nla_put_u8(skb, SMCFS_A_SYNC_MODE_ORIGIN, view.sync_mode_origin) ||
	    nla_put_u32(skb, SMCFS_A_PUSH_DELAY_US, view.push_delay_us) ||
	    nla_put_u8(skb, SMCFS_A_PUSH_DELAY_ORIGIN, view.push_delay_origin) ||
	    nla_put_u32(skb, SMCFS_A_MAX_STALE_US, view.max_stale_us) ||
	    nla_put_u8(skb, SMCFS_A_MAX_STALE_ORIGIN, view.max_stale_origin) ||
	    nla_put_u8(skb, SMCFS_A_HOT, view.hot) ||
	    nla_put_u8(skb, SMCFS_A_HOT_ORIGIN, view.hot_origin) ||
	    nla_put_u32(skb, SMCFS_A_GRANULE, view.granule) ||
	    nla_put_u8(skb, SMCFS_A_GRANULE_ORIGIN, view.granule_origin) ||
	    region_put_cache(skb, region) ||
	    smcfs_stats_fill(skb, &region->stats))
		return -EMSGSIZE;
	if (!view.generation)
		return 0;
	if (put_id(skb, SMCFS_A_SIZE, view.size) ||
	    nla_put_u32(skb, SMCFS_A_MODE, view.mode) ||
	    nla_put_u32(skb, SMCFS_A_UID, view.uid) ||
	    nla_put_u32(skb, SMCFS_A_GID, view.gid) ||
	    nla_put_u32(skb, SMCFS_A_WRITERS, view.writers) ||
	    nla_put_u32(skb, SMCFS_A_FLAGS, view.flags))
		return -EMSGSIZE;
	return 0;
}

/* ------------------------------------------------------------------ requests */

int smcfs_nl_info_get(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *reply = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	void *hdr;

	if (!reply)
		return -ENOMEM;
	hdr = genlmsg_put_reply(reply, info, &smcfs_genl_family, 0, SMCFS_CMD_INFO_GET);
	if (!hdr || nla_put_string(reply, SMCFS_A_VERSION, SMCFS_MODULE_VERSION) ||
	    nla_put_u8(reply, SMCFS_A_DAEMON_PRESENT, smcfs_daemon_present())) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, hdr);
	return genlmsg_reply(reply, info);
}

int smcfs_nl_region_get(struct sk_buff *skb, struct genl_info *info)
{
	struct smcfs_region *region;
	struct sk_buff *reply;
	void *hdr;
	int err;

	if (GENL_REQ_ATTR_CHECK(info, SMCFS_A_REGION_ID)) {
		GENL_SET_ERR_MSG(info, "REGION_ID is missing; ask for a dump to get all");
		return -EINVAL;
	}
	region = smcfs_region_get(nla_get_u64(info->attrs[SMCFS_A_REGION_ID]));
	if (!region) {
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SMCFS_A_REGION_ID],
				    "REGION_ID: no such region");
		return -ENOENT;
	}
	reply = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!reply) {
		err = -ENOMEM;
		goto err_region;
	}
	hdr = genlmsg_put_reply(reply, info, &smcfs_genl_family, 0, SMCFS_CMD_REGION_GET);
	err = hdr ? region_put(reply, region) : -EMSGSIZE;
	if (err)
		goto err_reply;
	smcfs_region_put(region);
	genlmsg_end(reply, hdr);
	return genlmsg_reply(reply, info);

err_reply:
	nlmsg_free(reply);
err_region:
	smcfs_region_put(region);
	return err;
}

/* ------------------------------------------------------------------ dumps */

static void *dump_message(struct sk_buff *skb, struct netlink_callback *cb, enum smcfs_cmd cmd)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			   &smcfs_genl_family, NLM_F_MULTI, cmd);
}

/* The message with @hdr has its attributes (@err 0) or had no room for them. */
static int dump_message_end(struct sk_buff *skb, void *hdr, int err)
{
	if (err)
		genlmsg_cancel(skb, hdr);
	else
		genlmsg_end(skb, hdr);
	return err;
}

/* What a dump function returns when it met @err: full is no error if there is something in it. */
static int dump_result(struct sk_buff *skb, int err)
{
	return err && !skb->len ? err : skb->len;
}

int smcfs_nl_peer_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smcfs_dump *dump = dump_of(cb);
	int err = 0;

	while (!err && !dump->end) {
		struct smcfs_peer *peer = smcfs_peer_next(dump->next);
		void *hdr;

		if (!peer)
			break;
		hdr = dump_message(skb, cb, SMCFS_CMD_PEER_GET);
		err = -EMSGSIZE;
		if (hdr)
			err = dump_message_end(skb, hdr,
					       nla_put_string(skb, SMCFS_A_NODE, peer->name));
		if (!err)
			dump_advance(dump, peer->ino);
		smcfs_peer_put(peer);
	}
	return dump_result(skb, err);
}

int smcfs_nl_session_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smcfs_dump *dump = dump_of(cb);
	int err = 0;

	while (!err && !dump->end) {
		struct smcfs_session *session = smcfs_session_next(dump->next);
		void *hdr;

		if (!session)
			break;
		hdr = dump_message(skb, cb, SMCFS_CMD_SESSION_GET);
		err = -EMSGSIZE;
		if (hdr)
			err = dump_message_end(skb, hdr, session_put(skb, session));
		if (!err)
			dump_advance(dump, session->params.id);
		smcfs_session_put(session);
	}
	return dump_result(skb, err);
}

int smcfs_nl_region_dump_start(struct netlink_callback *cb)
{
	const struct nlattr *id = smcfs_compat_dump_attrs(cb)[SMCFS_A_REGION_ID];
	struct smcfs_dump *dump = dump_of(cb);

	if (id) {
		dump->next = nla_get_u64(id);
		dump->last = dump->next;
	}
	return 0;
}

int smcfs_nl_region_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct smcfs_dump *dump = dump_of(cb);
	int err = 0;

	while (!err && !dump->end) {
		struct smcfs_region *region = smcfs_region_next(dump->next);
		void *hdr;

		if (!region)
			break;
		if (dump->last && region->id > dump->last) {
			smcfs_region_put(region);
			break;
		}
		hdr = dump_message(skb, cb, SMCFS_CMD_REGION_GET);
		err = -EMSGSIZE;
		if (hdr)
			err = dump_message_end(skb, hdr, region_put(skb, region));
		if (!err)
			dump_advance(dump, region->id);
		smcfs_region_put(region);
	}
	return dump_result(skb, err);
}

/* ------------------------------------------------------------------ events */

void smcfs_events_start(void)
{
	mutex_lock(&smcfs_events.lock);
	smcfs_events.on = true;
	mutex_unlock(&smcfs_events.lock);
}

void smcfs_events_stop(void)
{
	mutex_lock(&smcfs_events.lock);
	smcfs_events.on = false;
	mutex_unlock(&smcfs_events.lock);
}

static struct sk_buff *event_new_locked(enum smcfs_cmd cmd, void **hdr)
{
	struct sk_buff *skb;

	lockdep_assert_held(&smcfs_events.lock);
	/* Workers that free dirty memory report through here. */
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_NOIO);
	if (skb)
		*hdr = genlmsg_put(skb, 0, 0, &smcfs_genl_family, 0, cmd);
	return skb;
}

/* Consumes @skb. @err: the message is not whole. */
static void event_send_locked(struct sk_buff *skb, void *hdr, int err)
{
	lockdep_assert_held(&smcfs_events.lock);
	if (!err) {
		genlmsg_end(skb, hdr);
		err = genlmsg_multicast(&smcfs_genl_family, skb, 0, SMCFS_MCGRP_EVENTS, GFP_NOIO);
		/* No subscriber; or one that is full, which it was told. */
		if (err == -ESRCH || err == -ENOBUFS)
			return;
	} else {
		nlmsg_free(skb);
	}
	if (err) {
		pr_warn_ratelimited("smcfs: event lost (error %d), subscribers have to read anew\n",
				    err);
		genl_set_err(&smcfs_genl_family, &init_net, 0, SMCFS_MCGRP_EVENTS, -ENOBUFS);
	}
}

/**
 * smcfs_event_session() - tells subscribers the state of a session
 * @session: which; its state now is sent, which may be later than the edge that led here.
 *
 * Context: Process. Takes smcfs_events.lock, then session->lock.
 */
void smcfs_event_session(struct smcfs_session *session)
{
	struct session_view view;
	struct sk_buff *skb;
	void *hdr = NULL;

	mutex_lock(&smcfs_events.lock);
	if (smcfs_events.on) {
		session_look(session, &view);
		skb = event_new_locked(SMCFS_CMD_EVENT_SESSION, &hdr);
		event_send_locked(skb, hdr, skb ? session_put_state(skb, session, &view) : -ENOMEM);
	}
	mutex_unlock(&smcfs_events.lock);
}

/**
 * smcfs_event_region() - tells subscribers the state of a region
 * @region: which; its state now is sent, which may be later than the edge that led here.
 *
 * Context: Process. Takes smcfs_events.lock, then region->lock.
 */
void smcfs_event_region(struct smcfs_region *region)
{
	struct region_view view;
	struct sk_buff *skb;
	void *hdr = NULL;

	mutex_lock(&smcfs_events.lock);
	if (smcfs_events.on) {
		region_look(region, &view);
		skb = event_new_locked(SMCFS_CMD_EVENT_REGION, &hdr);
		event_send_locked(skb, hdr, skb ? region_put_state(skb, region, &view) : -ENOMEM);
	}
	mutex_unlock(&smcfs_events.lock);
}
