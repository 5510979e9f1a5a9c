// SPDX-License-Identifier: GPL-2.0
/*
 * Hot pages: written so often that they stay writable; their stores are found in the page tables.
 * Copyright (c) 2026 The SMC authors
 *
 * A store to a page that was sent costs a fault, and sending takes the write permission back, which
 * is more than the sending itself when a program writes the same pages over and over. A page that
 * became writable a second time is hot: it stays so, and a flush *harvests*: it locks a run of
 * folios with hot pages, takes the dirty bits of their page-table entries, and sends the pages that
 * had one.
 *
 *	page_mkwrite, for the second time -> hot bit, dirty bit, folio dirty
 *	sending a folio with hot pages ----> folio clean, entries stay writable
 *	smcfs_flush() ----> lock a run, harvest it --> stored pages: dirty bits, sent by wb_issue.c
 *	idle, hot=off, another mode -------> cooled: unmapped, and dirty if it was stored to
 *
 * Why no store is lost: between flushes a hot page is what any page of a filesystem without write
 * notification is: writable, with a clean folio, and its stores in the entries' dirty bits. All who
 * unmap it carry the bit over to the folio (->dirty_folio, which makes dirty bits of hot bits), and
 * all who write by reference (GUP) mark the folio dirty, which they would not do if it were dirty
 * all the time. A virtual machine's stores set its folio's flag when its own entries go. Between a
 * harvest and the sending only the flush knows of a store, and holds the folio's lock: nobody drops
 * or migrates it, and other barriers, which want that lock, too, do not return before it has a
 * ticket.
 *
 * Locked before harvested also keeps entries of pages that are being migrated out of a harvest: on
 * x86 with shadow stacks (6.6) the kernel's walk takes them for dirty ones, since it does not ask
 * whether they are present. The bit that it then clears in the entry of a poisoned page, or in a
 * marker, belongs to no field of those.
 *
 * The kernel's harvest ends at the first mapping that can never write (private, or of a file that
 * is open for reading only), whatever comes behind it. While there are any nothing becomes hot, and
 * what is hot is cooled by the next flush, by unmapping, which sees everything.
 *
 * All who mark dirty, but for a harvest, know folios, not pages. Of a folio that is compared the
 * twin tells what was stored to. Of a large folio that is not, which only exclusive regions have,
 * all hot pages are sent, so a page of those cools when two flushes, one after the other, found
 * no store to it, unless somebody held the folio by a reference just then: what can be sent
 * without a store is what was stored to just before. They become hot only where most of a folio
 * is, and a fault or a write(2), which would mark the folio, first makes it what any other is
 * (smcfs_hot_break()).
 *
 * Contexts: process; the end of a region anywhere but in hard interrupts.
 * Locking: folio locks, several at a time in the order of their index; smcfs_folio.lock inside.
 *	Counts of a window: the folio lock of their page.
 * Lifetime: windows live as long as their region. Their bits say where hot pages may be: a page
 *	that was dropped leaves its bit until a flush clears it, and is hot from its first store on
 *	if it comes back before.
 * Failure: no memory for a window: the page is not hot. A page that could not be sent is dirty.
 *	Where SMCFS_HOT_PAGES (compat.h) is not set nothing is ever hot.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "smcfs.h"
#include "trace.h"

/* A page is hot when it became writable more often than this since it was last cooled. */
#define SMCFS_HOT_AFTER		1
/* A large folio that is not compared: when most of it was sent in so many epochs in a row. */
#define SMCFS_HOT_AFTER_LARGE	2
/* It cools when so many flushes found no store to it: 5 s if only flush_after_ms brings them. */
#define SMCFS_HOT_IDLE		50
/* The same for large folios that are not compared: see above. A flush may come amid an epoch. */
#define SMCFS_HOT_IDLE_LARGE	2
/* Pages of a region, since every flush looks at each; and windows, which are never freed. */
#define SMCFS_HOT_MAX		16384
#define SMCFS_HOT_WINDOWS_MAX	4096

