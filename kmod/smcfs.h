/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Internal types of smcfs; prototypes grouped by the file that defines them.
 * Copyright (c) 2026 The SMC authors
 *
 * Lifetime: inode -> region -> grant -> session. Each arrow is a counted reference; nothing points
 * back with one, so a session (and its QPs) can be destroyed while regions still hold a dead grant.
 * Lock order: kmod/README.md.
 */
#ifndef SMCFS_H
#define SMCFS_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/netlink.h>
#include <linux/pagemap.h>
#include <linux/socket.h>
#include <linux/in6.h>
#include <linux/bitmap.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <linux/smcfs.h>

#include "compat.h"
#include "ep_state.h"
#include "latency.h"

#define SMCFS_MODULE_VERSION	"0.1.0"

/* One transfer: so many local segments and, at worst, as many work requests. */
#define SMCFS_XFER_SEGS_MAX	64
/*
 * The largest folio, 128 KiB. All of its dirty runs, every other page at worst, and the border of
 * an extent fit into one transfer, so write-back of a folio is one transfer.
 */
#define SMCFS_FOLIO_ORDER_MAX	5
/*
 * And so many bytes: the largest folio with room to spare, so that an empty transfer takes any.
 * Owners stay well below, since a transfer is the step in which the watchdog sees progress.
 */
#define SMCFS_XFER_BYTES_MAX	(4U << 20)
/* The watchdog looks so often per request timeout. */
#define SMCFS_EP_TICKS		4
/* Send-queue slots of a QP that transfers may use; more wait in FIFO order. */
#define SMCFS_EP_SLOTS		256

/* ------------------------------------------------------------------ counters (stats.c) */

struct smcfs_stats {
	atomic64_t v[SMCFS_STAT_MAX + 1];	/* by enum smcfs_stat */
};

static inline void smcfs_stat_add(struct smcfs_stats *st, enum smcfs_stat which, u64 n)
{
	atomic64_add(n, &st->v[which]);
}

/* Puts the nested attribute SMCFS_A_STATS. Return: 0 or -EMSGSIZE. */
int smcfs_stats_fill(struct sk_buff *skb, const struct smcfs_stats *st);

/* ------------------------------------------------------------------ latencies (latency.c) */

struct smcfs_latencies {
	/* By enum smcfs_latency, less 1. */
	atomic64_t bucket[SMCFS_LATENCY_MAX][SMCFS_LATENCY_BUCKETS];
};

/* Context: any. */
static inline void smcfs_latency_add(struct smcfs_latencies *latency, enum smcfs_latency which,
				     u64 ns)
{
	atomic64_inc(&latency->bucket[which - 1][smcfs_latency_bucket(ns)]);
}

vm_fault_t smcfs_fault(struct vm_fault *vmf);

/* ------------------------------------------------------------------ transfers (xfer.c) */

enum smcfs_xfer_op {
	SMCFS_XFER_READ,	/* on the read QP */
	SMCFS_XFER_WRITE,	/* on the bulk QP */
	SMCFS_XFER_FLAG,	/* on the bulk QP: a WRITE after all READs before it */
	SMCFS_XFER_FETCH_ADD,	/* on the read QP; 8 bytes, as the next */
	SMCFS_XFER_COMPARE_SWAP,
};

static inline bool smcfs_xfer_op_writes(enum smcfs_xfer_op op)
{
	return op == SMCFS_XFER_WRITE || op == SMCFS_XFER_FLAG;
}

static inline bool smcfs_xfer_op_atomic(enum smcfs_xfer_op op)
{
	return op == SMCFS_XFER_FETCH_ADD || op == SMCFS_XFER_COMPARE_SWAP;
}

/* A piece of local memory: @length bytes from @offset in @folio, physically contiguous. */
struct smcfs_seg {
	struct folio	*folio;		/* the owner of the xfer holds it until done */
	size_t		offset;
	u32		length;
};

/* Remote side of a run of segments: one RDMA request. */
struct smcfs_wr {
	struct ib_rdma_wr	wr;
	u16			seg_first;
	u16			seg_nr;
	u32			length;
};

struct smcfs_ep;
struct smcfs_session;
struct smcfs_grant;

/*
 * A transfer is a chain of RDMA requests of one kind with one completion. Built by its owner
 * (alloc, add ...), handed over by submit, handed back by done(): exactly once, whatever fails.
 */
struct smcfs_xfer {
	struct list_head	link;		/* [ep->lock] waiting or inflight */
	struct ib_cqe		cqe;		/* of the last request, the only signalled one */
	struct ib_cqe		cqe_err;	/* of the others: these complete only in error */
	struct smcfs_ep		*ep;		/* [const] after alloc */
	struct smcfs_grant	*grant;		/* [const] reference */
	enum smcfs_xfer_op	op;
	bool			mapped;		/* segments are DMA mapped */
	u8			status;		/* [CQ] enum ib_wc_status of the first failure */
	u64			posted_ns;	/* [ep->lock] ktime, 0: not posted */
	u64			latency_ns;	/* from posting to completion; 0 before done() */
	u64			bytes;
	unsigned int		nr_segs;
	unsigned int		nr_wrs;
	struct smcfs_seg	segs[SMCFS_XFER_SEGS_MAX];
	struct ib_sge		sges[SMCFS_XFER_SEGS_MAX];
	struct smcfs_wr		wrs[SMCFS_XFER_SEGS_MAX];

	/*
	 * @err 0: softirq or process; must not sleep. Else process; a negative errno (-EIO a failed
	 * request, -ENOTCONN not posted, session not live). The owner frees the xfer with
	 * smcfs_xfer_free() in it or later. An error comes only after smcfs_region_session_lost(),
	 * from the session's destroy_work or from submit itself (which also reports memory that
	 * cannot be DMA mapped as -EIO, with the session live).
	 */
	void			(*done)(struct smcfs_xfer *xfer, int err);
	void			*owner;		/* of the owner */
	u64			seq;		/* of the owner */
	u64			operand;	/* of an atomic: added, or stored if equal */
	u64			compare;	/* of SMCFS_XFER_COMPARE_SWAP */
	struct ib_atomic_wr	atomic;		/* posted for an atomic instead of wrs[0] */
};

