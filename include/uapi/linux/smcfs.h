/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
/*
 * smcfs: the contract between the kernel module and user space.
 * Copyright (c) 2026 The SMC authors
 *
 * Generic netlink family "smcfs". Requests that change anything need CAP_NET_ADMIN in the
 * initial namespaces (GENL_ADMIN_PERM); the *_GET dumps are open to everyone.
 * Unknown attributes are refused. All integers are in host byte order; RDMA addresses, keys and
 * tokens are opaque to the kernel and are passed as they were granted.
 */
#ifndef _UAPI_LINUX_SMCFS_H
#define _UAPI_LINUX_SMCFS_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define SMCFS_GENL_NAME		"smcfs"
#define SMCFS_GENL_VERSION	1
#define SMCFS_GENL_MCGRP_EVENTS	"events"
#define SMCFS_FS_TYPE		"smcfs"
#define SMCFS_SUPER_MAGIC	0x534d4346	/* "SMCF" */

#define SMCFS_NODE_NAME_MAX	63	/* bytes, without NUL: one path component */
#define SMCFS_REGION_NAME_MAX	191	/* bytes, without NUL: components joined by '/' */
#define SMCFS_REGION_SIZE_MAX	(1ULL << 44)	/* 16 TiB */
#define SMCFS_MERGE_UNIT_MIN	4
#define SMCFS_MERGE_UNIT_MAX	4096
#define SMCFS_MERGE_UNIT	64		/* the default */
#define SMCFS_GRANULE_MIN	4096
#define SMCFS_GRANULE_MAX	1048576
#define SMCFS_GRANULE		4096		/* the default */
#define SMCFS_TOKEN_BYTES	16
#define SMCFS_EXTENTS_MAX	1024
#define SMCFS_EXTENT_MIN	(2ULL << 20)	/* every extent but a grant's last */
#define SMCFS_REASON_MAX	127

/*
 * Private data of the client's rdma_cm connect request: which QP of which session this is. All
 * fields little endian. The target compares the token in constant time and accepts it once.
 */
#define SMCFS_CM_MAGIC		0x31434d53	/* "SMC1" */
#define SMCFS_CM_VERSION	1
#define SMCFS_CM_QP_READ	0	/* fetches */
#define SMCFS_CM_QP_BULK	1	/* write-back */

struct smcfs_cm_private {
	__le32	magic;
	__le16	version;
	__le16	qp_role;		/* SMCFS_CM_QP_* */
	__le64	session_id;
	__u8	token[SMCFS_TOKEN_BYTES];
};