/*
 * All windows have it: a search by a mark skips what is empty of a large region a word at a time,
 * one for any entry slot by slot.
 */
#define HOT_WINDOW_MARK		XA_MARK_0

#define hot_for_each_window(region, at, window, first, last)				\
	for (at = (first),								\
	     window = xa_find(&(region)->hot_windows, &at, last, HOT_WINDOW_MARK);		\
	     window;									\
	     window = xa_find_after(&(region)->hot_windows, &at, last, HOT_WINDOW_MARK))

bool smcfs_hot_possible(void)
{
	return SMCFS_HOT_PAGES;
}

void smcfs_hot_init(struct smcfs_region *region)
{
	xa_init_flags(&region->hot_windows, XA_FLAGS_LOCK_BH);	/* the last put may be in softirq */
	region->hot = SMCFS_HOT_PAGES;
	region->hot_origin = SMCFS_ORIGIN_DEFAULT;
}

void smcfs_hot_free(struct smcfs_region *region)
{
	struct smcfs_hot_window *window;
	unsigned long at;

	xa_for_each(&region->hot_windows, at, window)
		kfree(window);
	xa_destroy(&region->hot_windows);
}

static struct smcfs_hot_window *hot_window(struct smcfs_region *region, pgoff_t index)
{
	unsigned long at = index / SMCFS_HOT_WINDOW;
	struct smcfs_hot_window *window = xa_load(&region->hot_windows, at);
	struct smcfs_hot_window *old;
	gfp_t gfp = GFP_NOFS | __GFP_NORETRY | __GFP_NOWARN;

	if (window || atomic_read(&region->nr_hot_windows) >= SMCFS_HOT_WINDOWS_MAX)
		return window;
	window = kzalloc(sizeof(*window), gfp);
	if (!window)
		return NULL;
	window->start = at * SMCFS_HOT_WINDOW;
	if (xa_reserve_bh(&region->hot_windows, at, gfp)) {
		kfree(window);
		return NULL;
	}
	/* Marked before anybody can find it: who looks for windows goes by the mark. */
	xa_lock_bh(&region->hot_windows);
	old = xa_load(&region->hot_windows, at);
	if (!old) {
		__xa_set_mark(&region->hot_windows, at, HOT_WINDOW_MARK);
		__xa_store(&region->hot_windows, at, window, 0);	/* reserved: cannot fail */
	}
	xa_unlock_bh(&region->hot_windows);
	if (old) {
		kfree(window);
		return old;
	}
	atomic_inc(&region->nr_hot_windows);
	return window;
}

static void hot_set(struct smcfs_region *region, struct smcfs_hot_window *window, unsigned int at)
{
	if (test_and_set_bit(at, window->hot))
		return;
	window->count[at] = 0;
	atomic_inc(&region->nr_hot);
	/* Pairs with READ_ONCE() of smcfs_hot_flush(): the page has no store yet. */
	WRITE_ONCE(region->hot_used, true);
}

static void hot_clear(struct smcfs_region *region, struct smcfs_hot_window *window, unsigned int at)
{
	if (!test_and_clear_bit(at, window->hot))
		return;
	window->count[at] = 0;
	atomic_dec(&region->nr_hot);
}

/*
 * May pages become hot now, and stay so? What is to be pushed is known by its fault, and so is what
 * somebody traces.
 */
bool smcfs_hot_allowed(struct smcfs_region *region)
{
	return READ_ONCE(region->hot) && READ_ONCE(region->sync_mode) == SMCFS_SYNC_LAZY &&
	       !atomic_read(&region->nr_readers) && !trace_smcfs_store_enabled();
}

/* Before the mapping can be found by a harvest. */
void smcfs_hot_reader_open(struct smcfs_region *region)
{
	atomic_inc(&region->nr_readers);
	atomic_inc(&region->reader_opens);
}

void smcfs_hot_reader_close(struct smcfs_region *region)
{
	atomic_dec(&region->nr_readers);
}