/*
 * Context: process. @gfp GFP_NOFS: may wait for a free one of the pool, never NULL. Whoever holds
 * one submits or frees it before it asks for the next: threads that collect several drain the pool
 * and wait for each other.
 */
struct smcfs_xfer *smcfs_xfer_alloc(struct smcfs_grant *grant, enum smcfs_xfer_op op, gfp_t gfp);

/*
 * Appends local memory that goes to (comes from) @raddr; joined to the request before it where both
 * sides continue.
 * Return: false when the transfer is full (nothing was added).
 */
bool smcfs_xfer_add(struct smcfs_xfer *xfer, struct folio *folio, size_t offset, u32 length,
		    u64 raddr, u32 rkey);

/* Context: process, no spinlock held. Never waits for the network or for slots. */
void smcfs_xfer_submit(struct smcfs_xfer *xfer);

void smcfs_xfer_free(struct smcfs_xfer *xfer);
int smcfs_xfer_init(void);
void smcfs_xfer_exit(void);

/* ------------------------------------------------------------------ cost (cost.c) */

struct smcfs_cost_sum {
	u64	ns, wrs, bytes;
};

/* What transfers of an endpoint took, of the latest some 100 ms in which it was busy. */
struct smcfs_cost {
	struct smcfs_cost_sum	large, small;	/* by the bytes of a request */
};

/* What a request and a byte of it take, in picoseconds; both 0: not known. */
struct smcfs_price {
	u64	wr_ps, byte_ps;
};

void smcfs_cost_add(struct smcfs_cost *cost, u64 ns, bool alone, unsigned int wrs, u64 bytes);
void smcfs_cost_price(const struct smcfs_cost *cost, struct smcfs_price *price);
/* Context: any but hard interrupt. Return: ns. */
static inline u64 smcfs_price_of(const struct smcfs_price *price, unsigned int wrs, u64 bytes)
{
	return (wrs * price->wr_ps + bytes * price->byte_ps) / 1000;
}

/* ------------------------------------------------------------------ endpoints (ep.c, ep_cm.c) */

/* A QP and what belongs to it. States and edges: ep_state.h. */
struct smcfs_ep {
	struct smcfs_session	*session;	/* [const] the owner */
	u16			role;		/* [const] SMCFS_CM_QP_* */
	u16			max_sge;	/* [const] after connect: segments of a request */
	u32			max_seg;	/* [const] after connect: bytes of a segment */
	u32			max_msg;	/* [const] after connect: bytes of a request */
	bool			atomics;	/* [const] after connect: the device has them */
	struct rdma_cm_id	*cm_id;		/* [const] from connect to destroy */
	struct ib_pd		*pd;		/* [const] from connect to destroy */
	struct ib_cq		*cq;		/* [const] from connect to destroy */
	struct completion	cm_done;	/* a connect step finished, or abort */
	int			cm_err;		/* [cm_done] of that step */
	const char		*cm_msg;	/* [cm_done] more on cm_err for people, or NULL */
	u8			device_event;	/* READ_ONCE; ib_event_type + 1 of a broken QP */
	u64			watched_ns;	/* [watchdog] progress_ns at its last tick */
	unsigned int		stalled;	/* [watchdog] ticks without progress in a row */

	spinlock_t		lock;		/* taken in softirq (_bh); ib_post_send under it */
	enum smcfs_ep_state	state;		/* [lock]; reads without: READ_ONCE */
	unsigned int		slots;		/* [lock] free send-queue slots */
	struct list_head	waiting;	/* [lock] xfers without slots, FIFO */
	struct list_head	inflight;	/* [lock] posted, oldest first */
	unsigned int		nr_waiting;	/* [lock] */
	unsigned int		nr_inflight;	/* [lock] */
	u64			progress_ns;	/* [lock] last completion, or post after idle */
	u64			before_ns;	/* [lock] progress_ns before that */
	struct smcfs_cost	cost;		/* [lock] of writes */
};

/* For people: "read" or "bulk". */
const char *smcfs_ep_name(const struct smcfs_ep *ep);

/* Of ep.c for session.c, ep_cm.c and xfer.c; contexts at the definitions. */
void smcfs_ep_init(struct smcfs_ep *ep, struct smcfs_session *session, u16 role);
int smcfs_ep_create(struct smcfs_ep *ep);
void smcfs_ep_set_state(struct smcfs_ep *ep, enum smcfs_ep_state state);
bool smcfs_ep_submit(struct smcfs_ep *ep, struct smcfs_xfer *xfer);
void smcfs_ep_completed(struct smcfs_ep *ep, struct smcfs_xfer *xfer);
void smcfs_ep_failed(struct smcfs_ep *ep, struct smcfs_xfer *xfer, const struct ib_wc *wc);
int smcfs_ep_watch(struct smcfs_ep *ep, char *reason, size_t size);
void smcfs_ep_price(struct smcfs_ep *ep, struct smcfs_price *price);
void smcfs_ep_stop(struct smcfs_ep *ep);
void smcfs_ep_destroy(struct smcfs_ep *ep);
/* Of ep_cm.c for session.c. */
int smcfs_ep_connect(struct smcfs_ep *ep, unsigned long deadline, char *reason, size_t size);
/* Of xfer.c for ep.c. */
const struct ib_send_wr *smcfs_xfer_head(const struct smcfs_xfer *xfer);
void smcfs_xfer_complete(struct smcfs_xfer *xfer, int err);

/* ------------------------------------------------------------------ sessions (session.c) */

struct smcfs_session_params {
	u64			id;
	char			node[SMCFS_NODE_NAME_MAX + 1];
	struct sockaddr_storage	dst;		/* with port */
	struct sockaddr_storage	src;		/* family AF_UNSPEC: any */
	u8			token[2][SMCFS_TOKEN_BYTES];	/* by SMCFS_CM_QP_* */
	u32			request_timeout_ms;
	u32			connect_timeout_ms;
};

