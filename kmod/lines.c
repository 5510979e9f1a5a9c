// SPDX-License-Identifier: GPL-2.0
/*
 * Exclusive regions: changed lines of a page or all of it, whichever is cheaper.
 * Copyright (c) 2026 The SMC authors
 *
 * Nobody else writes to what a program writes here, so a page may go out as a whole, which spares
 * the processor to copy and to compare it, or as the lines that changed (twin.c), which spares
 * the wire. What that costs is known: requests and bytes by what the path took for others
 * (cost.c), copying and comparing by the clock. What it saves depends on how much of a page a
 * program changes, so of some pages that are sent as a whole a copy is kept, a *probe*, and
 * compared when they are sent next.
 *
 *	saved = price(1 request, a page) - price(runs, their bytes) - copying - comparing
 *
 * If that is much of a page's price on average, pages that are written next get a twin, until it is
 * below nothing. Of a page that was compared any lines may be sent in between, too: where two runs
 * are close to each other that is cheaper than a request of their own, up to all of the page.
 *
 * Owns: struct smcfs_lines, and the copies that are its probes.
 * Contexts: process, under the folio lock of the page; free anywhere but in hard interrupts.
 * Locking: smcfs_lines.lock, only tried: a probe less is no harm.
 * Failure: no memory: no probe. No memory for a twin: the page is sent as a whole (twin.c).
 */
#include <linux/highmem.h>
#include <linux/math64.h>
#include <linux/module.h>

#include "smcfs.h"

enum { LINES_NEVER, LINES_ALWAYS, LINES_BY_COST };

static unsigned int exclusive_lines = LINES_BY_COST;

static int exclusive_lines_set(const char *value, const struct kernel_param *kp)
{
	return param_set_uint_minmax(value, kp, LINES_NEVER, LINES_BY_COST);
}

static const struct kernel_param_ops exclusive_lines_ops = {
	.set = exclusive_lines_set,
	.get = param_get_uint,
};

module_param_cb(exclusive_lines, &exclusive_lines_ops, &exclusive_lines, 0644);
MODULE_PARM_DESC(exclusive_lines,
		 "Send changed lines of pages of exclusive regions, not whole pages: 0 never, 1 always, 2 where it is cheaper (default)");

/* The price of a whole page. So much of it has to be saved to begin; to go on, anything. */
#define LINES_UNIT		1048576
#define LINES_BEGIN		(LINES_UNIT / 4)
/* The mean is of the last some so many pages: to begin, and to go on, since to end costs faults. */
#define LINES_MEAN_BEGIN	8
#define LINES_MEAN_GO_ON	256
/* One page of so many has a probe. */
#define LINES_PROBE_EACH	64
/* And of hot folios that want to change over one of so many is cooled, if they never do. */
#define LINES_COOL_EACH		64
/* A request costs as much as so many lines while nobody knows. */
#define LINES_GAP		8

void smcfs_lines_init(struct smcfs_region *region)
{
	struct smcfs_lines *lines = &region->lines;
	unsigned int i;

	spin_lock_init(&lines->lock);
	for (i = 0; i < SMCFS_LINES_PROBES; i++)
		lines->probe[i].index = SMCFS_LINES_NO_PAGE;
}

void smcfs_lines_free(struct smcfs_region *region)
{
	unsigned int i;

	for (i = 0; i < SMCFS_LINES_PROBES; i++)
		if (region->lines.probe[i].copy)
			__free_page(region->lines.probe[i].copy);
}

/* Is that what decides? Context: any. */
bool smcfs_lines_by_cost(void)
{
	return READ_ONCE(exclusive_lines) == LINES_BY_COST;
}

/* Are pages of an exclusive region that are written next to be compared? Context: any. */
bool smcfs_lines_wanted(struct smcfs_region *region)
{
	return smcfs_lines_by_cost() ? READ_ONCE(region->lines.on) :
				       READ_ONCE(exclusive_lines) == LINES_ALWAYS;
}