/* Is a store to one page of @folio taken for one to all that are hot? */
static bool hot_is_shared(struct smcfs_region *region, struct folio *folio)
{
	return folio_test_large(folio) && !smcfs_folio_compared(region, folio);
}

/**
 * smcfs_hot_touch() - a page is about to become writable in a page table: is it one to stay so?
 * @region: of it.
 * @folio: locked; marked dirty next.
 * @index: of the page in @folio.
 *
 * Context: process.
 */
void smcfs_hot_touch(struct smcfs_region *region, struct folio *folio, unsigned int index)
{
	unsigned int at = (folio->index + index) % SMCFS_HOT_WINDOW;
	struct smcfs_hot_window *window;
	struct smcfs_folio *sf;
	unsigned long flags;

	smcfs_hot_break(region, folio);
	if (!smcfs_hot_allowed(region))
		return;
	window = hot_window(region, folio->index + index);
	/* Shared: by hot_warm(), which needs the window, and may not make it. */
	if (!window || hot_is_shared(region, folio))
		return;
	if (!test_bit(at, window->hot)) {
		if (window->count[at] < SMCFS_HOT_AFTER) {
			window->count[at]++;
			return;
		}
		if (atomic_read(&region->nr_hot) >= SMCFS_HOT_MAX)
			return;
	}
	sf = smcfs_folio_attach(folio);
	if (IS_ERR(sf))
		return;
	spin_lock_irqsave(&sf->lock, flags);
	__set_bit(index, sf->hot);
	spin_unlock_irqrestore(&sf->lock, flags);
	hot_set(region, window, at);
}

/* Are three of four pages in a set? */
static bool hot_is_most(const unsigned long *pages, unsigned int nr)
{
	return 4 * bitmap_weight(pages, nr) >= 3 * nr;
}

/*
 * A large folio that is not compared is going to be sent, locked, dirty and not hot. It becomes
 * hot as a whole, if most of it was written in several epochs that followed on each other.
 */
static void hot_warm(struct smcfs_region *region, struct folio *folio)
{
	struct smcfs_hot_window *window = xa_load(&region->hot_windows,
						  folio->index / SMCFS_HOT_WINDOW);
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned int at = folio->index % SMCFS_HOT_WINDOW, i;
	unsigned long flags;
	u8 passed;

	/* Mapped nowhere: it is about to be dropped. */
	if (!window || !folio_mapped(folio))
		return;
	passed = READ_ONCE(window->flushes) - window->epoch[at];
	if (passed > 1 || !hot_is_most(sf->dirty, sf->nr_pages))
		window->count[at] = 0;
	else if (passed && window->count[at] < SMCFS_HOT_AFTER_LARGE)
		window->count[at]++;
	window->epoch[at] += passed;
	if (window->count[at] < SMCFS_HOT_AFTER_LARGE ||
	    atomic_read(&region->nr_hot) >= SMCFS_HOT_MAX)
		return;
	spin_lock_irqsave(&sf->lock, flags);
	bitmap_copy(sf->hot, sf->dirty, SMCFS_FOLIO_PAGES_MAX);
	spin_unlock_irqrestore(&sf->lock, flags);
	for_each_set_bit(i, sf->hot, SMCFS_FOLIO_PAGES_MAX)
		hot_set(region, window, at + i);
}

/**
 * smcfs_hot_stays() - is a dirty folio that is going to be sent to stay writable?
 * @region: of it.
 * @folio: locked.
 *
 * Context: process.
 * Return: yes, and all that is dirty of it becomes hot.
 */
bool smcfs_hot_stays(struct smcfs_region *region, struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);

	if (!smcfs_hot_allowed(region))
		return false;
	if (hot_is_shared(region, folio)) {
		if (!smcfs_folio_hot(folio))
			hot_warm(region, folio);
		return hot_is_most(sf->hot, sf->nr_pages);
	}
	return smcfs_folio_hot(folio) && (atomic_read(&region->nr_hot) < SMCFS_HOT_MAX ||
					  bitmap_subset(sf->dirty, sf->hot, SMCFS_FOLIO_PAGES_MAX));
}

