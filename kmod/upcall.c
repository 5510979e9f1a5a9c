// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon: which socket it is, and the questions that the kernel asks it.
 * Copyright (c) 2026 The SMC authors
 *
 *   HELLO ----> present ----> close or exit of its socket ----> absent
 *                  |                                              |
 *            upcalls go out                      pending lists and binds fail: -ENOTCONN
 *
 * Owns: the daemon's netlink port, and the list requests that wait for an answer. (Regions that
 * wait are region.c's.)
 * Contexts: process. The netlink notifier is a blocking chain, called by whoever closes a socket.
 * Locking: smcfs_daemon.lock makes a departure, with all that follows from it, one step as seen by
 * the next HELLO, so what the next daemon is asked never fails for the one before. It is taken
 * under no lock of the module and held around the *_daemon_gone() functions; senders do not take
 * it. smcfs_lists.lock is a leaf.
 * Lifetime: a list request lives on the stack of the asker, who unlinks it before it returns.
 * Failure: an asker first becomes visible to the *_daemon_gone() functions, then sends. Either the
 * send fails, or the departure that happens later fails the wait; none is left behind. A full
 * receive queue is -ENOBUFS here, and the daemon's next receive says ENOBUFS too.
 */
#include <linux/ratelimit.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "netlink.h"

/* Directory listings that may wait for the daemon at a time. */
#define SMCFS_LISTS_MAX		256
/* Names in one answer. (One attribute, the nest around them, is 64 KiB at most anyway.) */
#define SMCFS_LIST_NAMES_MAX	4096

static struct {
	struct mutex		lock;	/* HELLO and departure */
	u32			portid;	/* [lock] 0: absent; reads without: READ_ONCE */
	u32			last;	/* [lock] port of the last one; reads without: READ_ONCE */
	const struct sock	*sk;	/* [lock] tells two sockets apart, never followed */
	unsigned int		stale;	/* [lock] departures from @last yet to be told */
} smcfs_daemon = {
	.lock = __MUTEX_INITIALIZER(smcfs_daemon.lock),
};

/* A question for the names of a node. */
struct smcfs_list {
	struct list_head	link;	/* [smcfs_lists.lock] */
	u64			cookie;	/* [const] */
	struct completion	done;
	bool			answered;	/* [smcfs_lists.lock] err and names are set */
	int			err;	/* [smcfs_lists.lock] */
	struct nlattr		*names;	/* [smcfs_lists.lock] a copy, kvfree; NULL: none */
};

static struct {
	spinlock_t		lock;		/* leaf */
	struct list_head	waiting;	/* [lock] struct smcfs_list */
	unsigned int		count;		/* [lock] */
	u64			cookie;		/* [lock] the last one given out */
} smcfs_lists = {
	.lock = __SPIN_LOCK_UNLOCKED(smcfs_lists.lock),
	.waiting = LIST_HEAD_INIT(smcfs_lists.waiting),
};

/* ------------------------------------------------------------------ presence */

bool smcfs_daemon_present(void)
{
	return READ_ONCE(smcfs_daemon.portid) != 0;
}

static void daemon_depart_locked(void)
{
	lockdep_assert_held(&smcfs_daemon.lock);
	/* Pairs with the READ_ONCE of senders: from here on they fail by themselves. */
	WRITE_ONCE(smcfs_daemon.portid, 0);
	smcfs_daemon.sk = NULL;
	smcfs_upcall_daemon_gone();
	smcfs_region_daemon_gone();
}

int smcfs_daemon_hello(u32 portid, const struct sock *sk)
{
	int err = 0;

	mutex_lock(&smcfs_daemon.lock);
	if (smcfs_daemon.portid == portid && smcfs_daemon.sk != sk) {
		/*
		 * A port has one socket, so the other one is closed, and its notification, which
		 * knows only ports, is yet to come: it must not be taken for this socket's.
		 */
		smcfs_daemon.stale++;
		daemon_depart_locked();
	}
	if (smcfs_daemon.portid && smcfs_daemon.portid != portid) {
		err = -EBUSY;
	} else if (!smcfs_daemon.portid) {
		if (smcfs_daemon.last != portid)
			smcfs_daemon.stale = 0;
		WRITE_ONCE(smcfs_daemon.last, portid);
		smcfs_daemon.sk = sk;
		WRITE_ONCE(smcfs_daemon.portid, portid);
		pr_info("smcfs: daemon present, port %u\n", portid);
	}
	mutex_unlock(&smcfs_daemon.lock);
	return err;
}