/**
 * enum smcfs_cmd - messages of the family
 * @SMCFS_CMD_UNSPEC: no message has it.
 *
 * Requests of the daemon (each is acknowledged with an errno):
 * @SMCFS_CMD_DAEMON_HELLO: this socket takes the upcalls from now on; -EBUSY while another lives.
 * @SMCFS_CMD_PEER_ADD: NODE: a directory of this name appears under the mount. -EEXIST.
 * @SMCFS_CMD_PEER_DEL: NODE: the name goes; -EBUSY while regions of it are attached.
 * @SMCFS_CMD_SESSION_CONNECT: SESSION_ID, NODE, DST_ADDR, [SRC_ADDR], TOKEN_READ, TOKEN_BULK,
 *	REQUEST_TIMEOUT_MS, CONNECT_TIMEOUT_MS: start to connect both QPs. The result arrives as
 *	SMCFS_CMD_EVENT_SESSION with state LIVE or DEAD.
 * @SMCFS_CMD_SESSION_DEL: SESSION_ID: destroy the QPs; EVENT_SESSION DEAD says it is done.
 * @SMCFS_CMD_REGION_ATTACH: NODE, NAME, SESSION_ID, GENERATION, SIZE, MODE, UID, GID, WRITERS,
 *	FLAGS, [MERGE_UNIT], EXTENTS: bind a name to a grant. For a name that is attached with the
 *	same generation this replaces session and extents (rebind, DEGRADED -> ACTIVE); with another
 *	generation the old region is revoked first. The reply carries REGION_ID.
 * @SMCFS_CMD_BIND_FAIL: NODE, NAME, ERRNO: no such grant. EISDIR: the name is a prefix of names.
 * @SMCFS_CMD_REGION_DETACH: REGION_ID, [FLAGS SMCFS_DETACH_FORCE]: flush and forget. -EBUSY while
 *	open or mapped; -EIO when dirty pages could not be sent (nothing is lost). With FORCE dirty
 *	pages are discarded, open files turn to EIO; the reply carries DISCARDED_BYTES.
 * @SMCFS_CMD_REGION_REVOKE: REGION_ID: the memory is gone for good; as DETACH with FORCE.
 * @SMCFS_CMD_REGION_SET: REGION_ID and any of CTO, FLUSH_AFTER_MS, MERGE_UNIT, WRITERS, SYNC_MODE,
 *	PUSH_DELAY_US, MAX_STALE_US, HOT, GRANULE, [ORIGIN]: change a live region, all or nothing.
 *	What has a higher origin already keeps its value, without an error. WRITERS: -EBUSY while it
 *	is open for writing or has pages that are in use; -EPERM: merge where the exporter asks for
 *	exclusive. HOT: -EOPNOTSUPP: on, which this kernel cannot; of a lower ORIGIN than SET it is
 *	passed over then. GRANULE: what is fetched from then on; pages that are here stay.
 * @SMCFS_CMD_WRITER_RESULT: REGION_ID, ERRNO (0: granted): answer to UPCALL_WRITER.
 * @SMCFS_CMD_LIST_RESULT: COOKIE, ERRNO, NAMES: answer to UPCALL_LIST.
 *
 * Dumps:
 * @SMCFS_CMD_INFO_GET: (not a dump) VERSION, DAEMON_PRESENT, NODE_COUNT, ...
 * @SMCFS_CMD_PEER_GET: one message per peer name.
 * @SMCFS_CMD_SESSION_GET: one message per session.
 * @SMCFS_CMD_REGION_GET: one message per region; with REGION_ID only that one.
 * @SMCFS_CMD_PAGES_GET: (needs CAP_NET_ADMIN) REGION_ID: runs of pages that are here, rising, in
 *	PAGES of any number of messages. Pages change while they are listed.
 * @SMCFS_CMD_LATENCY_GET: one message per region and enum smcfs_latency: REGION_ID, LATENCY,
 *	BUCKETS; with REGION_ID those of that region. Regions that were never bound have none.
 *
 * Upcalls, unicast to the daemon:
 * @SMCFS_CMD_UPCALL_BIND: NODE, NAME: answer with REGION_ATTACH or BIND_FAIL.
 * @SMCFS_CMD_UPCALL_LIST: NODE, COOKIE: answer with LIST_RESULT.
 * @SMCFS_CMD_UPCALL_WRITER: REGION_ID, NODE, NAME: get the writing right of this region.
 * @SMCFS_CMD_UPCALL_WRITER_RELEASE: REGION_ID, NODE, NAME: it is no longer needed.
 *
 * Events, multicast group "events" (the group is readable by CAP_NET_ADMIN only):
 * @SMCFS_CMD_EVENT_SESSION: SESSION_ID, NODE, STATE, ERRNO, REASON.
 * @SMCFS_CMD_EVENT_REGION: REGION_ID, NODE, NAME, GENERATION, SESSION_ID, STATE, ERRNO, REASON.
 */
enum smcfs_cmd {
	SMCFS_CMD_UNSPEC,
	SMCFS_CMD_DAEMON_HELLO,
	SMCFS_CMD_PEER_ADD,
	SMCFS_CMD_PEER_DEL,
	SMCFS_CMD_SESSION_CONNECT,
	SMCFS_CMD_SESSION_DEL,
	SMCFS_CMD_REGION_ATTACH,
	SMCFS_CMD_BIND_FAIL,
	SMCFS_CMD_REGION_DETACH,
	SMCFS_CMD_REGION_REVOKE,
	SMCFS_CMD_REGION_SET,
	SMCFS_CMD_WRITER_RESULT,
	SMCFS_CMD_LIST_RESULT,
	SMCFS_CMD_INFO_GET,
	SMCFS_CMD_PEER_GET,
	SMCFS_CMD_SESSION_GET,
	SMCFS_CMD_REGION_GET,
	SMCFS_CMD_UPCALL_BIND,
	SMCFS_CMD_UPCALL_LIST,
	SMCFS_CMD_UPCALL_WRITER,
	SMCFS_CMD_UPCALL_WRITER_RELEASE,
	SMCFS_CMD_EVENT_SESSION,
	SMCFS_CMD_EVENT_REGION,
	SMCFS_CMD_PAGES_GET,
	SMCFS_CMD_LATENCY_GET,
	/* private: */
	__SMCFS_CMD_MAX,
};
#define SMCFS_CMD_MAX (__SMCFS_CMD_MAX - 1)