/**
 * smcfs_hot_keep() - a dirty folio with hot pages is going to be sent, and stays writable
 * @region: of it.
 * @folio: locked, its dirty flag just taken; a ticket was drawn before.
 *
 * All of its dirty pages, which may be writable, too, are hot from here on. What the page tables
 * know is harvested: by their locks it waits for a munmap() that has not flushed the processors'
 * copies of an entry yet; the pages need not be told, as all are sent. Context: process.
 */
void smcfs_hot_keep(struct smcfs_region *region, struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	struct smcfs_hot_window *window;
	unsigned long stored = 0, flags;
	unsigned int i;

	/* A page of the folio was hot, and no folio goes over a window's end. */
	window = xa_load(&region->hot_windows, folio->index / SMCFS_HOT_WINDOW);
	if (!smcfs_hot_harvest(folio->mapping, folio->index, folio->index, sf->nr_pages, &stored,
			       false))
		unmap_mapping_pages(folio->mapping, folio->index, sf->nr_pages, false);
	spin_lock_irqsave(&sf->lock, flags);
	bitmap_or(sf->hot, sf->hot, sf->dirty, SMCFS_FOLIO_PAGES_MAX);
	/* And all that is hot dirty: another flush may have taken bits before the flag was set. */
	bitmap_copy(sf->dirty, sf->hot, SMCFS_FOLIO_PAGES_MAX);
	sf->stored |= stored;
	spin_unlock_irqrestore(&sf->lock, flags);
	for_each_set_bit(i, sf->hot, SMCFS_FOLIO_PAGES_MAX)
		hot_set(region, window, folio->index % SMCFS_HOT_WINDOW + i);
}

/* A flush of pages @index to @end begins. One page, which has a flag perhaps, is no epoch. */
void smcfs_hot_count_flush(struct smcfs_region *region, pgoff_t index, pgoff_t end)
{
	struct smcfs_hot_window *window;
	unsigned long at;

	if (index == end)
		return;
	hot_for_each_window(region, at, window, index / SMCFS_HOT_WINDOW, end / SMCFS_HOT_WINDOW)
		WRITE_ONCE(window->flushes, window->flushes + 1);	/* more or less */
}

/* The first window with hot pages at or after *@index, up to @end; *@index moves to its start. */
struct smcfs_hot_window *smcfs_hot_next(struct smcfs_region *region, pgoff_t *index, pgoff_t end)
{
	struct smcfs_hot_window *window;
	unsigned long at;

	hot_for_each_window(region, at, window, *index / SMCFS_HOT_WINDOW,
			    end / SMCFS_HOT_WINDOW) {
		if (bitmap_empty(window->hot, SMCFS_HOT_WINDOW))
			continue;
		*index = max(*index, window->start);
		return window;
	}
	return NULL;
}

/**
 * smcfs_hot_harvest() - take the stores to some pages out of the page tables
 * @mapping: of a region; the caller has all folios of the range locked.
 * @start: the page of bit 0.
 * @first: the first page.
 * @nr: pages.
 * @stored: gets a bit for each page that was stored to.
 * @protect: take the write permissions back before.
 *
 * Context: process.
 * Return: false: there may be more: the pages have to be unmapped.
 */
bool smcfs_hot_harvest(struct address_space *mapping, pgoff_t start, pgoff_t first, pgoff_t nr,
		       unsigned long *stored, bool protect)
{
	struct smcfs_region *region = smcfs_i(mapping->host)->region;
	int opens = atomic_read(&region->reader_opens);
	bool all = !atomic_read(&region->nr_readers);

	smp_mb();	/* a reader that the walk meets was counted before: by i_mmap_rwsem */
#ifdef CONFIG_MAPPING_DIRTY_HELPERS
	{
		pgoff_t from = 0, to = 0;

		if (protect)
			wp_shared_mapping_range(mapping, first, nr);
		clean_record_shared_mapping_range(mapping, first, nr, start, stored, &from, &to);
	}
#endif
	smp_mb();	/* as above: the count is looked at after the walk */
	return all && opens == atomic_read(&region->reader_opens);
}

