// SPDX-License-Identifier: GPL-2.0
/*
 * Staging pages: what is sent of what changed, compared with what the target holds.
 * Copyright (c) 2026 The SMC authors
 *
 * A page that is compared goes out by a copy. The copy and the comparison are one pass, so what
 * was compared is what is sent, whoever stores to the shadow page meanwhile: a program whose
 * mapping is writable, a device that the page is pinned for, a debugger.
 *
 * Owns: the staging pages of each session. They bound what is in flight, and are a session's own,
 * so that a
 *	dead node keeps none from others.
 * Contexts: create in process context; get in process context, may wait for transfers of the same
 *	session; free in any but hard interrupt.
 * Locking: smcfs_stages.lock, a leaf.
 * Lifetime: with the session: whoever has a staging page holds the session through a transfer or a
 * grant.
 * Failure: nothing here fails once the pages exist, and nothing is allocated while flushing.
 */
#include <linux/bitmap.h>
#include <linux/highmem.h>
#include <linux/slab.h>
#ifdef CONFIG_X86_64
#include <asm/fpu/api.h>
#endif

#include "smcfs.h"

/* Of a session: 1 MiB in flight, more than a 100 Gb/s link holds on its way. */
#define SMCFS_STAGES	256

struct smcfs_stages {
	spinlock_t		lock;		/* leaf; process and softirq */
	struct list_head	free;		/* [lock] */
	wait_queue_head_t	wait;		/* ->free is not empty any more */
	struct smcfs_stage	stages[SMCFS_STAGES];
};

static bool stage_has_avx2 __ro_after_init;

/* ------------------------------------------------------------------ the pool */

void smcfs_stages_free(struct smcfs_stages *stages)
{
	unsigned int i;

	if (!stages)
		return;
	for (i = 0; i < SMCFS_STAGES; i++) {
		if (!stages->stages[i].data)
			continue;
		set_page_private(folio_page(stages->stages[i].data, 0), 0);
		folio_put(stages->stages[i].data);
	}
	kvfree(stages);
}

int smcfs_stages_create(struct smcfs_session *session)
{
	struct smcfs_stages *stages;
	unsigned int i;

	if (READ_ONCE(session->stages))
		return 0;
	stages = kvzalloc_node(sizeof(*stages), GFP_KERNEL, session->numa_node);
	if (!stages)
		return -ENOMEM;
	spin_lock_init(&stages->lock);
	INIT_LIST_HEAD(&stages->free);
	init_waitqueue_head(&stages->wait);
	for (i = 0; i < SMCFS_STAGES; i++) {
		struct smcfs_stage *stage = &stages->stages[i];
		struct page *page = alloc_pages_node(session->numa_node, GFP_KERNEL, 0);

		if (!page) {
			smcfs_stages_free(stages);
			return -ENOMEM;
		}
		set_page_private(page, (unsigned long)stage);
		stage->data = page_folio(page);
		stage->pool = stages;
		list_add_tail(&stage->link, &stages->free);
	}
	/* Two regions may be attached at a time. */
	if (cmpxchg(&session->stages, NULL, stages))
		smcfs_stages_free(stages);
	return 0;
}

unsigned int smcfs_stages_take(struct smcfs_stages *stages, unsigned int nr, struct list_head *list)
{
	unsigned int taken = 0;

	spin_lock_bh(&stages->lock);
	for (; taken < nr && !list_empty(&stages->free); taken++)
		list_move(stages->free.next, list);
	spin_unlock_bh(&stages->lock);
	return taken;
}

/* Bounded: what is in flight completes, or its queue pair is forced to fail. */
void smcfs_stages_wait(struct smcfs_stages *stages, struct list_head *list)
{
	wait_event(stages->wait, smcfs_stages_take(stages, 1, list));
}