/* Attributes of every message; the type is behind the name. */
enum smcfs_attr {
	SMCFS_A_UNSPEC,
	SMCFS_A_PAD,
	SMCFS_A_NODE,			/* string, 1..SMCFS_NODE_NAME_MAX */
	SMCFS_A_NAME,			/* string, 1..SMCFS_REGION_NAME_MAX */
	SMCFS_A_SESSION_ID,		/* u64, not 0: chosen by the daemon, unique for ever */
	SMCFS_A_REGION_ID,		/* u64: chosen by the kernel; also the inode number */
	SMCFS_A_GENERATION,		/* u64, not 0 */
	SMCFS_A_SIZE,			/* u64, bytes, 1..SMCFS_REGION_SIZE_MAX */
	SMCFS_A_MODE,			/* u32, permission bits 0..0777 */
	SMCFS_A_UID,			/* u32 */
	SMCFS_A_GID,			/* u32 */
	SMCFS_A_WRITERS,		/* u32, enum smcfs_writers */
	SMCFS_A_FLAGS,			/* u32, SMCFS_RF_* or SMCFS_DETACH_* */
	SMCFS_A_EXTENTS,		/* binary: array of struct smcfs_extent, sorted, gapless */
	SMCFS_A_DST_ADDR,		/* binary: struct sockaddr_in or _in6 with port */
	SMCFS_A_SRC_ADDR,		/* binary: the same, port 0: which local device */
	SMCFS_A_TOKEN_READ,		/* binary, SMCFS_TOKEN_BYTES */
	SMCFS_A_TOKEN_BULK,		/* binary, SMCFS_TOKEN_BYTES */
	SMCFS_A_REQUEST_TIMEOUT_MS,	/* u32, 10..600000: no progress for so long fails the QP */
	SMCFS_A_CONNECT_TIMEOUT_MS,	/* u32, 10..600000: for the whole connect */
	SMCFS_A_ERRNO,			/* u32, positive errno or 0 */
	SMCFS_A_COOKIE,			/* u64 */
	SMCFS_A_NAMES,			/* nested: SMCFS_A_NAME ... */
	SMCFS_A_STATE,			/* u32, enum smcfs_session_state or smcfs_region_state */
	SMCFS_A_REASON,			/* string: for people */
	SMCFS_A_CTO,			/* u8, 0 or 1: close-to-open */
	SMCFS_A_FLUSH_AFTER_MS,		/* u32, 1..3600000 */
	SMCFS_A_STATS,			/* nested: SMCFS_STAT_* as u64 */
	SMCFS_A_DIRTY_BYTES,		/* u64 */
	SMCFS_A_WRITEBACK_BYTES,	/* u64 */
	SMCFS_A_CACHED_BYTES,		/* u64 */
	SMCFS_A_OPENERS,		/* u32: open files */
	SMCFS_A_WRITER_STATE,		/* u32, enum smcfs_writer_state */
	SMCFS_A_OLDEST_MS,		/* u32: age of the oldest request in flight, 0: none */
	SMCFS_A_INFLIGHT,		/* u32: requests posted and not completed */
	SMCFS_A_QUEUED,			/* u32: requests waiting for send-queue slots */
	SMCFS_A_RDMA_DEVICE,		/* string */
	SMCFS_A_DISCARDED_BYTES,	/* u64 */
	SMCFS_A_DAEMON_PRESENT,		/* u8 */
	SMCFS_A_VERSION,		/* string: module version */
	SMCFS_A_ORIGIN,			/* u8, enum smcfs_origin of what is set; absent: SET */
	SMCFS_A_CTO_ORIGIN,		/* u8, enum smcfs_origin */
	SMCFS_A_FLUSH_AFTER_ORIGIN,	/* u8, enum smcfs_origin */
	SMCFS_A_MERGE_UNIT,		/* u32, bytes: a power of two, 4..4096 */
	SMCFS_A_MERGE_UNIT_ORIGIN,	/* u8, enum smcfs_origin */
	SMCFS_A_WRITERS_ORIGIN,		/* u8, enum smcfs_origin */
	SMCFS_A_SYNC_MODE,		/* u32, enum smcfs_sync */
	SMCFS_A_PUSH_DELAY_US,		/* u32, 0..SMCFS_PUSH_DELAY_US_MAX */
	SMCFS_A_MAX_STALE_US,		/* u32, 0 (off)..SMCFS_MAX_STALE_US_MAX */
	SMCFS_A_SYNC_MODE_ORIGIN,	/* u8, enum smcfs_origin */
	SMCFS_A_PUSH_DELAY_ORIGIN,	/* u8, enum smcfs_origin */
	SMCFS_A_MAX_STALE_ORIGIN,	/* u8, enum smcfs_origin */
	SMCFS_A_PAGES,			/* binary: array of struct smcfs_page_run */
	SMCFS_A_HOT,			/* u8, 0 or 1: pages that are written often stay writable */
	SMCFS_A_HOT_ORIGIN,		/* u8, enum smcfs_origin */
	SMCFS_A_LATENCY,		/* u32, enum smcfs_latency */
	SMCFS_A_BUCKETS,		/* binary: array of SMCFS_LATENCY_BUCKETS u64 */
	SMCFS_A_GRANULE,		/* u32, bytes: a power of two, 4096..1048576: */
					/* absent pages are fetched by so much, aligned */
	SMCFS_A_GRANULE_ORIGIN,		/* u8, enum smcfs_origin */
	__SMCFS_A_MAX,
};
#define SMCFS_A_MAX (__SMCFS_A_MAX - 1)

