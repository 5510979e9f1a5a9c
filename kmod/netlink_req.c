// SPDX-License-Identifier: GPL-2.0
/*
 * Netlink requests: check, call, reply. Decisions are made elsewhere.
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: process; may sleep and be called in parallel (netlink.c).
 * Locking: none here; the functions called have their own.
 * Failure: a request does all of its work or none. Besides the errno the sender gets a text that
 * starts with the name of the attribute at fault, and the attribute's place or missing type.
 *
 * The policies of netlink.c have bounded each attribute; here is checked what a policy cannot say.
 */
#include <linux/in.h>
#include <linux/slab.h>
#include <linux/stringify.h>
#include <net/ipv6.h>

#include "netlink.h"

/* ------------------------------------------------------------------ attributes */

/* True, with the errors set, if attribute @name of the request is missing. */
#define smcfs_nl_missing(info, name)						\
({										\
	bool __missing = GENL_REQ_ATTR_CHECK(info, SMCFS_A_##name);		\
										\
	if (__missing)								\
		GENL_SET_ERR_MSG(info, #name " is missing");			\
	__missing;								\
})

static u32 get_u32(struct genl_info *info, enum smcfs_attr attr, u32 otherwise)
{
	return info->attrs[attr] ? nla_get_u32(info->attrs[attr]) : otherwise;
}

/* The policy bounds the length and promises a NUL, but not that it is the last byte. */
static bool is_name(const struct nlattr *attr, bool slashes)
{
	return strlen(nla_data(attr)) == nla_len(attr) - 1 &&
	       smcfs_name_valid(nla_data(attr), slashes);
}

static int get_node(struct genl_info *info, char node[SMCFS_NODE_NAME_MAX + 1])
{
	const struct nlattr *attr = info->attrs[SMCFS_A_NODE];

	if (smcfs_nl_missing(info, NODE))
		return -EINVAL;
	if (!is_name(attr, false)) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "NODE: must be one path component, printable, not \".\" or \"..\"");
		return -EINVAL;
	}
	nla_strscpy(node, attr, SMCFS_NODE_NAME_MAX + 1);
	return 0;
}

static int get_name(struct genl_info *info, char name[SMCFS_REGION_NAME_MAX + 1])
{
	const struct nlattr *attr = info->attrs[SMCFS_A_NAME];

	if (smcfs_nl_missing(info, NAME))
		return -EINVAL;
	if (!is_name(attr, true)) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "NAME: must be printable path components joined by single '/', none \".\" or \"..\"");
		return -EINVAL;
	}
	nla_strscpy(name, attr, SMCFS_REGION_NAME_MAX + 1);
	return 0;
}

/* For a text that is not a literal here, which NL_SET_ERR_MSG_ATTR wants; it must be constant. */
static int attr_fault(struct genl_info *info, const struct nlattr *attr, const char *text)
{
	NL_SET_BAD_ATTR(info->extack, attr);
	if (info->extack)
		info->extack->_msg = text;
	return -EINVAL;
}

#define SMCFS_ADDR_FAULT(dst, text)	((dst) ? "DST_ADDR: " text : "SRC_ADDR: " text)

static const char *addr4_fault(const struct sockaddr_in *addr, bool dst)
{
	__be32 ip = addr->sin_addr.s_addr;

	if (ip == htonl(INADDR_ANY))
		return SMCFS_ADDR_FAULT(dst, "is unspecified (0.0.0.0)");
	if (ipv4_is_multicast(ip) || ipv4_is_lbcast(ip))
		return SMCFS_ADDR_FAULT(dst, "is multicast or broadcast");
	return NULL;
}

static const char *addr6_fault(const struct sockaddr_in6 *addr, bool dst)
{
	int type = ipv6_addr_type(&addr->sin6_addr);

	if (type == IPV6_ADDR_ANY)
		return SMCFS_ADDR_FAULT(dst, "is unspecified (::)");
	if (type & IPV6_ADDR_MULTICAST)
		return SMCFS_ADDR_FAULT(dst, "is multicast");
	if (type & IPV6_ADDR_MAPPED)
		return SMCFS_ADDR_FAULT(dst, "is IPv4 mapped into IPv6, use sockaddr_in");
	if ((type & IPV6_ADDR_LINKLOCAL) && !addr->sin6_scope_id)
		return SMCFS_ADDR_FAULT(dst, "is link-local without a scope id");
	return NULL;
}