struct smcfs_session {
	struct kref		ref;
	struct list_head	link;		/* [smcfs_sessions.lock] */
	struct smcfs_session_params params;	/* [const] but tokens, wiped once they are sent */
	struct smcfs_ep		ep[2];		/* by SMCFS_CM_QP_* */
	spinlock_t		lock;		/* leaf; taken in softirq (_bh) */
	enum smcfs_session_state state;		/* [lock]; reads without: READ_ONCE */
	int			err;		/* [lock] first cause of the loss, negative */
	char			reason[SMCFS_REASON_MAX + 1];	/* [lock] for people */
	bool			del;		/* [lock] deletion was asked for */
	struct work_struct	connect_work;
	struct work_struct	destroy_work;	/* LIVE or CONNECTING -> DEAD */
	struct delayed_work	watchdog;	/* request deadlines */
	struct smcfs_stats	stats;
	struct smcfs_stages	*stages;	/* cmpxchg once, by the first region */
	char			device[IB_DEVICE_NAME_MAX];	/* [const] after connect */
	int			numa_node;	/* [const] after connect: of the device, or none */
};

/* -EEXIST, -EINVAL, -ENOMEM, or 0: connecting; the result is an event. Takes a module reference. */
int smcfs_session_connect(const struct smcfs_session_params *params);
/* -ENOENT or 0: EVENT_SESSION DEAD follows, at once if it is dead already; then it is forgotten. */
int smcfs_session_del(u64 id);
/* The session with the smallest id >= @id, or NULL. Caller puts. */
struct smcfs_session *smcfs_session_next(u64 id);
struct smcfs_session *smcfs_session_get(u64 id);
void smcfs_session_put(struct smcfs_session *session);
/* Moves a session out of LIVE or CONNECTING: all requests fail soon. Any context but hard irq. */
void smcfs_session_abort(struct smcfs_session *session, int err, const char *reason);
static inline bool smcfs_session_live(const struct smcfs_session *session)
{
	return READ_ONCE(session->state) == SMCFS_SESSION_LIVE;
}
int smcfs_session_init(void);
void smcfs_session_exit(void);

/* ------------------------------------------------------------------ grants (grant.c) */

/* What a session may touch for one region: immutable, replaced as a whole. */
struct smcfs_grant {
	struct kref		ref;
	struct smcfs_session	*session;	/* [const] reference */
	bool			atomics;	/* [const] the read keys allow them */
	unsigned int		nr_extents;
	struct smcfs_extent	extents[] __counted_by(nr_extents);	/* sorted, gapless */
};

/*
 * Checks @nr extents against @size: sorted, gapless from 0, no wrap, lengths. Takes a session
 * reference of its own.
 * Return: grant or ERR_PTR(-EINVAL, -ENOMEM), @extack says which.
 */
struct smcfs_grant *smcfs_grant_create(struct smcfs_session *session, u64 size,
				       const struct smcfs_extent *extents, unsigned int nr,
				       struct netlink_ext_ack *extack);
void smcfs_grant_put(struct smcfs_grant *grant);
static inline struct smcfs_grant *smcfs_grant_get(struct smcfs_grant *grant)
{
	kref_get(&grant->ref);
	return grant;
}
/*
 * Adds the part of a folio that lies at region position @pos to @xfer, cut at extent borders.
 * Return: bytes added, 0 when the transfer is full.
 */
u32 smcfs_grant_add(struct smcfs_xfer *xfer, struct folio *folio, size_t offset, u64 pos,
		    u32 length);

/* ------------------------------------------------------------------ peers (peer.c) */

/* A name under the mount point. */
struct smcfs_peer {
	struct hlist_node	hash;		/* [smcfs_peers.lock] */
	struct kref		ref;
	u64			ino;		/* [const] */
	bool			gone;		/* [smcfs_peers.lock]; READ_ONCE elsewhere */
	char			name[SMCFS_NODE_NAME_MAX + 1];
};

int smcfs_peer_add(const char *name);	/* -EEXIST, -EINVAL, -ENOMEM */
int smcfs_peer_del(const char *name);	/* -ENOENT, -EBUSY */
struct smcfs_peer *smcfs_peer_get(const char *name, size_t length);
void smcfs_peer_put(struct smcfs_peer *peer);
/* The peer with the smallest ino >= @ino, or NULL. Caller puts. */
struct smcfs_peer *smcfs_peer_next(u64 ino);
unsigned int smcfs_peer_count(void);
void smcfs_peer_exit(void);
bool smcfs_name_valid(const char *name, bool slashes);

/* ------------------------------------------------------------------ regions (region.c) */

struct smcfs_region_desc {
	char			node[SMCFS_NODE_NAME_MAX + 1];
	char			name[SMCFS_REGION_NAME_MAX + 1];
	u64			generation;
	u64			size;
	u32			mode, uid, gid;
	u32			writers;	/* what the exporter asks for */
	u32			merge_unit;
	u32			flags;		/* SMCFS_RF_* */
};

/* Words on different pages do not wait for each other, most often. */
#define SMCFS_WORD_LOCKS	16

/* A work that runs a while after it was asked for (modes.c). */
struct smcfs_pace {
	spinlock_t		lock;		/* leaf, irqs off */
	bool			armed;		/* [lock] timer or work will run; region is held */
	bool			stopped;	/* [lock] until it is bound, and when it is dead */
	struct hrtimer		timer;
	struct work_struct	work;
	struct smcfs_region	*region;	/* [const] that it is a part of */
};

/* Pages of which a copy is kept. */
#define SMCFS_LINES_PROBES	16
#define SMCFS_LINES_NO_PAGE	ULONG_MAX

struct smcfs_lines_probe {
	pgoff_t			index;		/* [lock] reads: READ_ONCE; or NO_PAGE */
	struct page		*copy;		/* [lock] or NULL: none yet */
};

/* Of an exclusive region: are changed lines sent, or whole pages? (lines.c) */
struct smcfs_lines {
	spinlock_t		lock;		/* leaf; process; only tried */
	bool			on;		/* READ_ONCE: pages that are written have twins */
	int			saved;		/* READ_ONCE: mean, in 2^-20 of a page's price */
	u32			copy_ns;	/* [lock] mean, of a page; reads: READ_ONCE */
	u32			probe_sample;	/* READ_ONCE: see lines_sampled() */
	u32			cool_sample;	/* the same */
	u32			refused;	/* READ_ONCE: see smcfs_lines_changed() */
	unsigned int		next;		/* [lock] probe to be taken */
	struct smcfs_lines_probe probe[SMCFS_LINES_PROBES];
};

