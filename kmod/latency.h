/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buckets of latency histograms: no I/O, compiles on the host too. What they are: linux/smcfs.h.
 * Copyright (c) 2026 The SMC authors
 */
#ifndef SMCFS_LATENCY_H
#define SMCFS_LATENCY_H

#include <linux/smcfs.h>

/* The bucket of @ns. */
static inline unsigned int smcfs_latency_bucket(__u64 ns)
{
	unsigned int power, step;

	if (ns < 1ULL << SMCFS_LATENCY_SHIFT)
		return 0;
	if (ns >> (SMCFS_LATENCY_SHIFT + SMCFS_LATENCY_POWERS))
		return SMCFS_LATENCY_BUCKETS - 1;
	power = 63 - __builtin_clzll(ns);
	/* The bits below the highest one. */
	step = (ns * SMCFS_LATENCY_STEPS >> power) % SMCFS_LATENCY_STEPS;
	return 1 + (power - SMCFS_LATENCY_SHIFT) * SMCFS_LATENCY_STEPS + step;
}

#endif