/* @attr has the length of a sockaddr_in at least. Return: NULL, or what is wrong. */
static const char *get_addr(const struct nlattr *attr, bool dst, struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *addr6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *addr4 = (const struct sockaddr_in *)addr;
	const char *fault;
	__be16 port;

	memcpy(addr, nla_data(attr), nla_len(attr));
	switch (addr->ss_family) {
	case AF_INET:
		if (nla_len(attr) != sizeof(*addr4))
			return SMCFS_ADDR_FAULT(dst, "length is not that of sockaddr_in");
		fault = addr4_fault(addr4, dst);
		port = addr4->sin_port;
		break;
	case AF_INET6:
		if (nla_len(attr) != sizeof(*addr6))
			return SMCFS_ADDR_FAULT(dst, "length is not that of sockaddr_in6");
		fault = addr6_fault(addr6, dst);
		port = addr6->sin6_port;
		break;
	default:
		return SMCFS_ADDR_FAULT(dst, "family is neither AF_INET nor AF_INET6");
	}
	if (fault)
		return fault;
	if (dst && !port)
		return "DST_ADDR: port is 0";
	if (!dst && port)
		return "SRC_ADDR: port is not 0";
	return NULL;
}

/* Fills @params->dst and, if it is given, ->src; both are zero before. */
static int get_addrs(struct genl_info *info, struct smcfs_session_params *params)
{
	const struct nlattr *dst = info->attrs[SMCFS_A_DST_ADDR];
	const struct nlattr *src = info->attrs[SMCFS_A_SRC_ADDR];
	const char *fault;

	fault = get_addr(dst, true, &params->dst);
	if (fault)
		return attr_fault(info, dst, fault);
	if (!src)
		return 0;
	fault = get_addr(src, false, &params->src);
	if (!fault && params->src.ss_family != params->dst.ss_family)
		fault = "SRC_ADDR: family is not that of DST_ADDR";
	return fault ? attr_fault(info, src, fault) : 0;
}

/* Return: the extents in aligned memory, to be freed with kvfree(), or ERR_PTR. */
static struct smcfs_extent *get_extents(struct genl_info *info, unsigned int *nr)
{
	const struct nlattr *attr = info->attrs[SMCFS_A_EXTENTS];
	struct smcfs_extent *extents;

	if (!nla_len(attr) || nla_len(attr) % sizeof(*extents)) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "EXTENTS: length is no positive multiple of an extent's");
		return ERR_PTR(-EINVAL);
	}
	*nr = nla_len(attr) / sizeof(*extents);
	extents = kvmalloc(nla_len(attr), GFP_KERNEL);
	if (!extents)
		return ERR_PTR(-ENOMEM);
	memcpy(extents, nla_data(attr), nla_len(attr));
	return extents;
}

/* ------------------------------------------------------------------ replies */

/* Room for one number. Made before the work is done, so that nothing can fail after it. */
static struct sk_buff *reply_new(struct genl_info *info, enum smcfs_cmd cmd, void **hdr)
{
	struct sk_buff *reply = genlmsg_new(nla_total_size_64bit(sizeof(u64)), GFP_KERNEL);

	if (reply)
		*hdr = genlmsg_put_reply(reply, info, &smcfs_genl_family, 0, cmd);
	return reply;
}

/* Consumes @reply. */
static int reply_send(struct genl_info *info, struct sk_buff *reply, void *hdr,
		      enum smcfs_attr attr, u64 value)
{
	if (nla_put_u64_64bit(reply, attr, value, SMCFS_A_PAD)) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, hdr);
	return genlmsg_reply(reply, info);
}

/* ------------------------------------------------------------------ daemon, peers */

int smcfs_nl_daemon_hello(struct sk_buff *skb, struct genl_info *info)
{
	int err = smcfs_daemon_hello(info->snd_portid, NETLINK_CB(skb).sk);

	if (err == -EBUSY)
		GENL_SET_ERR_MSG(info, "another daemon has this node: stop it first");
	return err;
}

