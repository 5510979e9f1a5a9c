// SPDX-License-Identifier: GPL-2.0
/*
 * Endpoints: a QP with its CQ and PD, the queue of transfers in front of it, and its end.
 * Copyright (c) 2026 The SMC authors
 *
 * Owns: the verbs objects of one QP; the transfers that wait for room in the send queue and those
 *	that are posted.
 * Contexts: create, stop and destroy in the session's works; submit in process context; completion
 *	in softirq.
 * Locking: ep->lock guards state, lists and slots, and is held across ib_post_send(), which keeps
 *	the list of posted transfers in the order of the queue. Outermost; the device's locks are
 *	taken inside. done() and abort are called with no lock held.
 * Lifetime: an endpoint is a part of its session. Its device cannot go while cm_id exists, and
 *	cm_id is destroyed last.
 * Failure: whatever breaks, smcfs_session_abort() is all that is done at once. The rest is done in
 *	one place, by destroy_work: stop (nothing is posted any more), drain, destroy the QP and the
 *	CQ, and only then, when neither device nor completions can touch them, hand all transfers
 *	back as failed. A chain of which ib_post_send() took but a part needs no other treatment.
 *
 *	submit --> waiting --(slots)--> inflight --(last request done)--> done(0)
 *	              |                    |
 *	              `-----(destroyed)----'--> done(-ENOTCONN), done(-EIO)
 */
#include <linux/ktime.h>
#include <linux/netdevice.h>
#include <linux/sizes.h>

#include "smcfs.h"
#include "trace.h"

/* ib_drain_sq() posts one request of its own. */
#define EP_DRAIN_WRS	1
/* Nothing is received, but not every device makes a queue of none. */
#define EP_RECV_WRS	1
/* With the other parts of a request 512 bytes on common devices. */
#define EP_SGE_MAX	30
/* The specification ends at 2 GiB, some devices earlier. */
#define EP_MSG_MAX	SZ_1G
/* A piece of a folio is one segment and one request: an empty transfer takes any folio. */
#define EP_PIECE_MIN	((u32)PAGE_SIZE << SMCFS_FOLIO_ORDER_MAX)

const char *smcfs_ep_name(const struct smcfs_ep *ep)
{
	return ep->role == SMCFS_CM_QP_READ ? "read" : "bulk";
}

void smcfs_ep_init(struct smcfs_ep *ep, struct smcfs_session *session, u16 role)
{
	ep->session = session;
	ep->role = role;
	/* Until connect knows the device; transfers built before are refused by submit. */
	ep->max_sge = 1;
	ep->max_seg = EP_MSG_MAX;
	ep->max_msg = EP_MSG_MAX;
	init_completion(&ep->cm_done);
	spin_lock_init(&ep->lock);
	ep->state = SMCFS_EP_NEW;
	INIT_LIST_HEAD(&ep->waiting);
	INIT_LIST_HEAD(&ep->inflight);
}

static void ep_set_state_locked(struct smcfs_ep *ep, enum smcfs_ep_state state)
	__must_hold(&ep->lock)
{
	lockdep_assert_held(&ep->lock);
	if (WARN_ON_ONCE(!smcfs_ep_may(ep->state, state)))
		return;
	/* Pairs with smp_load_acquire() of smcfs_xfer_submit(): LIVE comes after what it needs. */
	smp_store_release(&ep->state, state);
}

/* Context: process. */
void smcfs_ep_set_state(struct smcfs_ep *ep, enum smcfs_ep_state state)
{
	spin_lock_bh(&ep->lock);
	ep_set_state_locked(ep, state);
	spin_unlock_bh(&ep->lock);
}

/*
 * The device's word on a QP in trouble, which no request may have noticed. Context: any, with some
 * devices hard interrupt, so the watchdog does the rest.
 */
static void ep_qp_event(struct ib_event *event, void *context)
{
	struct smcfs_ep *ep = context;

	switch (event->event) {
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
	case IB_EVENT_PATH_MIG_ERR:
		/* Pairs with READ_ONCE() of smcfs_ep_watch(). */
		WRITE_ONCE(ep->device_event, event->event + 1);
		break;
	default:
		break;
	}
}