/* One contiguous piece of a region in the target's memory. */
struct smcfs_extent {
	__aligned_u64 offset;		/* in the region; of the first extent 0 */
	__aligned_u64 length;		/* bytes, >= SMCFS_EXTENT_MIN but for the last */
	__aligned_u64 addr;		/* remote address; any alignment */
	__u32	rkey_read;		/* valid on the read QP only */
	__u32	rkey_bulk;		/* valid on the bulk QP only */
};

enum smcfs_page_state {
	SMCFS_PAGE_STATE_UNSPEC,
	SMCFS_PAGE_ABSENT,		/* in no run */
	SMCFS_PAGE_FETCHING,
	SMCFS_PAGE_CLEAN,
	SMCFS_PAGE_DIRTY,		/* has to be sent */
	SMCFS_PAGE_INFLIGHT,		/* sent, not acknowledged */
	SMCFS_PAGE_HOT,			/* stays writable; perhaps stored to since it was sent */
	__SMCFS_PAGE_STATE_MAX,
};
#define SMCFS_PAGE_STATE_MAX (__SMCFS_PAGE_STATE_MAX - 1)

/* Pages of 4 KiB in one state. */
struct smcfs_page_run {
	__aligned_u64 first;		/* index in the region */
	__u32	pages;
	__u32	state;			/* enum smcfs_page_state */
};

enum smcfs_writers {
	SMCFS_WRITERS_UNSPEC,
	SMCFS_WRITERS_EXCLUSIVE,	/* one writing session; changed lines, or whole pages */
	SMCFS_WRITERS_MERGE,		/* any number, units that changed */
	__SMCFS_WRITERS_MAX,
};
#define SMCFS_WRITERS_MAX (__SMCFS_WRITERS_MAX - 1)

/* When stores leave without a barrier. */
enum smcfs_sync {
	SMCFS_SYNC_UNSPEC,
	SMCFS_SYNC_LAZY,		/* FLUSH_AFTER_MS after a page became dirty */
	SMCFS_SYNC_PUSH,		/* PUSH_DELAY_US after */
	SMCFS_SYNC_EAGER,		/* write(2) waits for the acknowledgment */
	__SMCFS_SYNC_MAX,
};
#define SMCFS_SYNC_MAX (__SMCFS_SYNC_MAX - 1)

#define SMCFS_PUSH_DELAY_US	20	/* the default */
#define SMCFS_PUSH_DELAY_US_MAX	1000000
#define SMCFS_MAX_STALE_US_MAX	3600000000U

#define SMCFS_RF_READONLY	0x1	/* nobody here may write, root included (EROFS) */
#define SMCFS_RF_ATOMICS	0x2	/* the target's device and the read keys allow atomics */
#define SMCFS_RF_ALL		(SMCFS_RF_READONLY | SMCFS_RF_ATOMICS)
#define SMCFS_DETACH_FORCE	0x1

enum smcfs_session_state {
	SMCFS_SESSION_UNSPEC,
	SMCFS_SESSION_CONNECTING,
	SMCFS_SESSION_LIVE,
	SMCFS_SESSION_DRAINING,		/* lost or being deleted; requests are failing */
	SMCFS_SESSION_DEAD,		/* QPs destroyed: the last event of a session */
	__SMCFS_SESSION_STATE_MAX,
};