struct smcfs_region {
	struct hlist_node	hash;		/* [smcfs_regions.lock] by node and name */
	struct kref		ref;
	u64			id;		/* [const] also the inode number */
	struct smcfs_peer	*peer;		/* [const] reference */
	char			name[SMCFS_REGION_NAME_MAX + 1];	/* [const] */
	char			reason[SMCFS_REASON_MAX + 1];	/* [lock] */

	spinlock_t		lock;		/* _bh; inode->i_lock inside */
	enum smcfs_region_state	state;		/* [lock]; reads without: READ_ONCE */
	int			err;		/* [lock] of FAILED, negative */
	bool			is_prefix;	/* [lock] FAILED since it is a directory */
	unsigned long		expires;	/* [lock] jiffies: a failed bind is forgotten */
	struct smcfs_grant	*grant;		/* [lock] NULL unless bound */
	int			numa_node;	/* READ_ONCE: of the last grant's device, or none */
	struct smcfs_region_desc desc;		/* [const] once bound */
	struct inode		*inode;		/* [lock] weak: cleared when it is evicted */
	wait_queue_head_t	wait;		/* state, writer state, wb_done changed */

	/* Write-back, by ticket: every transfer up to wb_done completed. */
	spinlock_t		wb_lock;	/* leaf; taken in softirq (_bh) */
	u64			wb_posted;	/* [wb_lock] */
	u64			wb_done;	/* [wb_lock] */
	u64			wb_failures;	/* [wb_lock] transfers that failed */
	struct list_head	wb_inflight;	/* [wb_lock] struct smcfs_wb, by ticket */

	/* Pages that became dirty, ever; and those of them that are known to be clean again. */
	atomic64_t		dirtied;
	atomic64_t		cleaned;
	unsigned long		dirty_counted;	/* READ_ONCE: jiffies, without a session */

	struct mutex		drop_lock;	/* one round at a time: they hold references */
	struct mutex		word_lock[SMCFS_WORD_LOCKS];	/* one word of a page at a time */

	/* The writing right of an exclusive region. */
	struct mutex		writer_lock;	/* serializes asking */
	enum smcfs_writer_state	writer;		/* [lock] */
	int			writer_err;	/* [lock] answer of the daemon */
	unsigned int		nr_writers;	/* [writer_lock] writable opens */
	atomic_t		openers;	/* open files */

	/* A mount and dentry kept while dirty pages outlive the last close. */
	struct path		pin;		/* [writer_lock] mnt NULL: none */
	struct delayed_work	flush_work;	/* sends what outlived the last close */

	u8			cto;		/* [lock] reads without: READ_ONCE; close-to-open */
	u32			flush_after_ms;	/* [lock] reads without: READ_ONCE */
	u8			writers;	/* READ_ONCE: enum smcfs_writers */
	u32			merge_unit;	/* [lock] reads: READ_ONCE; bytes, a power of two */
	u32			granule;	/* [lock] reads: READ_ONCE; unit of fetches */
	enum smcfs_origin	cto_origin;	/* [lock] */
	enum smcfs_origin	flush_after_origin;	/* [lock] */
	enum smcfs_origin	merge_unit_origin;	/* [lock] */
	enum smcfs_origin	writers_origin;		/* [lock] reads without: READ_ONCE */
	enum smcfs_origin	granule_origin;		/* [lock] */
	u8			sync_mode;	/* [lock] reads: READ_ONCE; enum smcfs_sync */
	u32			push_delay_us;	/* [lock] reads: READ_ONCE */
	u32			max_stale_us;	/* [lock] reads: READ_ONCE; 0: off */
	enum smcfs_origin	sync_mode_origin;	/* [lock] */
	enum smcfs_origin	push_delay_origin;	/* [lock] */
	enum smcfs_origin	max_stale_origin;	/* [lock] */
	struct smcfs_pace	push, stale;

	/* Hot pages (hot.c). */
	struct xarray		hot_windows;	/* struct smcfs_hot_window by index / its pages */
	atomic_t		nr_hot_windows;
	atomic_t		nr_hot;		/* bits in windows */
	u8			hot;		/* [lock] reads: READ_ONCE; pages may become hot */
	enum smcfs_origin	hot_origin;	/* [lock] */
	atomic_t		nr_readers;	/* mappings that a harvest does not go past */
	atomic_t		reader_opens;	/* such mappings that there ever were */
	bool			hot_used;	/* READ_ONCE; one was hot, ever */
	atomic_t		hot_flushing;	/* flushes that may know more than others */

	struct smcfs_lines	lines;

	struct smcfs_stats	stats;
	struct smcfs_latencies	*latency;	/* [const] once bound; NULL before */
	u32			sample;		/* READ_ONCE: see smcfs_stage_sampled() */
};

/* Daemon's side; each Return: 0 or -errno. Context: process. */
int smcfs_region_attach(const struct smcfs_region_desc *desc, struct smcfs_session *session,
			const struct smcfs_extent *extents, unsigned int nr, u64 *id,
			struct netlink_ext_ack *extack);
int smcfs_region_bind_fail(const char *node, const char *name, int err);
int smcfs_region_detach(u64 id, bool force, u64 *discarded);
int smcfs_region_revoke(u64 id, int err, u64 *discarded);
int smcfs_region_writer_result(u64 id, int err);
void smcfs_region_session_lost(struct smcfs_session *session);
void smcfs_region_daemon_gone(void);
bool smcfs_region_peer_busy(struct smcfs_peer *peer);

