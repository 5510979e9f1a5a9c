// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions: the read and the bulk endpoint to one target, made, watched and lost together.
 * Copyright (c) 2026 The SMC authors
 *
 * Owns: the table of sessions; each session's works: connect_work, watchdog, destroy_work.
 * Contexts: abort in any but hard interrupt (it only changes the state and queues destroy_work);
 *	everything else in process context.
 * Locking: smcfs_sessions.lock guards the table, session->lock the state. Connect takes the second
 *	inside the first; else both are leaves, but for works queued and completions under them.
 * Lifetime: counted. The table holds a reference until the daemon deleted the session and it is
 *	DEAD; destroy_work holds one from abort on; grants hold others, as memory only. From connect
 *	to DEAD a session holds the module. destroy_work waits for the other works, so they need
 *	no references.
 * Failure: see the edges.
 *
 *	CONNECTING --(both QPs connected)--> LIVE --(abort)--> DRAINING --(destroyed)--> DEAD
 *	     `----------------(abort)------------------------------^
 *
 * Abort is the one way out of the first two: by a failed request, an event of the connection
 * manager or the device, the watchdog, a failed connect, or the daemon. destroy_work alone leads
 * to DEAD. Each edge is one trace event, and one netlink event for the daemon.
 */
#define pr_fmt(fmt) "smcfs: " fmt

#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "smcfs.h"
#include "trace.h"

/* Of REQUEST_TIMEOUT_MS and CONNECT_TIMEOUT_MS. */
#define SESSION_TIMEOUT_MIN_MS	10
#define SESSION_TIMEOUT_MAX_MS	600000

static struct {
	spinlock_t		lock;		/* process context only */
	struct list_head	list;		/* [lock] */
	/* Connects sleep for long: they must not be in the way of destroy_work. */
	struct workqueue_struct	*connect_wq;
} smcfs_sessions;

static void session_set_state(struct smcfs_session *session, enum smcfs_session_state state)
	__must_hold(&session->lock)
{
	lockdep_assert_held(&session->lock);
	if (WARN_ON_ONCE(!smcfs_session_may(session->state, state)))
		return;
	trace_smcfs_session_state(session->params.id, session->state, state, session->err);
	WRITE_ONCE(session->state, state);
}

static void session_release(struct kref *ref)
{
	struct smcfs_session *session = container_of(ref, struct smcfs_session, ref);

	smcfs_stages_free(session->stages);
	kfree(session);
}

/**
 * smcfs_session_put() - drop a reference
 * @session: the session
 *
 * Context: Any but hard interrupt.
 */
void smcfs_session_put(struct smcfs_session *session)
{
	kref_put(&session->ref, session_release);
}

static struct smcfs_session *session_find(u64 id)
	__must_hold(&smcfs_sessions.lock)
{
	struct smcfs_session *session;

	lockdep_assert_held(&smcfs_sessions.lock);
	list_for_each_entry(session, &smcfs_sessions.list, link) {
		if (session->params.id == id)
			return session;
	}
	return NULL;
}

/**
 * smcfs_session_get() - look a session up
 * @id: its id
 *
 * Context: Process.
 * Return: the session, in any state, with a reference, or NULL.
 */
struct smcfs_session *smcfs_session_get(u64 id)
{
	struct smcfs_session *session;

	spin_lock(&smcfs_sessions.lock);
	session = session_find(id);
	if (session)
		kref_get(&session->ref);
	spin_unlock(&smcfs_sessions.lock);
	return session;
}

/**
 * smcfs_session_next() - walk the sessions, by id
 * @id: where to go on
 *
 * Context: Process.
 * Return: the session with the smallest id that is not below @id, with a reference, or NULL.
 */
struct smcfs_session *smcfs_session_next(u64 id)
{
	struct smcfs_session *session, *next = NULL;

	spin_lock(&smcfs_sessions.lock);
	list_for_each_entry(session, &smcfs_sessions.list, link) {
		if (session->params.id >= id &&
		    (!next || session->params.id < next->params.id))
			next = session;
	}
	if (next)
		kref_get(&next->ref);
	spin_unlock(&smcfs_sessions.lock);
	return next;
}

/* A dead session leaves the table; only the first caller finds it there. */
static void session_forget(struct smcfs_session *session)
{
	bool listed;

	spin_lock(&smcfs_sessions.lock);
	listed = !list_empty(&session->link);
	list_del_init(&session->link);
	spin_unlock(&smcfs_sessions.lock);
	if (listed)
		smcfs_session_put(session);
}

/**
 * smcfs_session_abort() - a session is lost
 * @session: the session
 * @err: the cause, a negative errno
 * @reason: the cause, for people
 *
 * The first cause counts; for a session that is lost already nothing happens. Requests that are
 * posted come back soon, all as failed, after smcfs_region_session_lost().
 *
 * Context: Any but hard interrupt. The caller has a reference, or is waited for by destroy_work.
 */
void smcfs_session_abort(struct smcfs_session *session, int err, const char *reason)
{
	spin_lock_bh(&session->lock);
	if (session->state == SMCFS_SESSION_CONNECTING || session->state == SMCFS_SESSION_LIVE) {
		session->err = err;
		strscpy(session->reason, reason, sizeof(session->reason));
		session_set_state(session, SMCFS_SESSION_DRAINING);
		kref_get(&session->ref);
		queue_work(smcfs_wq, &session->destroy_work);
		/* Connect may wait for either. */
		complete(&session->ep[SMCFS_CM_QP_READ].cm_done);
		complete(&session->ep[SMCFS_CM_QP_BULK].cm_done);
	}
	spin_unlock_bh(&session->lock);
}

static void session_arm(struct smcfs_session *session)
{
	unsigned long tick = msecs_to_jiffies(session->params.request_timeout_ms) / SMCFS_EP_TICKS;

	queue_delayed_work(smcfs_wq, &session->watchdog, max(tick, 1UL));
}

static void session_watchdog(struct work_struct *work)
{
	struct smcfs_session *session = container_of(to_delayed_work(work), struct smcfs_session,
						     watchdog);
	char reason[SMCFS_REASON_MAX + 1];
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < ARRAY_SIZE(session->ep); i++)
		err = smcfs_ep_watch(&session->ep[i], reason, sizeof(reason));
	if (err)
		smcfs_session_abort(session, err, reason);
	else if (smcfs_session_live(session))
		session_arm(session);
}

static void session_connect_work(struct work_struct *work)
{
	struct smcfs_session *session = container_of(work, struct smcfs_session, connect_work);
	unsigned long deadline = jiffies + msecs_to_jiffies(session->params.connect_timeout_ms);
	char reason[SMCFS_REASON_MAX + 1];
	/* Reclaim may be waiting for the write-back that this session makes possible. */
	unsigned int noio = memalloc_noio_save();
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < ARRAY_SIZE(session->ep); i++)
		err = smcfs_ep_connect(&session->ep[i], deadline, reason, sizeof(reason));
	if (err) {
		smcfs_session_abort(session, err, reason);
		goto out;
	}

	spin_lock_bh(&session->lock);
	if (session->state == SMCFS_SESSION_CONNECTING)
		session_set_state(session, SMCFS_SESSION_LIVE);
	else
		err = -ECANCELED;
	spin_unlock_bh(&session->lock);
	if (err)
		goto out;
	pr_info_ratelimited("session 0x%llx to %s is live, device %s\n", session->params.id,
			    session->params.node, session->device);
	session_arm(session);
	smcfs_event_session(session);
out:
	memalloc_noio_restore(noio);
}

/* The one way to DEAD. Queued once, by abort. */
static void session_destroy_work(struct work_struct *work)
{
	struct smcfs_session *session = container_of(work, struct smcfs_session, destroy_work);
	unsigned int noio = memalloc_noio_save();
	unsigned int i;
	bool del;

	/* Abort woke it. From here on nobody else uses the endpoints but submit and completion. */
	cancel_work_sync(&session->connect_work);
	cancel_delayed_work_sync(&session->watchdog);
	pr_info_ratelimited("session 0x%llx to %s is lost: %s\n", session->params.id,
			    session->params.node, session->reason);
	smcfs_event_session(session);

	/* Before the first request fails, so that who retries finds the region DEGRADED. */
	smcfs_region_session_lost(session);
	for (i = 0; i < ARRAY_SIZE(session->ep); i++)
		smcfs_ep_stop(&session->ep[i]);
	/* Who saw an endpoint live may still map; pairs with smcfs_xfer_submit(). */
	synchronize_rcu();
	for (i = 0; i < ARRAY_SIZE(session->ep); i++)
		smcfs_ep_destroy(&session->ep[i]);
	memzero_explicit(session->params.token, sizeof(session->params.token));

	spin_lock_bh(&session->lock);
	session_set_state(session, SMCFS_SESSION_DEAD);
	del = session->del;
	spin_unlock_bh(&session->lock);
	smcfs_event_session(session);
	if (del)
		session_forget(session);
	memalloc_noio_restore(noio);
	smcfs_session_put(session);
	/* smcfs_session_exit() waits for the instructions that are left. */
	module_put(THIS_MODULE);
}

static bool session_params_valid(const struct smcfs_session_params *params)
{
	sa_family_t dst = params->dst.ss_family, src = params->src.ss_family;

	return params->id && (dst == AF_INET || dst == AF_INET6) &&
	       (src == AF_UNSPEC || src == dst) &&
	       params->request_timeout_ms >= SESSION_TIMEOUT_MIN_MS &&
	       params->request_timeout_ms <= SESSION_TIMEOUT_MAX_MS &&
	       params->connect_timeout_ms >= SESSION_TIMEOUT_MIN_MS &&
	       params->connect_timeout_ms <= SESSION_TIMEOUT_MAX_MS;
}

/**
 * smcfs_session_connect() - make a session
 * @params: what the daemon asks for; the caller wipes its tokens
 *
 * The result is an event: LIVE, or DRAINING and DEAD with the reason.
 *
 * Context: Process.
 * Return: 0: connecting; -EINVAL, -EEXIST (also of a dead session that was not deleted), -ENOMEM,
 * -ENODEV: the module is being unloaded.
 */
int smcfs_session_connect(const struct smcfs_session_params *params)
{
	struct smcfs_session *session;
	int err = 0;
	u16 role;

	if (!session_params_valid(params))
		return -EINVAL;
	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return -ENOMEM;
	session->numa_node = NUMA_NO_NODE;
	if (!try_module_get(THIS_MODULE)) {
		kfree(session);
		return -ENODEV;
	}
	kref_init(&session->ref);
	session->params = *params;
	spin_lock_init(&session->lock);
	for (role = 0; role < ARRAY_SIZE(session->ep); role++)
		smcfs_ep_init(&session->ep[role], session, role);
	INIT_WORK(&session->connect_work, session_connect_work);
	INIT_WORK(&session->destroy_work, session_destroy_work);
	INIT_DELAYED_WORK(&session->watchdog, session_watchdog);

	spin_lock(&smcfs_sessions.lock);
	if (session_find(params->id)) {
		err = -EEXIST;
	} else {
		spin_lock_bh(&session->lock);
		session_set_state(session, SMCFS_SESSION_CONNECTING);
		spin_unlock_bh(&session->lock);
		list_add_tail(&session->link, &smcfs_sessions.list);
		/* Under the lock: before a delete can find the session and cancel it. */
		queue_work(smcfs_sessions.connect_wq, &session->connect_work);
	}
	spin_unlock(&smcfs_sessions.lock);
	if (err) {
		memzero_explicit(session->params.token, sizeof(session->params.token));
		kfree(session);
		module_put(THIS_MODULE);
	}
	return err;
}

/**
 * smcfs_session_del() - delete a session
 * @id: its id
 *
 * It is forgotten when it is DEAD, at once if it is, and the event DEAD says so.
 *
 * Context: Process. Does not wait.
 * Return: 0 or -ENOENT.
 */
int smcfs_session_del(u64 id)
{
	struct smcfs_session *session = smcfs_session_get(id);
	bool dead;

	if (!session)
		return -ENOENT;
	spin_lock_bh(&session->lock);
	session->del = true;
	dead = session->state == SMCFS_SESSION_DEAD;
	spin_unlock_bh(&session->lock);
	if (dead) {
		session_forget(session);
		smcfs_event_session(session);
	} else {
		smcfs_session_abort(session, -ESHUTDOWN, "deleted by daemon");
	}
	smcfs_session_put(session);
	return 0;
}

int smcfs_session_init(void)
{
	spin_lock_init(&smcfs_sessions.lock);
	INIT_LIST_HEAD(&smcfs_sessions.list);
	smcfs_sessions.connect_wq = alloc_workqueue("smcfs_connect", WQ_UNBOUND | WQ_MEM_RECLAIM,
						    0);
	return smcfs_sessions.connect_wq ? 0 : -ENOMEM;
}

/* Sessions that are not dead hold the module: what is left was not deleted by any daemon. */
void smcfs_session_exit(void)
{
	struct smcfs_session *session, *next;

	destroy_workqueue(smcfs_sessions.connect_wq);
	flush_workqueue(smcfs_wq);
	list_for_each_entry_safe(session, next, &smcfs_sessions.list, link) {
		list_del_init(&session->link);
		smcfs_session_put(session);
	}
}