static int ep_limits(struct smcfs_ep *ep, unsigned int *slots)
{
	struct ib_device *dev = ep->cm_id->device;
	const struct ib_device_attr *attrs = &dev->attrs;
	int sge = min(attrs->max_send_sge, EP_SGE_MAX);
	struct ib_port_attr port;
	int err;

	err = ib_query_port(dev, ep->cm_id->port_num, &port);
	if (err)
		return err;
	if (ep->role == SMCFS_CM_QP_READ)
		sge = min(sge, attrs->max_sge_rd);
	ep->max_sge = max(sge, 1);
	ep->atomics = attrs->atomic_cap != IB_ATOMIC_NONE;
	ep->max_msg = min_t(u32, EP_MSG_MAX, port.max_msg_sz ?: EP_MSG_MAX);
	ep->max_seg = EP_MSG_MAX;
	/* Bounce buffers, where they are in use, are much smaller. */
	if (!ib_uses_virt_dma(dev))
		ep->max_seg = min_t(size_t, EP_MSG_MAX, dma_max_mapping_size(dev->dma_device));

	*slots = min_t(int, SMCFS_EP_SLOTS, attrs->max_qp_wr - EP_DRAIN_WRS);
	if (attrs->max_qp_wr < SMCFS_XFER_SEGS_MAX + EP_DRAIN_WRS ||
	    attrs->max_cqe < (int)*slots + EP_DRAIN_WRS + EP_RECV_WRS ||
	    ep->max_seg < EP_PIECE_MIN || ep->max_msg < EP_PIECE_MIN)
		return -EOPNOTSUPP;
	return 0;
}

/* The NUMA node of an endpoint's card: of a software device that of the network card below it. */
static int ep_numa_node(const struct rdma_cm_id *cm_id)
{
	const struct rdma_dev_addr *addr = &cm_id->route.addr.dev_addr;
	int node = ibdev_to_node(cm_id->device);
	struct net_device *ndev;

	if (node != NUMA_NO_NODE)
		return node;
	ndev = dev_get_by_index(addr->net, addr->bound_dev_if);
	if (!ndev)
		return node;
	node = dev_to_node(&ndev->dev);
	dev_put(ndev);
	return node;
}

/**
 * smcfs_ep_create() - make the QP on the device that cm_id is bound to
 * @ep: the endpoint, CONNECTING
 *
 * Context: Process (connect_work).
 * Return: 0 or -errno; -EOPNOTSUPP: the device is too small. Nothing is left behind then.
 */
int smcfs_ep_create(struct smcfs_ep *ep)
{
	struct ib_device *dev = ep->cm_id->device;
	struct ib_qp_init_attr init = {};
	unsigned int slots;
	int err;

	err = ep_limits(ep, &slots);
	if (err)
		return err;
	ep->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(ep->pd)) {
		err = PTR_ERR(ep->pd);
		goto err_pd;
	}
	ep->session->numa_node = ep_numa_node(ep->cm_id);
	/* What needs process context, making pages dirty again, comes after failures only. */
	ep->cq = ib_alloc_cq_any(dev, ep, slots + EP_DRAIN_WRS + EP_RECV_WRS, IB_POLL_SOFTIRQ);
	if (IS_ERR(ep->cq)) {
		err = PTR_ERR(ep->cq);
		goto err_dealloc_pd;
	}

	init.event_handler = ep_qp_event;
	init.qp_context = ep;
	init.send_cq = ep->cq;
	init.recv_cq = ep->cq;
	init.sq_sig_type = IB_SIGNAL_REQ_WR;
	init.qp_type = IB_QPT_RC;
	init.cap.max_send_wr = slots + EP_DRAIN_WRS;
	init.cap.max_recv_wr = EP_RECV_WRS;
	init.cap.max_send_sge = ep->max_sge;
	init.cap.max_recv_sge = 1;
	err = rdma_create_qp(ep->cm_id, ep->pd, &init);
	if (err)
		goto err_free_cq;
	ep->slots = slots;
	return 0;

err_free_cq:
	ib_free_cq(ep->cq);
err_dealloc_pd:
	ib_dealloc_pd(ep->pd);
err_pd:
	ep->cq = NULL;
	ep->pd = NULL;
	return err;
}

static int ep_post(struct smcfs_ep *ep, struct smcfs_xfer *xfer)
	__must_hold(&ep->lock)
{
	const struct ib_send_wr *bad;
	u64 now = ktime_get_ns();

	lockdep_assert_held(&ep->lock);
	if (!ep->nr_inflight)
		ep->progress_ns = now;
	ep->slots -= xfer->nr_wrs;
	ep->nr_inflight++;
	list_add_tail(&xfer->link, &ep->inflight);
	xfer->posted_ns = now;
	trace_smcfs_post(ep->session->params.id, xfer->op, xfer->nr_wrs, xfer->bytes);
	return ib_post_send(ep->cm_id->qp, smcfs_xfer_head(xfer), &bad);
}