/* Filesystem's side. */
/* Finds or makes (BINDING, upcall sent) the region. ERR_PTR(-ENOENT ...) from a cached failure. */
struct smcfs_region *smcfs_region_lookup(struct smcfs_peer *peer, const char *name);
/* Waits killably and bounded until bound. Return: 0, or why not; -EISDIR: the name is a prefix. */
int smcfs_region_wait_bound(struct smcfs_region *region);
struct smcfs_region *smcfs_region_get(u64 id);
struct smcfs_region *smcfs_region_next(u64 id);
void smcfs_region_put(struct smcfs_region *region);
static inline struct smcfs_region *smcfs_region_hold(struct smcfs_region *region)
{
	kref_get(&region->ref);
	return region;
}
/* Reference to the current grant if requests may be sent, else ERR_PTR(-EIO). */
struct smcfs_grant *smcfs_region_grant(struct smcfs_region *region);
bool smcfs_region_dead(struct smcfs_region *region);
/* A processor near the device, for work that compares and sends, or WORK_CPU_UNBOUND. */
int smcfs_region_cpu(struct smcfs_region *region);
/* The names under @prefix of @peer are known to be a directory. */
bool smcfs_region_is_prefix(struct smcfs_peer *peer, const char *prefix);
/* Counts an open; EBUSY while detaching, EIO when dead. */
int smcfs_region_open(struct smcfs_region *region);
void smcfs_region_close(struct smcfs_region *region);
/* The writing right: taken at the first writable open, given back when clean after the last. */
int smcfs_region_open_writer(struct smcfs_region *region);
void smcfs_region_close_writer(struct smcfs_region *region, struct inode *inode);
int smcfs_region_set_writers(struct smcfs_region *region, u32 writers);
/* Keeps mount and dentry of @file until the region is clean. */
void smcfs_region_pin(struct smcfs_region *region, struct file *file);
/* Sends dirty pages @delay_ms from now unless that is under way. Any context. */
void smcfs_region_flush_later(struct smcfs_region *region, unsigned int delay_ms);
void smcfs_region_flush_paced(struct smcfs_region *region);
/* modes.c */
void smcfs_modes_init(struct smcfs_region *region);
void smcfs_modes_changed(struct smcfs_region *region);
void smcfs_modes_stop(struct smcfs_region *region);
void smcfs_modes_dirtied(struct smcfs_region *region, bool mapped);
void smcfs_modes_bound(struct smcfs_region *region);
void smcfs_modes_cached(struct smcfs_region *region);
bool smcfs_modes_eager(struct smcfs_region *region);
/* umount -f: gives up what could not be sent after the last close. */
void smcfs_region_discard_pinned(void);
int smcfs_region_init(void);
void smcfs_region_exit(void);

/* ------------------------------------------------------------------ folios (folio.c) */

#define SMCFS_FOLIO_PAGES_MAX	BIT(SMCFS_FOLIO_ORDER_MAX)

/* A page that was written, of a folio that is compared with what the target holds. */
struct smcfs_page {
	/*
	 * What the target is known to hold where we did not change it, or acknowledged where we
	 * did. Set before the page becomes writable in a page table. [set: folio lock; cleared:
	 * lock, with the dirty bit clear]
	 */
	struct page	*twin;
	unsigned long	*forced;	/* [lock] or NULL; a bit a byte: sent, changed or not */
	bool		all;		/* [lock] every byte is */
	/* Exclusive: no memory for a twin: every byte is, each time. [set: lock; never cleared] */
	bool		whole;
};

/*
 * On folio->private of folios that were written: which pages have to be sent. Exclusive regions
 * need it for large folios, hot ones, and those of which changed lines are sent.
 */
struct smcfs_folio {
	spinlock_t	lock;		/* leaf; process and softirq */
	unsigned int	nr_pages;	/* [const] */
	/*
	 * On its way, or being issued, if not 0. Compared: pages that are, and 1 more while issued.
	 * [0 -> 1: folio lock; to 0: its last transfer; else: lock]
	 */
	unsigned int	inflight;
	bool		failed;		/* [lock] compared: one of them was not written */
	bool		compared;	/* [const] pages[] has nr_pages, else none */
	/*
	 * One word, as the compiler knows from the constant: bits past nr_pages are 0, and never
	 * set by bitmap_fill(), which rounds up.
	 */
	DECLARE_BITMAP(dirty, SMCFS_FOLIO_PAGES_MAX);	/* [lock] */
	DECLARE_BITMAP(hot, SMCFS_FOLIO_PAGES_MAX);	/* [lock] set, cleared: folio lock, too */
	/* Compared: dirty ones to which a store is known, not only to some page of the folio. */
	unsigned long	stored;		/* [lock] a hint; bits as in ->dirty */
	/* Sent as a whole while somebody may have held them: see smcfs_folio_held(). */
	unsigned long	kept;		/* [lock] bits as in ->dirty */
	struct smcfs_page pages[];
};

struct smcfs_folio *smcfs_folio_attach(struct folio *folio);
struct smcfs_folio *smcfs_folio_prepare(struct folio *folio);
void smcfs_folio_fit(struct smcfs_region *region, struct folio *folio);
int smcfs_folio_mark_range(struct folio *folio, size_t offset, size_t length);
void smcfs_dirty_flushed(struct smcfs_region *region, s64 dirtied);
void smcfs_folio_dirty_locked(struct smcfs_folio *sf);
void smcfs_folio_recall(struct folio *folio);
bool smcfs_folio_keeps(struct folio *folio);
static inline struct smcfs_folio *smcfs_folio_private(struct folio *folio)
{
	return folio_test_private(folio) ? folio_get_private(folio) : NULL;
}
/*
 * Is something of @folio on its way? It is locked. Hot folios that were not dirty have no flag of
 * write-back then, which costs more than all else of a page.
 */
static inline bool smcfs_folio_flying(struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);

	return folio_test_writeback(folio) || (sf && READ_ONCE(sf->inflight));
}

bool smcfs_folio_held(struct folio *folio);
bool smcfs_dirty_folio(struct address_space *mapping, struct folio *folio);
bool smcfs_folio_set_dirty(struct address_space *mapping, struct folio *folio);
void smcfs_invalidate_folio(struct folio *folio, size_t offset, size_t length);
bool smcfs_release_folio(struct folio *folio, gfp_t gfp);

/* ------------------------------------------------------------------ hot pages (hot.c) */

/* Pages of a window: of what one page of page tables maps, so that folios lie in one. */
#define SMCFS_HOT_WINDOW	512

