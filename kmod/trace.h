/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: /sys/kernel/tracing/events/smcfs. Positions and lengths are bytes, ranges [start, end).
 * Copyright (c) 2026 The SMC authors
 *
 * Contexts: any, hard interrupts included: the arguments are plain integers, so an event neither
 * follows a pointer nor takes a reference.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM smcfs

#if !defined(SMCFS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SMCFS_TRACE_H

#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <linux/types.h>

#include "smcfs.h"

/* Readers of the binary ring get the values of these names from the event's format. */
TRACE_DEFINE_ENUM(SMCFS_XFER_READ);
TRACE_DEFINE_ENUM(SMCFS_XFER_WRITE);
TRACE_DEFINE_ENUM(SMCFS_XFER_FLAG);
TRACE_DEFINE_ENUM(SMCFS_XFER_FETCH_ADD);
TRACE_DEFINE_ENUM(SMCFS_XFER_COMPARE_SWAP);
TRACE_DEFINE_ENUM(SMCFS_SESSION_CONNECTING);
TRACE_DEFINE_ENUM(SMCFS_SESSION_LIVE);
TRACE_DEFINE_ENUM(SMCFS_SESSION_DRAINING);
TRACE_DEFINE_ENUM(SMCFS_SESSION_DEAD);
TRACE_DEFINE_ENUM(SMCFS_REGION_BINDING);
TRACE_DEFINE_ENUM(SMCFS_REGION_ACTIVE);
TRACE_DEFINE_ENUM(SMCFS_REGION_DEGRADED);
TRACE_DEFINE_ENUM(SMCFS_REGION_FAILED);
TRACE_DEFINE_ENUM(SMCFS_REGION_DETACHING);

#define smcfs_show_op(op)					\
	__print_symbolic(op,					\
			 { SMCFS_XFER_READ,	"read" },	\
			 { SMCFS_XFER_WRITE,	"write" },	\
			 { SMCFS_XFER_FLAG,	"flag" },	\
			 { SMCFS_XFER_FETCH_ADD, "fetch-add" },	\
			 { SMCFS_XFER_COMPARE_SWAP, "compare-swap" })

#define smcfs_show_session_state(state)					\
	__print_symbolic(state,						\
			 { SMCFS_SESSION_UNSPEC,	"none" },	\
			 { SMCFS_SESSION_CONNECTING,	"connecting" },	\
			 { SMCFS_SESSION_LIVE,		"live" },	\
			 { SMCFS_SESSION_DRAINING,	"draining" },	\
			 { SMCFS_SESSION_DEAD,		"dead" })

#define smcfs_show_region_state(state)					\
	__print_symbolic(state,						\
			 { SMCFS_REGION_UNSPEC,		"none" },	\
			 { SMCFS_REGION_BINDING,	"binding" },	\
			 { SMCFS_REGION_ACTIVE,		"active" },	\
			 { SMCFS_REGION_DEGRADED,	"degraded" },	\
			 { SMCFS_REGION_FAILED,		"failed" },	\
			 { SMCFS_REGION_DETACHING,	"detaching" })

DECLARE_EVENT_CLASS(smcfs_piece,
	TP_PROTO(u64 region_id, u64 pos, u64 bytes),
	TP_ARGS(region_id, pos, bytes),
	TP_STRUCT__entry(
		__field(u64, region_id)
		__field(u64, pos)
		__field(u64, bytes)
	),
	TP_fast_assign(
		__entry->region_id = region_id;
		__entry->pos = pos;
		__entry->bytes = bytes;
	),
	TP_printk("region %llu pos 0x%llx bytes %llu",
		  __entry->region_id, __entry->pos, __entry->bytes)
);

/* A fetch was handed over for transfer. */
DEFINE_EVENT(smcfs_piece, smcfs_fetch,
	TP_PROTO(u64 region_id, u64 pos, u64 bytes),
	TP_ARGS(region_id, pos, bytes)
);

/* Pages that were clean became dirty. */
DEFINE_EVENT(smcfs_piece, smcfs_dirty,
	TP_PROTO(u64 region_id, u64 pos, u64 bytes),
	TP_ARGS(region_id, pos, bytes)
);

/*
 * Somebody stores to a page through a mapping, in a fault that makes it writable (@mapped; @pos is
 * the byte, @bytes 1), or has written by write(2). @first: the page's folio was clean. Stores to a
 * page that is writable already are not seen.
 */
TRACE_EVENT(smcfs_store,
	TP_PROTO(u64 region_id, u64 pos, u64 bytes, bool mapped, bool first),
	TP_ARGS(region_id, pos, bytes, mapped, first),
	TP_STRUCT__entry(
		__field(u64, region_id)
		__field(u64, pos)
		__field(u64, bytes)
		__field(int, tgid)
		__field(bool, mapped)
		__field(bool, first)
	),
	TP_fast_assign(
		__entry->region_id = region_id;
		__entry->pos = pos;
		__entry->bytes = bytes;
		__entry->tgid = current->tgid;
		__entry->mapped = mapped;
		__entry->first = first;
	),
	TP_printk("region %llu pos 0x%llx bytes %llu tgid %d mapped %d first %d",
		  __entry->region_id, __entry->pos, __entry->bytes, __entry->tgid,
		  __entry->mapped, __entry->first)
);

