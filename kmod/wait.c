// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting for a word in the target's memory.
 * Copyright (c) 2026 The SMC authors
 *
 * One small READ per look. The pause between looks grows with the time already waited, so that it
 * adds an eighth of that, and never more than a millisecond; the task sleeps meanwhile.
 *
 * Contexts: process.
 * Failure: a look that fails is repeated until the time is up, since the session may come back;
 *	not when the region is dead.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>

#include "smcfs.h"

#define WAIT_PAUSE_MIN_NS	(20 * NSEC_PER_USEC)
#define WAIT_PAUSE_MAX_NS	NSEC_PER_MSEC

static bool wait_met(const struct smcfs_ioc_wait *wait)
{
	u64 seen = wait->seen & wait->mask, value = wait->value & wait->mask;

	switch (wait->cond) {
	case SMCFS_WAIT_NE:
		return seen != value;
	case SMCFS_WAIT_EQ:
		return seen == value;
	default:
		return seen >= value;
	}
}

/* Sleeps until the next look is due. Return: 0 or -EINTR. */
static int wait_pause(u64 begun, u64 end, u64 now)
{
	u64 pause = clamp_t(u64, (now - begun) / 8, WAIT_PAUSE_MIN_NS, WAIT_PAUSE_MAX_NS);
	ktime_t due = ns_to_ktime(min(now + pause, end));

	set_current_state(TASK_INTERRUPTIBLE);
	schedule_hrtimeout_range(&due, pause / 8, HRTIMER_MODE_ABS);
	return signal_pending(current) ? -EINTR : 0;
}

/* One look. The word's shadow page, if clean, holds what was wanted, too. As smcfs_word(). */
static int wait_look(struct inode *inode, struct smcfs_ioc_wait *wait)
{
	struct smcfs_word_op op = {
		.op = SMCFS_XFER_READ,
		.size = wait->size,
		.pos = wait->offset,
	};
	u64 here;
	int err;

	err = smcfs_word_read(smcfs_i(inode)->region, wait->offset, wait->size, &wait->seen);
	if (err || !wait_met(wait))
		return err;
	if (!smcfs_word_shadow(inode, wait->offset, wait->size, &here) || here == wait->seen)
		return 0;
	/* Again, with the page held: what this look brought may be older than what is there now. */
	err = smcfs_word(inode, &op);
	if (!err)
		wait->seen = op.old;
	return err;
}

/**
 * smcfs_wait() - until a word of the target's memory is as wanted
 * @inode: of a region.
 * @wait: checked; ->seen is set.
 *
 * Context: process, interruptible between looks, killable in them.
 * Return: 0; -ETIMEDOUT; -EIO: the last look failed, or the region is dead; -EINTR; -ENOMEM.
 */
int smcfs_wait(struct inode *inode, struct smcfs_ioc_wait *wait)
{
	struct smcfs_region *region = smcfs_i(inode)->region;
	u64 begun = ktime_get_ns(), now;
	u64 end = begun + (u64)wait->timeout_ms * NSEC_PER_MSEC;
	int err;

	for (;;) {
		err = wait_look(inode, wait);
		if (!err && wait_met(wait))
			return 0;
		if (err && (err != -EIO || smcfs_region_dead(region)))
			return err;
		now = ktime_get_ns();
		if (now >= end)
			return err ?: -ETIMEDOUT;
		err = wait_pause(begun, end, now);
		if (err)
			return err;
	}
}