/* May somebody store to @folio, which is locked, by reference, and tell the folio alone? */
static bool hot_held(struct smcfs_folio *sf, struct folio *folio)
{
	return folio_maybe_dma_pinned(folio) ||
	       ((sf->compared || sf->nr_pages > 1) && smcfs_folio_held(folio));
}

/*
 * A flag that is set says of all that is hot that it was stored to: who marks a folio sets bits
 * first, which a flush may take before the flag is set; and who finds it set does not mark it.
 * [sf->lock, folio lock]
 */
static void hot_owe_locked(struct smcfs_folio *sf, struct folio *folio)
{
	if (folio_test_dirty(folio))
		bitmap_or(sf->dirty, sf->dirty, sf->hot, SMCFS_FOLIO_PAGES_MAX);
}

/*
 * Hot pages, which nobody can store to any more but who may hold them by reference: what he changes
 * is told by their twin, or by himself, later; of who has them pinned nobody knows when.
 */
static void hot_leave_held(struct smcfs_folio *sf, struct folio *folio)
{
	unsigned long flags;

	if (!hot_held(sf, folio))
		return;
	if (sf->compared || folio_maybe_dma_pinned(folio)) {
		folio_mark_dirty(folio);	/* all that is hot */
		return;
	}
	spin_lock_irqsave(&sf->lock, flags);
	sf->kept |= sf->hot[0];
	if (folio_test_dirty(folio))
		sf->dirty[0] |= sf->kept;
	spin_unlock_irqrestore(&sf->lock, flags);
}

/* Pages of a locked folio, given by bits of it, are no longer hot. They are writable nowhere. */
static void hot_clear_pages(struct smcfs_region *region, struct smcfs_hot_window *window,
			    struct folio *folio, const unsigned long *pages)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned long flags;
	unsigned int i;

	for_each_set_bit(i, pages, SMCFS_FOLIO_PAGES_MAX)
		hot_clear(region, window, folio->index % SMCFS_HOT_WINDOW + i);
	spin_lock_irqsave(&sf->lock, flags);
	hot_owe_locked(sf, folio);
	bitmap_andnot(sf->hot, sf->hot, pages, SMCFS_FOLIO_PAGES_MAX);
	spin_unlock_irqrestore(&sf->lock, flags);
	for_each_set_bit(i, pages, SMCFS_FOLIO_PAGES_MAX)
		smcfs_twin_cool(sf, i);
}

/**
 * smcfs_hot_cool() - no page of a folio is hot any more
 * @region: of it.
 * @window: of it.
 * @folio: locked.
 *
 * Its pages are unmapped, and dirty if they were stored to since the last harvest. Those that
 * somebody may yet store to by reference are kept, or dirty, too. Context: process.
 */
void smcfs_hot_cool(struct smcfs_region *region, struct smcfs_hot_window *window,
		    struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	DECLARE_BITMAP(hot, SMCFS_FOLIO_PAGES_MAX);

	unmap_mapping_pages(folio->mapping, folio->index, sf->nr_pages, false);
	hot_leave_held(sf, folio);
	bitmap_copy(hot, sf->hot, SMCFS_FOLIO_PAGES_MAX);
	hot_clear_pages(region, window, folio, hot);
}

/**
 * smcfs_hot_break() - somebody is about to mark a folio dirty
 * @region: of it.
 * @folio: locked, held by the caller once; marked next.
 *
 * A large folio that is not compared is no longer hot then: else all of it would be sent, and so
 * what the target wrote to pages that this node has not stored to since they were sent last. So it
 * is if somebody may have stored to it by a reference, who need not tell if it is marked; who waits
 * for the folio's lock looks like that. Context: process.
 */