struct smcfs_hot_window {
	pgoff_t	start;				/* [const] a multiple of SMCFS_HOT_WINDOW */
	DECLARE_BITMAP(hot, SMCFS_HOT_WINDOW);	/* atomic: hot, or were before they were dropped */
	u8	count[SMCFS_HOT_WINDOW];	/* faults; of hot pages: flushes without a store */
	u8	epoch[SMCFS_HOT_WINDOW];	/* of a large folio: when it was last sent */
	u8	flushes;			/* that covered some of it; wraps; counts epochs */
};

/* Does this kernel have what it takes? */
bool smcfs_hot_possible(void);
void smcfs_hot_init(struct smcfs_region *region);
void smcfs_hot_free(struct smcfs_region *region);
void smcfs_hot_touch(struct smcfs_region *region, struct folio *folio, unsigned int index);
bool smcfs_hot_stays(struct smcfs_region *region, struct folio *folio);
void smcfs_hot_keep(struct smcfs_region *region, struct folio *folio);
void smcfs_hot_cool_all(struct smcfs_region *region);
void smcfs_hot_reader_open(struct smcfs_region *region);
void smcfs_hot_reader_close(struct smcfs_region *region);
int smcfs_sync_fs(struct super_block *sb, int wait);
/* Of hot.c for wb_issue.c. */
struct smcfs_hot_window *smcfs_hot_next(struct smcfs_region *region, pgoff_t *index, pgoff_t end);
void smcfs_hot_count_flush(struct smcfs_region *region, pgoff_t index, pgoff_t end);
bool smcfs_hot_harvest(struct address_space *mapping, pgoff_t start, pgoff_t first, pgoff_t nr,
		       unsigned long *stored, bool protect);
void smcfs_hot_absent(struct address_space *mapping, struct smcfs_hot_window *window,
		      pgoff_t first, pgoff_t end);
bool smcfs_hot_allowed(struct smcfs_region *region);
bool smcfs_hot_check(struct smcfs_region *region, struct smcfs_hot_window *window,
		     struct folio *folio, unsigned int at);
bool smcfs_hot_take(struct smcfs_hot_window *window, struct folio *folio,
		    const unsigned long *stored);
void smcfs_hot_rest(struct smcfs_region *region, struct smcfs_hot_window *window,
		    struct folio *folio, const unsigned long *stored);
void smcfs_hot_cool(struct smcfs_region *region, struct smcfs_hot_window *window,
		    struct folio *folio);
void smcfs_hot_break(struct smcfs_region *region, struct folio *folio);
void smcfs_hot_protected(struct smcfs_region *region, struct folio *folio);
void smcfs_hot_forget(struct folio *folio);

/* May pages of @folio be stored to while it is clean? It is locked. */
static inline bool smcfs_folio_hot(struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);

	return sf && !bitmap_empty(sf->hot, SMCFS_FOLIO_PAGES_MAX);
}

/* ------------------------------------------------------------------ changes (twin.c, stage.c) */

/* Lines are the grain of comparing; a page has one u64 of them. */
#define SMCFS_LINE_BYTES	64U

struct smcfs_stages;

/* A page on its way to the target: what is sent is read from here, not from the shadow page. */
struct smcfs_stage {
	struct list_head	link;		/* [pool] free; or of who took it ahead */
	struct smcfs_stages	*pool;		/* [const] */
	struct folio		*data;		/* one page, ours; its private is this */
	struct folio		*folio;		/* of the shadow page, in write-back */
	struct smcfs_folio	*sf;		/* of ->folio */
	unsigned int		index;		/* of the shadow page in ->folio */
	atomic_t		pending;	/* transfers, and 1 while it is being issued */
	bool			failed;		/* WRITE_ONCE */
	bool			all;		/* as in struct smcfs_page, of what is on its way */
	bool			exact;		/* ->bytes says what is sent, else ->send */
	unsigned long		*forced;
	u64			lines;		/* that differ from the twin */
	u64			send;		/* lines to be sent, unless ->exact */
	DECLARE_BITMAP(bytes, PAGE_SIZE);
};

/* stage.c. Gives @session its staging pages. Context: process. Return: 0 or -ENOMEM. */
int smcfs_stages_create(struct smcfs_session *session);
void smcfs_stages_free(struct smcfs_stages *stages);
/* Adds free ones to @list, @nr at most. Return: how many. */
unsigned int smcfs_stages_take(struct smcfs_stages *stages, unsigned int nr,
			       struct list_head *list);
/* Adds one to @list. Waits for transfers to end: the caller has sent its own, and holds none. */
void smcfs_stages_wait(struct smcfs_stages *stages, struct list_head *list);
/* Gives all of @list back, which are of one session. */
void smcfs_stages_put(struct list_head *list);
void smcfs_stage_swap(struct smcfs_stage *stage, struct page **page);
/* Copies @shadow and finds what to send. @twin may be NULL. Return: is there anything? */
bool smcfs_stage_fill(struct smcfs_stage *stage, struct page *shadow, struct page *twin,
		      unsigned int unit);
/* Context: process. Return: a shadow page and its twin are equal. */
bool smcfs_stage_same(struct page *shadow, struct page *twin);
/* @lines, and those between two runs of them, if they are @gap at most. */
u64 smcfs_stage_bridged(u64 lines, unsigned int gap);
/*
 * Of a filled one: sends those, too. What was to be sent to the byte is sent in lines then.
 */
void smcfs_stage_bridge(struct smcfs_stage *stage, unsigned int gap);
/* Its transfer failed: what was sent is forced. Context: process. */
void smcfs_stage_owe(struct smcfs_stage *stage);
/* The first run of bytes to be sent at or after @start. */
bool smcfs_stage_run(const struct smcfs_stage *stage, unsigned int *start, unsigned int *end);
/* Is the next page of a region one of those that are measured? */
bool smcfs_stage_sampled(struct smcfs_region *region);
/* Of a filled one: adds up what is sent of its first @valid bytes, and what of that was changed. */
void smcfs_stage_measure(const struct smcfs_stage *stage, struct page *twin, unsigned int valid,
			 struct smcfs_stats *stats);
void smcfs_stage_setup(void);

