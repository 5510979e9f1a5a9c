// SPDX-License-Identifier: GPL-2.0
/*
 * Transfers: local segments and the chain of RDMA requests that moves them.
 * Copyright (c) 2026 The SMC authors
 *
 * Owns: the pool of transfers, their DMA mappings while they are handed over.
 * Contexts: alloc, add and submit in process context; completion in softirq, of everything that
 *	failed in the session's destroy_work.
 *	Completion allocates nothing.
 * Locking: none of its own. A transfer belongs to its owner until submit, to the endpoint
 *	(ep->lock) until done(), then to its owner again.
 * Lifetime: transfer -> grant -> session, counted. A submit that finds the endpoint live maps under
 *	rcu_read_lock(): the endpoint keeps its device until a grace period after it stopped.
 * Failure: only the last request of a chain is signalled. A request that fails breaks the QP, so
 *	the session is lost, and a completion that failed says nothing about the others of its
 *	chain: the device may still use their memory. Hence a failed transfer stays where it is
 *	until the QP is drained and destroyed, and done() is called from there.
 */
#include <linux/mempool.h>
#include <linux/slab.h>

#include "smcfs.h"
#include "trace.h"

/* Write-back goes on with so many when memory is short. */
#define XFER_RESERVE	64

static struct kmem_cache *xfer_cache;
static mempool_t *xfer_pool;

static enum dma_data_direction xfer_direction(const struct smcfs_xfer *xfer)
{
	return smcfs_xfer_op_writes(xfer->op) ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
}

static void xfer_unmap(struct smcfs_xfer *xfer, unsigned int nr)
{
	struct ib_device *dev = xfer->ep->cm_id->device;
	unsigned int i;

	for (i = 0; i < nr; i++)
		ib_dma_unmap_page(dev, xfer->sges[i].addr, xfer->sges[i].length,
				  xfer_direction(xfer));
	xfer->mapped = false;
}

/* Needs a device that stays: a posted transfer, or rcu_read_lock() and a live endpoint. */
static int xfer_map(struct smcfs_xfer *xfer)
{
	struct ib_device *dev = xfer->ep->cm_id->device;
	u32 lkey = xfer->ep->pd->local_dma_lkey;
	unsigned int i;

	for (i = 0; i < xfer->nr_segs; i++) {
		const struct smcfs_seg *seg = &xfer->segs[i];
		struct ib_sge *sge = &xfer->sges[i];

		sge->addr = ib_dma_map_page(dev, folio_page(seg->folio, seg->offset >> PAGE_SHIFT),
					    offset_in_page(seg->offset), seg->length,
					    xfer_direction(xfer));
		if (ib_dma_mapping_error(dev, sge->addr)) {
			xfer_unmap(xfer, i);
			return -EIO;
		}
		sge->length = seg->length;
		sge->lkey = lkey;
	}
	xfer->mapped = true;
	return 0;
}

/* The last request came back, and with it all of the chain: requests of a QP complete in order. */
static void xfer_cqe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct smcfs_xfer *xfer = container_of(wc->wr_cqe, struct smcfs_xfer, cqe);

	if (unlikely(wc->status != IB_WC_SUCCESS || xfer->status)) {
		smcfs_ep_failed(xfer->ep, xfer, wc);
		return;
	}
	smcfs_ep_completed(xfer->ep, xfer);
	smcfs_xfer_complete(xfer, 0);
}

static void xfer_cqe_err_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct smcfs_xfer *xfer = container_of(wc->wr_cqe, struct smcfs_xfer, cqe_err);

	/* A device may report the success of an unsignalled request: that is no news. */
	if (wc->status != IB_WC_SUCCESS)
		smcfs_ep_failed(xfer->ep, xfer, wc);
}