/*
 * Posts what there is room for, in order. When the session is lost transfers stay here until
 * destroy_work fails them: their owners must find their regions informed.
 * Return: 0, or -errno of ib_post_send(): the caller aborts the session once the lock is dropped.
 */
static int ep_post_waiting(struct smcfs_ep *ep)
	__must_hold(&ep->lock)
{
	struct smcfs_xfer *xfer;
	int err;

	lockdep_assert_held(&ep->lock);
	while (!list_empty(&ep->waiting) && smcfs_session_live(ep->session)) {
		xfer = list_first_entry(&ep->waiting, struct smcfs_xfer, link);
		if (xfer->nr_wrs > ep->slots)
			break;
		list_del(&xfer->link);
		ep->nr_waiting--;
		err = ep_post(ep, xfer);
		if (err)
			return err;
	}
	return 0;
}

static void ep_post_failed(struct smcfs_ep *ep, int err)
{
	char reason[SMCFS_REASON_MAX + 1];

	scnprintf(reason, sizeof(reason), "%s QP: the device refuses requests: %pe",
		  smcfs_ep_name(ep), ERR_PTR(err));
	smcfs_session_abort(ep->session, err, reason);
}

/**
 * smcfs_ep_submit() - take over a transfer
 * @ep: the endpoint
 * @xfer: mapped and chained
 *
 * Context: Process.
 * Return: false if the endpoint is not live: the transfer is still the caller's.
 */
bool smcfs_ep_submit(struct smcfs_ep *ep, struct smcfs_xfer *xfer)
{
	bool taken;
	int err = 0;

	spin_lock_bh(&ep->lock);
	taken = ep->state == SMCFS_EP_LIVE;
	if (taken) {
		list_add_tail(&xfer->link, &ep->waiting);
		ep->nr_waiting++;
		err = ep_post_waiting(ep);
	}
	spin_unlock_bh(&ep->lock);
	if (err)
		ep_post_failed(ep, err);
	return taken;
}

/**
 * smcfs_ep_completed() - all requests of a transfer succeeded
 * @ep: the endpoint
 * @xfer: the transfer; it is the caller's again
 *
 * Context: Softirq or process, as the CQ is polled.
 */
void smcfs_ep_completed(struct smcfs_ep *ep, struct smcfs_xfer *xfer)
{
	u64 now = ktime_get_ns();
	u64 since;
	int err;

	spin_lock_bh(&ep->lock);
	list_del(&xfer->link);
	ep->nr_inflight--;
	ep->slots += xfer->nr_wrs;
	since = max(xfer->posted_ns, ep->progress_ns);
	/* Behind two others nothing of what passed since the last was the way there. */
	if (smcfs_xfer_op_writes(xfer->op))
		smcfs_cost_add(&ep->cost, now - since, xfer->posted_ns >= ep->before_ns,
			       xfer->nr_wrs, xfer->bytes);
	ep->before_ns = ep->progress_ns;
	ep->progress_ns = now;
	err = ep_post_waiting(ep);
	spin_unlock_bh(&ep->lock);
	if (err)
		ep_post_failed(ep, err);
}

/* What requests took lately. Context: any but hard interrupt. */
void smcfs_ep_price(struct smcfs_ep *ep, struct smcfs_price *price)
{
	struct smcfs_cost cost;

	spin_lock_bh(&ep->lock);
	cost = ep->cost;
	spin_unlock_bh(&ep->lock);
	smcfs_cost_price(&cost, price);
}

static int ep_wc_errno(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
	case IB_WC_RESP_TIMEOUT_ERR:
		return -ETIMEDOUT;
	case IB_WC_REM_ACCESS_ERR:
		return -EACCES;
	default:
		return -EIO;
	}
}

/**
 * smcfs_ep_failed() - a request of a transfer failed, or was flushed after one that failed
 * @ep: the endpoint
 * @xfer: the transfer; it stays in flight until the endpoint is destroyed
 * @wc: how it failed
 *
 * Context: Softirq or process, as the CQ is polled.
 */
void smcfs_ep_failed(struct smcfs_ep *ep, struct smcfs_xfer *xfer, const struct ib_wc *wc)
{
	char reason[SMCFS_REASON_MAX + 1];

	if (!xfer->status)
		xfer->status = wc->status;
	if (!smcfs_session_live(ep->session))
		return;
	scnprintf(reason, sizeof(reason), "%s QP: a request failed: %s (vendor error 0x%x)",
		  smcfs_ep_name(ep), ib_wc_status_msg(wc->status), wc->vendor_err);
	smcfs_session_abort(ep->session, ep_wc_errno(wc->status), reason);
}