/* twin.c */
int smcfs_twin_take(struct folio *folio, unsigned int index);
int smcfs_twin_force_prepare(struct folio *folio, size_t offset, size_t length);
void smcfs_twin_force(struct folio *folio, size_t offset, size_t length);
int smcfs_twin_lead(struct folio *folio, size_t offset, const void *data, size_t length);
void smcfs_twin_follow(struct folio *folio, size_t offset, const void *data, size_t length);
bool smcfs_twin_same(struct folio *folio, unsigned int index);
bool smcfs_twin_stage(struct smcfs_stage *stage, struct folio *folio, unsigned int index, bool held,
		      unsigned int unit);
bool smcfs_twin_put_stage(struct address_space *mapping, struct smcfs_stage *stage);
void smcfs_twin_part_done(struct address_space *mapping, struct folio *folio,
			  struct smcfs_folio *sf, bool failed);
void smcfs_twin_cool(struct smcfs_folio *sf, unsigned int index);
void smcfs_twin_free(struct smcfs_folio *sf);

static inline bool smcfs_region_merges(const struct smcfs_region *region)
{
	return READ_ONCE(region->writers) == SMCFS_WRITERS_MERGE;
}

/*
 * Is write-back of what is written to @folio, which is locked, to compare it with a twin? In merge
 * regions always, in exclusive ones folio by folio.
 */
static inline bool smcfs_folio_compared(const struct smcfs_region *region, struct folio *folio)
{
	struct smcfs_folio *sf = smcfs_folio_private(folio);

	return sf ? sf->compared : smcfs_region_merges(region);
}

/* lines.c */
void smcfs_lines_init(struct smcfs_region *region);
void smcfs_lines_free(struct smcfs_region *region);
bool smcfs_lines_by_cost(void);
bool smcfs_lines_wanted(struct smcfs_region *region);
void smcfs_lines_changed(struct smcfs_region *region, bool done);
bool smcfs_lines_misfit(struct smcfs_region *region, struct folio *folio);
void smcfs_lines_probe(struct smcfs_region *region, struct folio *folio, unsigned int index);
void smcfs_lines_look(struct smcfs_region *region, struct smcfs_ep *ep, struct folio *folio,
		      unsigned int first, unsigned int end);
void smcfs_lines_bridge(const struct smcfs_price *price, struct smcfs_stage *stage);
void smcfs_lines_sent(struct smcfs_region *region, const struct smcfs_price *price, u64 lines,
		      bool hot, u64 ns);

/* ------------------------------------------------------------------ data path */

int smcfs_read_folio(struct file *file, struct folio *folio);
void smcfs_readahead(struct readahead_control *rac);
void smcfs_readahead_bound(struct file_ra_state *ra);
int smcfs_fetch_folio_sync(struct inode *inode, struct folio *folio);

/*
 * Folios on their way into as few transfers as there may be; a transfer that is not full is at
 * hand until the next submit. Who adds more meanwhile allocates without __GFP_FS.
 */
struct smcfs_fetch {
	struct inode		*inode;
	struct smcfs_grant	*grant;		/* reference */
	struct smcfs_xfer	*xfer;		/* being filled, or NULL */
};

bool smcfs_fetch_begin(struct smcfs_fetch *fetch, struct inode *inode);
void smcfs_fetch_add(struct smcfs_fetch *fetch, struct folio *folio);
void smcfs_fetch_submit(struct smcfs_fetch *fetch);
void smcfs_fetch_end(struct smcfs_fetch *fetch);

/* ahead.c; of each open file. */
struct smcfs_file *smcfs_ahead_open(void);	/* NULL: no memory */
void smcfs_ahead_close(struct smcfs_file *sfile);
void smcfs_ahead_read(struct file *file, loff_t pos, size_t length);
vm_fault_t smcfs_ahead_fault(struct vm_fault *vmf);
vm_fault_t smcfs_map_pages(struct vm_fault *vmf, pgoff_t start, pgoff_t end);

vm_fault_t smcfs_page_mkwrite(struct vm_fault *vmf);
extern const struct address_space_operations smcfs_aops;

/*
 * A ticket of write-back and its transfers. It is drawn before the first folio is made clean for
 * it, so whoever finds a folio clean and then waits for all tickets drawn so far has waited for
 * that folio. All of a folio goes under one ticket, which may take several transfers.
 */
struct smcfs_wb {
	struct list_head	link;		/* [region->wb_lock] wb_inflight, by ticket */
	u64			ticket;		/* [const] */
	u64			posted_ns;	/* WRITE_ONCE, ktime of the first transfer, or 0 */
	bool			done;		/* [region->wb_lock] */
	bool			failed;		/* WRITE_ONCE, before done */
	atomic_t		pending;	/* transfers, and 1 while it is being filled */
	struct smcfs_region	*region;	/* [const] reference */
	struct smcfs_grant	*grant;		/* the filler's, while it is being filled */
	struct address_space	*mapping;	/* [const] alive while a folio is in write-back */
	struct smcfs_xfer	*xfer;		/* being filled, or NULL */
};

int smcfs_writepages(struct address_space *mapping, struct writeback_control *wbc);
int smcfs_hot_flush(struct inode *inode, loff_t start, loff_t end);
/*
 * Sends one folio that is locked and held by the caller's batch, and waits, killably. It stays
 * locked.
 * 0: clean; -EAGAIN: dirty again, or still; -EIO; -EINTR.
 */
int smcfs_write_folio(struct inode *inode, struct folio *folio);
/* wb_collect.c. Context: process; may wait for memory of the pool, so hold no unsent transfer. */
struct smcfs_wb *smcfs_wb_create(struct smcfs_region *region, struct smcfs_grant *grant,
				 struct address_space *mapping);
/*
 * The transfer to fill; made if there is none, or one of another kind, which is sent. @staged:
 * staging pages, else folios.
 */
struct smcfs_xfer *smcfs_wb_xfer(struct smcfs_wb *wb, bool staged);
/* Sends what was filled; the ticket goes on. */
void smcfs_wb_part(struct smcfs_wb *wb);
void smcfs_wb_submit(struct smcfs_wb *wb);
void smcfs_wb_end_folio(struct address_space *mapping, struct folio *folio, struct smcfs_folio *sf,
			int err);
