/* SPDX-License-Identifier: GPL-2.0 */
/*
 * States of endpoints and sessions and the edges between them: no I/O, compiles on the host too.
 * Copyright (c) 2026 The SMC authors
 *
 *	endpoint:	NEW -> CONNECTING -> LIVE -> DRAINING -> DEAD
 *			 |          `-----------------^          ^
 *			 `---------------------------------------'
 *	session:	CONNECTING -> LIVE -> DRAINING -> DEAD
 *			     `-------------------^
 *
 * Nothing leads back: a lost session stays lost, the daemon makes a new one.
 */
#ifndef SMCFS_EP_STATE_H
#define SMCFS_EP_STATE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#endif
#include <linux/smcfs.h>

enum smcfs_ep_state {
	SMCFS_EP_NEW,		/* nothing allocated */
	SMCFS_EP_CONNECTING,	/* connect_work builds it */
	SMCFS_EP_LIVE,		/* requests are posted */
	SMCFS_EP_DRAINING,	/* requests are refused, posted ones come back */
	SMCFS_EP_DEAD,		/* nothing allocated, final */
	SMCFS_EP_NR
};

/* By the state, in the order of the enum: a bit for each state that may follow. */
static const unsigned char smcfs_ep_edges[SMCFS_EP_NR] = {
	/* NEW */		1 << SMCFS_EP_CONNECTING | 1 << SMCFS_EP_DEAD,
	/* CONNECTING */	1 << SMCFS_EP_LIVE | 1 << SMCFS_EP_DRAINING,
	/* LIVE */		1 << SMCFS_EP_DRAINING,
	/* DRAINING */		1 << SMCFS_EP_DEAD,
	/* DEAD */		0,
};

static const unsigned char smcfs_session_edges[__SMCFS_SESSION_STATE_MAX] = {
	/* UNSPEC */		1 << SMCFS_SESSION_CONNECTING,
	/* CONNECTING */	1 << SMCFS_SESSION_LIVE | 1 << SMCFS_SESSION_DRAINING,
	/* LIVE */		1 << SMCFS_SESSION_DRAINING,
	/* DRAINING */		1 << SMCFS_SESSION_DEAD,
	/* DEAD */		0,
};

static inline bool smcfs_ep_may(enum smcfs_ep_state from, enum smcfs_ep_state to)
{
	return from < SMCFS_EP_NR && to < SMCFS_EP_NR && (smcfs_ep_edges[from] >> to & 1);
}

static inline bool smcfs_session_may(enum smcfs_session_state from, enum smcfs_session_state to)
{
	return from < __SMCFS_SESSION_STATE_MAX && to < __SMCFS_SESSION_STATE_MAX &&
	       (smcfs_session_edges[from] >> to & 1);
}

#endif