void smcfs_stages_put(struct list_head *list)
{
	struct smcfs_stages *stages;

	if (list_empty(list))
		return;
	stages = list_first_entry(list, struct smcfs_stage, link)->pool;
	spin_lock_bh(&stages->lock);
	/* The last used first: they are in the processor's cache. */
	list_splice_init(list, &stages->free);
	spin_unlock_bh(&stages->lock);
	/* Pairs with the barrier of set_current_state(): who waits found none before. */
	if (wq_has_sleeper(&stages->wait))
		wake_up_all(&stages->wait);
}

/*
 * The page that was staged becomes *@page, and that a staging page, which spares a copy. The memory
 * cgroup that was charged for a page stays charged for it: at most for as many as are staged.
 */
void smcfs_stage_swap(struct smcfs_stage *stage, struct page **page)
{
	struct page *data = folio_page(stage->data, 0);

	set_page_private(data, 0);
	set_page_private(*page, (unsigned long)stage);
	stage->data = page_folio(*page);
	*page = data;
}

/* ------------------------------------------------------------------ copy and compare */

#ifdef CONFIG_X86_64
/*
 * A line, from the page's end to its begin: copied, and a bit of @same shifted in. vptest of the
 * difference against zero leaves "no bit differs" in the carry flag.
 */
#define STAGE_LINE(low, high)						\
	"vmovdqa -" low "(%[shadow],%[at]), %%ymm0\n"			\
	"vmovdqa -" high "(%[shadow],%[at]), %%ymm1\n"			\
	"vmovdqa %%ymm0, -" low "(%[stage],%[at])\n"			\
	"vmovdqa %%ymm1, -" high "(%[stage],%[at])\n"			\
	"vpxor -" low "(%[twin],%[at]), %%ymm0, %%ymm0\n"		\
	"vpxor -" high "(%[twin],%[at]), %%ymm1, %%ymm1\n"		\
	"vpor %%ymm0, %%ymm1, %%ymm1\n"					\
	"vptest %%ymm1, %%ymm7\n"					\
	"adcq %[same], %[same]\n"

/* Context: between kernel_fpu_begin() and kernel_fpu_end(). Return: the lines that differ. */
static u64 stage_scan_avx2(void *stage, const void *shadow, const void *twin)
{
	unsigned long at = PAGE_SIZE;
	u64 same = 0;

	/* As in the kernel's other users of these registers, the compiler knows of none. */
	asm volatile("vpxor %%ymm7, %%ymm7, %%ymm7\n"
		     "1:\n"
		     STAGE_LINE("64", "32")
		     STAGE_LINE("128", "96")
		     STAGE_LINE("192", "160")
		     STAGE_LINE("256", "224")
		     "subq $256, %[at]\n"
		     "jnz 1b\n"
		     "vzeroupper\n"
		     : [at] "+r" (at), [same] "+r" (same)
		     : [stage] "r" (stage), [shadow] "r" (shadow), [twin] "r" (twin)
		     : "cc", "memory");
	return ~same;
}

/*
 * Context: as above. @length: a multiple of 32, as are both addresses, and at most PAGE_SIZE, so
 * that no counter of a byte's place overflows. Return: how many bytes are equal.
 */
static unsigned int stage_equal_avx2(const void *a, const void *b, unsigned long length)
{
	unsigned long equal;

	asm volatile("vpxor %%ymm1, %%ymm1, %%ymm1\n"
		     "vpxor %%ymm2, %%ymm2, %%ymm2\n"
		     "1:\n"
		     "vmovdqa -32(%[a],%[length]), %%ymm0\n"
		     "vpcmpeqb -32(%[b],%[length]), %%ymm0, %%ymm0\n"
		     "vpsubb %%ymm0, %%ymm1, %%ymm1\n"
		     "subq $32, %[length]\n"
		     "jnz 1b\n"
		     /* Four sums, one in each quarter. */
		     "vpsadbw %%ymm2, %%ymm1, %%ymm1\n"
		     "vextracti128 $1, %%ymm1, %%xmm0\n"
		     "vpaddq %%xmm0, %%xmm1, %%xmm1\n"
		     "vpsrldq $8, %%xmm1, %%xmm0\n"
		     "vpaddq %%xmm0, %%xmm1, %%xmm1\n"
		     "vmovq %%xmm1, %[equal]\n"
		     "vzeroupper\n"
		     : [length] "+r" (length), [equal] "=r" (equal)
		     : [a] "r" (a), [b] "r" (b)
		     : "cc", "memory");
	return equal;
}