bool smcfs_wb_idle(struct smcfs_region *region);
bool smcfs_inode_clean(struct inode *inode);
int smcfs_wb_wait(struct smcfs_region *region, bool killable);
int smcfs_wb_wait_folio(struct smcfs_region *region, struct folio *folio);
int smcfs_wb_init(void);
void smcfs_wb_exit(void);

/* ------------------------------------------------------------------ words (word.c, wait.c) */

/*
 * An aligned word of 4 or 8 bytes, written or changed at the target as one, and in its shadow page.
 * Context: process, killable, bounded by the session's request timeout. Return: 0; -EIO: it was
 * not done; -EREMOTEIO: nobody knows whether it was done, and it is not tried again; -EINVAL;
 * -EOPNOTSUPP; -EINTR: killed; -ENOMEM.
 */
struct smcfs_word_op {
	enum smcfs_xfer_op	op;	/* FLAG, an atomic; READ: a clean page follows */
	u32			size;
	u64			pos;	/* in the region, a multiple of @size, inside */
	u64			operand;
	u64			compare;
	u64			old;	/* out, of an atomic and a look */
};
int smcfs_word(struct inode *inode, struct smcfs_word_op *op);
/* Of a page: held while one of its words is on its way. Pages of one folio have the same. */
static inline struct mutex *smcfs_word_lock(struct smcfs_region *region, pgoff_t index)
{
	return &region->word_lock[(index >> SMCFS_FOLIO_ORDER_MAX) % SMCFS_WORD_LOCKS];
}

/* What the target's memory holds at @pos now. As above, without -EREMOTEIO. */
int smcfs_word_read(struct smcfs_region *region, u64 pos, u32 size, u64 *value);
/* The word in the shadow page, if that is here and clean. */
bool smcfs_word_shadow(struct inode *inode, u64 pos, u32 size, u64 *value);
int smcfs_wait(struct inode *inode, struct smcfs_ioc_wait *wait);
long smcfs_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

ssize_t smcfs_direct_read(struct kiocb *iocb, struct iov_iter *to);
ssize_t smcfs_direct_write(struct kiocb *iocb, struct iov_iter *from);

/* Write out and wait, killably; @end inclusive. 0, -EIO (all is still dirty), -EINTR. */
int smcfs_flush(struct inode *inode, loff_t start, loff_t end);
/* Flush, then drop the clean shadow pages of the range, mapped or not; @end inclusive. */
int smcfs_acquire(struct file *file, loff_t start, loff_t end);
/*
 * As acquire, but dirty pages stay. They are sent only where they share a large folio with clean
 * ones. 0, -EBUSY, -EINTR.
 */
int smcfs_drop_clean(struct inode *inode, loff_t start, loff_t end);
void smcfs_drop_init(void);
void smcfs_drop_exit(void);
/* Flush, then drop all pages of a region that nobody writes to. 0, -EIO, -EBUSY (held), -EINTR. */
int smcfs_drop_all(struct inode *inode);
/* Drops what is clean of all of the region, and waits for nobody. Context: process. */
void smcfs_drop_stale(struct inode *inode);
u64 smcfs_tagged_pages(struct address_space *mapping, xa_mark_t tag);
u64 smcfs_dirty_bytes(struct address_space *mapping, xa_mark_t tag);

/* ------------------------------------------------------ inodes (inode.c, file.c, super.c) */

struct smcfs_inode {
	struct smcfs_region	*region;	/* [const] reference; NULL: directory */
	struct smcfs_peer	*peer;		/* [const] reference; directories below the root */
	char			*prefix;	/* [const] of a directory: "" or "job/" */
	struct inode		vfs;
};

static inline struct smcfs_inode *smcfs_i(const struct inode *inode)
{
	return container_of(inode, struct smcfs_inode, vfs);
}

extern const struct inode_operations smcfs_dir_iops, smcfs_file_iops;
extern const struct file_operations smcfs_dir_fops, smcfs_file_fops;
extern const struct dentry_operations smcfs_dops;
struct inode *smcfs_inode_root(struct super_block *sb);
/* The inode of @region if it is in memory, else NULL; it and its superblock are held until put. */
struct inode *smcfs_region_inode(struct smcfs_region *region);
/* As that, of @sb only, which the caller keeps from being unmounted; put by iput(). */
struct inode *smcfs_region_inode_of(struct smcfs_region *region, struct super_block *sb);
void smcfs_region_inode_put(struct inode *inode);
void smcfs_inode_update_locked(struct inode *inode);
void smcfs_inode_update(struct inode *inode);
bool smcfs_inode_is_kept(const struct inode *inode);
int smcfs_super_init(void);
void smcfs_super_exit(void);

/* ------------------------------------------------------------------ netlink.c, upcall.c */

int smcfs_netlink_init(void);
void smcfs_netlink_exit(void);
bool smcfs_daemon_present(void);
/* Send; -ENOTCONN: no daemon. Context: process. */
int smcfs_upcall_bind(const char *node, const char *name);
int smcfs_upcall_writer(struct smcfs_region *region);
int smcfs_upcall_writer_release(struct smcfs_region *region);
/*
 * Asks for the export names of @node and waits killably and bounded. @emit is called for each name.
 * Return: 0 or -errno.
 */
int smcfs_upcall_list(const char *node, int (*emit)(void *ctx, const char *name), void *ctx);
void smcfs_event_session(struct smcfs_session *session);
void smcfs_event_region(struct smcfs_region *region);
/* Of upcall.c for netlink.c: the answer to a list. @names: the nested SMCFS_A_NAMES or NULL. */
int smcfs_list_result(u64 cookie, int err, const struct nlattr *names);
void smcfs_upcall_daemon_gone(void);

/* How long open, stat and readdir wait for the daemon. */
#define SMCFS_BIND_TIMEOUT_MS	15000

/* Both unbound, WQ_MEM_RECLAIM. Flushes wait for sessions: no session may wait behind them. */
extern struct workqueue_struct *smcfs_wq;	/* sessions, expiry */
extern struct workqueue_struct *smcfs_flush_wq;

#endif
