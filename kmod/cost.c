// SPDX-License-Identifier: GPL-2.0
/*
 * What a request and a byte of it take on a path, from the transfers that went over it.
 * Copyright (c) 2026 The SMC authors
 *
 * A transfer of n requests and b bytes is taken to last n * wr + b * byte. Transfers of large and
 * of small requests are added up apart from each other, and the two sums solved for the two
 * unknowns (Cramer's rule). Where only large ones were seen a request is taken to cost as much as
 * 512 bytes, which lets whoever chooses by these prices try small ones where that saves much, and
 * learn.
 *
 * Contexts: adding: softirq, under the endpoint's lock; prices: any.
 */
#include <linux/math64.h>

#include "smcfs.h"

/* Bytes of a request, on average of a transfer: so many and more, so many and less. */
#define COST_LARGE		2048
#define COST_SMALL		512
/* A request, while nobody knows. */
#define COST_WR_BYTES		512
/* Of one that was alone so much makes little of the way. */
#define COST_ALONE_WRS		48
#define COST_ALONE_BYTES	(128U << 10)
/* Both sums are halved here, so the last some 100 ms of being busy count. */
#define COST_WINDOW_NS		(64 * NSEC_PER_MSEC)
/* A transfer that took longer was held up by something else. */
#define COST_NS_MAX		(10 * NSEC_PER_MSEC)
/* Bounds products of sums, by which 64 bits are enough: see smcfs_cost_price(). */
#define COST_WRS_MAX		BIT_ULL(20)
#define COST_BYTES_MAX		BIT_ULL(34)
/* Fewer requests tell nothing. */
#define COST_WRS_MIN		16

static void cost_halve(struct smcfs_cost_sum *sum)
{
	sum->ns /= 2;
	sum->wrs /= 2;
	sum->bytes /= 2;
}

/*
 * A transfer of @wrs requests and @bytes took @ns. @alone: some of that may be the way there and
 * back, too.
 * Context: the owner of @cost has it locked.
 */
void smcfs_cost_add(struct smcfs_cost *cost, u64 ns, bool alone, unsigned int wrs, u64 bytes)
{
	struct smcfs_cost_sum *sum, *other;

	if (alone && wrs < COST_ALONE_WRS && bytes < COST_ALONE_BYTES)
		return;
	if (bytes >= (u64)wrs * COST_LARGE)
		sum = &cost->large;
	else if (bytes <= (u64)wrs * COST_SMALL)
		sum = &cost->small;
	else
		return;
	sum->ns += min_t(u64, ns, COST_NS_MAX);
	sum->wrs += wrs;
	sum->bytes += bytes;
	if (sum->ns < COST_WINDOW_NS && sum->wrs < COST_WRS_MAX && sum->bytes < COST_BYTES_MAX)
		return;
	/* Both, so that one that nothing is added to grows old; but not so that it is forgotten. */
	other = sum == &cost->large ? &cost->small : &cost->large;
	cost_halve(sum);
	if (other->wrs >= 2 * COST_WRS_MIN)
		cost_halve(other);
}

/* Picoseconds: at 400 Gb/s a byte takes 20. Context: any. */
void smcfs_cost_price(const struct smcfs_cost *cost, struct smcfs_price *price)
{
	const struct smcfs_cost_sum *large = &cost->large, *small = &cost->small;
	u64 det, wr_large, wr_small, byte_large, byte_small;

	price->wr_ps = 0;
	price->byte_ps = 0;
	if (large->wrs < COST_WRS_MIN)
		return;
	price->byte_ps = max(div64_u64(large->ns * 1000,
				       large->bytes + large->wrs * COST_WR_BYTES), 1ULL);
	price->wr_ps = price->byte_ps * COST_WR_BYTES;
	if (small->wrs < COST_WRS_MIN)
		return;
	/* More than half of the first product, by COST_LARGE and COST_SMALL: 0 it is not. */
	det = div_u64(small->wrs * large->bytes - large->wrs * small->bytes, 1000);
	wr_large = small->ns * large->bytes;
	wr_small = large->ns * small->bytes;
	byte_large = large->ns * small->wrs;
	byte_small = small->ns * large->wrs;
	price->wr_ps = 0;	/* requests are free, as far as can be told */
	if (wr_large > wr_small)
		price->wr_ps = div64_u64(wr_large - wr_small, det);
	price->byte_ps = 1;
	if (byte_large > byte_small)
		price->byte_ps = max(div64_u64(byte_large - byte_small, det), 1ULL);
}