/* 32 bytes: what differs is added to ymm1. */
#define STAGE_DIFFER(at)						\
	"vmovdqa -" at "(%[a],%[left]), %%ymm0\n"			\
	"vpxor -" at "(%[b],%[left]), %%ymm0, %%ymm0\n"		\
	"vpor %%ymm0, %%ymm1, %%ymm1\n"

/* Context: as above. Return: two pages are equal. */
static bool stage_same_avx2(const void *a, const void *b)
{
	unsigned long left = PAGE_SIZE;
	bool same;

	asm volatile("vpxor %%ymm1, %%ymm1, %%ymm1\n"
		     "1:\n"
		     STAGE_DIFFER("32")
		     STAGE_DIFFER("64")
		     STAGE_DIFFER("96")
		     STAGE_DIFFER("128")
		     STAGE_DIFFER("160")
		     STAGE_DIFFER("192")
		     STAGE_DIFFER("224")
		     STAGE_DIFFER("256")
		     "vptest %%ymm1, %%ymm1\n"
		     "jnz 2f\n"
		     "subq $256, %[left]\n"
		     "jnz 1b\n"
		     "2:\n"
		     "sete %[same]\n"	/* of the last branch: all was looked at */
		     "vzeroupper\n"
		     : [left] "+r" (left), [same] "=q" (same)
		     : [a] "r" (a), [b] "r" (b)
		     : "cc", "memory");
	return same;
}
#endif

static u64 stage_scan_plain(u64 *stage, const u64 *shadow, const u64 *twin)
{
	unsigned int line, word;
	u64 lines = 0;

	for (line = 0; line < PAGE_SIZE / SMCFS_LINE_BYTES; line++) {
		u64 differs = 0;

		for (word = 0; word < SMCFS_LINE_BYTES / sizeof(u64); word++) {
			/* Once: what is compared is what is sent. */
			u64 value = READ_ONCE(*shadow++);

			*stage++ = value;
			differs |= value ^ *twin++;
		}
		lines |= (u64)!!differs << line;
	}
	return lines;
}

static u64 stage_scan(void *stage, const void *shadow, const void *twin)
{
#ifdef CONFIG_X86_64
	u64 lines;

	/* In process context the registers can always be had. */
	if (stage_has_avx2) {
		kernel_fpu_begin();
		lines = stage_scan_avx2(stage, shadow, twin);
		kernel_fpu_end();
		return lines;
	}
#endif
	return stage_scan_plain(stage, shadow, twin);
}

static bool stage_same(const void *a, const void *b)
{
#ifdef CONFIG_X86_64
	bool same;

	if (stage_has_avx2) {
		kernel_fpu_begin();
		same = stage_same_avx2(a, b);
		kernel_fpu_end();
		return same;
	}
#endif
	return !memcmp(a, b, PAGE_SIZE);
}

bool smcfs_stage_same(struct page *shadow, struct page *twin)
{
	const void *data = kmap_local_page(shadow);
	bool same = stage_same(data, page_address(twin));

	kunmap_local(data);
	return same;
}

/* Did @unit bytes at @at change other than where they are sent anyhow? */
static bool stage_unit_changed(const struct smcfs_stage *stage, const u8 *data, const u8 *twin,
			       unsigned int at, unsigned int unit)
{
	unsigned int i;

	if (!memcmp(data + at, twin + at, unit))
		return false;
	if (!stage->forced)
		return true;
	for (i = at; i < at + unit; i++)
		if (data[i] != twin[i] && !test_bit(i, stage->forced))
			return true;
	return false;
}