void smcfs_hot_break(struct smcfs_region *region, struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	DECLARE_BITMAP(hot, SMCFS_FOLIO_PAGES_MAX);
	unsigned long stored = 0, flags;
	bool held;

	if (!smcfs_folio_hot(folio) || !hot_is_shared(region, folio))
		return;
	bitmap_copy(hot, sf->hot, SMCFS_FOLIO_PAGES_MAX);
	/* Protected first: who stores then waits for the lock, so what is found is all. */
	if (!smcfs_hot_harvest(folio->mapping, folio->index, folio->index, sf->nr_pages, &stored,
			       true))
		unmap_mapping_pages(folio->mapping, folio->index, sf->nr_pages, false);
	held = hot_held(sf, folio);
	/* Pairs with the barrier of folio_put(): who held it has marked it before, if barely. */
	smp_rmb();
	/* By somebody who did not say where: perhaps everywhere. */
	if (held || folio_test_dirty(folio))
		stored = hot[0];
	/* The window exists: a page of the folio is hot. */
	hot_clear_pages(region, hot_window(region, folio->index), folio, hot);
	/* Last: while the flag is set all that is hot is dirty. */
	if (stored & hot[0]) {
		spin_lock_irqsave(&sf->lock, flags);
		sf->dirty[0] |= stored & hot[0];
		spin_unlock_irqrestore(&sf->lock, flags);
		smcfs_folio_set_dirty(folio->mapping, folio);
	}
}

/**
 * smcfs_hot_protected() - all write permissions of a folio were taken back
 * @region: of it.
 * @folio: locked, held by the caller once, not flying.
 *
 * None of its pages is hot, unless somebody may yet store to them by reference.
 */
void smcfs_hot_protected(struct smcfs_region *region, struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	DECLARE_BITMAP(hot, SMCFS_FOLIO_PAGES_MAX);
	unsigned long flags;

	if (!smcfs_folio_hot(folio))
		return;
	spin_lock_irqsave(&sf->lock, flags);
	bitmap_copy(hot, sf->hot, SMCFS_FOLIO_PAGES_MAX);
	/* As in smcfs_hot_keep(): its flag was set. */
	bitmap_or(sf->dirty, sf->dirty, hot, SMCFS_FOLIO_PAGES_MAX);
	spin_unlock_irqrestore(&sf->lock, flags);
	if (hot_held(sf, folio))
		return;
	/* The window exists: a page of the folio is hot. */
	hot_clear_pages(region, hot_window(region, folio->index), folio, hot);
}

/*
 * Pages from @first to before @end were not in the page cache. If one still is not it cannot come,
 * and be hot by its bit, while the tree is locked.
 */
void smcfs_hot_absent(struct address_space *mapping, struct smcfs_hot_window *window,
		      pgoff_t first, pgoff_t end)
{
	struct smcfs_region *region = smcfs_i(mapping->host)->region;
	XA_STATE(xas, &mapping->i_pages, first);
	void *entry;

	xas_lock_irq(&xas);
	for (; first < end; first++) {
		if (!test_bit(first - window->start, window->hot))
			continue;
		xas_set(&xas, first);
		entry = xas_load(&xas);
		if (!entry || xa_is_value(entry))
			hot_clear(region, window, first - window->start);
	}
	xas_unlock_irq(&xas);
}

/* Has @folio, which is locked and has the page at @at of a window, hot pages? */
bool smcfs_hot_check(struct smcfs_region *region, struct smcfs_hot_window *window,
		     struct folio *folio, unsigned int at)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned int i, base = folio->index - window->start;

	if (sf && test_bit(at - base, sf->hot))
		return true;
	for (i = 0; i < folio_nr_pages(folio); i++)
		if (!sf || !test_bit(i, sf->hot))
			hot_clear(region, window, base + i);
	return smcfs_folio_hot(folio);
}

/* Hot pages of @folio, locked, of which a window's harvest says that they were stored to. */
static unsigned long hot_stores(struct smcfs_folio *sf, struct folio *folio,
				const unsigned long *stored)
{
	unsigned int at = folio->index % SMCFS_HOT_WINDOW;

	/* A folio is aligned to its size, so its bits are in one word. */
	BUILD_BUG_ON(SMCFS_FOLIO_PAGES_MAX > BITS_PER_LONG);
	return sf->hot[0] & (stored[BIT_WORD(at)] >> (at % BITS_PER_LONG));
}