int smcfs_nl_peer_add(struct sk_buff *skb, struct genl_info *info)
{
	char node[SMCFS_NODE_NAME_MAX + 1];
	int err;

	err = get_node(info, node);
	if (err)
		return err;
	err = smcfs_peer_add(node);
	if (err == -EEXIST)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SMCFS_A_NODE],
				    "NODE: is a peer already");
	return err;
}

int smcfs_nl_peer_del(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *attr = info->attrs[SMCFS_A_NODE];
	char node[SMCFS_NODE_NAME_MAX + 1];
	int err;

	err = get_node(info, node);
	if (err)
		return err;
	err = smcfs_peer_del(node);
	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, attr, "NODE: no such peer");
	else if (err == -EBUSY)
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "NODE: regions of this peer are attached, detach them first");
	return err;
}

/* ------------------------------------------------------------------ sessions */

int smcfs_nl_session_connect(struct sk_buff *skb, struct genl_info *info)
{
	struct smcfs_session_params params = {};
	int err;

	if (smcfs_nl_missing(info, SESSION_ID) || smcfs_nl_missing(info, DST_ADDR) ||
	    smcfs_nl_missing(info, TOKEN_READ) || smcfs_nl_missing(info, TOKEN_BULK) ||
	    smcfs_nl_missing(info, REQUEST_TIMEOUT_MS) ||
	    smcfs_nl_missing(info, CONNECT_TIMEOUT_MS))
		return -EINVAL;
	err = get_node(info, params.node);
	if (err)
		return err;
	err = get_addrs(info, &params);
	if (err)
		return err;
	params.id = nla_get_u64(info->attrs[SMCFS_A_SESSION_ID]);
	params.request_timeout_ms = nla_get_u32(info->attrs[SMCFS_A_REQUEST_TIMEOUT_MS]);
	params.connect_timeout_ms = nla_get_u32(info->attrs[SMCFS_A_CONNECT_TIMEOUT_MS]);
	memcpy(params.token[SMCFS_CM_QP_READ], nla_data(info->attrs[SMCFS_A_TOKEN_READ]),
	       SMCFS_TOKEN_BYTES);
	memcpy(params.token[SMCFS_CM_QP_BULK], nla_data(info->attrs[SMCFS_A_TOKEN_BULK]),
	       SMCFS_TOKEN_BYTES);
	err = smcfs_session_connect(&params);
	if (err == -EEXIST)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SMCFS_A_SESSION_ID],
				    "SESSION_ID: is in use");
	memzero_explicit(params.token, sizeof(params.token));
	return err;
}

int smcfs_nl_session_del(struct sk_buff *skb, struct genl_info *info)
{
	int err;

	if (smcfs_nl_missing(info, SESSION_ID))
		return -EINVAL;
	err = smcfs_session_del(nla_get_u64(info->attrs[SMCFS_A_SESSION_ID]));
	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SMCFS_A_SESSION_ID],
				    "SESSION_ID: no such session");
	return err;
}

/* Return: a reference to the live session of the request, or ERR_PTR. */
static struct smcfs_session *get_live_session(struct genl_info *info, const char *node)
{
	const struct nlattr *attr = info->attrs[SMCFS_A_SESSION_ID];
	struct smcfs_session *session = smcfs_session_get(nla_get_u64(attr));
	int err;

	if (!session) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr, "SESSION_ID: no such session");
		return ERR_PTR(-ENOENT);
	}
	if (!smcfs_session_live(session)) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr, "SESSION_ID: session is not connected");
		err = -ENOTCONN;
		goto err_put;
	}
	if (strcmp(session->params.node, node)) {
		NL_SET_ERR_MSG_ATTR(info->extack, attr, "SESSION_ID: session is of another node");
		err = -EINVAL;
		goto err_put;
	}
	return session;

err_put:
	smcfs_session_put(session);
	return ERR_PTR(err);
}

/* ------------------------------------------------------------------ regions */

/* @unit: of the request, else the default. The policy knows the range, not powers of two. */
static int get_unit(struct genl_info *info, u32 *unit)
{
	*unit = get_u32(info, SMCFS_A_MERGE_UNIT, SMCFS_MERGE_UNIT);
	if (is_power_of_2(*unit))
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SMCFS_A_MERGE_UNIT],
			    "MERGE_UNIT: is no power of two");
	return -EINVAL;
}