/* What is sent, to the byte: units that changed, and bytes that are sent anyhow. */
static bool stage_fill_exact(struct smcfs_stage *stage, const u8 *data, const u8 *twin,
			     unsigned int unit)
{
	unsigned int at, line, step;

	if (stage->forced)
		bitmap_copy(stage->bytes, stage->forced, PAGE_SIZE);
	else
		bitmap_zero(stage->bytes, PAGE_SIZE);
	stage->exact = true;
	/* A line at a time, or a unit if that is longer: those that are equal are known. */
	step = max(unit, SMCFS_LINE_BYTES);
	for (line = 0; stage->lines && line < PAGE_SIZE; line += step) {
		u64 mask = GENMASK_ULL(step / SMCFS_LINE_BYTES - 1, 0) << line / SMCFS_LINE_BYTES;

		if (!(stage->lines & mask))
			continue;
		for (at = line; at < line + step; at += unit)
			if (stage_unit_changed(stage, data, twin, at, unit))
				bitmap_set(stage->bytes, at, unit);
	}
	return !bitmap_empty(stage->bytes, PAGE_SIZE);
}

/* Every line of a unit in which one differs. */
static u64 stage_widen(u64 lines, unsigned int unit)
{
	unsigned int per = unit / SMCFS_LINE_BYTES, i;
	u64 mask = GENMASK_ULL(per - 1, 0);

	for (i = 0; i < PAGE_SIZE / SMCFS_LINE_BYTES; i += per)
		if (lines & (mask << i))
			lines |= mask << i;
	return lines;
}

bool smcfs_stage_fill(struct smcfs_stage *stage, struct page *shadow, struct page *twin,
		      unsigned int unit)
{
	void *to = folio_address(stage->data);
	void *from = kmap_local_page(shadow);

	BUILD_BUG_ON(PAGE_SIZE / SMCFS_LINE_BYTES != 64);
	stage->lines = 0;
	stage->exact = false;
	if (twin)
		stage->lines = stage_scan(to, from, page_address(twin));
	else if (stage->all || stage->forced)
		memcpy(to, from, PAGE_SIZE);
	kunmap_local(from);
	if (stage->all) {
		stage->send = U64_MAX;
		return true;
	}
	if (stage->forced || (stage->lines && unit < SMCFS_LINE_BYTES))
		return stage_fill_exact(stage, to, twin ? page_address(twin) : to, unit);
	stage->send = unit > SMCFS_LINE_BYTES ? stage_widen(stage->lines, unit) : stage->lines;
	return stage->send;
}

u64 smcfs_stage_bridged(u64 lines, unsigned int gap)
{
	u64 rest, bridged = lines;
	unsigned int at, next = 0;	/* after the last line */

	for (rest = lines; rest; rest &= rest - 1) {
		at = __ffs64(rest);
		if (next && at > next && at - next <= gap)
			bridged |= GENMASK_ULL(at - 1, next);
		next = at + 1;
	}
	return bridged;
}

void smcfs_stage_bridge(struct smcfs_stage *stage, unsigned int gap)
{
	unsigned int line;

	if (stage->exact) {
		stage->send = 0;
		for (line = 0; line < PAGE_SIZE / SMCFS_LINE_BYTES; line++)
			if (find_next_bit(stage->bytes, (line + 1) * SMCFS_LINE_BYTES,
					  line * SMCFS_LINE_BYTES) < (line + 1) * SMCFS_LINE_BYTES)
				stage->send |= BIT_ULL(line);
		stage->exact = false;
	}
	stage->send = smcfs_stage_bridged(stage->send, gap);
}

void smcfs_stage_owe(struct smcfs_stage *stage)
{
	unsigned int start = 0, end;

	if (stage->all)
		return;
	if (!stage->forced)
		stage->forced = kzalloc(sizeof(stage->bytes), GFP_NOFS | __GFP_NOFAIL);
	for (; smcfs_stage_run(stage, &start, &end); start = end)
		bitmap_set(stage->forced, start, end - start);
}