static int daemon_notify(struct notifier_block *nb, unsigned long event, void *data)
{
	const struct netlink_notify *notify = data;

	/* Not ->portid: hello sets it to 0 for a moment, and what it awaits would pass unseen. */
	if (event != NETLINK_URELEASE || notify->protocol != NETLINK_GENERIC ||
	    !net_eq(notify->net, &init_net) ||
	    notify->portid != READ_ONCE(smcfs_daemon.last))
		return NOTIFY_DONE;

	mutex_lock(&smcfs_daemon.lock);
	if (notify->portid == smcfs_daemon.last && smcfs_daemon.stale) {
		smcfs_daemon.stale--;
	} else if (notify->portid == smcfs_daemon.portid) {
		daemon_depart_locked();
		pr_info("smcfs: daemon gone, attached regions stay\n");
	}
	mutex_unlock(&smcfs_daemon.lock);
	return NOTIFY_DONE;
}

static struct notifier_block smcfs_daemon_notifier = {
	.notifier_call = daemon_notify,
};

/* ------------------------------------------------------------------ sending */

static struct sk_buff *upcall_new(enum smcfs_cmd cmd, void **hdr)
{
	struct sk_buff *skb;

	/* Write-back can depend on an upcall: no allocation may start it. */
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_NOIO);
	if (!skb)
		return NULL;
	*hdr = genlmsg_put(skb, 0, 0, &smcfs_genl_family, 0, cmd);
	return skb;
}

/* Consumes @skb. */
static int upcall_send(struct sk_buff *skb, void *hdr)
{
	u32 portid = READ_ONCE(smcfs_daemon.portid);
	int err;

	genlmsg_end(skb, hdr);
	if (!portid) {
		nlmsg_free(skb);
		return -ENOTCONN;
	}
	err = genlmsg_unicast(&init_net, skb, portid);
	switch (err) {
	case -ECONNREFUSED:	/* closed a moment ago */
		return -ENOTCONN;
	case -EAGAIN:
		pr_warn_ratelimited("smcfs: the daemon does not read its netlink socket, upcall dropped\n");
		return -ENOBUFS;
	}
	return err;
}