/* The one request of an atomic, built as any other, in the form that atomics have. */
static void xfer_make_atomic(struct smcfs_xfer *xfer)
{
	const struct smcfs_wr *wr = &xfer->wrs[0];
	bool swap = xfer->op == SMCFS_XFER_COMPARE_SWAP;

	xfer->atomic = (struct ib_atomic_wr) {
		.wr		= wr->wr.wr,
		.remote_addr	= wr->wr.remote_addr,
		.rkey		= wr->wr.rkey,
		.compare_add	= swap ? xfer->compare : xfer->operand,
		.swap		= swap ? xfer->operand : 0,
	};
	xfer->atomic.wr.opcode = swap ? IB_WR_ATOMIC_CMP_AND_SWP : IB_WR_ATOMIC_FETCH_AND_ADD;
}

/**
 * smcfs_xfer_head() - the first request, as it is posted
 * @xfer: the transfer, submitted
 *
 * Return: the request; those after it are chained to it.
 */
const struct ib_send_wr *smcfs_xfer_head(const struct smcfs_xfer *xfer)
{
	return smcfs_xfer_op_atomic(xfer->op) ? &xfer->atomic.wr : &xfer->wrs[0].wr.wr;
}

static void xfer_chain(struct smcfs_xfer *xfer)
{
	unsigned int i;

	for (i = 0; i < xfer->nr_wrs; i++) {
		struct ib_send_wr *wr = &xfer->wrs[i].wr.wr;
		bool last = i + 1 == xfer->nr_wrs;

		wr->next = last ? NULL : &xfer->wrs[i + 1].wr.wr;
		wr->wr_cqe = last ? &xfer->cqe : &xfer->cqe_err;
		wr->send_flags = last ? IB_SEND_SIGNALED : 0;
		if (xfer->op == SMCFS_XFER_FLAG)
			wr->send_flags |= IB_SEND_FENCE;
		wr->sg_list = &xfer->sges[xfer->wrs[i].seg_first];
		wr->num_sge = xfer->wrs[i].seg_nr;
	}
	if (smcfs_xfer_op_atomic(xfer->op))
		xfer_make_atomic(xfer);
}

/**
 * smcfs_xfer_alloc() - start a transfer
 * @grant: what it may touch; the transfer takes a reference
 * @op: its direction
 * @gfp: GFP_NOFS waits for one of the reserve
 *
 * The reserve is shared by everyone, so whoever holds a transfer must submit or free it before it
 * asks for the next one.
 *
 * Context: Process, may sleep if @gfp says so.
 * Return: the transfer, NULL only if @gfp forbids to wait.
 */
struct smcfs_xfer *smcfs_xfer_alloc(struct smcfs_grant *grant, enum smcfs_xfer_op op, gfp_t gfp)
{
	struct smcfs_xfer *xfer = mempool_alloc(xfer_pool, gfp);

	if (!xfer)
		return NULL;
	/* The arrays are filled by add: 6 KiB that need no clearing. */
	memset(xfer, 0, offsetof(struct smcfs_xfer, segs));
	INIT_LIST_HEAD(&xfer->link);
	xfer->cqe.done = xfer_cqe_done;
	xfer->cqe_err.done = xfer_cqe_err_done;
	xfer->grant = smcfs_grant_get(grant);
	xfer->op = op;
	xfer->ep = &grant->session->ep[smcfs_xfer_op_writes(op) ? SMCFS_CM_QP_BULK :
								  SMCFS_CM_QP_READ];
	xfer->done = NULL;
	xfer->owner = NULL;
	xfer->seq = 0;
	return xfer;
}

/* The request that @length bytes at @raddr would continue, or NULL. */
static struct smcfs_wr *xfer_wr_before(struct smcfs_xfer *xfer, u32 length, u64 raddr, u32 rkey)
{
	struct smcfs_wr *wr;

	if (!xfer->nr_wrs)
		return NULL;
	wr = &xfer->wrs[xfer->nr_wrs - 1];
	if (wr->wr.rkey != rkey || wr->wr.remote_addr + wr->length != raddr ||
	    length > xfer->ep->max_msg - wr->length)
		return NULL;
	return wr;
}