/* Steps of the golden ratio, as in smcfs_stage_sampled(): one in @each. */
static bool lines_sampled(u32 *counter, u32 each)
{
	u32 sample = READ_ONCE(*counter);

	WRITE_ONCE(*counter, sample + 0x9e3779b9);
	return sample <= U32_MAX / each;
}

/*
 * A folio is to change over, and did or could not: what a program stores to while it is on its way
 * has to wait. If that is the rule those that are hot are cooled for it but now and then.
 */
void smcfs_lines_changed(struct smcfs_region *region, bool done)
{
	u32 refused = READ_ONCE(region->lines.refused);

	refused = done ? refused / 2 : min(2 * refused + 1, LINES_COOL_EACH - 1U);
	WRITE_ONCE(region->lines.refused, refused);
}

/**
 * smcfs_lines_misfit() - is a folio with hot pages to be sent in another way from now on?
 * @region: exclusive.
 * @folio: locked, with hot pages.
 *
 * What is hot sees no fault, where that is decided (smcfs_folio_fit()), so it has to cool. What
 * somebody has pinned stays as it is.
 *
 * Context: process.
 * Return: it is.
 */
bool smcfs_lines_misfit(struct smcfs_region *region, struct folio *folio)
{
	bool compared = smcfs_folio_private(folio)->compared;

	if (compared == smcfs_lines_wanted(region) || folio_maybe_dma_pinned(folio))
		return false;
	return !smcfs_lines_by_cost() ||
	       lines_sampled(&region->lines.cool_sample, READ_ONCE(region->lines.refused) + 1);
}

/**
 * smcfs_lines_probe() - a page that is sent as a whole will be written: how much of it?
 * @region: exclusive.
 * @folio: locked, uptodate, not compared; the page holds what the target does, or will.
 * @index: of the page in @folio.
 *
 * Context: process.
 */
void smcfs_lines_probe(struct smcfs_region *region, struct folio *folio, unsigned int index)
{
	struct smcfs_lines *lines = &region->lines;
	struct smcfs_lines_probe *probe;
	u64 begin, ns;

	if (!smcfs_lines_by_cost() || !lines_sampled(&lines->probe_sample, LINES_PROBE_EACH) ||
	    !spin_trylock(&lines->lock))
		return;
	probe = &lines->probe[lines->next++ % SMCFS_LINES_PROBES];
	if (!probe->copy)
		probe->copy = alloc_page(GFP_NOWAIT | __GFP_NOWARN);
	if (probe->copy) {
		begin = ktime_get_ns();
		copy_highpage(probe->copy, folio_page(folio, index));
		ns = min_t(u64, ktime_get_ns() - begin, NSEC_PER_MSEC);
		WRITE_ONCE(lines->copy_ns, lines->copy_ns ? (7 * lines->copy_ns + ns) / 8 : ns);
		WRITE_ONCE(probe->index, folio->index + index);
	}
	spin_unlock(&lines->lock);
}

/* Of a page that costs @whole as a whole, and @parts by comparing it. */
static void lines_saved(struct smcfs_region *region, u64 whole, u64 parts)
{
	struct smcfs_lines *lines = &region->lines;
	bool on = READ_ONCE(lines->on);
	int saved, mean = READ_ONCE(lines->saved);

	if (!whole)	/* nobody knows */
		return;
	saved = LINES_UNIT - (int)min(div64_u64(parts * LINES_UNIT, whole), 2ULL * LINES_UNIT);
	/* Two at a time: one of them is lost, no harm. */
	mean += (saved - mean) / (on ? LINES_MEAN_GO_ON : LINES_MEAN_BEGIN);
	WRITE_ONCE(lines->saved, mean);
	if (on && mean < 0)
		WRITE_ONCE(lines->on, false);
	else if (!on && mean > LINES_BEGIN)
		WRITE_ONCE(lines->on, true);
}