/* @granule: of the request, else the default. */
static int get_granule(struct genl_info *info, u32 *granule)
{
	*granule = get_u32(info, SMCFS_A_GRANULE, SMCFS_GRANULE);
	if (*granule >= SMCFS_GRANULE_MIN && *granule <= SMCFS_GRANULE_MAX &&
	    is_power_of_2(*granule))
		return 0;
	NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SMCFS_A_GRANULE],
			    "GRANULE: must be a power of two from " __stringify(SMCFS_GRANULE_MIN)
			    " to " __stringify(SMCFS_GRANULE_MAX));
	return -EINVAL;
}

static int get_desc(struct genl_info *info, struct smcfs_region_desc *desc)
{
	int err;

	if (smcfs_nl_missing(info, SESSION_ID) || smcfs_nl_missing(info, GENERATION) ||
	    smcfs_nl_missing(info, SIZE) || smcfs_nl_missing(info, MODE) ||
	    smcfs_nl_missing(info, UID) || smcfs_nl_missing(info, GID) ||
	    smcfs_nl_missing(info, WRITERS) || smcfs_nl_missing(info, EXTENTS))
		return -EINVAL;
	err = get_node(info, desc->node);
	if (err)
		return err;
	err = get_name(info, desc->name);
	if (err)
		return err;
	desc->generation = nla_get_u64(info->attrs[SMCFS_A_GENERATION]);
	desc->size = nla_get_u64(info->attrs[SMCFS_A_SIZE]);
	desc->mode = nla_get_u32(info->attrs[SMCFS_A_MODE]);
	desc->uid = nla_get_u32(info->attrs[SMCFS_A_UID]);
	desc->gid = nla_get_u32(info->attrs[SMCFS_A_GID]);
	desc->writers = nla_get_u32(info->attrs[SMCFS_A_WRITERS]);
	desc->flags = get_u32(info, SMCFS_A_FLAGS, 0);
	return get_unit(info, &desc->merge_unit);
}

int smcfs_nl_region_attach(struct sk_buff *skb, struct genl_info *info)
{
	struct smcfs_region_desc desc = {};
	struct smcfs_session *session;
	struct smcfs_extent *extents;
	struct sk_buff *reply;
	unsigned int nr;
	void *hdr;
	u64 id;
	int err;

	err = get_desc(info, &desc);
	if (err)
		return err;
	extents = get_extents(info, &nr);
	if (IS_ERR(extents))
		return PTR_ERR(extents);
	session = get_live_session(info, desc.node);
	if (IS_ERR(session)) {
		err = PTR_ERR(session);
		goto err_extents;
	}
	reply = reply_new(info, SMCFS_CMD_REGION_ATTACH, &hdr);
	if (!reply) {
		err = -ENOMEM;
		goto err_session;
	}
	err = smcfs_region_attach(&desc, session, extents, nr, &id, info->extack);
	if (err)
		goto err_reply;
	smcfs_session_put(session);
	kvfree(extents);
	return reply_send(info, reply, hdr, SMCFS_A_REGION_ID, id);

err_reply:
	nlmsg_free(reply);
err_session:
	smcfs_session_put(session);
err_extents:
	kvfree(extents);
	return err;
}

int smcfs_nl_bind_fail(struct sk_buff *skb, struct genl_info *info)
{
	char node[SMCFS_NODE_NAME_MAX + 1], name[SMCFS_REGION_NAME_MAX + 1];
	int err;

	if (smcfs_nl_missing(info, ERRNO))
		return -EINVAL;
	err = get_node(info, node);
	if (err)
		return err;
	err = get_name(info, name);
	if (err)
		return err;
	err = smcfs_region_bind_fail(node, name, -(int)nla_get_u32(info->attrs[SMCFS_A_ERRNO]));
	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SMCFS_A_NAME],
				    "NAME: nothing waits to be bound under this name");
	return err;
}