/* The segment that @length bytes at @offset of @folio would continue, or NULL. */
static struct smcfs_seg *xfer_seg_before(struct smcfs_xfer *xfer, struct folio *folio,
					 size_t offset, u32 length)
{
	struct smcfs_seg *seg;

	if (!xfer->nr_segs)
		return NULL;
	seg = &xfer->segs[xfer->nr_segs - 1];
	if (seg->folio != folio || seg->offset + seg->length != offset ||
	    length > xfer->ep->max_seg - seg->length)
		return NULL;
	return seg;
}

/* Room was checked. */
static void xfer_append(struct smcfs_xfer *xfer, struct folio *folio, size_t offset, u32 length,
			u64 raddr, u32 rkey)
{
	struct smcfs_wr *wr = xfer_wr_before(xfer, length, raddr, rkey);

	if (!wr || wr->seg_nr == xfer->ep->max_sge) {
		wr = &xfer->wrs[xfer->nr_wrs++];
		memset(wr, 0, sizeof(*wr));
		wr->wr.wr.opcode = smcfs_xfer_op_writes(xfer->op) ? IB_WR_RDMA_WRITE :
								    IB_WR_RDMA_READ;
		wr->wr.remote_addr = raddr;
		wr->wr.rkey = rkey;
		wr->seg_first = xfer->nr_segs;
	}
	xfer->segs[xfer->nr_segs++] = (struct smcfs_seg) {
		.folio	= folio,
		.offset	= offset,
		.length	= length,
	};
	wr->seg_nr++;
	wr->length += length;
	xfer->bytes += length;
}

/**
 * smcfs_xfer_add() - append local memory to a transfer
 * @xfer: the transfer, not yet submitted
 * @folio: where the memory is; the owner of @xfer holds it until done
 * @offset: of the memory in @folio, bytes
 * @length: of the memory, bytes, not 0
 * @raddr: the address of its counterpart at the target
 * @rkey: the key for @raddr, of the QP of this direction
 *
 * What continues the piece before it on both sides takes no segment and no request of its own. An
 * empty transfer has room for any piece that a folio of the page cache can be.
 *
 * Context: Process.
 * Return: false when the transfer is full; nothing was added then.
 */
bool smcfs_xfer_add(struct smcfs_xfer *xfer, struct folio *folio, size_t offset, u32 length,
		    u64 raddr, u32 rkey)
{
	u32 piece_max = min(xfer->ep->max_seg, xfer->ep->max_msg);
	struct smcfs_seg *seg;
	struct smcfs_wr *wr;

	if (xfer->nr_segs && xfer->bytes + length > SMCFS_XFER_BYTES_MAX)
		return false;

	wr = xfer_wr_before(xfer, length, raddr, rkey);
	seg = xfer_seg_before(xfer, folio, offset, length);
	if (wr && seg) {
		seg->length += length;
		wr->length += length;
		xfer->bytes += length;
		return true;
	}
	if (DIV_ROUND_UP(length, piece_max) > SMCFS_XFER_SEGS_MAX - xfer->nr_segs)
		return false;
	while (length) {
		u32 piece = min(length, piece_max);

		xfer_append(xfer, folio, offset, piece, raddr, rkey);
		offset += piece;
		raddr += piece;
		length -= piece;
	}
	return true;
}

/**
 * smcfs_xfer_submit() - hand a transfer over
 * @xfer: the transfer, with done() set
 *
 * done() is called exactly once, possibly before this returns: at once if the session is not live.
 * Requests that find the send queue full wait in order of submission.
 *
 * Context: Process, no spinlock held. Never waits for the network or for room in the queue.
 */