/* The lines in which two pages differ. */
static u64 lines_differing(struct page *a, struct page *b)
{
	const u8 *one = kmap_local_page(a), *other = kmap_local_page(b);
	u64 lines = 0;
	unsigned int i;

	for (i = 0; i < PAGE_SIZE / SMCFS_LINE_BYTES; i++)
		if (memcmp(one + i * SMCFS_LINE_BYTES, other + i * SMCFS_LINE_BYTES,
			   SMCFS_LINE_BYTES))
			lines |= BIT_ULL(i);
	kunmap_local(other);
	kunmap_local(one);
	return lines;
}

/* Between runs so many lines are cheaper than another request. */
static unsigned int price_gap(const struct smcfs_price *price)
{
	if (!price->byte_ps)
		return LINES_GAP;
	return min(div64_u64(price->wr_ps, price->byte_ps * SMCFS_LINE_BYTES), 64ULL);
}

static u64 price_lines(const struct smcfs_price *price, u64 lines)
{
	return smcfs_price_of(price, hweight64(lines & ~(lines << 1)),
			      hweight64(lines) * SMCFS_LINE_BYTES);
}

static u64 price_page(const struct smcfs_price *price)
{
	return smcfs_price_of(price, 1, PAGE_SIZE);
}

/* A twin's page is cleared, when it is allocated, and copied. */
static u64 twin_ns(const struct smcfs_lines *lines)
{
	return 2 * (u64)READ_ONCE(lines->copy_ns);
}

static void probe_look(struct smcfs_region *region, const struct smcfs_price *price,
		       struct smcfs_lines_probe *probe, struct page *page)
{
	u64 lines = smcfs_stage_bridged(lines_differing(page, probe->copy), price_gap(price));

	/* To compare is about as much as to copy. */
	lines_saved(region, price_page(price), price_lines(price, lines) + region->lines.copy_ns +
					       twin_ns(&region->lines));
	WRITE_ONCE(probe->index, SMCFS_LINES_NO_PAGE);
}

/**
 * smcfs_lines_look() - pages are going to be sent as they are: how much of them changed?
 * @region: exclusive.
 * @ep: that they are sent by.
 * @folio: locked.
 * @first: of the pages in it.
 * @end: after the last.
 *
 * Context: process.
 */
void smcfs_lines_look(struct smcfs_region *region, struct smcfs_ep *ep, struct folio *folio,
		      unsigned int first, unsigned int end)
{
	struct smcfs_lines *lines = &region->lines;
	struct smcfs_price price;
	unsigned int i;

	if (!smcfs_lines_by_cost())
		return;
	for (i = 0; i < SMCFS_LINES_PROBES; i++) {
		struct smcfs_lines_probe *probe = &lines->probe[i];
		pgoff_t at = READ_ONCE(probe->index) - folio->index;

		if (at < first || at >= end)
			continue;
		smcfs_ep_price(ep, &price);
		if (!spin_trylock(&lines->lock))
			continue;
		at = probe->index - folio->index;
		if (at >= first && at < end)
			probe_look(region, &price, probe, folio_page(folio, at));
		spin_unlock(&lines->lock);
	}
}

/* A page of an exclusive region is staged: sends lines in between where that is cheaper. */
void smcfs_lines_bridge(const struct smcfs_price *price, struct smcfs_stage *stage)
{
	smcfs_stage_bridge(stage, price_gap(price));
}

/**
 * smcfs_lines_sent() - a page was compared: was it worth it?
 * @region: exclusive.
 * @price: of its path.
 * @lines: that are sent, or 0.
 * @hot: it had its twin already.
 * @ns: that comparing took.
 */
void smcfs_lines_sent(struct smcfs_region *region, const struct smcfs_price *price, u64 lines,
		      bool hot, u64 ns)
{
	lines_saved(region, price_page(price),
		    price_lines(price, lines) + ns + (hot ? 0 : twin_ns(&region->lines)));
}