TRACE_EVENT(smcfs_fetch_done,
	TP_PROTO(u64 region_id, u64 pos, u64 bytes, int err),
	TP_ARGS(region_id, pos, bytes, err),
	TP_STRUCT__entry(
		__field(u64, region_id)
		__field(u64, pos)
		__field(u64, bytes)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->region_id = region_id;
		__entry->pos = pos;
		__entry->bytes = bytes;
		__entry->err = err;
	),
	TP_printk("region %llu pos 0x%llx bytes %llu err %d",
		  __entry->region_id, __entry->pos, __entry->bytes, __entry->err)
);

/* One transfer of write-back; barriers wait for its ticket. */
TRACE_EVENT(smcfs_flush_batch,
	TP_PROTO(u64 region_id, u64 ticket, unsigned int pages, u64 bytes),
	TP_ARGS(region_id, ticket, pages, bytes),
	TP_STRUCT__entry(
		__field(u64, region_id)
		__field(u64, ticket)
		__field(u64, bytes)
		__field(unsigned int, pages)
	),
	TP_fast_assign(
		__entry->region_id = region_id;
		__entry->ticket = ticket;
		__entry->bytes = bytes;
		__entry->pages = pages;
	),
	TP_printk("region %llu ticket %llu pages %u bytes %llu",
		  __entry->region_id, __entry->ticket, __entry->pages, __entry->bytes)
);

TRACE_EVENT(smcfs_flush_done,
	TP_PROTO(u64 region_id, u64 ticket, u64 bytes, int err),
	TP_ARGS(region_id, ticket, bytes, err),
	TP_STRUCT__entry(
		__field(u64, region_id)
		__field(u64, ticket)
		__field(u64, bytes)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->region_id = region_id;
		__entry->ticket = ticket;
		__entry->bytes = bytes;
		__entry->err = err;
	),
	TP_printk("region %llu ticket %llu bytes %llu err %d",
		  __entry->region_id, __entry->ticket, __entry->bytes, __entry->err)
);

DECLARE_EVENT_CLASS(smcfs_range,
	TP_PROTO(u64 region_id, u64 start, u64 end, int err),
	TP_ARGS(region_id, start, end, err),
	TP_STRUCT__entry(
		__field(u64, region_id)
		__field(u64, start)
		__field(u64, end)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->region_id = region_id;
		__entry->start = start;
		__entry->end = end;
		__entry->err = err;
	),
	TP_printk("region %llu start 0x%llx end 0x%llx err %d",
		  __entry->region_id, __entry->start, __entry->end, __entry->err)
);

/* A barrier returned. */
DEFINE_EVENT(smcfs_range, smcfs_barrier,
	TP_PROTO(u64 region_id, u64 start, u64 end, int err),
	TP_ARGS(region_id, start, end, err)
);

/* An acquire returned. */
DEFINE_EVENT(smcfs_range, smcfs_acquire,
	TP_PROTO(u64 region_id, u64 start, u64 end, int err),
	TP_ARGS(region_id, start, end, err)
);

/* A chain of work requests went to the device. */
TRACE_EVENT(smcfs_post,
	TP_PROTO(u64 session_id, int op, unsigned int nr_wrs, u64 bytes),
	TP_ARGS(session_id, op, nr_wrs, bytes),
	TP_STRUCT__entry(
		__field(u64, session_id)
		__field(u64, bytes)
		__field(int, op)
		__field(unsigned int, nr_wrs)
	),
	TP_fast_assign(
		__entry->session_id = session_id;
		__entry->bytes = bytes;
		__entry->op = op;
		__entry->nr_wrs = nr_wrs;
	),
	TP_printk("session 0x%llx %s wrs %u bytes %llu",
		  __entry->session_id, smcfs_show_op(__entry->op),
		  __entry->nr_wrs, __entry->bytes)
);

/* It came back; @status is enum ib_wc_status, 0 success. */
TRACE_EVENT(smcfs_complete,
	TP_PROTO(u64 session_id, int op, u64 bytes, u64 latency_ns, int status),
	TP_ARGS(session_id, op, bytes, latency_ns, status),
	TP_STRUCT__entry(
		__field(u64, session_id)
		__field(u64, bytes)
		__field(u64, latency_ns)
		__field(int, op)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->session_id = session_id;
		__entry->bytes = bytes;
		__entry->latency_ns = latency_ns;
		__entry->op = op;
		__entry->status = status;
	),
	TP_printk("session 0x%llx %s bytes %llu latency_ns %llu status %d",
		  __entry->session_id, smcfs_show_op(__entry->op), __entry->bytes,
		  __entry->latency_ns, __entry->status)
);

DECLARE_EVENT_CLASS(smcfs_edge,
	TP_PROTO(u64 id, int old, int new, int err),
	TP_ARGS(id, old, new, err),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(int, old)
		__field(int, new)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->old = old;
		__entry->new = new;
		__entry->err = err;
	),
	TP_printk("session 0x%llx %s -> %s err %d", __entry->id,
		  smcfs_show_session_state(__entry->old),
		  smcfs_show_session_state(__entry->new), __entry->err)
);

DEFINE_EVENT(smcfs_edge, smcfs_session_state,
	TP_PROTO(u64 id, int old, int new, int err),
	TP_ARGS(id, old, new, err)
);

DEFINE_EVENT_PRINT(smcfs_edge, smcfs_region_state,
	TP_PROTO(u64 id, int old, int new, int err),
	TP_ARGS(id, old, new, err),
	TP_printk("region %llu %s -> %s err %d", __entry->id,
		  smcfs_show_region_state(__entry->old),
		  smcfs_show_region_state(__entry->new), __entry->err)
);

#endif /* SMCFS_TRACE_H */

/* This part is read again by define_trace.h, which finds it by -I$(src)/kmod. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
