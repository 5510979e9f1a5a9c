// SPDX-License-Identifier: GPL-2.0
/*
 * Connecting an endpoint by rdma_cm, and what the connection manager reports later.
 * Copyright (c) 2026 The SMC authors
 *
 * Owns: cm_id, until smcfs_ep_destroy().
 * Contexts: connect in connect_work, which sleeps; events in work queues of the RDMA core.
 * Locking: an event that ends a step of connect writes cm_err and cm_msg before complete(cm_done);
 *	connect takes exactly one completion per step, so none is left over. smcfs_session_abort()
 *	completes once more, which wakes connect for good.
 * Lifetime: no event comes after rdma_destroy_id(), which waits for those that run. So handlers
 *	never return non-zero, never destroy and never wait.
 * Failure: connect only reports. Removal of a device: the core calls every cm_id of it, then waits
 *	until they are destroyed; ours are destroyed last, after QP, CQ and PD, by destroy_work.
 */
#include <linux/inet.h>
#include <linux/jiffies.h>
#include <linux/string.h>

#include "smcfs.h"

/* 4.096 us * 2^16 = 268 ms until a packet is sent again. */
#define CM_ACK_TIMEOUT		16
/* So often: with the timeout above 2 s of silence, if the request timeout allows. */
#define CM_RETRY_COUNT		7
/*
 * The core misses a neighbour's answer that comes between its question and its note of who asked.
 * It looks again when its time is up, so it gets little, and again.
 */
#define CM_RESOLVE_TRY_MS	200
/* 7 would mean for ever. Nothing is received, so the target never is "not ready". */
#define CM_RNR_RETRY_COUNT	3
/* RDMA READs on their way at a time; more gain nothing with requests of this size. */
#define CM_READS_MAX		16

static_assert(sizeof(struct smcfs_cm_private) == 32);

static void cm_lost(struct smcfs_ep *ep, int err, const char *what)
{
	char reason[SMCFS_REASON_MAX + 1];

	scnprintf(reason, sizeof(reason), "%s QP: %s", smcfs_ep_name(ep), what);
	smcfs_session_abort(ep->session, err, reason);
}

static void cm_step_done(struct smcfs_ep *ep, int err, const char *msg)
{
	/*
	 * Who accepted can still reject, when it never heard that we are ready. No other event
	 * follows then, and nobody waits for this one.
	 */
	if (err && READ_ONCE(ep->state) == SMCFS_EP_LIVE) {
		cm_lost(ep, err, msg ?: "the connection failed after it was made");
		return;
	}
	/* After a failure connect takes no step; what follows must not change its report. */
	if (!ep->cm_err) {
		ep->cm_err = err;
		ep->cm_msg = msg;
	}
	complete(&ep->cm_done);
}

/* Serialized by the core for each cm_id. */
static int cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct smcfs_ep *ep = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		cm_step_done(ep, 0, NULL);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* How many READs the target lets us have, as its accept said; not so with iWARP. */
		if (ep->role == SMCFS_CM_QP_READ && rdma_cap_ib_cm(id->device, id->port_num) &&
		    !event->param.conn.initiator_depth)
			cm_step_done(ep, -EPROTO, "the target accepts no RDMA READ");
		else
			cm_step_done(ep, 0, NULL);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		cm_step_done(ep, event->status < 0 ? event->status : -EIO, NULL);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		cm_step_done(ep, event->status < 0 ? event->status : -EHOSTUNREACH, NULL);
		break;
	case RDMA_CM_EVENT_REJECTED:
		cm_step_done(ep, -ECONNREFUSED, rdma_reject_msg(id, event->status));
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		cm_lost(ep, -ECONNRESET, "the target disconnected");
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		cm_lost(ep, -ECONNRESET, "disconnected");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		cm_lost(ep, -ENODEV, "the RDMA device was removed");
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		cm_lost(ep, -EADDRNOTAVAIL, "the local address moved to another device");
		break;
	default:
		cm_lost(ep, -EPROTO, rdma_event_msg(event->event));
		break;
	}
	return 0;
}

static unsigned int cm_left_ms(unsigned long deadline)
{
	unsigned long now = jiffies;

	return time_before(now, deadline) ? jiffies_to_msecs(deadline - now) : 0;
}

static int cm_wait(struct smcfs_ep *ep, unsigned long deadline)
{
	unsigned long now = jiffies;

	/* A worker gets no signals; an uninterruptible sleep of minutes is reported as hung. */
	if (!time_before(now, deadline) ||
	    wait_for_completion_interruptible_timeout(&ep->cm_done, deadline - now) <= 0)
		return -ETIMEDOUT;
	if (READ_ONCE(ep->session->state) != SMCFS_SESSION_CONNECTING)
		return -ECANCELED;
	return ep->cm_err;
}