void smcfs_xfer_submit(struct smcfs_xfer *xfer)
{
	struct smcfs_ep *ep = xfer->ep;
	int err = -ENOTCONN;

	if (WARN_ON_ONCE(!xfer->nr_wrs)) {
		xfer->done(xfer, 0);
		return;
	}
	xfer_chain(xfer);

	/* Pairs with synchronize_rcu() of destroy_work, before the device may go. */
	rcu_read_lock();
	/* Pairs with smp_store_release() of ep.c, after the device was set. */
	if (smp_load_acquire(&ep->state) == SMCFS_EP_LIVE) {
		err = xfer_map(xfer);
		if (!err && !smcfs_ep_submit(ep, xfer)) {
			xfer_unmap(xfer, xfer->nr_segs);
			err = -ENOTCONN;
		}
	}
	rcu_read_unlock();

	/* Without an error the transfer is out of our hands, and may be gone already. */
	if (err)
		smcfs_xfer_complete(xfer, err);
}

/**
 * smcfs_xfer_complete() - hand a transfer back
 * @xfer: on no list any more, and no longer known to the device
 * @err: 0 or a negative errno
 *
 * Context: That of done().
 */
void smcfs_xfer_complete(struct smcfs_xfer *xfer, int err)
{
	struct smcfs_session *session = xfer->ep->session;
	struct smcfs_stats *st = &session->stats;

	if (xfer->mapped)
		xfer_unmap(xfer, xfer->nr_segs);
	if (xfer->posted_ns) {
		xfer->latency_ns = ktime_get_ns() - xfer->posted_ns;
		trace_smcfs_complete(session->params.id, xfer->op, xfer->bytes, xfer->latency_ns,
				     xfer->status);
	}
	if (err) {
		smcfs_stat_add(st, SMCFS_STAT_ERRORS, xfer->nr_wrs);
	} else if (!smcfs_xfer_op_writes(xfer->op)) {
		smcfs_stat_add(st, SMCFS_STAT_FETCH_OPS, xfer->nr_wrs);
		smcfs_stat_add(st, SMCFS_STAT_FETCH_BYTES, xfer->bytes);
	} else {
		smcfs_stat_add(st, SMCFS_STAT_FLUSH_BATCHES, 1);
		smcfs_stat_add(st, SMCFS_STAT_FLUSH_OPS, xfer->nr_wrs);
		smcfs_stat_add(st, SMCFS_STAT_FLUSH_BYTES, xfer->bytes);
	}
	xfer->done(xfer, err);
}

/**
 * smcfs_xfer_free() - give a transfer back to the pool
 * @xfer: never submitted, or done
 *
 * Context: Any but hard interrupt.
 */
void smcfs_xfer_free(struct smcfs_xfer *xfer)
{
	struct smcfs_grant *grant = xfer->grant;

	mempool_free(xfer, xfer_pool);
	smcfs_grant_put(grant);
}

/* The kernel clears what it allocates (init_on_alloc), but not what has a constructor. */
static void xfer_construct(void *xfer)
{
}

/* As those of slab pools, which want no constructor since they may fill what is in reserve. */
static void *xfer_pool_alloc(gfp_t gfp, void *unused)
{
	return kmem_cache_alloc(xfer_cache, gfp);
}

static void xfer_pool_free(void *xfer, void *unused)
{
	kmem_cache_free(xfer_cache, xfer);
}

int smcfs_xfer_init(void)
{
	xfer_cache = kmem_cache_create("smcfs_xfer", sizeof(struct smcfs_xfer), 0, 0,
				       xfer_construct);
	if (!xfer_cache)
		return -ENOMEM;
	xfer_pool = mempool_create(XFER_RESERVE, xfer_pool_alloc, xfer_pool_free, NULL);
	if (!xfer_pool) {
		kmem_cache_destroy(xfer_cache);
		return -ENOMEM;
	}
	return 0;
}

void smcfs_xfer_exit(void)
{
	mempool_destroy(xfer_pool);
	kmem_cache_destroy(xfer_cache);
}