/**
 * smcfs_ep_watch() - is the endpoint in order?
 * @ep: the endpoint, of a live session
 * @reason: if it is not, why, for people
 * @size: of @reason
 *
 * Nothing came back for a request timeout: that counts ticks, not time, since a machine that was
 * stopped for longer than the timeout sees one tick, and then the completions that were waiting.
 *
 * Context: Process (the watchdog, once per tick).
 * Return: 0, or a negative errno.
 */
int smcfs_ep_watch(struct smcfs_ep *ep, char *reason, size_t size)
{
	u8 event = READ_ONCE(ep->device_event);

	if (event) {
		scnprintf(reason, size, "%s QP: the device reports: %s", smcfs_ep_name(ep),
			  ib_event_msg(event - 1));
		return -EIO;
	}

	spin_lock_bh(&ep->lock);
	if (ep->nr_inflight && ep->progress_ns == ep->watched_ns)
		ep->stalled++;
	else
		ep->stalled = 0;
	ep->watched_ns = ep->progress_ns;
	spin_unlock_bh(&ep->lock);
	if (ep->stalled < SMCFS_EP_TICKS)
		return 0;
	scnprintf(reason, size, "%s QP: no progress for %u ms", smcfs_ep_name(ep),
		  ep->session->params.request_timeout_ms);
	return -ETIMEDOUT;
}

/**
 * smcfs_ep_stop() - refuse requests from now on and make the posted ones come back
 * @ep: the endpoint, in any state but DRAINING and DEAD
 *
 * A caller of smcfs_xfer_submit() may still map: synchronize_rcu() before smcfs_ep_destroy().
 *
 * Context: Process (destroy_work).
 */
void smcfs_ep_stop(struct smcfs_ep *ep)
{
	bool live;

	spin_lock_bh(&ep->lock);
	live = ep->state == SMCFS_EP_LIVE;
	ep_set_state_locked(ep, ep->state == SMCFS_EP_NEW ? SMCFS_EP_DEAD : SMCFS_EP_DRAINING);
	spin_unlock_bh(&ep->lock);
	/* Moves the QP to error, and tells the target. What it returns is of no use here. */
	if (live)
		rdma_disconnect(ep->cm_id);
}

/* Hands back what the endpoint has, in the order in which it was submitted. */
static void ep_fail_all(struct smcfs_ep *ep)
{
	struct smcfs_xfer *xfer, *next;
	LIST_HEAD(posted);
	LIST_HEAD(waiting);

	spin_lock_bh(&ep->lock);
	list_splice_init(&ep->inflight, &posted);
	list_splice_init(&ep->waiting, &waiting);
	ep->nr_inflight = 0;
	ep->nr_waiting = 0;
	spin_unlock_bh(&ep->lock);

	list_for_each_entry_safe(xfer, next, &posted, link) {
		list_del_init(&xfer->link);
		if (!xfer->status)
			xfer->status = IB_WC_WR_FLUSH_ERR;
		smcfs_xfer_complete(xfer, -EIO);
	}
	list_for_each_entry_safe(xfer, next, &waiting, link) {
		list_del_init(&xfer->link);
		smcfs_xfer_complete(xfer, -ENOTCONN);
	}
}

/**
 * smcfs_ep_destroy() - drain and destroy
 * @ep: the endpoint, stopped
 *
 * When it returns every transfer was handed back and nothing of the device is in use.
 *
 * Context: Process (destroy_work). Waits for the device to flush, not for the network.
 */
void smcfs_ep_destroy(struct smcfs_ep *ep)
{
	if (!ep->cm_id)
		goto dead;
	if (ep->cm_id->qp) {
		/* Since stop this count only falls. At 0 all requests came back. */
		if (READ_ONCE(ep->nr_inflight))
			ib_drain_sq(ep->cm_id->qp);
		rdma_destroy_qp(ep->cm_id);
		ib_free_cq(ep->cq);
		ep->cq = NULL;
		/* Neither the device nor a completion can touch the transfers any more. */
		ep_fail_all(ep);
		ib_dealloc_pd(ep->pd);
		ep->pd = NULL;
	}
	rdma_destroy_id(ep->cm_id);
	ep->cm_id = NULL;
dead:
	if (ep->state != SMCFS_EP_DEAD)
		smcfs_ep_set_state(ep, SMCFS_EP_DEAD);
}