int smcfs_upcall_bind(const char *node, const char *name)
{
	struct sk_buff *skb;
	void *hdr;

	if (!smcfs_daemon_present())
		return -ENOTCONN;
	skb = upcall_new(SMCFS_CMD_UPCALL_BIND, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_string(skb, SMCFS_A_NODE, node) ||
	    nla_put_string(skb, SMCFS_A_NAME, name)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return upcall_send(skb, hdr);
}

static int upcall_region(struct smcfs_region *region, enum smcfs_cmd cmd)
{
	struct sk_buff *skb;
	void *hdr;

	if (!smcfs_daemon_present())
		return -ENOTCONN;
	skb = upcall_new(cmd, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_u64_64bit(skb, SMCFS_A_REGION_ID, region->id, SMCFS_A_PAD) ||
	    nla_put_string(skb, SMCFS_A_NODE, region->peer->name) ||
	    nla_put_string(skb, SMCFS_A_NAME, region->name)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return upcall_send(skb, hdr);
}

int smcfs_upcall_writer(struct smcfs_region *region)
{
	return upcall_region(region, SMCFS_CMD_UPCALL_WRITER);
}

int smcfs_upcall_writer_release(struct smcfs_region *region)
{
	return upcall_region(region, SMCFS_CMD_UPCALL_WRITER_RELEASE);
}

/* ------------------------------------------------------------------ lists */

static int list_start(struct smcfs_list *list)
{
	int err = 0;

	init_completion(&list->done);
	spin_lock(&smcfs_lists.lock);
	if (smcfs_lists.count < SMCFS_LISTS_MAX) {
		smcfs_lists.count++;
		list->cookie = ++smcfs_lists.cookie;
		list_add_tail(&list->link, &smcfs_lists.waiting);
	} else {
		err = -EBUSY;
	}
	spin_unlock(&smcfs_lists.lock);
	return err;
}

/* Nobody but the caller knows @list when this returns. */
static void list_stop(struct smcfs_list *list)
{
	spin_lock(&smcfs_lists.lock);
	list_del(&list->link);
	smcfs_lists.count--;
	spin_unlock(&smcfs_lists.lock);
}

static void list_answer_locked(struct smcfs_list *list, int err, struct nlattr *names)
{
	lockdep_assert_held(&smcfs_lists.lock);
	list->answered = true;
	list->err = err;
	list->names = names;
	complete(&list->done);
}

static int list_send(const char *node, u64 cookie)
{
	struct sk_buff *skb;
	void *hdr;

	if (!smcfs_daemon_present())
		return -ENOTCONN;
	skb = upcall_new(SMCFS_CMD_UPCALL_LIST, &hdr);
	if (!skb)
		return -ENOMEM;
	if (nla_put_string(skb, SMCFS_A_NODE, node) ||
	    nla_put_u64_64bit(skb, SMCFS_A_COOKIE, cookie, SMCFS_A_PAD)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	return upcall_send(skb, hdr);
}

int smcfs_upcall_list(const char *node, int (*emit)(void *ctx, const char *name), void *ctx)
{
	struct smcfs_list list = {};
	struct nlattr *name;
	long left = msecs_to_jiffies(SMCFS_BIND_TIMEOUT_MS);
	int err, rest;

	err = list_start(&list);
	if (err)
		return err;
	err = list_send(node, list.cookie);
	if (!err) {
		left = wait_for_completion_killable_timeout(&list.done, left);
		if (left < 0)
			err = -EINTR;
		else if (!left)
			err = -ETIMEDOUT;
	}
	list_stop(&list);
	/* An answer that came as the wait ended counts; a signal ends it all the same. */
	if (list.answered && err != -EINTR)
		err = list.err;
	if (!err && list.names) {
		nla_for_each_nested(name, list.names, rest) {
			err = emit(ctx, nla_data(name));
			if (err)
				break;
		}
	}
	kvfree(list.names);
	return err;
}

/* Each one a valid name; emit() gets them without another look. */
static int list_check_names(const struct nlattr *names)
{
	struct nlattr *name;
	unsigned int count = 0;
	int rest;

	nla_for_each_nested(name, names, rest) {
		if (nla_type(name) != SMCFS_A_NAME || nla_len(name) < 1 ||
		    nla_len(name) > SMCFS_REGION_NAME_MAX + 1 ||
		    strnlen(nla_data(name), nla_len(name)) != nla_len(name) - 1 ||
		    !smcfs_name_valid(nla_data(name), true))
			return -EINVAL;
		if (++count > SMCFS_LIST_NAMES_MAX)
			return -E2BIG;
	}
	return rest ? -EINVAL : 0;
}

/**
 * smcfs_list_result() - the daemon's answer to UPCALL_LIST
 * @cookie: which question.
 * @err: 0 or a negative errno: there is no list.
 * @names: the nested attribute SMCFS_A_NAMES, or NULL for no names; copied.
 *
 * Names that do not pass fail the question too (-EPROTO), so that the asker need not wait.
 *
 * Context: Process.
 * Return: 0; -ENOENT nobody waits for it (any more); -EINVAL a bad name; -E2BIG too many; -ENOMEM.
 */
int smcfs_list_result(u64 cookie, int err, const struct nlattr *names)
{
	struct nlattr *copy = NULL;
	struct smcfs_list *list;
	bool found = false;
	int bad = 0;

	if (!err && names) {
		bad = list_check_names(names);
		if (!bad) {
			copy = kvmalloc(names->nla_len, GFP_KERNEL);
			if (copy)
				memcpy(copy, names, names->nla_len);
			else
				bad = -ENOMEM;
		}
		if (bad)
			err = bad == -ENOMEM ? -ENOMEM : -EPROTO;
	}

	spin_lock(&smcfs_lists.lock);
	list_for_each_entry(list, &smcfs_lists.waiting, link) {
		if (list->cookie == cookie && !list->answered) {
			list_answer_locked(list, err, copy);
			found = true;
			break;
		}
	}
	spin_unlock(&smcfs_lists.lock);
	if (found)
		return bad;
	kvfree(copy);
	return bad ?: -ENOENT;
}

void smcfs_upcall_daemon_gone(void)
{
	struct smcfs_list *list;

	spin_lock(&smcfs_lists.lock);
	list_for_each_entry(list, &smcfs_lists.waiting, link)
		if (!list->answered)
			list_answer_locked(list, -ENOTCONN, NULL);
	spin_unlock(&smcfs_lists.lock);
}

/* ------------------------------------------------------------------ init, exit */

int smcfs_upcall_init(void)
{
	return netlink_register_notifier(&smcfs_daemon_notifier);
}

/* The family is unregistered: no HELLO arrives any more. */
void smcfs_upcall_exit(void)
{
	netlink_unregister_notifier(&smcfs_daemon_notifier);
	mutex_lock(&smcfs_daemon.lock);
	if (smcfs_daemon.portid)
		daemon_depart_locked();
	mutex_unlock(&smcfs_daemon.lock);
}