/* The texts for what both ways of removal can return. */
static int region_gone(struct genl_info *info, int err)
{
	const struct nlattr *attr = info->attrs[SMCFS_A_REGION_ID];

	switch (err) {
	case -ENOENT:
		NL_SET_ERR_MSG_ATTR(info->extack, attr, "REGION_ID: no such region");
		break;
	case -EBUSY:
		NL_SET_ERR_MSG_ATTR(info->extack, attr, "REGION_ID: region is open or mapped");
		break;
	case -EIO:
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "REGION_ID: dirty pages could not be sent and are kept");
		break;
	}
	return err;
}

int smcfs_nl_region_detach(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *reply;
	u64 discarded = 0;
	void *hdr;
	int err;

	if (smcfs_nl_missing(info, REGION_ID))
		return -EINVAL;
	reply = reply_new(info, SMCFS_CMD_REGION_DETACH, &hdr);
	if (!reply)
		return -ENOMEM;
	err = smcfs_region_detach(nla_get_u64(info->attrs[SMCFS_A_REGION_ID]),
				  get_u32(info, SMCFS_A_FLAGS, 0) & SMCFS_DETACH_FORCE, &discarded);
	if (err) {
		nlmsg_free(reply);
		return region_gone(info, err);
	}
	return reply_send(info, reply, hdr, SMCFS_A_DISCARDED_BYTES, discarded);
}

int smcfs_nl_region_revoke(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *reply;
	u64 discarded = 0;
	void *hdr;
	int err;

	if (smcfs_nl_missing(info, REGION_ID))
		return -EINVAL;
	reply = reply_new(info, SMCFS_CMD_REGION_REVOKE, &hdr);
	if (!reply)
		return -ENOMEM;
	err = smcfs_region_revoke(nla_get_u64(info->attrs[SMCFS_A_REGION_ID]), -ESTALE, &discarded);
	if (err) {
		nlmsg_free(reply);
		return region_gone(info, err);
	}
	return reply_send(info, reply, hdr, SMCFS_A_DISCARDED_BYTES, discarded);
}

/* The texts for what smcfs_region_set_writers() can return. */
static int set_writers(struct genl_info *info, struct smcfs_region *region)
{
	const struct nlattr *attr = info->attrs[SMCFS_A_WRITERS];
	int err = smcfs_region_set_writers(region, nla_get_u32(attr));

	switch (err) {
	case -EPERM:
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "WRITERS: the exporter asks for exclusive");
		break;
	case -EBUSY:
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "WRITERS: region is open for writing, or its pages are in use");
		break;
	case -EIO:
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "WRITERS: dirty pages could not be sent and are kept");
		break;
	}
	return err;
}