static int cm_resolve_addr(struct smcfs_ep *ep, unsigned long deadline)
{
	struct smcfs_session_params *params = &ep->session->params;
	struct sockaddr *src = NULL;
	int err;

	if (params->src.ss_family != AF_UNSPEC)
		src = (struct sockaddr *)&params->src;
	do {
		ep->cm_err = 0;
		err = rdma_resolve_addr(ep->cm_id, src, (struct sockaddr *)&params->dst,
					min(cm_left_ms(deadline), CM_RESOLVE_TRY_MS));
		err = err ?: cm_wait(ep, deadline);
	} while (err == -ETIMEDOUT && time_before(jiffies, deadline));
	return err;
}

static int cm_resolve_route(struct smcfs_ep *ep, unsigned long deadline)
{
	int err = rdma_set_ack_timeout(ep->cm_id, CM_ACK_TIMEOUT);

	/* A part of the route, so it comes before it. */
	if (err)
		return err;
	err = rdma_resolve_route(ep->cm_id, cm_left_ms(deadline));
	return err ?: cm_wait(ep, deadline);
}

static int cm_create(struct smcfs_ep *ep, unsigned long deadline)
{
	struct smcfs_session *session = ep->session;

	strscpy(session->device, dev_name(&ep->cm_id->device->dev), sizeof(session->device));
	return smcfs_ep_create(ep);
}

static int cm_connect(struct smcfs_ep *ep, unsigned long deadline)
{
	struct smcfs_session_params *params = &ep->session->params;
	struct smcfs_cm_private private = {
		.magic		= cpu_to_le32(SMCFS_CM_MAGIC),
		.version	= cpu_to_le16(SMCFS_CM_VERSION),
		.qp_role	= cpu_to_le16(ep->role),
		.session_id	= cpu_to_le64(params->id),
	};
	struct rdma_conn_param param = {
		.private_data		= &private,
		.private_data_len	= sizeof(private),
		.initiator_depth	= min(ep->cm_id->device->attrs.max_qp_init_rd_atom,
					      CM_READS_MAX),
		.retry_count		= CM_RETRY_COUNT,
		.rnr_retry_count	= CM_RNR_RETRY_COUNT,
	};
	int err;

	memcpy(private.token, params->token[ep->role], sizeof(private.token));
	err = rdma_connect(ep->cm_id, &param);
	memzero_explicit(&private, sizeof(private));
	memzero_explicit(params->token[ep->role], sizeof(params->token[ep->role]));
	return err ?: cm_wait(ep, deadline);
}

/* The way to a connection. For people: "read QP: cannot <name> <target>: <why>". */
static const struct {
	const char *name;
	int (*run)(struct smcfs_ep *ep, unsigned long deadline);
} cm_steps[] = {
	{ "resolve",		cm_resolve_addr },
	{ "find a route to",	cm_resolve_route },
	{ "make queues for",	cm_create },
	{ "connect to",		cm_connect },
};

static const char *cm_hint(int err)
{
	switch (err) {
	case -ETIMEDOUT:
		return "no answer in time";
	case -ENODEV:
		return "no RDMA device on the way there";
	case -EADDRNOTAVAIL:
		return "the source address is not on this node";
	case -EOPNOTSUPP:
		return "the RDMA device is too small";
	default:
		return NULL;
	}
}

static void cm_explain(struct smcfs_ep *ep, const char *step, int err, char *reason, size_t size)
{
	const char *msg = ep->cm_err == err && ep->cm_msg ? ep->cm_msg : cm_hint(err);

	scnprintf(reason, size, "%s QP: cannot %s %pISpc: %s%s%pe%s", smcfs_ep_name(ep), step,
		  &ep->session->params.dst, msg ?: "", msg ? " (" : "", ERR_PTR(err),
		  msg ? ")" : "");
}

/**
 * smcfs_ep_connect() - connect an endpoint
 * @ep: the endpoint, NEW
 * @deadline: jiffies
 * @reason: why it failed, for people
 * @size: of @reason
 *
 * Its token is wiped once it is sent.
 *
 * Context: Process (connect_work), in a noio scope. Sleeps until @deadline or abort.
 * Return: 0: LIVE; else -errno and smcfs_ep_destroy() is due; -ECANCELED after abort.
 */
int smcfs_ep_connect(struct smcfs_ep *ep, unsigned long deadline, char *reason, size_t size)
{
	unsigned int i;
	int err;

	smcfs_ep_set_state(ep, SMCFS_EP_CONNECTING);
	ep->cm_id = rdma_create_id(&init_net, cm_event, ep, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(ep->cm_id)) {
		err = PTR_ERR(ep->cm_id);
		ep->cm_id = NULL;
		cm_explain(ep, "connect to", err, reason, size);
		return err;
	}
	for (i = 0; i < ARRAY_SIZE(cm_steps); i++) {
		err = cm_steps[i].run(ep, deadline);
		if (err) {
			cm_explain(ep, cm_steps[i].name, err, reason, size);
			return err;
		}
	}
	smcfs_ep_set_state(ep, SMCFS_EP_LIVE);
	return 0;
}