enum smcfs_region_state {
	SMCFS_REGION_UNSPEC,
	SMCFS_REGION_BINDING,
	SMCFS_REGION_ACTIVE,
	SMCFS_REGION_DEGRADED,		/* session lost, dirty pages kept */
	SMCFS_REGION_FAILED,		/* bind failed, or revoked */
	SMCFS_REGION_DETACHING,
	__SMCFS_REGION_STATE_MAX,
};

enum smcfs_writer_state {
	SMCFS_WRITER_UNSPEC,
	SMCFS_WRITER_NONE,
	SMCFS_WRITER_ASKING,
	SMCFS_WRITER_HELD,
	__SMCFS_WRITER_STATE_MAX,
};

/* Where the value of a parameter comes from: a higher one is never replaced by a lower one. */
enum smcfs_origin {
	SMCFS_ORIGIN_UNSPEC,
	SMCFS_ORIGIN_DEFAULT,
	SMCFS_ORIGIN_EXPORT,		/* hint of whoever exports the region */
	SMCFS_ORIGIN_CONFIG,		/* the daemon's configuration */
	SMCFS_ORIGIN_SET,		/* somebody at run time */
	__SMCFS_ORIGIN_MAX,
};
#define SMCFS_ORIGIN_MAX (__SMCFS_ORIGIN_MAX - 1)

/* Counters since the region (or session) was made; u64 each. */
enum smcfs_stat {
	SMCFS_STAT_UNSPEC,
	SMCFS_STAT_PAD,
	SMCFS_STAT_FETCH_OPS,		/* RDMA READ requests */
	SMCFS_STAT_FETCH_BYTES,
	SMCFS_STAT_FLUSH_BATCHES,	/* one signalled chain each */
	SMCFS_STAT_FLUSH_OPS,		/* RDMA WRITE requests */
	SMCFS_STAT_FLUSH_BYTES,
	SMCFS_STAT_DIRTIED_PAGES,
	SMCFS_STAT_BARRIERS,
	SMCFS_STAT_ACQUIRES,
	SMCFS_STAT_ERRORS,		/* requests that failed */
	SMCFS_STAT_DISCARDED_BYTES,
	SMCFS_STAT_DIRECT_BYTES,	/* by O_DIRECT, both ways */
	SMCFS_STAT_PUBLISHES,		/* flags that were acknowledged */
	SMCFS_STAT_ATOMICS,
	SMCFS_STAT_FETCH_FAULTS,	/* page faults that found their page absent */
	SMCFS_STAT_WRITE_FAULTS,	/* page faults that made a page writable */
	/*
	 * Of about one in 16 pages that are compared before they are sent: how many bytes go out,
	 * and how many of these differ from what the target was known to hold, or came by write(2).
	 */
	SMCFS_STAT_SAMPLED_SENT_BYTES,
	SMCFS_STAT_SAMPLED_CHANGED_BYTES,
	__SMCFS_STAT_MAX,
};
#define SMCFS_STAT_MAX (__SMCFS_STAT_MAX - 1)

/* What is timed since the region was bound for the first time. */
enum smcfs_latency {
	SMCFS_LATENCY_UNSPEC,
	SMCFS_LATENCY_FETCH,		/* transfers of fetches, from posting to completion */
	SMCFS_LATENCY_WRITE,		/* transfers of write-back, the same */
	SMCFS_LATENCY_FAULT,		/* faults of FETCH_FAULTS, until the page is there or not */
	SMCFS_LATENCY_BARRIER,		/* fsync(2), msync(2), O_SYNC: the calls of BARRIERS */
	__SMCFS_LATENCY_MAX,
};
#define SMCFS_LATENCY_MAX (__SMCFS_LATENCY_MAX - 1)

/*
 * Buckets of a histogram: the first is what took less than 2^SMCFS_LATENCY_SHIFT nanoseconds; then
 * each power of two has SMCFS_LATENCY_STEPS of equal width; the last has no upper end. Transfers
 * that failed are in none.
 */
#define SMCFS_LATENCY_SHIFT	8
#define SMCFS_LATENCY_STEPS	4
#define SMCFS_LATENCY_POWERS	28	/* the last bucket begins at 7/8 of 2^36 ns, a minute */
#define SMCFS_LATENCY_BUCKETS	(1 + SMCFS_LATENCY_POWERS * SMCFS_LATENCY_STEPS)