bool smcfs_stage_run(const struct smcfs_stage *stage, unsigned int *start, unsigned int *end)
{
	unsigned int first, last;
	u64 rest;

	if (*start >= PAGE_SIZE)
		return false;
	if (stage->exact) {
		first = find_next_bit(stage->bytes, PAGE_SIZE, *start);
		if (first >= PAGE_SIZE)
			return false;
		*start = first;
		*end = find_next_zero_bit(stage->bytes, PAGE_SIZE, first);
		return true;
	}
	first = *start / SMCFS_LINE_BYTES;	/* runs end at lines */
	rest = stage->send >> first;
	if (!rest)
		return false;
	first += __ffs64(rest);
	rest = ~(stage->send >> first);
	last = rest ? first + __ffs64(rest) : 64;
	*start = first * SMCFS_LINE_BYTES;
	*end = min(last, 64U) * SMCFS_LINE_BYTES;
	return true;
}

/* ------------------------------------------------------------------ measure */

/* Steps of the golden ratio: one in 16 of whatever comes, and of what recurs in any period, too. */
bool smcfs_stage_sampled(struct smcfs_region *region)
{
	u32 sample = READ_ONCE(region->sample);

	/* Two flushes at a time may make the same step: no harm. */
	WRITE_ONCE(region->sample, sample + 0x9e3779b9);
	return sample < BIT(28);
}

/* How many bytes of two words differ. */
static unsigned int stage_differing(u64 a, u64 b)
{
	u64 bits = a ^ b;

	/* Into the lowest bit of each byte all others of it. */
	bits |= bits >> 4;
	bits |= bits >> 2;
	bits |= bits >> 1;
	return hweight64(bits & 0x0101010101010101ULL);
}

/* Of the bytes from @start to @end, which are sent, those that were changed. */
static unsigned int stage_changed(const struct smcfs_stage *stage, const u8 *data, const u8 *twin,
				  unsigned int start, unsigned int end)
{
	unsigned int changed = 0;

	if (stage->all || !twin)	/* by write(2) */
		return end - start;
#ifdef CONFIG_X86_64
	if (stage_has_avx2 && !stage->forced && !(start % 32) && end - start >= 32) {
		unsigned int length = round_down(end - start, 32);

		kernel_fpu_begin();
		changed = length - stage_equal_avx2(data + start, twin + start, length);
		kernel_fpu_end();
		start += length;
	}
#endif
	while (start < end) {
		if (!stage->forced && !(start % sizeof(u64)) && end - start >= sizeof(u64)) {
			changed += stage_differing(*(const u64 *)(data + start),
						   *(const u64 *)(twin + start));
			start += sizeof(u64);
			continue;
		}
		changed += data[start] != twin[start] ||
			   (stage->forced && test_bit(start, stage->forced));
		start++;
	}
	return changed;
}

void smcfs_stage_measure(const struct smcfs_stage *stage, struct page *twin, unsigned int valid,
			 struct smcfs_stats *stats)
{
	unsigned int start, end, sent = 0, changed = 0;

	/* Runs are of lines: the next one is looked for where this one ends, not the region. */
	for (start = 0; smcfs_stage_run(stage, &start, &end) && start < valid; start = end) {
		unsigned int stop = min(end, valid);

		sent += stop - start;
		changed += stage_changed(stage, folio_address(stage->data),
					 twin ? page_address(twin) : NULL, start, stop);
	}
	smcfs_stat_add(stats, SMCFS_STAT_SAMPLED_SENT_BYTES, sent);
	smcfs_stat_add(stats, SMCFS_STAT_SAMPLED_CHANGED_BYTES, changed);
}

void __init smcfs_stage_setup(void)
{
#ifdef CONFIG_X86_64
	stage_has_avx2 = boot_cpu_has(X86_FEATURE_AVX2) &&
			 cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL);
#endif
}
