// SPDX-License-Identifier: GPL-2.0
/*
 * Sync modes: when stores leave without a barrier, and when pages go without an acquire.
 * Copyright (c) 2026 The SMC authors
 *
 *	lazy	flush_after_ms after a page became dirty (region.c)
 *	push	push_delay_us after a page became dirty; a mapped store gets 50 us at least, so
 *		that it is done before its page is write-protected again
 *	eager	write(2) returns when it is acknowledged; mapped stores as push, with the least
 *		delay
 *
 *	max_stale_us	all clean pages are dropped so often while there are any, so none is older
 *
 * Owns: struct smcfs_pace: a timer that queues a work.
 * Contexts: arming anywhere but hard interrupt, also under the page-table lock; works in process.
 * Locking: smcfs_pace.lock, a leaf, irqs off.
 * Lifetime: an armed timer and a queued work have one reference to their region between them.
 * Failure: none of its own. What push could not send stays dirty; flush_after_ms is always at
 * work, too.
 */
#include <linux/hrtimer.h>
#include <linux/ktime.h>

#include "smcfs.h"

/* A fault returns to its store, and that is done, within this, unless the task loses its CPU. */
#define PUSH_DWELL_US		50
/* Dropping all the time would leave the cache empty, and its work without end. */
#define STALE_MIN_US		100U

/* ------------------------------------------------------------------ pace */

static enum hrtimer_restart pace_due(struct hrtimer *timer)
{
	struct smcfs_pace *pace = container_of(timer, struct smcfs_pace, timer);

	queue_work_on(smcfs_region_cpu(pace->region), smcfs_flush_wq, &pace->work);
	return HRTIMER_NORESTART;
}