/**
 * smcfs_hot_take() - harvested stores become dirty bits
 * @window: of the folio.
 * @folio: locked and hot.
 * @stored: of @window.
 *
 * Who has the folio pinned may have stored to it, too; and so has somebody if it is dirty, although
 * all bits are known then but for virtual machines: those have page tables of their own, by which
 * KVM, when the harvest clears them, sets the flag alone. Context: process.
 * Return: there are any.
 */
bool smcfs_hot_take(struct smcfs_hot_window *window, struct folio *folio,
		    const unsigned long *stored)
{
	struct smcfs_region *region = smcfs_i(folio->mapping->host)->region;
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned long stores = hot_stores(sf, folio, stored);
	bool all = folio_maybe_dma_pinned(folio) || folio_test_dirty(folio);
	unsigned int at = folio->index % SMCFS_HOT_WINDOW, i;
	unsigned long taken = all ? sf->hot[0] : stores;
	unsigned long flags;

	if (!taken)
		return false;
	spin_lock_irqsave(&sf->lock, flags);
	sf->dirty[0] |= taken;
	sf->stored |= stores;
	spin_unlock_irqrestore(&sf->lock, flags);
	if (hweight_long(stores) == sf->nr_pages)
		memset(&window->count[at], 0, sf->nr_pages);
	else
		for_each_set_bit(i, &stores, SMCFS_FOLIO_PAGES_MAX)
			window->count[at + i] = 0;
	smcfs_stat_add(&region->stats, SMCFS_STAT_DIRTIED_PAGES, hweight_long(taken));
	return true;
}

/*
 * Hot pages of a large folio that is not compared, locked, that were not stored to. Their dirty
 * bits tell nothing: a store to another page, if it is by a fault, sets those of all that are hot.
 */
static void hot_rest_large(struct smcfs_region *region, struct smcfs_hot_window *window,
			   struct folio *folio, const unsigned long *stored)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned long rest = sf->hot[0] & ~hot_stores(sf, folio, stored);
	unsigned int at = folio->index % SMCFS_HOT_WINDOW, i;
	DECLARE_BITMAP(idle, SMCFS_FOLIO_PAGES_MAX);
	unsigned int first, last;

	if (!rest || folio_maybe_dma_pinned(folio))
		return;
	bitmap_zero(idle, SMCFS_FOLIO_PAGES_MAX);
	for_each_set_bit(i, &rest, SMCFS_FOLIO_PAGES_MAX) {
		if (window->count[at + i] < SMCFS_HOT_IDLE_LARGE)
			window->count[at + i]++;
		if (window->count[at + i] >= SMCFS_HOT_IDLE_LARGE)
			__set_bit(i, idle);
	}
	if (bitmap_empty(idle, SMCFS_FOLIO_PAGES_MAX))
		return;
	for (first = find_first_bit(idle, sf->nr_pages); first < sf->nr_pages;
	     first = find_next_bit(idle, sf->nr_pages, last)) {
		last = find_next_zero_bit(idle, sf->nr_pages, first);
		unmap_mapping_pages(folio->mapping, folio->index + first, last - first, false);
	}
	/* Not before they are unmapped: until then anybody can get hold of a writable page. */
	if (hot_held(sf, folio))
		return;
	hot_clear_pages(region, window, folio, idle);
}

/**
 * smcfs_hot_rest() - what was not stored to rests, and cools after a while
 * @region: of the folio.
 * @window: of the folio.
 * @folio: locked, hot, harvested and taken; held by the caller once, and not flying unless it was.
 * @stored: of @window.
 *
 * Context: process.
 */