int smcfs_nl_region_set(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *flush_after = info->attrs[SMCFS_A_FLUSH_AFTER_MS];
	const struct nlattr *writers = info->attrs[SMCFS_A_WRITERS];
	const struct nlattr *unit = info->attrs[SMCFS_A_MERGE_UNIT];
	const struct nlattr *cto = info->attrs[SMCFS_A_CTO];
	const struct nlattr *mode = info->attrs[SMCFS_A_SYNC_MODE];
	const struct nlattr *push_delay = info->attrs[SMCFS_A_PUSH_DELAY_US];
	const struct nlattr *max_stale = info->attrs[SMCFS_A_MAX_STALE_US];
	const struct nlattr *hot = info->attrs[SMCFS_A_HOT];
	const struct nlattr *granule = info->attrs[SMCFS_A_GRANULE];
	const struct nlattr *from = info->attrs[SMCFS_A_ORIGIN];
	enum smcfs_origin origin = from ? nla_get_u8(from) : SMCFS_ORIGIN_SET;
	struct smcfs_region *region;
	u32 merge_unit, granule_bytes;
	int err;

	if (smcfs_nl_missing(info, REGION_ID))
		return -EINVAL;
	if (!cto && !flush_after && !writers && !unit && !mode && !push_delay && !max_stale &&
	    !hot && !granule) {
		GENL_SET_ERR_MSG(info, "a parameter must be given");
		return -EINVAL;
	}
	if (hot && nla_get_u8(hot) && !smcfs_hot_possible()) {
		if (origin == SMCFS_ORIGIN_SET) {
			NL_SET_ERR_MSG_ATTR(info->extack, hot,
					    "HOT: there are no hot pages on this kernel");
			return -EOPNOTSUPP;
		}
		hot = NULL;	/* a wish for nodes that can */
	}
	err = get_unit(info, &merge_unit);
	if (err)
		return err;
	err = get_granule(info, &granule_bytes);
	if (err)
		return err;
	region = smcfs_region_get(nla_get_u64(info->attrs[SMCFS_A_REGION_ID]));
	if (!region)
		return region_gone(info, -ENOENT);
	/* First, as it alone can fail. */
	if (writers && origin >= READ_ONCE(region->writers_origin))
		err = set_writers(info, region);
	if (err)
		goto out;
	/*
	 * The daemon applies its configuration at every bind: what somebody set meanwhile stays.
	 * WRITE_ONCE: pairs with the READ_ONCE of whoever opens, closes, dirties, flushes, fetches.
	 */
	spin_lock_bh(&region->lock);
	if (writers && origin >= region->writers_origin)
		WRITE_ONCE(region->writers_origin, origin);
	if (cto && origin >= region->cto_origin) {
		WRITE_ONCE(region->cto, nla_get_u8(cto));
		region->cto_origin = origin;
	}
	if (flush_after && origin >= region->flush_after_origin) {
		WRITE_ONCE(region->flush_after_ms, nla_get_u32(flush_after));
		region->flush_after_origin = origin;
	}
	if (unit && origin >= region->merge_unit_origin) {
		WRITE_ONCE(region->merge_unit, merge_unit);
		region->merge_unit_origin = origin;
	}
	if (mode && origin >= region->sync_mode_origin) {
		WRITE_ONCE(region->sync_mode, nla_get_u32(mode));
		region->sync_mode_origin = origin;
	}
	if (push_delay && origin >= region->push_delay_origin) {
		WRITE_ONCE(region->push_delay_us, nla_get_u32(push_delay));
		region->push_delay_origin = origin;
	}
	if (max_stale && origin >= region->max_stale_origin) {
		WRITE_ONCE(region->max_stale_us, nla_get_u32(max_stale));
		region->max_stale_origin = origin;
	}
	if (hot && origin >= region->hot_origin) {
		WRITE_ONCE(region->hot, nla_get_u8(hot));
		region->hot_origin = origin;
	}
	if (granule && origin >= region->granule_origin) {
		WRITE_ONCE(region->granule, granule_bytes);
		region->granule_origin = origin;
	}
	spin_unlock_bh(&region->lock);
	if (flush_after)
		smcfs_region_flush_paced(region);
	smcfs_modes_changed(region);
out:
	smcfs_region_put(region);
	return err;
}

/* ------------------------------------------------------------------ answers to upcalls */

int smcfs_nl_writer_result(struct sk_buff *skb, struct genl_info *info)
{
	int err;

	if (smcfs_nl_missing(info, REGION_ID) || smcfs_nl_missing(info, ERRNO))
		return -EINVAL;
	err = smcfs_region_writer_result(nla_get_u64(info->attrs[SMCFS_A_REGION_ID]),
					 -(int)nla_get_u32(info->attrs[SMCFS_A_ERRNO]));
	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SMCFS_A_REGION_ID],
				    "REGION_ID: nothing waits for its writing right");
	return err;
}

int smcfs_nl_list_result(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *names = info->attrs[SMCFS_A_NAMES];
	int err;

	if (smcfs_nl_missing(info, COOKIE) || smcfs_nl_missing(info, ERRNO))
		return -EINVAL;
	err = smcfs_list_result(nla_get_u64(info->attrs[SMCFS_A_COOKIE]),
				-(int)nla_get_u32(info->attrs[SMCFS_A_ERRNO]), names);
	switch (err) {
	case -ENOENT:
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[SMCFS_A_COOKIE],
				    "COOKIE: nobody waits for this list (any more)");
		break;
	case -EINVAL:
		NL_SET_ERR_MSG_ATTR(info->extack, names, "NAMES: holds a bad name");
		break;
	case -E2BIG:
		NL_SET_ERR_MSG_ATTR(info->extack, names, "NAMES: too many");
		break;
	}
	return err;
}