static void pace_init(struct smcfs_region *region, struct smcfs_pace *pace, work_func_t fn)
{
	spin_lock_init(&pace->lock);
	hrtimer_init(&pace->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	pace->timer.function = pace_due;
	INIT_WORK(&pace->work, fn);
	pace->region = region;
	/* Until it is bound, after which its end is never missed. */
	pace->stopped = true;
}

static void pace_start(struct smcfs_pace *pace)
{
	spin_lock_irq(&pace->lock);
	pace->stopped = false;
	spin_unlock_irq(&pace->lock);
}

/* Runs the work @delay_ns from now, unless it is going to run anyhow. */
static void pace_arm(struct smcfs_region *region, struct smcfs_pace *pace, u64 delay_ns)
{
	unsigned long flags;

	/* What is armed will run after what its caller has just done: see pace_begin(). */
	spin_lock_irqsave(&pace->lock, flags);
	if (!pace->armed && !pace->stopped) {
		pace->armed = true;
		smcfs_region_hold(region);
		hrtimer_start(&pace->timer, ns_to_ktime(delay_ns), HRTIMER_MODE_REL);
	}
	spin_unlock_irqrestore(&pace->lock, flags);
}

/* As arm; what is armed for later runs then, too. */
static void pace_rearm(struct smcfs_region *region, struct smcfs_pace *pace, u64 delay_ns)
{
	unsigned long flags;

	spin_lock_irqsave(&pace->lock, flags);
	/* Else the work is queued already. */
	if (pace->armed && !pace->stopped && hrtimer_try_to_cancel(&pace->timer) > 0)
		hrtimer_start(&pace->timer, ns_to_ktime(delay_ns), HRTIMER_MODE_REL);
	spin_unlock_irqrestore(&pace->lock, flags);
	pace_arm(region, pace, delay_ns);
}

/* The work has begun: from here on it may miss what is new, which arms it again. */
static void pace_begin(struct smcfs_pace *pace)
{
	spin_lock_irq(&pace->lock);
	pace->armed = false;
	spin_unlock_irq(&pace->lock);
}

/* Never again. Context: process, not from the work itself. */
static void pace_stop(struct smcfs_region *region, struct smcfs_pace *pace)
{
	spin_lock_irq(&pace->lock);
	pace->stopped = true;
	spin_unlock_irq(&pace->lock);
	if (hrtimer_cancel(&pace->timer))
		smcfs_region_put(region);
	if (cancel_work_sync(&pace->work))
		smcfs_region_put(region);
}

/* ------------------------------------------------------------------ push */

static void push_work(struct work_struct *work)
{
	struct smcfs_region *region = container_of(work, struct smcfs_region, push.work);
	struct inode *inode;

	pace_begin(&region->push);
	inode = smcfs_region_inode(region);
	if (inode) {
		/*
		 * Posts, and does not wait for what it posted; a page that is on its way waits
		 * its turn.
		 */
		if (READ_ONCE(region->state) == SMCFS_REGION_ACTIVE)
			filemap_fdatawrite(inode->i_mapping);
		smcfs_region_inode_put(inode);
	}
	smcfs_region_put(region);
}

/**
 * smcfs_modes_dirtied() - a page became dirty
 * @region: its region.
 * @mapped: by a store that is about to be repeated after its fault.
 *
 * Context: any but hard interrupt.
 */
void smcfs_modes_dirtied(struct smcfs_region *region, bool mapped)
{
	enum smcfs_sync mode = READ_ONCE(region->sync_mode);
	u32 delay_us = mode == SMCFS_SYNC_EAGER ? 0 : READ_ONCE(region->push_delay_us);

	/* An eager write(2) sends its pages itself. */
	if (mode == SMCFS_SYNC_LAZY || (mode == SMCFS_SYNC_EAGER && !mapped))
		return;
	if (mapped)
		delay_us = max_t(u32, delay_us, PUSH_DWELL_US);
	pace_arm(region, &region->push, (u64)delay_us * NSEC_PER_USEC);
}

bool smcfs_modes_eager(struct smcfs_region *region)
{
	return READ_ONCE(region->sync_mode) == SMCFS_SYNC_EAGER;
}

/* ------------------------------------------------------------------ staleness */

static void stale_arm(struct smcfs_region *region, u64 spent_ns)
{
	u32 period_us = READ_ONCE(region->max_stale_us);

	if (period_us)
		pace_arm(region, &region->stale,
			 max((u64)max(period_us, STALE_MIN_US) * NSEC_PER_USEC, spent_ns));
}

static void stale_work(struct work_struct *work)
{
	struct smcfs_region *region = container_of(work, struct smcfs_region, stale.work);
	u64 begun = ktime_get_ns();
	struct inode *inode;

	pace_begin(&region->stale);
	inode = smcfs_region_inode(region);
	if (inode) {
		/*
		 * With no session the pages could not be fetched again: better old ones than none,
		 * until it is bound again. An empty cache is armed by the next page that comes.
		 * Large ones are not dropped more often than half of a processor can do.
		 */
		if (READ_ONCE(region->max_stale_us) &&
		    READ_ONCE(region->state) == SMCFS_REGION_ACTIVE) {
			smcfs_drop_stale(inode);
			if (READ_ONCE(inode->i_mapping->nrpages))
				stale_arm(region, ktime_get_ns() - begun);
		}
		smcfs_region_inode_put(inode);
	}
	smcfs_region_put(region);
}

/* A page came, or is on its way. Context: any but hard interrupt. */
void smcfs_modes_cached(struct smcfs_region *region)
{
	stale_arm(region, 0);
}

/* ------------------------------------------------------------------ life */

void smcfs_modes_init(struct smcfs_region *region)
{
	pace_init(region, &region->push, push_work);
	pace_init(region, &region->stale, stale_work);
	region->sync_mode = SMCFS_SYNC_LAZY;
	region->push_delay_us = SMCFS_PUSH_DELAY_US;
	region->sync_mode_origin = SMCFS_ORIGIN_DEFAULT;
	region->push_delay_origin = SMCFS_ORIGIN_DEFAULT;
	region->max_stale_origin = SMCFS_ORIGIN_DEFAULT;
}

/* Parameters were set: what is dirty or stale by now falls under them, too. Context: process. */
void smcfs_modes_changed(struct smcfs_region *region)
{
	if (!smcfs_hot_allowed(region))
		smcfs_hot_cool_all(region);
	if (READ_ONCE(region->sync_mode) != SMCFS_SYNC_LAZY)
		pace_rearm(region, &region->push, PUSH_DWELL_US * NSEC_PER_USEC);
	if (READ_ONCE(region->max_stale_us))
		pace_rearm(region, &region->stale, STALE_MIN_US * NSEC_PER_USEC);
}

/* Also again. Context: any but hard interrupt. */
void smcfs_modes_bound(struct smcfs_region *region)
{
	pace_start(&region->push);
	pace_start(&region->stale);
	smcfs_modes_cached(region);
}

/* The region is dead or going. Context: process. */
void smcfs_modes_stop(struct smcfs_region *region)
{
	pace_stop(region, &region->push);
	pace_stop(region, &region->stale);
}