void smcfs_hot_rest(struct smcfs_region *region, struct smcfs_hot_window *window,
		    struct folio *folio, const unsigned long *stored)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	unsigned int at = folio->index % SMCFS_HOT_WINDOW, i;
	bool idle = true;

	if (hot_is_shared(region, folio)) {
		hot_rest_large(region, window, folio, stored);
		return;
	}
	if (bitmap_subset(sf->hot, sf->dirty, SMCFS_FOLIO_PAGES_MAX))
		return;
	for_each_set_bit(i, sf->hot, SMCFS_FOLIO_PAGES_MAX) {
		if (!test_bit(i, sf->dirty) && window->count[at + i] < SMCFS_HOT_IDLE)
			window->count[at + i]++;
		idle &= window->count[at + i] >= SMCFS_HOT_IDLE;
	}
	if (idle)
		smcfs_hot_cool(region, window, folio);
}

/*
 * No page of @folio is hot; it is locked, mapped nowhere and not flying. Windows learn it later.
 * Who holds a page by reference may yet store to it, which its twin has to tell, or he himself.
 */
void smcfs_hot_forget(struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);
	DECLARE_BITMAP(hot, SMCFS_FOLIO_PAGES_MAX);
	unsigned long flags;
	unsigned int i;

	if (!smcfs_folio_hot(folio))
		return;
	if (!sf->compared)
		hot_leave_held(sf, folio);
	spin_lock_irqsave(&sf->lock, flags);
	hot_owe_locked(sf, folio);
	bitmap_copy(hot, sf->hot, SMCFS_FOLIO_PAGES_MAX);
	bitmap_zero(sf->hot, SMCFS_FOLIO_PAGES_MAX);
	if (sf->compared && hot_held(sf, folio))
		sf->dirty[0] |= hot[0];
	spin_unlock_irqrestore(&sf->lock, flags);
	for_each_set_bit(i, hot, SMCFS_FOLIO_PAGES_MAX)
		smcfs_twin_cool(sf, i);
}

/**
 * smcfs_hot_cool_all() - no page of a region is hot any more
 * @region: bound.
 *
 * A fault that looked at the parameters before may leave one, until the next flush.
 * Context: process, killable.
 */
void smcfs_hot_cool_all(struct smcfs_region *region)
{
	struct smcfs_hot_window *window;
	struct address_space *mapping;
	struct inode *inode;
	pgoff_t index = 0;
	unsigned int at;

	inode = READ_ONCE(region->hot_used) ? smcfs_region_inode(region) : NULL;
	if (!inode)
		return;
	mapping = inode->i_mapping;
	while ((window = smcfs_hot_next(region, &index, ULONG_MAX))) {
		for_each_set_bit(at, window->hot, SMCFS_HOT_WINDOW) {
			pgoff_t page = window->start + at;
			struct folio *folio = __filemap_get_folio(mapping, page, FGP_LOCK, 0);

			if (IS_ERR(folio)) {
				smcfs_hot_absent(mapping, window, page, page + 1);
				continue;
			}
			if (smcfs_hot_check(region, window, folio, at))
				smcfs_hot_cool(region, window, folio);
			folio_unlock(folio);
			folio_put(folio);
		}
		index = window->start + SMCFS_HOT_WINDOW;
		cond_resched();
		/* Killed: the next flush does it. */
		if (fatal_signal_pending(current))
			break;
	}
	smcfs_region_inode_put(inode);
}

/*
 * sync(2), syncfs(2), umount: the core knows of no store to a hot page. The caller holds s_umount.
 * Context: process.
 */
int smcfs_sync_fs(struct super_block *sb, int wait)
{
	struct smcfs_region *region;
	struct inode *inode;
	int err = 0, one;
	u64 id = 0;

	while (wait && (region = smcfs_region_next(id))) {
		id = region->id + 1;
		inode = READ_ONCE(region->hot_used) ? smcfs_region_inode_of(region, sb) : NULL;
		if (inode) {
			one = smcfs_flush(inode, 0, LLONG_MAX);
			err = err ?: one;
			iput(inode);
		}
		smcfs_region_put(region);
	}
	return err;
}