/*
 * ioctls on an open file of a region. Offsets are bytes from the region's beginning. All wait for
 * the target, killably, and are ended by the session's request timeout; WAIT by its own, and while
 * it pauses by any signal. Fields named "flags" must be 0.
 *
 * A word is 4 or 8 bytes at a multiple of its size. Errors of all: EINVAL: a size, an alignment, an
 * unknown flag or operation; ERANGE: past the region's end; EIO: not done (no live session, the
 * region is dead, what had to be sent before was not, or the target refused); EINTR: killed, or, of
 * WAIT, a signal; EFAULT: of ATOMIC and WAIT it may have been done.
 *
 * EREMOTEIO of PUBLISH and ATOMIC: the request went out and the session was lost before it was
 * acknowledged. Nobody knows whether it was done; it is done at most once, since it is never sent
 * again. The shadow page keeps the old value; after the session is back an acquire shows what
 * holds.
 *
 * @SMCFS_IOC_PUBLISH: (file open for writing) sends what is dirty in [offset, offset + length), as
 *	fsync does, then writes the flag at the target: who sees the flag there sees the range as
 *	it was at the call, or later. The flag is sent even if the shadow holds its value already.
 *	The shadow page of the flag follows; the flag's page does not become dirty.
 * @SMCFS_IOC_ATOMIC: (file open for writing) changes 8 bytes at the target by its device, as one
 *	step for all atomics that go through that device, of whatever node. Neither CPUs nor
 *	accelerators of the target are held off unless the device says so. What was stored to the
 *	word here before is sent first; stores elsewhere that are still dirty come later: flush
 *	first where that matters. A store to the word while an atomic of it is on its way has no
 *	defined outcome. The shadow page follows. EOPNOTSUPP: a device on either side has no
 *	atomics.
 * @SMCFS_IOC_WAIT: looks at a word in the target's memory, with pauses of up to 1 ms between
 *	looks, until (word & mask) compares to (value & mask) as asked; sleeps meanwhile.
 *	ETIMEDOUT: it did not. "seen" is the word as it was last. Other shadow pages stay as they
 *	are: acquire them.
 */
struct smcfs_ioc_publish {
	__aligned_u64 offset;
	__aligned_u64 length;		/* 0: nothing but the flag */
	__aligned_u64 flag_offset;
	__aligned_u64 value;
	__u32	size;			/* of the flag */
	__u32	flags;
};

enum smcfs_atomic {
	SMCFS_ATOMIC_UNSPEC,
	SMCFS_ATOMIC_FETCH_ADD,		/* += operand, modulo 2^64 */
	SMCFS_ATOMIC_COMPARE_SWAP,	/* = operand, if it was compare */
	__SMCFS_ATOMIC_MAX,
};
#define SMCFS_ATOMIC_MAX (__SMCFS_ATOMIC_MAX - 1)

struct smcfs_ioc_atomic {
	__aligned_u64 offset;
	__aligned_u64 operand;
	__aligned_u64 compare;
	__aligned_u64 old;		/* out: as it was before */
	__u32	op;			/* enum smcfs_atomic */
	__u32	flags;
};

enum smcfs_wait_cond {
	SMCFS_WAIT_UNSPEC,
	SMCFS_WAIT_NE,			/* until it changed */
	SMCFS_WAIT_EQ,
	SMCFS_WAIT_GE,			/* unsigned */
	__SMCFS_WAIT_MAX,
};
#define SMCFS_WAIT_MAX (__SMCFS_WAIT_MAX - 1)
#define SMCFS_WAIT_TIMEOUT_MS_MAX	600000

struct smcfs_ioc_wait {
	__aligned_u64 offset;
	__aligned_u64 value;
	__aligned_u64 mask;		/* not 0; of a word of 4 bytes 32 bits, as value */
	__aligned_u64 seen;		/* out, also with ETIMEDOUT */
	__u32	size;
	__u32	cond;			/* enum smcfs_wait_cond */
	__u32	timeout_ms;		/* 0: one look */
	__u32	flags;
};

#define SMCFS_IOC_MAGIC		0xd5
#define SMCFS_IOC_PUBLISH	_IOW(SMCFS_IOC_MAGIC, 1, struct smcfs_ioc_publish)
#define SMCFS_IOC_ATOMIC	_IOWR(SMCFS_IOC_MAGIC, 2, struct smcfs_ioc_atomic)
#define SMCFS_IOC_WAIT		_IOWR(SMCFS_IOC_MAGIC, 3, struct smcfs_ioc_wait)

#endif /* _UAPI_LINUX_SMCFS_H */
